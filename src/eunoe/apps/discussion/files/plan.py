"""What an import has to do: entries of a file beside the memories that are known already.

An entry that is known changes nothing, also if its memory was condensed or superseded since. One that stands in the
place of another supersedes it. A memory that was imported and is no longer in its file ends to hold; one that was made
here never does.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Entry(Generic[M]):
    """One memory that a file holds."""

    memory: M
    content: Hashable
    """The same for two that say the same."""
    anchor: Hashable
    """The same for two that stand for the same part of the chat; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class Known(Entry[M]):
    """One memory that is known already."""

    id: str
    place: float
    is_imported: bool
    is_in_force: bool
    is_covered: bool
    """Whether another one that is in force stands in its place."""


@dataclass(slots=True)
class Plan(Generic[M]):
    """What an import has to do."""

    new: list[tuple[M, float]] = field(default_factory=list)
    """Memories and their places."""
    changed: list[tuple[Known[M], M]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    """Those that had ended, and are in the file again."""
    unchanged: int = 0
    ids: frozenset[str] = frozenset()
    """Of all that are known."""


def make_plan(entries: Sequence[Entry[M]], known: Sequence[Known[M]]) -> Plan[M]:
    """Compare a file with what is known."""
    ordered = sorted(known, key=lambda each: not each.is_in_force)
    matches = _match(range(len(entries)), [each.content for each in entries], ordered, "content")
    used = {each.id for each in matches.values()}
    free = [each for each in ordered if each.id not in used]
    rest = [place for place, each in enumerate(entries) if place not in matches and each.anchor]
    changes = _match(rest, [each.anchor for each in entries], free, "anchor")
    plan = Plan[M](unchanged=len(matches), ids=frozenset(each.id for each in known))
    plan.changed = [(changes[place], entries[place].memory) for place in sorted(changes)]
    plan.new = _new(entries, {**matches, **changes}, (each.place for each in known))
    taken = {each.id for each in [*matches.values(), *changes.values()]}
    plan.ended = [each.id for each in known if each.is_imported and each.is_in_force and each.id not in taken]
    lost = (each for each in matches.values() if each.is_imported and not each.is_in_force)
    plan.revived = [each.id for each in lost if not each.is_covered]
    return plan


def _match(
    places: Iterable[int], values: Sequence[Hashable], known: Iterable[Known[M]], field: str
) -> dict[int, Known[M]]:
    """Entries and the known ones that have the same value, each once, in their order."""
    waiting: dict[Hashable, list[Known[M]]] = defaultdict(list)
    for each in known:
        waiting[getattr(each, field)].append(each)
    return {place: waiting[values[place]].pop(0) for place in places if waiting[values[place]]}


def _new(entries: Sequence[Entry[M]], matches: dict[int, Known[M]], taken: Iterable[float]) -> list[tuple[M, float]]:
    """Each new memory stands behind the entry before it."""
    places, new = sorted(taken), []
    last, run = 0.0, list[M]()
    for number, entry in enumerate(entries):
        if number not in matches:
            run.append(entry.memory)
            continue
        new += _placed(run, last, places)
        last, run = matches[number].place, []
    return new + _placed(run, last, places)


def _placed(run: Sequence[M], last: float, places: list[float]) -> list[tuple[M, float]]:
    """A run of memories between one place and the next one that is taken."""
    after = bisect_right(places, last)
    step = (places[after] - last) / (len(run) + 1) if after < len(places) else 1.0
    placed = [(memory, last + step * number) for number, memory in enumerate(run, 1)]
    for _, place in placed:
        insort(places, place)
    return placed
