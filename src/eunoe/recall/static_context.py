"""The static context: what each stream has to say, put into words within its share of a budget, and kept stable."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from math import inf
from threading import Lock
from typing import Final, NamedTuple

from eunoe.errors import DamagedStoreError
from eunoe.model.arguments import ATOM_KINDS, INSTRUCTION, MemoryType
from eunoe.model.atom import Record, source_place
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.recall.audience import Audience, layer_of
from eunoe.recall.rendering import Fragment, Note, Path, Sentences, Style, TextBuilder
from eunoe.records.revisions import current_revision, unabsorbed, unabsorbed_count
from eunoe.store.contract import ItemQuery, Reading, Store
from eunoe.store.schema import Absorption, StreamState
from eunoe.text.normalize import normalize
from eunoe.text.sentences import SummaryLine, read_summary, text_width, third_person

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
    def notes(self) -> list[tuple[int, Note]]:
        """The notes, each with its section."""
        parts = (INSTRUCTIONS, self.instructions), (OBSERVATIONS, self.observations), (FACTS, self.facts)
        return [(section, note) for section, notes in parts for note in notes]


def read_sections(store: Store, audience: Audience, now: datetime, with_sources: bool) -> list[StreamSection]:
    """Read what each stream has to say."""
    visible = audience.visible if with_sources else frozenset[Scope]()
    pairs = zip(audience.targets, audience.streams, strict=True)

    def read(store: Reading) -> list[StreamSection]:
        return [
            _read_section(store, audience.scope, target, stream, now, visible) for target, stream in pairs if stream
        ]

    return store.read((), read)


def _read_section(
    store: Reading, conversation: Scope, target: Target, stream: StreamState, now: datetime, visible: frozenset[Scope]
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

    try:
        revision = current_revision(store, stream)
    except DamagedStoreError:  # the notes of the context say so, and the rest is there
        revision = None
    told = [*waiting, *facts, *instructions] if revision else ()
    return StreamSection(
        layer=layer_of(target, conversation),
        name=target.scope.pairs.get(settings.owner[-1]) or target.scope.text,
        summary=revision.text.strip() if revision else "",
        observations=notes(waiting),
        facts=notes(reversed(facts)),
        superseded=_superseded_statements(store, stream, told),
        instructions=notes(reversed(instructions), is_standing=True),
    )


def _superseded_statements(store: Reading, stream: StreamState, records: Sequence[Record]) -> frozenset[str]:
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


def _latest_unabsorbed(store: Reading, stream: StreamState, most: int) -> list[Record]:
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
    named = (record.id,) if record.kind == "message" else record.sources
    places = [source_place(name, scope) for name in named] if visible else ()
    return Note(
        text=record.text,
        when=record.happened,
        kind=record.kind,
        sources=tuple(id for place, id in places if place in visible),
        pinned=record.pinned,
        until=record.valid_to,
        seq=record.seq,
        label=record.label,
        rests_on=tuple(source_place(name, scope) for name in record.sources),
    )


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


ValueOf = Callable[[str], float]
"""How much a sentence matters; infinite for a standing instruction."""

_SUMMARY_ORDER: Final = ("user", "session", "collective")
"""Whose summary finds room first, of sentences that are worth the same."""
_GAP: Final = "…"
_GAP_WIDTH: Final = 6.0
"""The most that joining a sentence to others takes: a line break and a gap before it and after it, in any format."""
_LEFTOVER_SHARE: Final = 3
"""How many times its own room may be free beside the static context, and more."""


class _Entry(NamedTuple):
    """A memory, or a sentence of a summary, that finds room or does not."""

    stream: int
    section: int
    text: str
    note: Note | None = None
    place: int = 0
    line: SummaryLine | None = None
    """Its place in the summary, and what it is there."""

    @property
    def number(self) -> int:
        return self.note.seq if self.note else self.place

    @property
    def date(self) -> str:
        """When it was, where that is known; as text, which sorts."""
        return self.note.when.isoformat() if self.note else self.line.date if self.line else ""

    @property
    def heading(self) -> str:
        """What it stands below in the summary."""
        return self.line.subject if self.line else ""

    @property
    def said(self) -> str:
        """Its words without a date."""
        return self.line.text if self.line else self.text


def render_static(
    style: Style,
    room: float | None,
    streams: Sequence[StreamSection],
    now: datetime,
    value_of: ValueOf = lambda _: 0.0,
) -> StaticContext:
    """The static context within its share of the budget, and what found no room."""
    streams = _each_once(streams)
    paths = {
        (number, section): style.path(stream.layer, number, stream.name, section)
        for number, stream in enumerate(streams)
        for section in (INSTRUCTIONS, SUMMARY, OBSERVATIONS, FACTS)
    }
    builder = TextBuilder(style.room_left("", room), style.root.separator)
    if _add_all(style, builder, paths, streams, now):
        return _static_context(builder, streams, [part.summary for part in streams], _all_notes(streams), [])
    builder = TextBuilder(style.room_left("", room), style.root.separator)
    kept: list[_Entry] = []
    left: list[_Entry] = []
    for entry in _by_worth(streams, value_of):
        path = paths[entry.stream, entry.section]
        if entry.note:
            fits = builder.add(Fragment(path, entry.note.seq, style.note(entry.note, now)))
        else:
            text = f"{entry.heading}:\n- {entry.text}" if entry.heading else entry.text
            fits = builder.reserve(path, text_width(style.summary(text)) + _GAP_WIDTH)
        (kept if fits else left).append(entry)
    summaries = []
    for number, stream in enumerate(streams):
        places = {entry.place for entry in kept if entry.note is None and entry.stream == number}
        # The parts that were kept, in their order, and a mark wherever some were left out.
        summaries.append(_join_parts(stream.summary, places, _GAP) if places else "")
        if places:
            builder.place(Fragment(paths[number, SUMMARY], 0, style.summary(summaries[-1])))
    rest: list[Leftover] = []
    width = _LEFTOVER_SHARE * (room or 0.0)
    for entry in left:  # as much of it as could ever find room
        text = style.note(entry.note, now) if entry.note else style.line(entry.text)
        rest.append(Leftover(text, entry.said, entry.note))
        width -= text_width(text)
        if width < 0:
            break
    return _static_context(builder, streams, summaries, [entry.note for entry in kept if entry.note], rest)


def _each_once(streams: Sequence[StreamSection]) -> list[StreamSection]:
    """The streams without what is said in them a second time. What is to stand in any case comes first."""
    known = Sentences()
    texts: dict[tuple[int, Note], str] = {}
    noted = [(number, note) for number, stream in enumerate(streams) for _, note in stream.notes]
    for place in filter(lambda place: _is_standing(place[1]), noted):
        texts[place] = known.take(place[1].text)
    summaries = []
    for number, stream in enumerate(streams):
        summaries.append(_new_summary(stream, known))
        for _, note in stream.notes:
            if (number, note) not in texts:
                texts[number, note] = known.take(note.text)

    def new(number: int, notes: Iterable[Note]) -> tuple[Note, ...]:
        return tuple(replace(note, text=texts[number, note]) for note in notes if texts[number, note])

    return [
        replace(
            stream,
            summary=summary,
            instructions=new(number, stream.instructions),
            observations=new(number, stream.observations),
            facts=new(number, stream.facts),
        )
        for number, (stream, summary) in enumerate(zip(streams, summaries, strict=True))
    ]


def _all_notes(streams: Iterable[StreamSection]) -> list[Note]:
    return [note for stream in streams for _, note in stream.notes]


def _static_context(
    builder: TextBuilder,
    streams: Sequence[StreamSection],
    summaries: Iterable[str],
    notes: Sequence[Note],
    rest: Sequence[Leftover],
) -> StaticContext:
    said = Sentences()
    for text in [*(line.text for each in summaries for line in _summary_lines(each)), *(note.text for note in notes)]:
        said.add(text)
    return StaticContext(
        body=builder.text(),
        seqs=frozenset(note.seq for note in notes),
        sentences=said.keys(),
        # What is left out may find room in another part, and ends there too.
        until=min((note.until for note in _all_notes(streams) if note.until), default=None),
        notes=tuple(notes),
        rest=tuple(rest),
    )


def _add_all(
    style: Style,
    builder: TextBuilder,
    paths: dict[tuple[int, int], Path],
    streams: Sequence[StreamSection],
    now: datetime,
) -> bool:
    """Add everything; return whether it fits."""
    for number, stream in enumerate(streams):
        if stream.summary and not builder.add(Fragment(paths[number, SUMMARY], 0, style.summary(stream.summary))):
            return False
        for section, note in stream.notes:
            if not builder.add(Fragment(paths[number, section], note.seq, style.note(note, now))):
                return False
    return True


def _by_worth(streams: Sequence[StreamSection], value_of: ValueOf) -> list[_Entry]:
    """All that the streams have: instructions and what is pinned, then by turns the most valuable and the newest."""
    newest: list[_Entry] = []
    for number, stream in enumerate(streams):
        for place, line in enumerate(_summary_lines(stream.summary)):
            text = str(line).removeprefix("- ") if line.subject else str(line)
            newest.append(_Entry(number, SUMMARY, text, None, place, line))
        newest += [_Entry(number, section, note.text, note) for section, note in stream.notes]
    newest.sort(key=lambda entry: (entry.section, -entry.number))
    newest.sort(key=lambda entry: entry.date, reverse=True)
    dated = [entry for entry in newest if entry.date]
    # What has no date is prose: of it the first matters most.
    prose = [entry for entry in newest if not entry.date]
    prose.sort(key=lambda entry: (_SUMMARY_ORDER.index(streams[entry.stream].layer), entry.place))
    values = {entry: value_of(entry.text) for entry in newest}
    standing = (entry for entry in newest if values[entry] == inf or _is_standing(entry.note))
    valuable = sorted([*prose, *dated], key=lambda entry: -values[entry])
    turns = chain.from_iterable(zip_longest(valuable, dated))
    return list(dict.fromkeys(filter(None, chain(standing, turns))))


def _is_standing(note: Note | None) -> bool:
    return note is not None and (note.pinned or note.label == INSTRUCTION)


def _summary_lines(summary: str) -> list[SummaryLine]:
    """What is kept or left out as a whole: a statement, or a sentence of prose."""
    return [line for line in read_summary(summary) if not line.is_heading]


def _new_summary(stream: StreamSection, known: Sentences) -> str:
    """A stream's summary without what is known, and what its stream has something else in place of."""
    superseded = Sentences(stream.superseded)
    new: set[int] = set()
    lines = _summary_lines(stream.summary)
    for place, line in enumerate(lines):
        said = [part for part in (line.text, line.text.partition(": ")[2]) if part]
        if all(known.new_part(part) and superseded.new_part(part) == part for part in said):
            new.add(place)
            known.add(line.text)
    return stream.summary if len(new) == len(lines) else _join_parts(stream.summary, new, "")


def _join_parts(summary: str, kept: set[int], gap: str) -> str:
    """Parts of a summary, each below its heading."""
    text, last, last_heading = "", 0, ""
    for place, line in enumerate(_summary_lines(summary)):
        shown = str(line) if place in kept else gap
        if not shown or (shown == gap and text.endswith(gap)):
            continue
        if place in kept and line.subject != last_heading:
            text += f"{chr(10) if text else ''}{line.subject}:" if line.subject else ""
            last_heading = line.subject
        text += ("" if not text else " " if line.number == last else "\n") + shown
        last = line.number
    return text


def render_rest(style: Style, room: float, static: StaticContext, hits: Sequence[Hit], said: Sentences) -> str:
    """What the static context has no room for, as far as it fits and was not said."""
    builder, path = TextBuilder(room, style.root.separator), style.path("other")
    seqs = {hit.record.seq for hit in hits}
    places = {(hit.scope, hit.id) for hit in hits}
    for order, left in enumerate(static.rest):
        is_shown = said.new_part(left.said) != left.said
        if left.note:
            is_shown = is_shown or left.seq in seqs or not places.isdisjoint(left.note.rests_on)
        if not is_shown and builder.add(Fragment(path, order, left.text)):
            said.add(left.said)
    return builder.text()
