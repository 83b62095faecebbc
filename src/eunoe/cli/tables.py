"""Memories as tables for a terminal: never wider than it, what is cut marked with an ellipsis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from eunoe.cli.reasons import in_words
from eunoe.model.atom import Atom
from eunoe.model.graph import Mention
from eunoe.model.hit import Hit
from eunoe.model.message import Message
from eunoe.model.record import Item

# Stored text is data: an escape sequence in it must not reach the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WHO = 16
# More than any terminal shows on the few lines a text gets: a huge one is not worth wrapping.
_MOST = 10_000


class Clipped:
    """Text over a few lines at most."""

    def __init__(self, text: str, lines: int) -> None:
        shown = " ".join(safe(text[:_MOST]).split())
        self._text = Text(shown if len(text) <= _MOST else f"{shown} …")
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        wrapped = list(self._text.wrap(console, width))
        if len(wrapped) > self._lines:
            del wrapped[self._lines :]
            wrapped[-1].truncate(width - 1)
            wrapped[-1].rstrip()
            wrapped[-1].append("…")
        yield from wrapped

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), options.max_width)


def console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def safe(text: str) -> str:
    """Text with its control characters made visible."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r\n", "\n"))


def hits(found: Sequence[Hit], *, full: bool, why: bool, most: int | None = None) -> Table:
    """Hits, best first; with `why` the reasons of each, at most so many."""
    table = _table("score", "who, when")
    for hit in found:
        cell: list[RenderableType] = [_body(hit.text, full, 2)]
        if why:
            cell += [Text(f"· {reason}", style="cyan") for reason in in_words(hit, most)]
        cell.append(Text(safe(hit.id), style="dim"))
        table.add_row(f"{hit.score:.3f}", _who_when(hit.item), Group(*cell))
    return table


def items(found: Iterable[Item], *, full: bool) -> Table:
    table = _table("who, when")
    for item in found:
        notes = " · ".join([safe(item.id), *_notes(item)])
        table.add_row(_who_when(item), Group(_body(item.text, full, 2), Text(notes, style="dim")))
    return table


def mentions(found: Iterable[Mention], *, full: bool) -> Table:
    """Passages that have a name; those that are about it are marked."""
    table = _table("kind")
    for passage in found:
        notes = " · ".join([safe(passage.id), *(["is about it"] if passage.about else [])])
        table.add_row(passage.kind, Group(_body(passage.text, full, 2), Text(notes, style="dim")))
    return table


def pairs(values: Mapping[str, str]) -> Table:
    """Names and values side by side."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name, Text(safe(value)))
    return table


def grid(names: Sequence[str], rows: Sequence[Sequence[str]], *, even: bool = False) -> Table:
    """Rows under their names; the first column says whose row it is, and gives way last. The others may be of a kind:
    then none takes the room of another."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    width = console().width
    first = min(max((len(row[0]) for row in rows), default=0), width // 3)
    table.add_column(names[0], overflow="fold", min_width=first)
    share = max(1, (width - first - 2) // len(names[1:]) - 2) if even else None
    for name in names[1:]:
        table.add_column(name, overflow="fold", max_width=share)
    for row in rows:
        table.add_row(*(Text(safe(cell)) for cell in row))
    return table


def learned(found: Iterable[Atom]) -> Table:
    """Memories that were made, each stream's together."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", overflow="fold", max_width=2 * _WHO)
    table.add_column(ratio=1, overflow="fold")
    stream = None
    for atom in found:
        if atom.scope != stream:
            stream = atom.scope
            table.add_row("in", Text(safe(str(stream)), style="bold"))
        table.add_row(safe(who(atom)), Text.assemble(safe(atom.text), ("  " + safe(atom.id), "dim")))
    return table


def when(moment: datetime | None) -> str:
    """A moment to the minute, in UTC; to the day where that is all it says."""
    if moment is None:
        return ""
    at_midnight = not (moment.hour or moment.minute or moment.second)
    return f"{moment:%Y-%m-%d}" if at_midnight else f"{moment:%Y-%m-%d %H:%M}"


def who(item: Item) -> str:
    """Who said it, or what sort of memory it is."""
    if isinstance(item, Message):
        return item.speaker or item.role
    return f"{item.kind}: {item.label}" if item.label else item.kind


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold", expand=True)
    for name in names:
        width = _WHO if name.startswith("who") else None
        table.add_column(name, width=width, no_wrap=True, overflow="ellipsis")
    table.add_column("text", ratio=1, overflow="fold")
    return table


def _body(text: str, full: bool, lines: int) -> RenderableType:
    return Text(safe(text), overflow="fold") if full else Clipped(text, lines)


def _who_when(item: Item) -> Text:
    moment = item.time or item.recorded
    return Text.assemble(safe(who(item)), "\n", (when(moment), "dim"))


def _notes(item: Item) -> list[str]:
    """What else is worth knowing about a memory, in a few words."""
    notes = ["pinned"] if isinstance(item, Atom) and item.pinned else []
    if isinstance(item, Message):
        return notes + ([f"session {safe(item.session)}"] if item.session else [])
    notes += [f"files {safe(', '.join(item.files))}"] if item.files else []
    notes += [f"people {safe(', '.join(item.people))}"] if item.people else []
    notes += [f"true from {when(item.valid_from)}"] if item.valid_from else []
    notes += [f"true until {when(item.valid_to)}"] if item.valid_to else []
    return notes + ([f"closed {when(item.retired)}"] if item.retired else [])
