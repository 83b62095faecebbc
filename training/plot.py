"""A picture of a training run: the losses of each seed, and recall on the way.

    python training/plot.py training/log/encoder.csv docs/encoder.svg

Reads what `make.py encoder` wrote, and from encoder.json beside it where recall began; needs matplotlib.
"""

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
# No date and no random ids: the same log gives the same picture.
matplotlib.rcParams["svg.hashsalt"] = "eunoe"

from matplotlib import pyplot  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

SMOOTHED_STEPS = 15
COLOURS = ("#c2410c", "#0f766e", "#4f46e5", "#a16207")
PANELS = {
    "loss, talk": "loss: questions and facts over turns",
    "loss, passages": "loss: questions over passages, and the start's order",
    "recall@10, validation": "recall@10 on the validation conversations, %",
}

Lines = dict[str, dict[str, list[tuple[int, float]]]]


def read_log(path: Path) -> Lines:
    """Steps and values, by what they measure and by run."""
    lines: Lines = defaultdict(lambda: defaultdict(list))
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            lines[row["what"]][row["run"]].append((int(row["step"]) + 1, float(row["value"])))
    return lines


def smooth(values: np.ndarray, width: int = SMOOTHED_STEPS) -> np.ndarray:
    """The mean of the values around each; fewer at the ends."""
    window = np.ones(min(width, len(values)))
    return np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")


def start_values(path: Path) -> dict[str, float]:
    """What was measured of the model before the first step."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return {}
    found = json.loads(beside.read_text(encoding="utf-8"))["found"]["start"]
    return {"recall@10, validation": found["validation"]["R@10"]}


def draw(lines: Lines, before: dict[str, float], path: Path) -> None:
    titles = [what for what in PANELS if what in lines]
    if not titles:
        raise SystemExit(f"the log has none of: {'; '.join(PANELS)}")
    figure, axes = pyplot.subplots(
        1, len(titles), figsize=(4.4 * len(titles), 3.4), layout="constrained", squeeze=False
    )
    for axis, what in zip(axes[0], titles, strict=True):
        _draw_panel(axis, what, lines[what], before.get(what))
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _draw_panel(axis: Axes, what: str, runs: dict[str, list[tuple[int, float]]], before: float | None) -> None:
    first = [] if before is None else [(0, before)]
    for place, (run, points) in enumerate(runs.items()):
        steps, values = np.array([*first, *points]).T
        colour = COLOURS[place % len(COLOURS)]
        if what.startswith("loss"):
            axis.plot(steps, values, color=colour, alpha=0.18, linewidth=0.7)
            axis.plot(steps, smooth(values), color=colour, linewidth=1.6, label=run)
        else:
            axis.plot(steps, values, color=colour, marker="o", markersize=4, label=run)
    axis.set_title(PANELS[what], fontsize=9)
    axis.set_xlabel("step")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="encoder.csv")
    parser.add_argument("picture", type=Path, help="an .svg or .png to write")
    options = parser.parse_args()
    draw(read_log(options.log), start_values(options.log), options.picture)


if __name__ == "__main__":
    main()
