"""Which chunks a discussion has, and which of them are to be made: derived from the log, the memories and the leases.

Bounds that were written down once never move: neither other settings nor other messages change them. Only what is in
no chunk yet is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from eunoe.discussion.chunks.content import cut, digest, has_words
from eunoe.discussion.chunks.records import ChunkRecord, Records
from eunoe.discussion.model import Chunk, LogMessage
from eunoe.discussion.settings import ChunkSettings
from eunoe.model.lease import LeaseStatus
from eunoe.model.turn import SILENT_ROLES

_LEAST_MESSAGES: Final = 3
"""A discussion with fewer has nothing to sum up."""
_IMPORTED: Final = -1
"""Owns the messages that imported memories were made from."""


@dataclass(frozen=True, slots=True)
class ChunkWork:
    """A chunk that is to be made."""

    chunk: Chunk
    messages: tuple[LogMessage, ...]
    record: ChunkRecord | None = None
    """What was made from it before."""


@dataclass(slots=True)
class ChunkPlan:
    """What is to be done for one kind of memory."""

    work: list[ChunkWork] = field(default_factory=list)
    empty: list[ChunkRecord] = field(default_factory=list)
    """Chunks without any message left, or whose messages are in a newer one."""
    orphan_leases: list[str] = field(default_factory=list)
    waiting: int = 0
    """Messages that wait until there are enough for a chunk."""


@dataclass(slots=True)
class _Span:
    """Where a chunk stands in the sequence."""

    chunk: Chunk
    start: int
    end: int
    record: ChunkRecord | None = None


@dataclass(frozen=True, slots=True)
class Cutting:
    """How what is in no chunk yet is cut."""

    settings: ChunkSettings
    factor: float = 1.0
    lookback: int = 0
    force: bool = False
    is_on: bool = True
    """Whether new chunks are made at all; those that were made are kept up to date in any case."""


def plan_chunks(
    kind: str,
    sequence: Sequence[LogMessage],
    records: Records,
    leases: Iterable[LeaseStatus],
    cutting: Cutting,
    imported: Chunk | None = None,
) -> ChunkPlan:
    """Find what is to be made. `sequence` are all messages, retracted ones too, since bounds may name them."""
    return _Planner(kind, sequence, cutting).plan(records, leases, imported)


class _Planner:
    def __init__(self, kind: str, sequence: Sequence[LogMessage], cutting: Cutting) -> None:
        self._kind = kind
        self._sequence = sequence
        self._cutting = cutting
        self._places = {message.id: place for place, message in enumerate(sequence)}
        self._owners: list[int | None] = [None] * len(sequence)
        """By place: the number of the span that covers it."""
        self._spans: list[_Span] = []
        self._limit = self._lookback_start()

    def plan(self, records: Records, leases: Iterable[LeaseStatus], imported: Chunk | None) -> ChunkPlan:
        plan = ChunkPlan()
        for record in sorted(records.made, key=lambda each: each.recorded, reverse=True):
            if not self._add(record.chunk, record, record.source):
                plan.empty.append(record)
        plan.orphan_leases = [lease.name for lease in leases if not self._add_lease(lease) and not lease.is_held]
        self._cover_imported(imported)
        for number in sorted(range(len(self._spans)), key=lambda each: self._spans[each].start):
            self._extend(number)
        for span in self._spans:
            self._review(span, plan)
        if self._cutting.is_on:
            self._cut_rest(plan, imported)
        plan.work.sort(key=lambda work: work.chunk.place)
        return plan

    def _lookback_start(self) -> int:
        """The place from which on messages are left out, since they may still change."""
        last = [place for place, message in enumerate(self._sequence) if _is_turn(message)]
        lookback = self._cutting.lookback
        if lookback <= 0:
            return len(self._sequence)
        return last[-lookback] if lookback <= len(last) else 0

    def _add(self, chunk: Chunk, record: ChunkRecord | None = None, source: Iterable[str] = ()) -> bool:
        """Take a chunk into the series, unless its messages are gone or in a chunk that is there already."""
        bounds = [self._places[id] for id in (chunk.first, chunk.last) if id in self._places]
        if len(bounds) < 2:  # the message at a bound was forgotten: what is left of the chunk tells where it stood
            bounds += [self._places[id] for id in source if id in self._places]
        if not bounds:
            return False
        start, end = min(bounds), max(bounds)
        if any(owner is not None for owner in self._owners[start : end + 1]):
            return False
        self._owners[start : end + 1] = [len(self._spans)] * (end + 1 - start)
        self._spans.append(_Span(chunk, start, end, record))
        return True

    def _add_lease(self, lease: LeaseStatus) -> bool:
        """Take the bounds of a chunk that somebody works on, or that failed. False if it is of no use any more."""
        chunk = Chunk(**lease.data)
        if chunk.first not in self._places or chunk.last not in self._places:
            return False
        owner = self._owners[self._places[chunk.first]]
        if owner is not None and self._spans[owner].chunk.first == chunk.first:
            return True
        return self._add(chunk)

    def _cover_imported(self, imported: Chunk | None) -> None:
        if imported is None or not imported.last:
            return
        starts = [span.start for span in self._spans]
        end = self._places.get(imported.last, min(starts, default=len(self._sequence)) - 1)
        for place in range(end + 1):
            if self._owners[place] is None:
                self._owners[place] = _IMPORTED

    def _extend(self, number: int) -> None:
        """Let a chunk whose last messages were retracted take in those that came in their place."""
        span = self._spans[number]
        room, place = 0, span.end
        while place >= span.start and not self._is_read(place):
            room += self._sequence[place].is_retracted
            place -= 1
        place = span.end + 1
        while room and place < self._limit and self._owners[place] is None:
            self._owners[place] = number
            span.end = place
            room -= self._is_read(place)
            place += 1

    def _review(self, span: _Span, plan: ChunkPlan) -> None:
        """See whether a chunk is to be made, made anew, or has nothing left."""
        messages = [self._sequence[place] for place in range(span.start, span.end + 1) if self._is_read(place)]
        if not messages:
            if span.record:
                plan.empty.append(span.record)
            else:
                plan.orphan_leases.append(span.chunk.name)
            return
        found = digest(messages)
        if span.record is None and not self._cutting.is_on:
            return
        if span.record is None or span.chunk.digest != found:
            plan.work.append(ChunkWork(self._with_bounds(span, messages, found), tuple(messages), span.record))

    def _with_bounds(self, span: _Span, messages: Sequence[LogMessage], found: str) -> Chunk:
        """The chunk with bounds that are there: a first message that is retracted still names it."""
        first = span.chunk.first if span.chunk.first in self._places else messages[0].id
        is_last_read = span.chunk.last in self._places and self._places[span.chunk.last] == span.end
        last = span.chunk.last if is_last_read and self._is_read(span.end) else messages[-1].id
        return replace(span.chunk, first=first, last=last, digest=found)

    def _cut_rest(self, plan: ChunkPlan, imported: Chunk | None) -> None:
        """Cut what is in no chunk: between chunks all of it, at the end what reaches the sizes."""
        last_owned = max((span.end for span in self._spans), default=-1)
        for run in self._free_runs():
            is_tail = run[-1] > last_owned
            messages = [self._sequence[place] for place in run]
            chunks, rest = cut(messages, self._cutting.settings, self._cutting.factor)
            if is_tail and not self._cutting.force:
                has_enough = sum(map(_is_turn, self._sequence)) >= _LEAST_MESSAGES
                plan.waiting += len(rest) if has_enough else len(messages)
                chunks, rest = (chunks, []) if has_enough else ([], [])
            parts = [*chunks, *([rest] if rest else [])]
            places = self._new_places(run[0], len(parts), is_tail, imported)
            for part, place in zip(parts, places, strict=True):
                chunk = Chunk(self._kind, place, part[0].id, part[-1].id, digest(part))
                plan.work.append(ChunkWork(chunk, tuple(part)))

    def _free_runs(self) -> Iterator[list[int]]:
        """Places of messages that are in no chunk, those without a chunk between them together."""
        owned_before, keys = 0, []
        for owner in self._owners:
            owned_before += owner is not None
            keys.append(owned_before)
        free = [place for place in range(self._limit) if self._owners[place] is None and self._is_read(place)]
        for _, run in groupby(free, key=lambda place: keys[place]):
            yield list(run)

    def _new_places(self, start: int, count: int, is_tail: bool, imported: Chunk | None) -> list[float]:
        """Numbers by which new chunks stand where they belong: behind all others, or between their neighbours."""
        lowest = [imported.place] if imported else []
        if is_tail:
            low = max([*lowest, *(span.chunk.place for span in self._spans)], default=0.0)
            return [low + number for number in range(1, count + 1)]
        before = max((span for span in self._spans if span.start < start), key=lambda span: span.start, default=None)
        after = min((span for span in self._spans if span.start > start), key=lambda span: span.start)
        high = after.chunk.place
        low = before.chunk.place if before else max(lowest, default=high - 1.0)
        return [low + (high - low) * number / (count + 1) for number in range(1, count + 1)]

    def _is_read(self, place: int) -> bool:
        message = self._sequence[place]
        return not message.is_retracted and has_words(message)


def _is_turn(message: LogMessage) -> bool:
    """Whether it counts among the last turns: not if it is retracted or the system's."""
    return not message.is_retracted and message.role.lower() not in SILENT_ROLES
