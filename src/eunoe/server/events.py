"""What memory is learning now: read from the store itself, so that nothing is missed, whoever wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.arguments import parse_time, utc_now
from eunoe.model.atom import Atom, Item
from eunoe.model.json import json_value

_OVERLAP: Final = timedelta(seconds=5)
"""So far back each look goes again: a writer's clock, or the end of its transaction, may be a little behind."""
_PAGE: Final = 100
_MAX_PAGES: Final = 50
"""Of one look; what is older than that is not news."""


class Event(NamedTuple):
    """Something that was learned, and the place in the feed right behind it."""

    cursor: str
    item: Atom

    def json(self, with_text: bool = True) -> dict[str, Any]:
        value: dict[str, Any] = json_value(self.item)
        return value if with_text else {name: value[name] for name in _NAMING_FIELDS}


_NAMING_FIELDS: Final = ("id", "scope", "kind", "label", "recorded", "supersedes")
"""What tells which memory is meant, without its words."""


@dataclass
class Feed:
    """News of a memory, within its bounds, from a place on."""

    memory: Memory
    start: datetime
    """Nothing from before is told."""
    since: datetime = field(init=False)
    _seen: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.since = self.start

    @classmethod
    def from_cursor(cls, memory: Memory, cursor: str) -> Feed:
        """Go on behind the event with this cursor; without one, from now on."""
        if not cursor:
            return cls(memory, utc_now())
        moment, _, place = cursor.partition("|")
        scope, _, id = place.partition("|")
        try:
            since = parse_time(moment)
        except InputError:
            raise InputError("Last-Event-ID is not one of this feed: leave it out to begin now") from None
        feed = cls(memory, since)
        feed._seen[scope, id] = since
        return feed

    def has_seen(self, item: Item) -> bool:
        return (str(item.scope), item.id) in self._seen

    def read(self) -> list[Event]:
        """What was learned since the last look, oldest first."""
        news = [atom for atom in self._look() if not self.has_seen(atom)]
        for atom in news:
            self._seen[str(atom.scope), atom.id] = _recorded(atom)
        if news:
            self.since = max(self.since, max(map(_recorded, news)))
        horizon = self.since - _OVERLAP
        self._seen = {place: moment for place, moment in self._seen.items() if moment >= horizon}
        return [Event(f"{_recorded(atom).isoformat()}|{atom.scope}|{atom.id}", atom) for atom in news]

    def _look(self) -> Sequence[Atom]:
        first = max(self.start, self.since - _OVERLAP)
        found: list[Atom] = []
        after = ""
        for _ in range(_MAX_PAGES):
            page = self.memory.recent(since=first, limit=_PAGE, after=after, retired=True)
            found += [item for item in page.items if isinstance(item, Atom)]
            after = page.next
            if not after:
                break
        return found[::-1]


def _recorded(atom: Atom) -> datetime:
    assert atom.recorded is not None
    return atom.recorded
