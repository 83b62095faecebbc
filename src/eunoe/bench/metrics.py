"""How good a ranking is: the share of gold found, and how early."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

CUTS = (5, 10, 20)


def judge(ranked: Sequence[str], gold: Sequence[str]) -> dict[str, float]:
    """Recall at the cuts, any hit and nDCG at ten, in percent.

    >>> judge(["a", "b", "c"], ["b"])["recall@5"]
    100.0
    """
    wanted = set(gold)
    scores = {f"recall@{cut}": len(wanted.intersection(ranked[:cut])) / len(wanted) for cut in CUTS}
    scores["hit@10"] = float(bool(wanted.intersection(ranked[:10])))
    scores["ndcg@10"] = _ndcg(ranked, wanted)
    return {name: 100 * value for name, value in scores.items()}


def mean(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score, to two places."""
    return {name: round(fmean(one[name] for one in scores), 2) for name in scores[0]} if scores else {}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _ndcg(ranked: Sequence[str], wanted: set[str]) -> float:
    gain = sum(1 / math.log2(place + 2) for place, id in enumerate(ranked[:10]) if id in wanted)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
