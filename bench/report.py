"""What the benches share: progress while they ask, and their figures as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from bench import Progress
from eunoe.cli.display import Grid, View

T = TypeVar("T")


def track(items: Iterable[T], total: int, progress: Progress | None) -> Iterator[T]:
    """Items as they come; progress is called when the reader is done with each."""
    for done, item in enumerate(items, 1):
        yield item
        if progress:
            progress(done, total)


def score_views(
    title: str, groups: Sequence[Mapping[str, Mapping[str, float]]], *remarks: str, cell: str = "{:.1f}"
) -> list[View]:
    """Figures by label, with a blank row between groups and lines below. The first row has all columns."""
    columns = list(next(iter(groups[0].values())))
    rows: list[list[str]] = []
    for group in filter(None, groups):
        rows += [[""] * (len(columns) + 1)] if rows else []
        for label, figures in group.items():
            cells = [figures.get(name, "") for name in columns]
            rows.append([label, *(cell.format(each) if isinstance(each, float) else str(each) for each in cells)])
    return [title, Grid(("", *columns), rows), *remarks]
