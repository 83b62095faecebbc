"""What the commands of the bench share: options, progress on standard error, the result as JSON or as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress as ProgressBar
from rich.table import Table

from eunoe.bench import Progress, Result, StatusLine
from eunoe.model.choices import RecipeName

T = TypeVar("T")

ConversationsArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        help="Conversations with questions: the plain format, or LoCoMo's own file. "
        "Without one, the conversations in the package.",
    ),
]
RecipeOption = Annotated[
    RecipeName,
    typer.Option(
        "--recipe", help="How to rank: default, thorough (slower, finds more), lexical, dense, rrf or associative."
    ),
]
EmbedderOption = Annotated[str, typer.Option(help="What makes vectors: auto, none, eunoe, static, ...")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def chosen_embedder(ctx: typer.Context, embedder: str) -> str:
    """The one named after the command, else the one named before it."""
    return embedder or getattr(ctx.obj, "embedder", None) or "auto"


@contextmanager
def progress_bar(path: Path | None) -> Iterator[Progress]:
    """A bar for the questions asked about a file; nothing where standard error is not a terminal."""
    console = Console(stderr=True)
    with ProgressBar(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"asking {path.name if path else 'talk'}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def track(items: Iterable[T], total: int, progress: Progress | None) -> Iterator[T]:
    """Items as they come; progress is called when the reader is done with each."""
    for done, item in enumerate(items, 1):
        yield item
        if progress:
            progress(done, total)


@contextmanager
def status_line() -> Iterator[StatusLine]:
    """What is being done, on one line that changes; on plain lines where standard error is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: console.print(text, highlight=False, markup=False)
        return
    with console.status("starting") as status:
        yield status.update


def print_result(ctx: typer.Context, result: Result, as_json: bool, print_tables: Callable[[Result], None]) -> None:
    if as_json or getattr(ctx.obj, "json", False):
        typer.echo(json.dumps(result, indent=2))
    else:
        print_tables(result)


def print_scores(
    title: str, groups: Sequence[Mapping[str, Mapping[str, float]]], *remarks: str, cell: str = "{:.1f}"
) -> None:
    """A table of figures by label, with a rule between groups and lines below. The first row has all columns."""
    columns = list(next(iter(groups[0].values())))
    table = Table("", *columns, title=title or None)
    for group in groups:
        table.add_section()
        for label, figures in group.items():
            cells = [figures.get(name, "") for name in columns]
            table.add_row(label, *(cell.format(each) if isinstance(each, float) else str(each) for each in cells))
    console = Console()
    for part in (table, *remarks):
        console.print(part)
