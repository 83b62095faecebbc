"""What the benches share: scores of a ranking, times, progress while they ask, and their figures as tables."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from time import perf_counter
from typing import ParamSpec, TypeVar

from bench import Progress
from eunoe.cli.display import Grid, View
from eunoe.embed import DEFAULT_EMBEDDER, Vectors, load_embedder

P = ParamSpec("P")
T = TypeVar("T")

Scores = dict[str, float]
"""Percentages by name, such as `recall@10`."""


def ranking_scores(ranked: Sequence[str], gold: Iterable[str]) -> Scores:
    """Recall at 5, 10 and 20, any hit and nDCG at 10, in percent.

    >>> ranking_scores(["a", "b", "c"], ["b"])["recall@5"]
    100.0
    """
    wanted = set(gold)
    scores = {f"recall@{cut}": recall_share(ranked[:cut], wanted) for cut in (5, 10, 20)}
    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranked[:10]) if id in wanted)
    best_gain = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(wanted))))
    scores |= {"hit@10": float(not wanted.isdisjoint(ranked[:10])), "ndcg@10": gain / best_gain}
    return {name: 100 * value for name, value in scores.items()}


def recall_share(ranked: Iterable[str], gold: set[str]) -> float:
    return len(gold.intersection(ranked)) / len(gold)


def f1_scores(right: int, chosen: int, wanted: int) -> Scores:
    """Precision, recall and F1 in percent to two places; 0 where nothing was chosen or wanted.

    >>> f1_scores(right=1, chosen=4, wanted=2)
    {'precision': 25.0, 'recall': 50.0, 'f1': 33.33}
    """
    parts = {"precision": (right, chosen), "recall": (right, wanted), "f1": (2 * right, chosen + wanted)}
    return {name: round(100 * part / whole, 2) if whole else 0.0 for name, (part, whole) in parts.items()}


def precision_at_recall(recall: float, ranked: Iterable[tuple[float, bool]]) -> float:
    """The precision, in percent, of the best that reach such a recall; equal scores count together.

    >>> precision_at_recall(50, [(0.9, True), (0.8, False), (0.7, True), (0.1, True)])
    66.67
    """
    groups: defaultdict[float, list[bool]] = defaultdict(list)
    for score, is_wanted in ranked:
        groups[score].append(is_wanted)
    needed = recall / 100 * sum(map(sum, groups.values()))
    right = chosen = 0
    for score in sorted(groups, reverse=True):
        right, chosen = right + sum(groups[score]), chosen + len(groups[score])
        if right >= needed:
            break
    return round(100 * right / chosen, 2) if chosen else 0.0


def mean_scores(scores: Sequence[Mapping[str, float]]) -> Scores:
    """The mean of each score, to two places."""
    return {name: round(fmean(each[name] for each in scores), 2) for name in scores[0]} if scores else {}


def mean_percent(shares: Iterable[float]) -> float:
    """The mean of shares, or of truth values, in percent to two places."""
    return round(100 * fmean(shares), 2)


def group_by(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Items by a key, the keys in order."""
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(sorted(groups.items()))


def measure_ms(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
    """Do some work; return its result and the milliseconds that it took."""
    start = perf_counter()
    result = work(*args, **kwargs)
    return result, (perf_counter() - start) * 1000


def percentile(values: Iterable[float], share: float) -> float:
    """The value that such a share lies below, interpolated between neighbours; 0 if there are none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place % 1)


def latency(times_ms: Sequence[float]) -> Scores:
    """Median and 95th percentile, to three places."""
    return {"p50": round(percentile(times_ms, 0.5), 3), "p95": round(percentile(times_ms, 0.95), 3)}


class EmbeddingClock:
    """An embedder whose `embed_query` is timed, so that embedding a question can be told from the search."""

    def __init__(self, name: str) -> None:
        self.ms = 0.0
        self.embedder = load_embedder(DEFAULT_EMBEDDER if name == "auto" else name)
        if self.embedder:
            self._embed_query = self.embedder.embed_query
            vars(self.embedder)["embed_query"] = self._measure

    def _measure(self, text: str) -> Vectors:
        vector, self.ms = measure_ms(self._embed_query, text)
        return vector

    def measure_search(self, search: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
        """`measure_ms` without the time that embedding the question took; that is in `ms` afterwards."""
        self.ms = 0.0
        result, total = measure_ms(search, *args, **kwargs)
        return result, total - self.ms


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
