"""Where boxes stand: near to what they are tied to, beside what they are not, and never on one another."""

from __future__ import annotations

import numpy as np
import pytest

from eunoe.apps.projects.graph_layout import Layout, Tie, lay_out


def overlaps(boxes: np.ndarray, layout: Layout) -> int:
    count = 0
    for place in range(len(boxes)):
        for other in range(place):
            apart = np.abs(layout.places[place] - layout.places[other])
            count += bool((apart < (boxes[place] + boxes[other]) / 2 - 0.5).all())
    return count


def test_every_box_is_inside_and_covers_no_other() -> None:
    boxes = np.tile([80.0, 30.0], (30, 1))
    layout = lay_out(boxes, [Tie(number // 3, number, 1.0) for number in range(1, 30)])
    assert overlaps(boxes, layout) == 0
    assert (layout.places - boxes / 2).min() >= -0.01
    assert ((layout.places + boxes / 2).max(axis=0) <= np.array([layout.width, layout.height]) + 0.01).all()


def test_parts_that_nothing_ties_stand_beside_each_other() -> None:
    boxes = np.tile([80.0, 30.0], (40, 1))
    layout = lay_out(boxes, [Tie(number, number + 1, 1.0) for number in range(0, 40, 2)])
    assert overlaps(boxes, layout) == 0
    assert layout.width * layout.height < 8 * boxes.prod(axis=1).sum()


def test_a_small_part_stands_where_there_is_room() -> None:
    layout = lay_out(np.array([[500.0, 250.0], [120.0, 215.0]]), [])
    assert layout.width > 620
    assert layout.height == 250


@pytest.mark.parametrize("both_ways", [False, True])
def test_a_box_between_two_others_stands_near_their_middle(both_ways: bool) -> None:
    middles = [(0, 1), (1, 0)] if both_ways else [(0, 1)]
    boxes = np.tile([60.0, 20.0], (4 + len(middles), 1))
    layout = lay_out(boxes, [Tie(0, 1, 1.0), Tie(1, 2, 1.0), Tie(2, 3, 0.5)], middles)
    assert overlaps(boxes, layout) == 0
    middle = layout.places[:2].mean(axis=0)
    assert np.abs(layout.places[4:] - middle).max() < 60
