"""Memories made of the words of the chat, without a language model: the sentences that carry facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Final, NamedTuple

from eunoe.apps.discussion.model import KeywordMemory, LogMessage
from eunoe.apps.discussion.text_size import cut_to_size, size_in_words
from eunoe.form.statements import MIN_SCORE, is_secret, read_statement
from eunoe.model.atom import EXTRACTIVE
from eunoe.text.analyzer import word_cache
from eunoe.text.entities import find_entities, lowercase_words
from eunoe.text.languages import detect_language, stop_words_and_english
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

_DIGEST_WORDS: Final = range(40, 160)
"""A digest has a third of the words of its chunk, within these bounds."""
_DIGEST_SHARE: Final = 1 / 3
_SUMMARY_WORDS: Final = 80
_TITLE_WORDS: Final = 9
_MAX_SENTENCES: Final = 200
"""Sentences of one message that are read: longer ones are documents, whose beginning says what they are about."""
_CACHED_MESSAGES: Final = 1 << 13
_MAX_MEMORIES_SHARE: Final = 0.6
"""Of the messages of a chunk, at most so many become keyword memories."""
_MAX_PHRASES: Final = 8
_MAX_PHRASE_WORDS: Final = 4
_MAX_ENTITIES: Final = 12
_MIN_PHRASE_CHARACTERS: Final = 4
_PHRASE_PART: Final = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_DATE: Final = "%Y-%m-%d"


class _Sentence(NamedTuple):
    text: str
    score: float
    message: int
    """The place of its message in the chunk."""
    number: int


def write_digest(messages: Sequence[LogMessage]) -> str:
    """The sentences of a chunk that carry facts, in order, each message with its date and speaker.

    >>> print(write_digest([LogMessage(id="1", role="user", text="Hi there! I moved to Rome in May.", speaker="Anna")]))
    Anna: I moved to Rome in May.
    """
    sentences = [each for place, message in enumerate(messages) for each in _read(place, message)]
    words = sum(size_in_words(message.text) for message in messages) * _DIGEST_SHARE
    chosen = _choose(sentences, int(min(max(words, _DIGEST_WORDS.start), _DIGEST_WORDS.stop)))
    return "\n".join(_digest_lines(messages, sorted(chosen, key=lambda each: (each.message, each.number))))


def make_keyword_memories(messages: Sequence[LogMessage]) -> list[KeywordMemory]:
    """A memory for each of the messages that say most, in their own words; at least one."""
    read = [list(_read(place, message)) for place, message in enumerate(messages)]
    values = {place: sum(sorted(_scores(sentences))[-2:]) for place, sentences in enumerate(read)}
    ranking = sorted(values, key=lambda place: (-values[place], place))
    most = max(1, round(len(messages) * _MAX_MEMORIES_SHARE))
    telling = [place for place in ranking[:most] if max(_scores(read[place]), default=0.0) >= MIN_SCORE]
    return [_keyword_memory(messages[place], read[place]) for place in sorted(telling or ranking[:1])]


def find_names(text: str) -> tuple[str, ...]:
    """The names in a text, as written."""
    language, known = detect_language(text), lowercase_words(text)
    sentences = split_sentences(text)[:_MAX_SENTENCES]
    mentions = (find_entities(sentence, known, language=language) for sentence in sentences)
    return _unique((mention.label for found in mentions for mention in found.values()), _MAX_ENTITIES)


def find_key_phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text: words beside each other that say something; the longest first.

    >>> find_key_phrases("We booked the night train to Vienna.")
    ('night train', 'booked', 'Vienna')
    """
    phrases = _unique(_phrases(text))
    return tuple(sorted(phrases, key=lambda each: -each.count(" "))[:_MAX_PHRASES])


def _read(place: int, message: LogMessage) -> Iterator[_Sentence]:
    for number, (sentence, score) in enumerate(_scored_sentences(message.text)):
        yield _Sentence(sentence, score, place, number)


@word_cache(_CACHED_MESSAGES)
def _scored_sentences(text: str) -> tuple[tuple[str, float], ...]:
    """The sentences of a message and what each is worth; creators of several kinds read the same messages."""
    sentences = split_sentences(text)[:_MAX_SENTENCES] or [cut_to_size(text.strip(), _TITLE_WORDS)]
    statements = map(read_statement, sentences)
    return tuple((sentence, each.score if each else 0.0) for sentence, each in zip(sentences, statements, strict=True))


def _choose(sentences: Sequence[_Sentence], words: int) -> list[_Sentence]:
    """The best within a number of words; the longest one if none says anything."""
    chosen: list[_Sentence] = []
    for sentence in sorted((each for each in sentences if each.score > 0), key=lambda each: -each.score):
        size = size_in_words(sentence.text)
        if size <= words:
            chosen.append(sentence)
            words -= size
    return chosen or [max(_tellable(sentences), key=lambda each: len(each.text))]


def _tellable(sentences: Sequence[_Sentence]) -> Sequence[_Sentence]:
    """Without those that speak of a password or the like, unless there are no others."""
    return [each for each in sentences if not is_secret(each.text)] or sentences


def _digest_lines(messages: Sequence[LogMessage], chosen: Sequence[_Sentence]) -> Iterator[str]:
    for place in dict.fromkeys(each.message for each in chosen):
        message = messages[place]
        words = " ".join(" ".join(each.text.split()) for each in chosen if each.message == place)
        date = f"[{message.time.astimezone(UTC):{_DATE}}] " if message.time else ""
        yield f"{date}{message.name}: {cut_to_size(words, _DIGEST_WORDS.stop)}"


def _keyword_memory(message: LogMessage, sentences: Sequence[_Sentence]) -> KeywordMemory:
    best = max(_tellable(sentences), key=lambda each: (each.score, len(each.text)))
    words = _summary(sentences)
    entities = _unique((*([message.speaker] if message.speaker else []), *find_names(words)), _MAX_ENTITIES)
    return KeywordMemory(
        title=f"{message.name}: {cut_to_size(best.text, _TITLE_WORDS)}",
        summary=f"{message.name}: {words}",
        entities=entities,
        key_phrases=find_key_phrases(words),
        source=(message.id,),
        time=message.time,
        author=EXTRACTIVE,
    )


def _summary(sentences: Sequence[_Sentence]) -> str:
    """The words of a message; of a long one those sentences that say most."""
    tellable = _tellable(sentences)
    if sum(size_in_words(each.text) for each in tellable) > _SUMMARY_WORDS:
        tellable = sorted(_choose(tellable, _SUMMARY_WORDS), key=lambda each: each.number)
    return cut_to_size(" ".join(" ".join(each.text.split()) for each in tellable), _SUMMARY_WORDS)


def _phrases(text: str) -> Iterator[str]:
    silent, phrase = stop_words_and_english(detect_language(text)), list[str]()
    for part in (*_PHRASE_PART.findall(text), "."):
        says_something = part[0].isalnum() and fold(part) not in silent
        if phrase and (not says_something or len(phrase) == _MAX_PHRASE_WORDS):
            if len(" ".join(phrase)) >= _MIN_PHRASE_CHARACTERS or not phrase[0].isascii():
                yield " ".join(phrase)
            phrase = []
        phrase += [part] if says_something else []


def _scores(sentences: Iterable[_Sentence]) -> list[float]:
    return [each.score for each in sentences]


def _unique(texts: Iterable[str], most: int | None = None) -> tuple[str, ...]:
    """Texts without those that differ only in case, the first of each."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(fold(text), text)
    return tuple(first.values())[:most]
