"""Where the boxes of a graph stand in its picture: each connected part by itself, then one beside the other."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GAP: Final = 26.0
"""Between two connected parts."""
_MIN_PULL: Final = 0.35
"""How much the weakest tie pulls, as a share of the strongest: less, and its box drifts far away."""
_TO_MIDDLE: Final = 0.05
"""How far a box goes back to the middle of its two others, as a share of the way: at first, and less in each round."""
_OUTWARD: Final = 0.55
"""The power with which distances beyond the usual one still grow."""
_WIDER_THAN_HIGH: Final = 1.6
_MAX_WIDTH: Final = 2.0
"""How much wider than that a picture may become, so that its parts fill it."""


class Tie(NamedTuple):
    """Two boxes, by their numbers, that belong near each other."""

    a: int
    b: int
    strength: float


class Layout(NamedTuple):
    """The middle of each box, and how much room they take together."""

    places: Floats
    width: float
    height: float


def lay_out(boxes: Floats, ties: Sequence[Tie], middles: Sequence[tuple[int, int]] = ()) -> Layout:
    """Place boxes of these widths and heights so that tied ones are near and none covers another.

    The last boxes, as many as there are `middles`, stand between two others each.

    >>> lay_out(np.array([[40.0, 20.0]]), []).places.tolist()
    [[20.0, 10.0]]
    """
    if not len(boxes):
        return Layout(np.zeros((0, 2)), 0.0, 0.0)
    count = len(boxes) - len(middles)
    places, sizes = np.zeros((len(boxes), 2)), []
    parts = sorted(_connected_parts(count, ties, middles), key=lambda part: -len(part))
    for part in parts:
        place_of = {number: place for place, number in enumerate(part)}
        own_ties = [Tie(place_of[a], place_of[b], strength) for a, b, strength in ties if a in place_of]
        own_middles = [(place_of[a], place_of[b]) for a, b in middles if a in place_of]
        places[part], size = _lay_out_part(boxes[part], own_ties, own_middles)
        sizes.append(size)
    corners, width, height = _pack(np.array(sizes))
    for part, corner in zip(parts, corners, strict=True):
        places[part] += corner
    return Layout(places, width, height)


def _connected_parts(count: int, ties: Sequence[Tie], middles: Sequence[tuple[int, int]]) -> list[list[int]]:
    smallest = list(range(count))

    def root(number: int) -> int:
        while smallest[number] != number:
            smallest[number] = number = smallest[smallest[number]]
        return number

    for a, b in (*((tie.a, tie.b) for tie in ties), *middles):
        first, second = sorted((root(a), root(b)))
        smallest[second] = first
    parts: dict[int, list[int]] = {}
    for number, owner in enumerate((*range(count), *(a for a, _ in middles))):
        parts.setdefault(root(owner), []).append(number)
    return list(parts.values())


def _lay_out_part(boxes: Floats, ties: Sequence[Tie], middles: Sequence[tuple[int, int]]) -> tuple[Floats, Floats]:
    spread = (1.5 if middles else 1.3) * float(np.sqrt(boxes.prod(axis=1).sum()))
    places = _draw_in(_attract(len(boxes) - len(middles), ties)) * np.array([1.3, 0.8]) * spread
    ends = np.array(middles, np.int64).reshape(-1, 2)
    places = _separate(np.vstack((places, places[ends].mean(axis=1))), boxes, ends)
    low, high = (places - boxes / 2).min(axis=0), (places + boxes / 2).max(axis=0)
    return places - low, high - low


def _draw_in(places: Floats) -> Floats:
    """Bring those nearer that stand far outside, in the same direction."""
    outward = places - np.median(places, axis=0)
    distance = np.maximum(np.hypot(*outward.T), 1e-9)
    usual = max(float(np.median(distance)), 1e-9)
    drawn: Floats = outward * np.where(distance > usual, (distance / usual) ** (_OUTWARD - 1), 1.0)[:, None]
    return drawn


def _attract(count: int, ties: Sequence[Tie]) -> Floats:
    """A force-directed layout in a square of side 1 or so: boxes push each other away, ties pull them together."""
    pull = np.zeros((count, count))
    for tie in ties:
        pull[tie.a, tie.b] = pull[tie.b, tie.a] = max(tie.strength, float(pull[tie.a, tie.b]))
    pull = np.where(pull > 0, _MIN_PULL + (1 - _MIN_PULL) * np.sqrt(pull / max(float(pull.max()), 1e-9)), 0.0)
    # The golden angle: no two start at the same place, and the same graph always looks the same.
    angle = np.arange(count) * 2.39996
    places: Floats = 0.5 * np.sqrt(np.arange(count) / count)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    apart = 1 / np.sqrt(count)
    for heat in np.linspace(0.1, 0.002, _round_count(count)):
        squares = (places**2).sum(axis=1)
        distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * places @ places.T, 1e-8))
        force = apart**2 / distance**2 - pull * distance / apart
        step = places * (force.sum(axis=1) - 0.5)[:, None] - force @ places
        places = places + step * np.minimum(1.0, heat / np.maximum(np.sqrt((step**2).sum(axis=1)), 1e-9))[:, None]
    return places


def _separate(places: Floats, boxes: Floats, ends: Ints) -> Floats:
    """Move boxes apart until none covers another, or at least fewer do. Those between two others stay near to that."""
    first_middle = len(boxes) - len(ends)
    for back in np.linspace(_TO_MIDDLE, -_TO_MIDDLE, _round_count(len(boxes))):
        places[first_middle:] += max(back, 0.0) * (places[ends].mean(axis=1) - places[first_middle:])
        sides = zip(boxes.T, places.T, strict=True)
        overlap = [(size[:, None] + size) / 2 - np.abs(place[:, None] - place) for size, place in sides]
        first, second = np.nonzero(np.triu((overlap[0] > 0) & (overlap[1] > 0), 1))
        if not len(first):
            break
        overlaps = np.column_stack([side[first, second] for side in overlap])
        # Along the shorter way; what stands at one place is parted by its order.
        push = overlaps * np.eye(2)[overlaps.argmin(axis=1)] * np.where(places[first] < places[second], -0.3, 0.3)
        np.add.at(places, first, push)
        np.add.at(places, second, -push)
    return places


def _round_count(boxes: int) -> int:
    """Fewer rounds the more boxes there are: a picture of a thousand takes seconds, too."""
    return min(300, max(60, 60_000 // boxes))


def _pack(sizes: Floats) -> tuple[list[tuple[float, float]], float, float]:
    """The corners of parts of these sizes, in rows as wide as makes the picture smallest, and what all of them take."""
    area = float((sizes + _GAP).prod(axis=1).sum())
    usual = max(float(sizes[:, 0].max()), float(np.sqrt(_WIDER_THAN_HIGH * area)))
    first_rows = np.cumsum(sizes[:, 0] + _GAP) - _GAP
    widths = [usual, *first_rows[(first_rows > usual) & (first_rows < _MAX_WIDTH * usual)].tolist()]
    return min(
        (_pack_rows(sizes, width) for width in widths),
        key=lambda packed: max(packed[1], _WIDER_THAN_HIGH * packed[2]),
    )


def _pack_rows(sizes: Floats, widest: float) -> tuple[list[tuple[float, float]], float, float]:
    corners: list[tuple[float, float]] = []
    x = y = row_height = width = 0.0
    for part_width, part_height in sizes.tolist():
        if x and x + part_width > widest:
            x, y, row_height = 0.0, y + row_height + _GAP, 0.0
        corners.append((x, y))
        x, row_height = x + part_width + _GAP, max(row_height, part_height)
        width = max(width, x - _GAP)
    return corners, width, y + row_height
