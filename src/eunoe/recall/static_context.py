"""The static context: each stream's summary, observations and latest facts, and the cache that keeps it stable."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Final, NamedTuple

from eunoe.errors import DamagedStoreError
from eunoe.model.arguments import ATOM_KINDS, INSTRUCTION, Kind, MemoryType
from eunoe.model.atom import Record, SourcePlace, source_place
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Target
from eunoe.recall.audience import Audience, layer_of
from eunoe.records.revisions import current_revision, unabsorbed, unabsorbed_count
from eunoe.store.contract import ItemQuery, Store
from eunoe.store.schema import Absorption, StreamState
from eunoe.text.normalize import normalize
from eunoe.text.third_person import third_person

INSTRUCTIONS, SUMMARY, OBSERVATIONS, FACTS = range(4)
"""The sections of a stream, in their order."""
_LIFETIME: Final = timedelta(minutes=5)
"""As long as prompt caches keep a prefix."""
_MAX_CACHED: Final = 128
_FEW: Final = 10
"""So many times what a window holds are read at once; of more than that only the latest are."""
_MAX_INSTRUCTIONS: Final = 200
"""Of one stream, the latest: more than any budget has room for."""


@dataclass(frozen=True, slots=True)
class Note:
    """One memory as a context shows it."""

    text: str
    when: datetime
    kind: Kind = "fact"
    speaker: str = ""
    sources: tuple[str, ...] = ()
    pinned: bool = False
    until: datetime | None = None
    """When it ceases to be true, if that is known."""
    seq: int = 0
    label: str = ""
    superseded: datetime | None = None
    """Since when something else is true in its place."""
    rests_on: tuple[SourcePlace, ...] = ()
    """The messages it was formed from."""


@dataclass(frozen=True, slots=True)
class StreamSection:
    """One stream as it stands in a context."""

    layer: MemoryType
    name: str
    summary: str = ""
    observations: tuple[Note, ...] = ()
    facts: tuple[Note, ...] = ()
    superseded: frozenset[str] = frozenset()
    """What its notes took the place of, as duplicates are compared; the summary may still tell it."""
    instructions: tuple[Note, ...] = ()
    """What is to be done from now on. These stand in every context, whatever a summary has absorbed."""

    @property
    def notes(self) -> tuple[Note, ...]:
        return (*self.instructions, *self.observations, *self.facts)


def read_sections(store: Store, audience: Audience, now: datetime, with_sources: bool) -> list[StreamSection]:
    """Read what each stream has to say."""
    visible = audience.visible if with_sources else frozenset[Scope]()
    pairs = zip(audience.targets, audience.streams, strict=True)
    with store.reading():
        return [
            _read_section(store, audience.scope, target, stream, now, visible) for target, stream in pairs if stream
        ]


def _read_section(
    store: Store, conversation: Scope, target: Target, stream: StreamState, now: datetime, visible: frozenset[Scope]
) -> StreamSection:
    settings = target.settings
    latest = ItemQuery(stream.id, kinds=("fact",), open=True, reviewed=True, order="newest", skip_damaged=True)
    standing = latest._replace(kinds=ATOM_KINDS, labels=(INSTRUCTION,), limit=_MAX_INSTRUCTIONS)
    facts = store.select(latest._replace(limit=settings.fact_buffer_max)) if settings.fact_buffer_max else []
    waiting = _latest_unabsorbed(store, stream, settings.observation_buffer_max)
    instructions = store.select(standing)

    def notes(records: Iterable[Record], is_standing: bool = False) -> tuple[Note, ...]:
        wanted = (record for record in records if (record.label == INSTRUCTION) == is_standing)
        valid = (record for record in wanted if record.valid_to is None or record.valid_to > now)
        return tuple(note_of(record, target.scope, visible) for record in valid)

    revision = _readable_revision(store, stream)
    return StreamSection(
        layer=layer_of(target, conversation),
        name=target.scope.pairs.get(settings.owner[-1]) or target.scope.text,
        summary=revision.text.strip() if revision else "",
        observations=notes(waiting),
        facts=notes(reversed(facts)),
        superseded=_superseded_statements(store, stream, [*waiting, *facts, *instructions])
        if revision
        else frozenset(),
        instructions=notes(reversed(instructions), is_standing=True),
    )


def _readable_revision(store: Store, stream: StreamState) -> Revision | None:
    """The summary, unless it is damaged: the notes of the context say so, and the rest is there."""
    try:
        return current_revision(store, stream)
    except DamagedStoreError:
        return None


def _superseded_statements(store: Store, stream: StreamState, records: Sequence[Record]) -> frozenset[str]:
    found: dict[str, Record] = {}
    ids = {record.supersedes for record in records if record.supersedes}
    while ids:
        earlier = store.select(ItemQuery(stream.id, ids=sorted(ids), skip_damaged=True))
        found |= {record.id: record for record in earlier}
        ids = {record.supersedes for record in earlier if record.supersedes} - found.keys()
    texts = [record.text for record in found.values()]
    # A summary may tell it without its speaker, or as a statement about them.
    told = [said for text in texts for said in (text.partition(": ")[2], third_person(text)) if said]
    return frozenset(map(normalize, [*texts, *told]))


def _latest_unabsorbed(store: Store, stream: StreamState, most: int) -> list[Record]:
    """The latest observations that no summary holds, oldest first."""
    count = unabsorbed_count(store, stream.id) if most else 0
    if count <= _FEW * most:
        return unabsorbed(store, stream.id, skip_damaged=True)[-most:] if count else []
    absorbed = {each.id for each in store.load(Absorption, stream=stream.id)}
    query = ItemQuery(
        stream.id, kinds=("observation",), open=True, reviewed=True, order="newest", limit=most, skip_damaged=True
    )
    found: list[Record] = []
    while len(found) < most:
        query = query._replace(limit=2 * (query.limit or 1))
        found = [record for record in store.select(query) if record.id not in absorbed]
    return found[most - 1 :: -1]


def note_of(record: Record, scope: Scope, visible: frozenset[Scope]) -> Note:
    """A record as a context shows it; of its sources only those in visible scopes are named."""
    return Note(
        text=record.text,
        when=record.happened,
        kind=record.kind,
        sources=tuple(_visible_sources(record, scope, visible)) if visible else (),
        pinned=record.pinned,
        until=record.valid_to,
        seq=record.seq,
        label=record.label,
        rests_on=tuple(source_place(name, scope) for name in record.sources),
    )


def _visible_sources(record: Record, scope: Scope, visible: frozenset[Scope]) -> Iterator[str]:
    for name in (record.id,) if record.kind == "message" else record.sources:
        place, id = source_place(name, scope)
        if place in visible:
            yield id


class Leftover(NamedTuple):
    """A memory that the static context has no room for, written out."""

    text: str
    said: str
    """Its words, as they were said."""
    note: Note | None = None
    """None for a line of a summary."""

    @property
    def seq(self) -> int:
        return self.note.seq if self.note else 0


@dataclass(frozen=True, slots=True)
class StaticContext:
    """The part of a context that stays: its text, and the records it shows."""

    body: str = ""
    seqs: frozenset[int] = frozenset()
    sentences: frozenset[str] = frozenset()
    """What it says, as sentences are compared."""
    until: datetime | None = None
    """When the first of it ceases to be true."""
    notes: tuple[Note, ...] = ()
    rest: tuple[Leftover, ...] = ()
    """What found no room, the most valuable first."""


class _Cached(NamedTuple):
    stamp: Hashable
    clock: datetime
    sections: Sequence[StreamSection]
    context: StaticContext


class StaticContextCache:
    """Static contexts: each kept for five minutes, and only while no stream in it is written to."""

    def __init__(self) -> None:
        self._cached: OrderedDict[Hashable, _Cached] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._cached)

    def clear(self) -> None:
        with self._lock:
            self._cached.clear()

    def get(
        self,
        key: Hashable,
        stamp: Hashable,
        now: datetime,
        read: Callable[[], Sequence[StreamSection]],
        render: Callable[[Sequence[StreamSection], datetime], StaticContext],
    ) -> StaticContext:
        """Return the context under this key if its stamp is still the same, else read and render it anew.

        Ages are shown as of one moment for five minutes, so that what did not change keeps its bytes.
        """
        with self._lock:
            cached = self._cached.get(key)
        if cached and not timedelta(0) <= now - cached.clock < _LIFETIME:
            cached = None
        if cached and cached.stamp == stamp and (cached.context.until is None or now < cached.context.until):
            return cached.context
        sections, clock = read(), cached.clock if cached else now
        is_same = cached is not None and cached.sections == sections
        context = cached.context if cached and is_same else render(sections, clock)
        with self._lock:
            self._cached[key] = _Cached(stamp, clock, sections, context)
            self._cached.move_to_end(key)
            while len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return context
