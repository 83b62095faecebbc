"""Memories that only quote a message: where both are found, the message takes the place of the memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.source import SourcePlace, source_place

T = TypeVar("T")

_WORD = re.compile(r"\w+")


def find_quoted(
    record: Record, scope: Scope, messages: Mapping[SourcePlace, T], words_of: Callable[[T], str]
) -> T | None:
    """The one of these messages whose words an atom repeats, and which it names as a source.

    `words_of` gives the words of a message, its speaker's name among them.
    """
    for name in record.sources:
        message = messages.get(source_place(name, scope))
        if message is not None and _words(record.text) <= _words(words_of(message)):
            return message
    return None


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
