"""What is made of the words of the chat, without a language model: memories, and documents with a line for each."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Final, NamedTuple

from eunoe.apps.discussion.model import KeywordMemory, LogMessage
from eunoe.form.statements import MIN_SCORE, is_secret, read_statement
from eunoe.model.atom import EXTRACTIVE
from eunoe.text.analyzer import word_cache
from eunoe.text.entities import find_entities, lowercase_words
from eunoe.text.languages import detect_language, stop_words_and_english
from eunoe.text.normalize import fold, normalize
from eunoe.text.sentences import cut_to_words, split_sentences, word_count

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
_LINE_WORDS: Final = (40, 20, 10)
"""What a line may have; less if there are many lines."""
_WORD_CHARACTERS: Final = 12
"""Of a text with longer words than this on average, its characters count. No language has such words."""


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
    told: dict[int, list[str]] = {}
    for each in sorted(chosen, key=lambda each: (each.message, each.number)):
        told.setdefault(each.message, []).extend(each.text.split())
    lines = []
    for place, own in told.items():
        message = messages[place]
        date = f"[{message.time.astimezone(UTC):%Y-%m-%d}] " if message.time else ""
        lines.append(f"{date}{message.name}: {cut_to_size(' '.join(own), _DIGEST_WORDS.stop)}")
    return "\n".join(lines)


def make_keyword_memories(messages: Sequence[LogMessage]) -> list[KeywordMemory]:
    """A memory for each of the messages that say most, in their own words; at least one."""
    read = [list(_read(place, message)) for place, message in enumerate(messages)]
    scores = [[each.score for each in sentences] for sentences in read]
    values = {place: sum(sorted(each)[-2:]) for place, each in enumerate(scores)}
    ranking = sorted(values, key=lambda place: (-values[place], place))
    most = max(1, round(len(messages) * _MAX_MEMORIES_SHARE))
    telling = [place for place in ranking[:most] if max(scores[place], default=0.0) >= MIN_SCORE]
    memories = []
    for place in sorted(telling or ranking[:1]):
        message, tellable = messages[place], _tellable(read[place])
        best = max(tellable, key=lambda each: (each.score, len(each.text)))
        if sum(size_in_words(each.text) for each in tellable) > _SUMMARY_WORDS:  # of a long one what says most
            tellable = sorted(_choose(tellable, _SUMMARY_WORDS), key=lambda each: each.number)
        words = cut_to_size(" ".join(" ".join(each.text.split()) for each in tellable), _SUMMARY_WORDS)
        made = KeywordMemory(
            title=f"{message.name}: {cut_to_size(best.text, _TITLE_WORDS)}",
            summary=f"{message.name}: {words}",
            entities=_unique((*([message.speaker] if message.speaker else []), *find_names(words)), _MAX_ENTITIES),
            key_phrases=find_key_phrases(words),
            source=(message.id,),
            time=message.time,
            author=EXTRACTIVE,
        )
        memories.append(made)
    return memories


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
    silent, phrases, phrase = stop_words_and_english(detect_language(text)), list[str](), list[str]()
    for part in (*_PHRASE_PART.findall(text), "."):
        says_something = part[0].isalnum() and fold(part) not in silent
        if phrase and (not says_something or len(phrase) == _MAX_PHRASE_WORDS):
            if len(" ".join(phrase)) >= _MIN_PHRASE_CHARACTERS or not phrase[0].isascii():
                phrases.append(" ".join(phrase))
            phrase = []
        phrase += [part] if says_something else []
    return tuple(sorted(_unique(phrases), key=lambda each: -each.count(" "))[:_MAX_PHRASES])


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


def _unique(texts: Iterable[str], most: int | None = None) -> tuple[str, ...]:
    """Texts without those that differ only in case, the first of each."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(fold(text), text)
    return tuple(first.values())[:most]


def fold_in(text: str, memories: Iterable[str], max_words: int) -> str:
    r"""Add a line for each memory to a text. If that is too long, lines are cut, then the oldest go.

    >>> fold_in("Anna lives in Rome.", ["Anna lives in Rome. She likes tea.", "She likes tea."], 100)
    'Anna lives in Rome.\nShe likes tea.'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    known = {normalize(sentence) for line in lines for sentence in split_sentences(line)}
    for memory in memories:  # what it says that is not known yet
        new = {normalize(sentence): sentence for sentence in split_sentences(memory)}
        fresh = " ".join(sentence for key, sentence in new.items() if key not in known)
        known.update(new)
        lines += [cut_to_size(fresh, _LINE_WORDS[0])] if fresh else []
    for limit in _LINE_WORDS:
        lines = [cut_to_size(line, limit) for line in lines]
        if sum(map(size_in_words, lines)) <= max_words:
            return "\n".join(lines)
    excess, oldest = sum(map(size_in_words, lines)) - max_words, 0
    while excess > 0 and oldest < len(lines) - 1:
        excess -= size_in_words(lines[oldest])
        oldest += 1
    return "\n".join(lines[oldest:])


def update_lines(text: str, new: Iterable[str], past: Iterable[str], facts: Iterable[str], max_words: int) -> str:
    r"""Take lines out of a text and put others at its end, or before those of later facts; all others stay as they are.

    `facts` are all that is true now, the oldest first. If the text gets too long, their lines go, the oldest first.

    >>> update_lines("# Anna\n- Anna lives in Paris.", ["Anna lives in Rome."], ["Anna lives in Paris."], [], 100)
    '# Anna\n- Anna lives in Rome.'
    """
    gone = set(map(_list_line, past))
    lines = [line for line in text.splitlines() if line not in gone]
    known = set(map(normalize, lines))
    own = {line: place for place, line in enumerate(map(_list_line, facts))}
    last = max((own.get(line, -1) for line in lines), default=-1)
    for line in dict.fromkeys(map(_list_line, new)):
        if normalize(line) not in known:  # before the first one with a higher place; at the end if there is none
            place = own.get(line, last)
            later = (n for n, each in enumerate(lines) if own.get(each, -1) > place) if place < last else ()
            lines.insert(next(iter(later), len(lines)), line)
            last = max(last, place)
    excess = sum(map(size_in_words, lines)) - max_words
    kept = []
    for line in lines:
        if excess > 0 and line in own:
            excess -= size_in_words(line)
        else:
            kept.append(line)
    return "\n".join(kept)


def _list_line(text: str) -> str:
    return f"- {cut_to_size(' '.join(text.split()), _LINE_WORDS[0])}"


def size_in_words(text: str) -> int:
    """How many words a text has, or has room for.

    >>> size_in_words("I moved to Rome."), size_in_words("QUJD" * 300)
    (4, 100)
    """
    return max(word_count(text), -(-len(text) // _WORD_CHARACTERS))


def cut_to_size(text: str, words: int) -> str:
    """Cut a text to the size of so many words, and then "…".

    >>> cut_to_size("See data:QUJDQUJDQUJDQUJDQUJDQUJDQUJD", 2)
    'See data:QUJDQUJDQUJDQUJ…'
    """
    short, most = cut_to_words(text, words), words * _WORD_CHARACTERS
    return short if len(short) <= most + 1 else f"{short[:most].rstrip()}…"
