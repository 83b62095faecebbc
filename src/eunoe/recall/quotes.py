"""Memories that only quote a message: where both are found, the message takes the place of the memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from eunoe.model.hit import Hit
from eunoe.model.source import SourcePlace, source_place

_WORD = re.compile(r"\w+")


def fold_quotes(hits: Iterable[Hit]) -> list[Hit]:
    """Each thing once: a message in the place of the first memory that quotes it."""
    found = list(hits)
    messages = messages_by_place(found)
    folded: dict[int, Hit] = {}
    for hit in found:
        quoted = find_quoted(hit, messages)
        shown = hit if quoted is None else Hit(quoted.record, quoted.scope, hit.score, hit.explain)
        folded.setdefault(shown.record.seq, shown)
    return list(folded.values())


def messages_by_place(hits: Iterable[Hit]) -> dict[SourcePlace, Hit]:
    return {(hit.scope, hit.id): hit for hit in hits if hit.kind == "message"}


def spoken_words(hit: Hit) -> str:
    """What was said, and by whom."""
    return f"{hit.record.speaker} {hit.record.text}"


def find_quoted(
    hit: Hit, messages: Mapping[SourcePlace, Hit], words_of: Callable[[Hit], str] = spoken_words
) -> Hit | None:
    """The one of these messages whose words an atom repeats, and which it names as a source."""
    for name in hit.record.sources if messages else ():
        message = messages.get(source_place(name, hit.scope))
        if message is not None and _words(hit.record.text) <= _words(words_of(message)):
            return message
    return None


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
