"""What falls with some records: all versions of each atom, and every atom that loses its last support."""

from collections.abc import Iterable, Set
from typing import NamedTuple

from eunoe.model.atom import Record, SourcePlace, source_place, unique_supports
from eunoe.records.versions import all_versions, reworded_versions
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamLink, StreamState


class _Supported(NamedTuple):
    """An atom and the groups that bear it out, each member by its scope and id."""

    record: Record
    groups: tuple[frozenset[SourcePlace], ...]


class Reach:
    """Follows what rests on forgotten records, in whatever stream it is and however far away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._streams: dict[int, StreamState] = {}
        self._fallen: dict[int, dict[int, Record]] = {}
        self._supported: dict[int, list[_Supported]] = {}
        self._gone: set[SourcePlace] = set()
        self._named: set[SourcePlace] = set()
        """What the chosen atoms came from."""
        self._chosen: set[SourcePlace] = set()
        self._newer: dict[SourcePlace, None] = {}

    def add(self, stream: StreamState, records: Iterable[Record], chosen: bool = True) -> None:
        """Let records of one stream fall: with all their versions if they were chosen, else with those made out of
        their words."""
        self._streams.setdefault(stream.id, stream)
        fallen = self._fallen.setdefault(stream.id, {})
        records = list(records)
        self._chosen |= {(stream.scope, record.id) for record in records if chosen}
        for record in records:
            if record.seq not in fallen:
                versions = self._versions(stream, record, chosen)
                fallen |= {version.seq: version for version in versions}
                self._gone |= {(stream.scope, version.id) for version in versions}
                if chosen:
                    names = (name for version in versions for name in version.sources)
                    self._named |= {source_place(name, stream.scope) for name in names}
                    places = [(stream.scope, version.id) for version in versions]
                    self._newer |= dict.fromkeys(places[places.index((stream.scope, record.id)) + 1 :])

    def _versions(self, stream: StreamState, record: Record, chosen: bool) -> list[Record]:
        if record.kind == "message":
            return [record]
        return all_versions(self._store, stream, record) if chosen else reworded_versions(self._store, record)

    def spread(self) -> None:
        """Follow everything that rests on what fell, until nothing more falls."""
        while True:
            for stream in [stream for stream in self.streams() if self._fallen[stream.id]]:
                for near in (stream, *self._resting_on(stream)):
                    self._load(near)
            falling = {number: self._find_falling(number) for number in self._supported}
            if not any(falling.values()):
                return
            for number, records in falling.items():
                self.add(self._streams[number], records, chosen=False)

    def _resting_on(self, stream: StreamState) -> list[StreamState]:
        links = self._store.load(StreamLink, source=stream.id)
        return self._store.streams(ids=[link.stream for link in links]) if links else []

    def streams(self) -> list[StreamState]:
        """Those that were named first, then those that were reached."""
        return list(self._streams.values())

    def touches(self, stream: StreamState) -> bool:
        return bool(self._fallen[stream.id] or self.weakened(stream))

    def fallen(self, stream: StreamState) -> list[Record]:
        records = self._fallen[stream.id]
        return [records[seq] for seq in sorted(records)]

    @property
    def origins(self) -> set[SourcePlace]:
        """What the chosen atoms came from and does not fall itself."""
        return self._named - self._gone

    @property
    def corrections(self) -> list[str]:
        """Ids of the newer versions of what was chosen that were not chosen themselves."""
        return [id for scope, id in self._newer if (scope, id) not in self._chosen]

    def weakened(self, stream: StreamState) -> list[Record]:
        """Atoms that stay, on the supports that are left to them."""
        return [
            each.record._replace(supports=_standing_supports(each, self._gone))
            for each in self._supported.get(stream.id, ())
            if each.record.seq not in self._fallen[stream.id] and any(map(self._is_hit, each.groups))
        ]

    def _load(self, stream: StreamState) -> None:
        if stream.id not in self._supported:
            self.add(stream, ())
            records = self._store.select(ItemQuery(stream.id, supported=True))
            self._supported[stream.id] = [_read_supports(record, stream) for record in records]

    def _find_falling(self, number: int) -> list[Record]:
        fallen = self._fallen[number]
        return [
            each.record
            for each in self._supported[number]
            if each.record.seq not in fallen and all(map(self._is_hit, each.groups))
        ]

    def _is_hit(self, group: frozenset[SourcePlace]) -> bool:
        return not self._gone.isdisjoint(group)


def _read_supports(record: Record, stream: StreamState) -> _Supported:
    groups = (frozenset(source_place(name, stream.scope) for name in group) for group in record.supports)
    return _Supported(record, tuple(groups))


def _standing_supports(each: _Supported, gone: Set[SourcePlace]) -> tuple[tuple[str, ...], ...]:
    pairs = zip(each.record.supports, each.groups, strict=True)
    return unique_supports(names for names, group in pairs if gone.isdisjoint(group))
