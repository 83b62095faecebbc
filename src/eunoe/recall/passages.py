"""The passages of a long message that fit a question, in their order, for a context that has no room for all of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import log
from typing import Final, NamedTuple

from eunoe.recall.sentences import GAP
from eunoe.text.analyzer import text_terms
from eunoe.text.languages import detect_language, stop_words
from eunoe.text.parts import split_into_parts
from eunoe.text.sentences import split_line, word_count

MIN_WORDS: Final = 60
"""Fewer words hardly tell what a passage is about; as many as a part has."""

_MAX_LINE_WORDS: Final = 80
"""A line up to so long is told as a whole."""
_SENTENCES_AROUND: Final = 2
"""Of a longer line so many sentences before and after the one that fits are told with it."""
_DENSE_WEIGHT: Final = 4.0
"""What a cosine above that of the whole text counts, against the share of the question's words."""
_NEIGHBOUR_SHARE: Final = 0.5
"""What a sentence gets of the words of the sentence beside it: an answer often stands beside the words that were
asked."""


class _Sentence(NamedTuple):
    """A sentence of a text, or a piece of a long one, and where it stands."""

    start: int
    text: str
    line: int
    words: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def fitting_passages(text: str, question: str, cosines: Sequence[float], limit: int) -> str:
    """Of a text the sentences that fit a question best, about so many words, with a mark where some were left out.

    `cosines` are those of the parts of the text, or nothing.

    >>> fitting_passages("I rose at six. The kayak is red. Then I slept.", "Which colour is the kayak?", [], 4)
    '[…] The kayak is red. […]'
    """
    sentences = list(_sentences(text, limit))
    if sum(sentence.words for sentence in sentences) <= limit:
        return text
    scores = _scores(text, sentences, question, cosines)
    kept: set[int] = set()
    room = limit
    best = max(range(len(sentences)), key=lambda place: (scores[place], -place))
    for place in sorted(range(len(sentences)), key=lambda place: (-scores[place], abs(place - best))):
        added = [each for each in _passage_around(sentences, place) if each not in kept]
        size = sum(sentences[each].words for each in added)
        if size > room and kept:
            break
        if size > room:  # rather the sentence alone than nothing
            added, size = [place], sentences[place].words
        kept.update(added)
        room -= size
    return _join(text, sentences, kept)


def _passage_around(sentences: Sequence[_Sentence], place: int) -> list[int]:
    """The line of a sentence, or of a long line the sentences around it."""
    line = sentences[place].line
    around = range(max(place - _MAX_LINE_WORDS, 0), min(place + _MAX_LINE_WORDS + 1, len(sentences)))
    whole = [each for each in around if sentences[each].line == line]
    if sum(sentences[each].words for each in whole) <= _MAX_LINE_WORDS:
        return whole
    return [each for each in whole if abs(each - place) <= _SENTENCES_AROUND]


def _sentences(text: str, limit: int) -> Iterator[_Sentence]:
    """The sentences of a text; one that is too long is cut between words where there are any."""
    at = 0
    for number, line in enumerate(text.splitlines()):
        for sentence in split_line(line):
            at = text.index(sentence, at)
            words = word_count(sentence)
            step = -(-len(sentence) // -(-words // limit))
            for start, end in pairwise([*_cuts(sentence, step), len(sentence)]):
                yield _Sentence(at + start, sentence[start:end], number, -(-words * (end - start) // len(sentence)))
            at += len(sentence)


def _cuts(sentence: str, step: int) -> Iterator[int]:
    """Where to cut a sentence into pieces of about so many characters."""
    start = 0
    while start < len(sentence):
        yield start
        end = start + step
        blank = sentence.rfind(" ", start + step // 2, end) if end < len(sentence) else -1
        start = end if blank < 0 else blank + 1


def _scores(text: str, sentences: Sequence[_Sentence], question: str, cosines: Sequence[float]) -> list[float]:
    shares = _word_shares(sentences, question)
    around = [0.0, *shares, 0.0]
    lexical = [
        own + _NEIGHBOUR_SHARE * max(before, after)
        for before, own, after in zip(around, around[1:], around[2:], strict=False)
    ]
    parts = split_into_parts(text) if len(cosines) > 1 else []
    if not parts or len(parts) != len(cosines):  # some could not be embedded
        return lexical
    usual = sum(cosines) / len(cosines)
    lifts = [_DENSE_WEIGHT * (cosine - usual) for cosine in cosines]
    return [score + lifts[part] for score, part in zip(lexical, _part_of(sentences, parts), strict=True)]


def _word_shares(sentences: Sequence[_Sentence], question: str) -> list[float]:
    """The share of the question's words that each sentence has; those in few sentences count for more."""
    language = detect_language(question)
    asked = text_terms(question, language).difference(text_terms(" ".join(stop_words(language)), language))
    found = [asked & text_terms(sentence.text, language) for sentence in sentences]
    counts = Counter(term for terms in found for term in terms)
    weights = {term: log(1 + len(sentences) / count) for term, count in counts.items()}
    total = sum(weights.values()) or 1.0
    return [sum(weights[term] for term in sorted(terms)) / total for terms in found]


def _part_of(sentences: Sequence[_Sentence], parts: Sequence[str]) -> Iterator[int]:
    """The part that each sentence stands in: parts have the same sentences in the same order."""
    number, start = 0, 0
    for sentence in sentences:
        at = parts[number].find(sentence.text, start)
        if at < 0 and number + 1 < len(parts) and (later := parts[number + 1].find(sentence.text)) >= 0:
            number, at = number + 1, later
        start = at + len(sentence.text) if at >= 0 else start
        yield number


def _join(text: str, sentences: Sequence[_Sentence], kept: set[int]) -> str:
    """Those that were kept, word for word, with marks in the place of the others."""
    told: list[str] = []
    for is_kept, group in groupby(range(len(sentences)), kept.__contains__):
        places = list(group)
        told.append(text[sentences[places[0]].start : sentences[places[-1]].end].strip() if is_kept else GAP)
    return " ".join(told)
