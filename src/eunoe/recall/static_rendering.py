"""The static context put into words within its share of a budget: instructions, then the newest and most valuable."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, zip_longest
from math import inf
from typing import Final, NamedTuple

from eunoe.model.arguments import INSTRUCTION
from eunoe.model.result import Hit
from eunoe.recall.rendering import Fragment, Path, Style, TextBuilder
from eunoe.recall.sentences import Sentences
from eunoe.recall.static_context import (
    FACTS,
    INSTRUCTIONS,
    OBSERVATIONS,
    SUMMARY,
    Leftover,
    Note,
    StaticContext,
    StreamSection,
)
from eunoe.text.summary_lines import SummaryLine, read_summary
from eunoe.text.tokens import text_width

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
    builder = TextBuilder(style.room_left("", room), style.root.separator)
    paths = _paths(style, streams)
    if _add_all(style, builder, paths, streams, now):
        return _static_context(builder, streams, [part.summary for part in streams], all_notes(streams), ())
    builder = TextBuilder(style.room_left("", room), style.root.separator)
    kept: list[_Entry] = []
    left: list[_Entry] = []
    for entry in _by_worth(streams, value_of):
        (kept if _add(style, builder, paths, entry, now) else left).append(entry)
    summaries = [_cut_summary(stream.summary, number, kept) for number, stream in enumerate(streams)]
    for number, text in enumerate(summaries):
        if text:
            builder.place(Fragment(paths[number, SUMMARY], 0, style.summary(text)))
    notes = [entry.note for entry in kept if entry.note]
    rest = _leftovers(style, left, now, _LEFTOVER_SHARE * (room or 0.0))
    return _static_context(builder, streams, summaries, notes, rest)


def _each_once(streams: Sequence[StreamSection]) -> list[StreamSection]:
    """The streams without what is said in them a second time. What is to stand in any case comes first."""
    known = Sentences()
    texts: dict[tuple[int, Note], str] = {}
    noted = [(number, note) for number, stream in enumerate(streams) for note in stream.notes]
    for place in filter(lambda place: _is_standing(place[1]), noted):
        texts[place] = known.take(place[1].text)
    summaries = []
    for number, stream in enumerate(streams):
        summaries.append(_new_summary(stream, known))
        for note in stream.notes:
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


def all_notes(streams: Iterable[StreamSection]) -> list[Note]:
    return [note for stream in streams for note in stream.notes]


def _static_context(
    builder: TextBuilder,
    streams: Sequence[StreamSection],
    summaries: Iterable[str],
    notes: Sequence[Note],
    rest: tuple[Leftover, ...],
) -> StaticContext:
    said = Sentences()
    for text in [*(line.text for each in summaries for line in _summary_lines(each)), *(note.text for note in notes)]:
        said.add(text)
    return StaticContext(
        body=builder.text(),
        seqs=frozenset(note.seq for note in notes),
        sentences=said.keys(),
        # What is left out may find room in another part, and ends there too.
        until=min((note.until for note in all_notes(streams) if note.until), default=None),
        notes=tuple(notes),
        rest=rest,
    )


def _paths(style: Style, streams: Sequence[StreamSection]) -> dict[tuple[int, int], Path]:
    return {
        (number, section): style.path(stream.layer, number, stream.name, section)
        for number, stream in enumerate(streams)
        for section in (INSTRUCTIONS, SUMMARY, OBSERVATIONS, FACTS)
    }


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
        for section, note in _noted(stream):
            if not builder.add(Fragment(paths[number, section], note.seq, style.note(note, now))):
                return False
    return True


def _add(style: Style, builder: TextBuilder, paths: dict[tuple[int, int], Path], entry: _Entry, now: datetime) -> bool:
    path = paths[entry.stream, entry.section]
    if entry.note:
        return builder.add(Fragment(path, entry.note.seq, style.note(entry.note, now)))
    text = f"{entry.heading}:\n- {entry.text}" if entry.heading else entry.text
    return builder.reserve(path, text_width(style.summary(text)) + _GAP_WIDTH)


def _by_worth(streams: Sequence[StreamSection], value_of: ValueOf) -> list[_Entry]:
    """All that the streams have: instructions and what is pinned, then by turns the most valuable and the newest."""
    newest = sorted(_entries(streams), key=lambda entry: (entry.section, -entry.number))
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


def _entries(streams: Sequence[StreamSection]) -> Iterator[_Entry]:
    for number, stream in enumerate(streams):
        for place, line in enumerate(_summary_lines(stream.summary)):
            text = str(line).removeprefix("- ") if line.subject else str(line)
            yield _Entry(number, SUMMARY, text, None, place, line)
        for section, note in _noted(stream):
            yield _Entry(number, section, note.text, note)


def _noted(stream: StreamSection) -> Iterator[tuple[int, Note]]:
    """The notes of a stream, each with its section."""
    for section, notes in (
        (INSTRUCTIONS, stream.instructions),
        (OBSERVATIONS, stream.observations),
        (FACTS, stream.facts),
    ):
        yield from ((section, note) for note in notes)


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


def _cut_summary(summary: str, stream: int, kept: Iterable[_Entry]) -> str:
    """The parts of a stream's summary that were kept, in their order, and a mark wherever some were left out."""
    places = {entry.place for entry in kept if entry.note is None and entry.stream == stream}
    return _join_parts(summary, places, _GAP) if places else ""


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


def _leftovers(style: Style, left: Iterable[_Entry], now: datetime, width: float) -> tuple[Leftover, ...]:
    """As much of what is left as could ever find room."""
    rest: list[Leftover] = []
    for entry in left:
        text = style.note(entry.note, now) if entry.note else style.line(entry.text)
        rest.append(Leftover(text, entry.said, entry.note))
        width -= text_width(text)
        if width < 0:
            break
    return tuple(rest)


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
