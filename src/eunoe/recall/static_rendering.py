"""The static context put into words within its share of a budget: instructions, then the newest and most valuable."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, zip_longest
from math import inf
from typing import Final, NamedTuple

from eunoe.model.choices import INSTRUCTION
from eunoe.model.hit import Hit
from eunoe.recall.rendering import Fragment, Path, Style, TextBuilder
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
from eunoe.text.normalize import normalize
from eunoe.text.summary_lines import read_summary
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
_DATE_START: Final = re.compile(r"^(?:- )?(\d{4}-\d\d-\d\d)(?: \(past\))?: ")
_ASKED_END: Final = re.compile(r" \(asked: (?:(?! \(asked: ).)+\)$")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")  # noqa: RUF001
_INNER_END: Final = re.compile(r"[.!?…。！？\n].", re.DOTALL)  # noqa: RUF001


class _Entry(NamedTuple):
    """A memory, or a sentence of a summary, that finds room or does not."""

    stream: int
    section: int
    text: str
    note: Note | None = None
    line: int = 0
    place: int = 0
    """The line of the summary, and the place of the sentence in all of it."""
    date: str = ""
    """When it was, where that is known; as text, which sorts."""
    heading: str = ""
    """What it stands below in the summary."""

    @property
    def number(self) -> int:
        return self.note.seq if self.note else self.place


def render_static(
    style: Style,
    room: float | None,
    streams: Sequence[StreamSection],
    now: datetime,
    value_of: ValueOf = lambda _: 0.0,
) -> StaticContext:
    """The static context within its share of the budget, and what found no room."""
    streams = [replace(each, summary=_without(each.summary, _told_elsewhere(each))) for each in streams]
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


def all_notes(streams: Iterable[StreamSection]) -> list[Note]:
    return [note for stream in streams for note in stream.notes]


def _static_context(
    builder: TextBuilder,
    streams: Sequence[StreamSection],
    summaries: Iterable[str],
    notes: Sequence[Note],
    rest: tuple[Leftover, ...],
) -> StaticContext:
    sentences = {normalize(note.text) for note in notes}
    return StaticContext(
        body=builder.text(),
        seqs=frozenset(note.seq for note in notes),
        sentences=frozenset(sentences.union(*map(summary_sentences, summaries))),
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
        for place, (line, heading, part) in enumerate(_summary_parts(stream.summary)):
            match = _DATE_START.match(part)
            text, date = part.removeprefix("- ") if heading else part, match[1] if match else ""
            yield _Entry(number, SUMMARY, text, None, line, place, date, heading)
        for section, note in _noted(stream):
            yield _Entry(number, section, note.text, note, date=note.when.isoformat())


def _noted(stream: StreamSection) -> Iterator[tuple[int, Note]]:
    """The notes of a stream, each with its section."""
    for section, notes in (
        (INSTRUCTIONS, stream.instructions),
        (OBSERVATIONS, stream.observations),
        (FACTS, stream.facts),
    ):
        yield from ((section, note) for note in notes)


def _summary_parts(summary: str) -> Iterator[tuple[int, str, str]]:
    """What is kept or left out as a whole, with its line and its heading: a statement, or a sentence of prose."""
    lines = (line for line in read_summary(summary) if not line.is_heading)
    return ((line.number, line.subject, str(line)) for line in lines)


def _told_elsewhere(stream: StreamSection) -> frozenset[str]:
    """What a summary need not tell: its stream has something else in its place, or tells it as an instruction."""
    said = (note.text for note in stream.instructions)
    return stream.superseded.union(normalize(part) for text in said for part in (text, text.partition(": ")[2]) if part)


def _without(summary: str, left_out: frozenset[str]) -> str:
    """A summary without the parts that say one of these."""
    parts = list(enumerate(_summary_parts(summary))) if left_out else []
    over = {place for place, (_, _, part) in parts if not summary_sentences(part).isdisjoint(left_out)}
    return _join_parts(summary, {place for place, _ in parts} - over, "") if over else summary


def _cut_summary(summary: str, stream: int, kept: Iterable[_Entry]) -> str:
    """The parts of a stream's summary that were kept, in their order, and a mark wherever some were left out."""
    places = {entry.place for entry in kept if entry.note is None and entry.stream == stream}
    return _join_parts(summary, places, _GAP) if places else ""


def _join_parts(summary: str, kept: set[int], gap: str) -> str:
    """Parts of a summary, each below its heading."""
    text, last, last_heading = "", 0, ""
    for place, (line, heading, part) in enumerate(_summary_parts(summary)):
        shown = part if place in kept else gap
        if not shown or (shown == gap and text.endswith(gap)):
            continue
        if place in kept and heading != last_heading:
            text += f"{chr(10) if text else ''}{heading}:" if heading else ""
            last_heading = heading
        text += ("" if not text else " " if line == last else "\n") + shown
        last = line
    return text


def _leftovers(style: Style, left: Iterable[_Entry], now: datetime, width: float) -> tuple[Leftover, ...]:
    """As much of what is left as could ever find room."""
    rest: list[Leftover] = []
    for entry in left:
        text = style.note(entry.note, now) if entry.note else style.line(entry.text)
        rest.append(Leftover(text, normalize(entry.text), entry.note))
        width -= text_width(text)
        if width < 0:
            break
    return tuple(rest)


def render_rest(style: Style, room: float, static: StaticContext, hits: Sequence[Hit], shown: Container[str]) -> str:
    """What the static context has no room for, as far as it fits and is not among what was recalled."""
    builder, path = TextBuilder(room, style.root.separator), style.path("other")
    seqs = {hit.record.seq for hit in hits}
    places = {(hit.scope, hit.id) for hit in hits}
    for order, left in enumerate(static.rest):
        is_shown = left.statement in shown or left.statement in static.sentences
        if left.note:
            is_shown = is_shown or left.seq in seqs or not places.isdisjoint(left.note.rests_on)
        if not is_shown:
            builder.add(Fragment(path, order, left.text))
    return builder.text()


def summary_sentences(summary: str) -> set[str]:
    """What a summary says, by line and by sentence, with its speaker and without, as duplicates are compared."""
    lines = [_ASKED_END.sub("", _DATE_START.sub("", line.strip()).removeprefix("- ")) for line in summary.splitlines()]
    lines += [line.partition(": ")[2] for line in lines]
    return {normalize(line) for line in lines if line}.union(*map(sentence_set, lines))


def sentence_set(text: str) -> set[str]:
    """The sentences of a text, as duplicates are compared."""
    return set(normal_sentences(text))


def normal_sentences(text: str) -> Iterator[str]:
    """The same, one after the other: most texts are known to be new by their first."""
    stripped = text.strip()
    # Most memories are one sentence, which is quicker to see than to split.
    parts = _SENTENCE_END.split(stripped) if _INNER_END.search(stripped) else [stripped]
    return (normalize(part) for part in parts if part)
