"""Views drawn for a terminal: never wider than it, what is cut marked with an ellipsis."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from eunoe.cli.display import Entries, Entry, Grid, Pairs, View, escape_controls, write_text

_WHO_COLUMNS: Final = 16
_MIN_TEXT_COLUMNS: Final = 20
_TEXT_LINES: Final = 2
_MAX_CHARACTERS: Final = 10_000
"""More than any terminal shows on the few lines that a text gets: a huge text is not worth wrapping."""


def console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def show(views: Iterable[View]) -> None:
    is_below_table = False
    for view in views:
        if isinstance(view, str):
            write_text(view)
        else:
            console().print(*[""] * is_below_table, draw(view), sep="\n")
        is_below_table = not isinstance(view, str)


def draw(view: Pairs | Grid | Entries) -> Table:
    if isinstance(view, Pairs):
        return _draw_pairs(view)
    return _draw_grid(view) if isinstance(view, Grid) else _draw_entries(view)


def _draw_pairs(pairs: Pairs) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs.values.items():
        table.add_row(name, _text(value))
    return table


def _draw_grid(grid: Grid) -> Table:
    """The first column gives way last. Equal columns do not take each other's room."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    width = console().width
    first = min(max((len(row[0]) for row in grid.rows), default=0), width // 3)
    table.add_column(grid.names[0], overflow="fold", min_width=first)
    share = max(1, (width - first - 2) // len(grid.names[1:]) - 2) if grid.has_equal_columns else None
    for name in grid.names[1:]:
        table.add_column(name, overflow="fold", max_width=share)
    for row in grid.rows:
        table.add_row(*map(_text, row))
    return table


def _draw_entries(entries: Entries) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold", expand=True)
    for name in entries.names:
        table.add_column(
            name, width=_WHO_COLUMNS if name.startswith("who") else None, no_wrap=True, overflow="ellipsis"
        )
    table.add_column("text", ratio=1, overflow="fold")
    for entry in entries.rows:
        table.add_row(*map(_cell, entry.cells), Group(*_body(entry, entries.is_full)))
    return table


def _body(entry: Entry, is_full: bool) -> Iterable[RenderableType]:
    yield Text(escape_controls(entry.text), overflow="fold") if is_full else _ClippedText(entry.text)
    yield from (_text(f"· {reason}", "cyan") for reason in entry.reasons)
    yield _text(entry.note, "dim")


def _cell(text: str) -> Text:
    """The second line of a cell is less important."""
    first, *rest = escape_controls(text).split("\n", 1)
    return Text.assemble(first, *(("\n" + line, "dim") for line in rest))


def _text(text: str, style: str = "") -> Text:
    return Text(escape_controls(text), style=style)


class _ClippedText:
    """Text over a few lines at most."""

    def __init__(self, text: str) -> None:
        words = " ".join(escape_controls(text[:_MAX_CHARACTERS]).split())
        self._text = Text(words if len(text) <= _MAX_CHARACTERS else f"{words} …")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        lines = list(self._text.wrap(console, width))
        if len(lines) > _TEXT_LINES:
            del lines[_TEXT_LINES:]
            lines[-1].truncate(width - 1)
            lines[-1].rstrip()
            lines[-1].append("…")
        yield from lines

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_MIN_TEXT_COLUMNS, options.max_width), options.max_width)
