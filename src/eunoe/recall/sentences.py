"""The sentences of a context: none stands in it twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from eunoe.recall.lookup_query import is_reaction
from eunoe.text.normalize import normalize
from eunoe.text.sentences import split_line
from eunoe.text.third_person import third_person
from eunoe.text.tokens import text_width

GAP: Final = "[…]"
"""Stands where something was left out."""
_SHORT: Final = 15
"""A sentence that is no wider, such as "Yes, please.", stays where the rest of its text is new."""
_ASKED_END: Final = re.compile(r" \(asked: (?:(?! \(asked: ).)+\)$")
_DATE: Final = re.compile(r" \(\d{4}-\d\d-\d\d\)")
"""What forming adds to the name of a day."""
_UNTIL_END: Final = re.compile(r" \(until \d{4}-\d\d-\d\d\)$")
_INNER_END: Final = re.compile(r"[.!?…。！？\n].", re.DOTALL)  # noqa: RUF001


class _Text(NamedTuple):
    sentences: list[str]
    asked: str
    """The question that it answered, as it stands behind it."""
    keys: list[tuple[str, ...]]
    """Of each sentence."""


class Sentences:
    """What was said, sentence by sentence: with the speaker's name, without it, and as a statement about them."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = set(known)
        self._read: dict[tuple[str, str], _Text] = {}
        """Texts are looked at several times on their way into a context."""

    def copy(self) -> Sentences:
        """The same so far; what was looked at need not be read again."""
        copied = Sentences(self._known)
        copied._read = self._read
        return copied

    def keys(self) -> frozenset[str]:
        return frozenset(self._known)

    def add(self, text: str, speaker: str = "") -> None:
        for said in dict.fromkeys((text, _UNTIL_END.sub("", text))):
            read = self._look_at(said, speaker)
            for sentence, keys in zip(read.sentences, read.keys, strict=True):
                after_name = sentence.partition(": ")[2]
                self._known.update(keys, [normalize(after_name)] if after_name else ())

    def new_part(self, text: str, speaker: str = "") -> str:
        """A text without the sentences that were said, with a mark in their place; "" if it says nothing else."""
        sentences, asked, keys = self._look_at(text, speaker)
        is_known = [not self._known.isdisjoint(each) for each in keys]
        if not any(is_known):
            return text
        pairs = list(zip(sentences, is_known, strict=True))
        if is_reaction(" ".join(sentence for sentence, known in pairs if not known and sentence != GAP)):
            return ""
        shown = [GAP if known and text_width(sentence) > _SHORT else sentence for sentence, known in pairs]
        kept = (each for each, before in zip(shown, ["", *shown], strict=False) if not each == before == GAP)
        return " ".join(kept) + asked

    def take(self, text: str, speaker: str = "") -> str:
        """The new part of a text, which is known from now on."""
        part = self.new_part(text, speaker)
        self.add(text, speaker)
        return part

    def _look_at(self, text: str, speaker: str) -> _Text:
        if (text, speaker) not in self._read:
            sentences, asked = _sentences(text)
            self._read[text, speaker] = _Text(sentences, asked, [tuple(_keys(each, speaker)) for each in sentences])
        return self._read[text, speaker]


def _sentences(text: str) -> tuple[list[str], str]:
    """The sentences of a text and the marks of what was left out; and the question that it answered."""
    asked = match[0] if (match := _ASKED_END.search(text)) else ""
    said = text.removesuffix(asked).strip()
    # What is over is one memory. Most others are one sentence, which is quicker to see than to split.
    if not _INNER_END.search(said) or _UNTIL_END.search(said):
        return [said], asked
    lines = said.replace(GAP, f"\n{GAP}\n").splitlines()
    return [sentence for line in lines for sentence in split_line(line)], asked


def _keys(sentence: str, speaker: str) -> Iterator[str]:
    """How a sentence is compared with others."""
    for said in (sentence, f"{speaker}: {sentence}") if speaker else (sentence,):
        yield normalize(_DATE.sub("", said))
        if statement := third_person(said):
            yield normalize(statement)
