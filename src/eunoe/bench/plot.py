"""A picture of the engine bench for the docs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

OWN, OTHER = "#c2410c", "#94a3b8"


def draw(result: dict[str, Any], path: Path) -> None:
    """Search latency and durable adds of every engine at the largest size, as a PNG."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    size, run = list(result["sizes"].items())[-1]
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 0.5 * len(run) + 1.6), layout="constrained")
    searches = {name: one["search"]["p50_ms"] for name, one in run.items()}
    adds = {_mark(name, result): one["batch_adds"]["per_second"] for name, one in run.items()}
    _bars(axes[0], searches, "scoped search, p50 ms (less is better)", lowest_first=True)
    _bars(axes[1], adds, "batched adds per second (more is better)", lowest_first=False)
    work = result["workload"]
    figure.suptitle(f"{int(size):,} memories over {work['scopes']} scopes, {work['dimension']}-d, one run")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _mark(name: str, result: dict[str, Any]) -> str:
    """The name, with a note where the engine's adds do not reach the disk."""
    durability = result["engines"][name]["durability"]
    return name if durability == "fsync per commit" else f"{name}\n({durability})"


def _bars(axis: Any, values: dict[str, float], title: str, *, lowest_first: bool) -> None:
    ordered = sorted(values.items(), key=lambda item: item[1], reverse=lowest_first)
    names, heights = [name for name, _ in ordered], [value for _, value in ordered]
    colours = [OWN if name.startswith("eunoe") else OTHER for name in names]
    bars = axis.barh(names, heights, color=colours)
    axis.bar_label(bars, labels=[f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in heights], padding=3)
    axis.set_xscale("log")
    axis.margins(x=0.18)
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
