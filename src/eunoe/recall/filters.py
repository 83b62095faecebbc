"""What may be found at all: decided before anything is ranked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.stream import StreamIndex
from eunoe.model.record import NO_METADATA
from eunoe.recall.where import Condition
from eunoe.text.normalize import normalize_name

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions that all have to hold; None is no condition, an empty set lets nothing through.

    `since` (inclusive) and `until` (exclusive) are about when a thing was said or happened. `as_of` asks for what
    was true at a moment, `known_at` for what had been recorded and not yet retired by then. `files` may name folders.
    `people` and `speakers` count however they are written. `where` is asked of each item's metadata. `besides` are
    numbers of items to be left out.
    """

    kinds: frozenset[str] | None = None
    labels: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None
    files: frozenset[str] | None = None
    people: frozenset[str] | None = None
    sessions: frozenset[str] | None = None
    speakers: frozenset[str] | None = None
    as_of: float | None = None
    known_at: float | None = None
    where: Condition | None = None
    besides: frozenset[int] = frozenset()

    def mask(self, index: StreamIndex, now: float) -> Bools:
        """Which rows of an index pass; not to be written to."""
        passed = self._standing(index, now)
        if left_out := [row for row in map(index.row, self.besides) if row is not None]:
            passed = passed.copy()
            passed[left_out] = False
        for column, wanted in (
            (index.kind, self.kinds),
            (index.label, self.labels),
            (index.session, self.sessions),
        ):
            if wanted is not None:
                passed = passed & column.among(wanted)
        if self.speakers is not None:
            passed = passed & index.speaker.alike(self.speakers)
        if self.since is not None:
            passed = passed & (index.moment("time") >= self.since)
        if self.until is not None:
            passed = passed & (index.moment("time") < self.until)
        if self.files is not None:
            passed = passed & index.naming(self.files)
        if self.people is not None:
            passed = passed & (_naming(index, self.people) | index.speaker.alike(self.people))
        if self.where is not None:
            passed = passed & _described(index, self.where)
        return passed

    def _standing(self, index: StreamIndex, now: float) -> Bools:
        """What is there, true and known. In the usual case the index has the array at hand."""
        standing, ends = index.standing
        if self.as_of is None and self.known_at is None and not ends:
            return standing
        return index.alive & self._true(index, now) & self._known(index, now)

    def _true(self, index: StreamIndex, now: float) -> Bools:
        """Valid at the moment asked about: from `valid_from` on, up to and without `valid_to`."""
        dated = self.as_of if self.as_of is not None else self.known_at
        moment = now if dated is None else dated
        over = index.moment("valid_to") <= moment
        if self.known_at is not None:
            # An end that was recorded later was not known then.
            over &= ~(index.moment("retired") > self.known_at)
        return ~over if dated is None else ~over & ~(index.moment("valid_from") > moment)

    def _known(self, index: StreamIndex, now: float) -> Bools:
        retired = index.moment("retired")
        if self.known_at is not None:
            kept = ~(retired <= self.known_at)
            if self.as_of is not None:
                kept |= index.moment("valid_to") > self.as_of
            return (index.moment("recorded") <= self.known_at) & kept
        # Superseded, but true at the moment asked about.
        return np.isnan(retired) | (index.moment("valid_to") > (now if self.as_of is None else self.as_of))


def _naming(index: StreamIndex, people: Iterable[str]) -> Bools:
    wanted = frozenset(map(normalize_name, people))
    return np.fromiter((not wanted.isdisjoint(row) for row in index.people), np.bool_)


def _described(index: StreamIndex, where: Condition) -> Bools:
    metadata = index.metadata or {}
    return np.fromiter((where(metadata.get(seq, NO_METADATA)) for seq in index.seqs), np.bool_, len(index.seqs))


ALL: Final = Filter()
"""Everything that is true now."""
