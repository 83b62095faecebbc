"""What an update of a discussion did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from eunoe.model.result import LeaseStatus


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk of which no memory could be made so far. It is tried again."""

    kind: str
    first: str
    """The id of its first message."""
    last: str
    attempts: int
    error: str
    retry: datetime | None = None
    """Not before then, unless an update is forced."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update did, and what is still to be done."""

    made: int = 0
    """Chunks that became memories."""
    redone: int = 0
    """Chunks whose memories were made again, because their messages had changed."""
    failed: tuple[ChunkFailure, ...] = ()
    """All chunks that failed, now or earlier, and have not been made since."""
    nothing: int = 0
    """Chunks with nothing to remember. They are looked at again only if their messages change."""
    waiting: int = 0
    """Messages that are in no chunk yet, those that are left out at the end not counted."""
    held: int = 0
    """Chunks that somebody else was making, or began and did not finish a moment ago."""
    summary: int | None = None
    """The number of the new revision of the rolling summary, if there is one."""
    condensed: int = 0
    """Chunk memories that became one."""
    state_document: str = ""
    """What became of the state document."""
    notes: tuple[str, ...] = ()
    """What a person should know: what was repaired, left out or put off, and why."""


def list_failures(leases: Iterable[LeaseStatus]) -> tuple[ChunkFailure, ...]:
    """The chunks that failed, out of the leases of a discussion."""
    return tuple(
        ChunkFailure(
            lease.data["kind"], lease.data["first"], lease.data["last"], lease.attempts, lease.error, lease.retry
        )
        for lease in leases
        if lease.error and "first" in lease.data
    )
