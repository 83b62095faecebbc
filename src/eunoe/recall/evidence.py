"""What speaks for each row of an index, leg by leg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import NUMBER, TIME, Group
from eunoe.index.stream import Layout, StreamIndex
from eunoe.recall.query import Plan
from eunoe.recall.recipes import Blend
from eunoe.text.dates import DAY_SECONDS, DateRange

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

_USUAL: Final = 0.1
_USUAL_WEIGHT: Final = 20
_BEFORE: Final = np.float32(0.6)
_AFTER: Final = np.float32(0.5)
_TWO_BEFORE: Final = np.float32(0.4)
_AFTER_DAYS: Final = 7.0
_BEFORE_DAYS: Final = 3.0
_ATOM_NEIGHBOUR: Final = 0.5
_NOTHING: Final = np.zeros(1, np.float32)
_OF_TALK: Final = (
    "term_before", "term_two_before", "term_after", "term_answer", "window", "session_term", "dense_before",
    "dense_two_before", "dense_after", "dense_answer", "session_dense", "user", "length", "question", "answer", "echo",
)  # fmt: skip
"""What speaks for turns alone."""


class Evidence(NamedTuple):
    """The legs by the names of `Blend`, and what the reasons of a hit are read from."""

    legs: dict[str, Floats]
    talk: bool
    """Whether there are turns in it. Where all is noted and nothing was said, `alone` has the weights."""
    matches: Floats
    cosines: Floats | None
    mask: Bools


def gather(index: StreamIndex, plan: Plan, vector: Floats | None, mask: Bools) -> Evidence:
    """All evidence of one index. Rows outside the mask show none and lend none."""
    layout = index.layout
    matches = index.lexical.matches(plan.groups)
    whole = bool(mask.all())
    if not whole:
        matches *= mask
    talk = len(layout.order) > 0 and bool((mask & layout.message).any())
    worth = _worth(index, plan.groups)
    term = _summed(worth, matches)
    cosines = None if vector is None else index.dense.cosines(vector)
    legs = _talk_terms(worth, matches, term, layout) if talk else {"term": term}
    if cosines is not None:
        lift = _lift(index, cosines)
        if not whole or index.dense.count < index.rows:
            lift *= index.dense.present & mask
        legs |= _talk_dense(lift, layout) if talk else {"dense": lift}
    if talk:
        legs |= _turn_legs(layout, mask)
    if plan.exact:
        legs["exact"] = np.add.reduce(matches.take(plan.exact, axis=0), axis=0) / np.float32(len(plan.exact))
    return Evidence(legs | _item_legs(index, plan), talk, matches, cosines, mask)


@lru_cache(maxsize=256)
def alone(blend: Blend) -> Blend:
    """The weights where there is no talk.

    A fact stands for itself: where a turn is backed by its neighbours, it is backed by its own words.
    """
    nothing: dict[str, Any] = dict.fromkeys(_OF_TALK, 0.0)
    term = blend.term_before + blend.term_two_before + blend.term_after
    dense = blend.dense_before + blend.dense_two_before + blend.dense_after
    return replace(
        blend,
        term=blend.term + blend.window + blend.session_term + _ATOM_NEIGHBOUR * term,
        dense=blend.dense + blend.session_dense + _ATOM_NEIGHBOUR * dense,
        **nothing,
    )


def _worth(index: StreamIndex, groups: Sequence[Group]) -> Floats:
    """The share of each group in what the question tells, as a column."""
    worth = [index.lexical.idf(group) * group.weight for group in groups]
    total = max(sum(worth), 1e-9)
    return np.array([each / total for each in worth], np.float32).reshape(-1, 1)


def _summed(worth: Floats, matches: Floats) -> Floats:
    """Not a matrix product: that may round equal columns differently, and ties would not be ties."""
    total: Floats = np.add.reduce(worth * matches, axis=0)
    return total


def _around(name: str, leg: Floats, layout: Layout) -> dict[str, Floats]:
    """A leg, and the same of the turns around; what is no turn is backed by itself."""
    own = np.where(layout.message, np.float32(0), leg * np.float32(_ATOM_NEIGHBOUR))
    padded = np.concatenate((leg, _NOTHING))
    before = padded.take(layout.before)
    return {
        name: leg,
        f"{name}_before": before + own,
        f"{name}_two_before": padded.take(layout.two_before) + own,
        f"{name}_after": padded.take(layout.after) + own,
        f"{name}_answer": before * layout.answer,
    }


def _talk_terms(worth: Floats, matches: Floats, term: Floats, layout: Layout) -> dict[str, Floats]:
    legs = _around("term", term, layout)
    legs["window"] = _window(worth, matches, term, layout)
    legs["session_term"] = _of_sessions(_summed(worth, _tops(matches, layout)), term, layout)
    return legs


def _talk_dense(lift: Floats, layout: Layout) -> dict[str, Floats]:
    return _around("dense", lift, layout) | {"session_dense": _of_sessions(_tops(lift, layout), lift, layout)}


def _window(worth: Floats, matches: Floats, term: Floats, layout: Layout) -> Floats:
    """Each turn's matches together with those of its neighbours, which count for less."""
    padded = np.concatenate((matches, np.zeros((len(matches), 1), np.float32)), axis=1)
    hit = padded.any(axis=0)
    near = hit.take(layout.before) | hit.take(layout.after) | hit.take(layout.two_before)
    rows = near.nonzero()[0]
    wide = matches.take(rows, axis=1)
    for steps, share in ((layout.before, _BEFORE), (layout.after, _AFTER), (layout.two_before, _TWO_BEFORE)):
        np.maximum(wide, padded.take(steps.take(rows), axis=1) * share, out=wide)
    window = term.copy()
    window[rows] = _summed(worth, wide)
    return window


def _tops(values: Floats, layout: Layout) -> Floats:
    """The best of each session."""
    tops: Floats = np.maximum.reduceat(values.take(layout.order, axis=-1), layout.starts, axis=-1)
    return tops


def _of_sessions(tops: Floats, own: Floats, layout: Layout) -> Floats:
    """Each turn has the value of its session; a row that is no turn is its own session."""
    return np.where(layout.message, tops.take(layout.group, mode="clip"), own)


def _lift(index: StreamIndex, cosines: Floats) -> Floats:
    """Cosines above what is usual in the stream."""
    usual = (float(cosines.sum()) + _USUAL * _USUAL_WEIGHT) / (index.dense.count + _USUAL_WEIGHT)
    return (cosines - np.float32(usual)) / np.float32(max(1 - usual, 0.05))


def _turn_legs(layout: Layout, mask: Bools) -> dict[str, Floats]:
    answer = layout.answer * np.append(mask, False).take(layout.before)
    legs = {"length": layout.length, "question": layout.question, "answer": answer}
    return legs if layout.user is None else {**legs, "user": layout.user}


def _item_legs(index: StreamIndex, plan: Plan) -> dict[str, Floats]:
    legs: dict[str, Floats] = {}
    if plan.names:
        legs["speaker"] = _about(index, plan)
    if plan.ranges:
        legs["date"] = _dated(index, plan.ranges)
    if plan.when:
        legs["when"] = ((index.lexical.flags & TIME) > 0).astype(np.float32)
    if plan.amount:
        legs["amount"] = ((index.lexical.flags & NUMBER) > 0).astype(np.float32)
    return legs


def _about(index: StreamIndex, plan: Plan) -> Floats:
    """1 for what a person named in the question said, or for atoms that name the person."""
    said: Floats = index.speaker.coded(plan.speakers).astype(np.float32)
    if not index.layout.message.all() and plan.named:
        told = index.lexical.matches(plan.named).max(axis=0)
        said = np.where(index.layout.message, said, np.maximum(said, told))
    return said


def _dated(index: StreamIndex, ranges: tuple[DateRange, ...]) -> Floats:
    """1 within a range, less the further outside: things are told some days after they happen, or planned before."""
    times = index.moment("time")
    times = np.where(np.isnan(times), index.moment("valid_from"), times)
    near = np.zeros(index.rows, np.float64)
    for each in ranges:
        reach = max(1.0, (each.end - each.start) / DAY_SECONDS) ** 0.5 * DAY_SECONDS
        late = 0.8 * np.exp(-np.maximum(times - each.end, 0) / (_AFTER_DAYS * reach))
        early = 0.5 * np.exp(-np.maximum(each.start - times, 0) / (_BEFORE_DAYS * reach))
        outside = np.where(times >= each.end, late, early)
        near = np.fmax(near, np.where((times >= each.start) & (times < each.end), 1.0, outside))
    return near.astype(np.float32)
