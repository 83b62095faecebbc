"""One memory of one scope: its settings, its summary, and every version the summary has had."""

from __future__ import annotations

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
    """One memory of one scope, as it stands."""

    scope: Scope
    preset: str
    settings: Settings
    version: int = 0
    """Moves with every write."""
    revision: int = 0
    """The number of the current summary; 0 if there is none."""
    summary: str = ""
    facts: int = 0
    observations: int = 0
    """Those that no summary has taken in yet."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a summary, and what it took in."""

    number: int
    text: str
    parent: int = 0
    """The revision it was written from; 0 if there was none."""
    absorbed: tuple[str, ...] = ()
    """Ids of the observations it took in beyond those of its parent."""
    author: str = ""
    """The model that wrote it, `extractive`, or whoever wrote it by hand."""
    recorded: datetime | None = None
    current: bool = False


@dataclass(frozen=True, slots=True)
class FormReport:
    """What forming did."""

    messages: int = 0
    """Messages that were turned into memories."""
    stored: tuple[str, ...] = ()
    """Ids of new atoms, in all streams."""
    merged: int = 0
    """Memories that were known already; they now rest on the new messages too."""
    superseded: int = 0
    """Older memories closed by new ones."""
    refused: int = 0
    """What was offered and not kept: forgotten before, without a message that bears it out, or for no stream here."""
    consolidated: tuple[Scope, ...] = ()
    """Streams with a new summary."""
    failed: tuple[str, ...] = ()
    """Faults; what they hit is still due, or was formed without the model if they say so."""

    def __add__(self, other: FormReport) -> FormReport:
        return FormReport(
            self.messages + other.messages,
            self.stored + other.stored,
            self.merged + other.merged,
            self.superseded + other.superseded,
            self.refused + other.refused,
            self.consolidated + other.consolidated,
            self.failed + other.failed,
        )


@dataclass(frozen=True, slots=True)
class TidyReport:
    """Which memories a clean-up archived, or would archive, and why."""

    archived: tuple[tuple[str, str], ...] = ()
    """Id and reason."""
    kept: int = 0
    dry_run: bool = False
