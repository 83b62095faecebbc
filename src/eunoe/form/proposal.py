"""What an extractor offers to remember, before anything is compared with what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from eunoe.model.choices import AtomKind


class Known(NamedTuple):
    """A memory that is in the store already and bears on the talk at hand."""

    target: int
    """Place of its stream among the targets."""
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """One thing to remember in one stream."""

    target: int
    """Place of its stream among the targets."""
    kind: AtomKind
    text: str
    sources: tuple[str, ...]
    """Ids of the turns that bear it out; never empty."""
    label: str = ""
    key: str = ""
    """What it is about, if that can have one value at a time, such as `anna/home`: a new value closes the old one."""
    people: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    """Ids of known memories that it makes untrue; only ever some of those that were shown."""
    author: str = ""
    """Who put it in these words: the model's name, or `extractive`. Set by the former, never by an answer."""
