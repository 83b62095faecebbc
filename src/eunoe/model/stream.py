"""The memory of one scope: its settings, its summary, and every revision the summary has had."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from eunoe.model.scope import Scope
from eunoe.model.settings import Settings


class Target(NamedTuple):
    """A stream that a conversation feeds."""

    preset: str
    scope: Scope
    settings: Settings
    user: str = ""
    """The user whose memory it is; empty if it is not one user's."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The memory of one scope, as it stands."""

    scope: Scope
    preset: str
    settings: Settings
    version: int = 0
    """Raised by every write."""
    revision: int = 0
    """The number of the current summary; 0 if there is none."""
    summary: str = ""
    facts: int = 0
    observations: int = 0
    """Those that no summary has absorbed yet."""
    in_review: int = 0
    """Atoms that wait to be looked at; `facts` and `observations` leave them out."""
    unabsorbed: tuple[str, ...] = ()
    """Ids of the observations that no summary has absorbed, the 200 oldest: as many as one summary takes in."""
    updated: datetime | None = None
    """When its last memory was recorded or its summary was written, whichever is later; None before the first."""

    def __repr__(self) -> str:
        counts = f"facts={self.facts}, observations={self.observations}, revision={self.revision}"
        return f"Stream({self.scope.text!r}, preset={self.preset!r}, {counts})"


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a summary, and what it absorbed."""

    number: int
    text: str
    parent: int = 0
    """The revision it was written from; 0 if there was none."""
    absorbed: tuple[str, ...] = ()
    """Ids of the observations it absorbed beyond those of its parent."""
    author: str = ""
    """The LLM that wrote it, `extractive`, or whoever wrote it by hand."""
    recorded: datetime | None = None
    current: bool = False
