"""What speaks for each row of an index, leg by leg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.lexical import NUMBER, TIME
from eunoe.index.stream import Layout, StreamIndex
from eunoe.recall.dates import DAY, Range
from eunoe.recall.query import Plan

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

_USUAL: Final = 0.1
_USUAL_WEIGHT: Final = 20
_STEPS: Final = (("before", 0.6), ("after", 0.5), ("two_before", 0.4))
_AFTER_DAYS: Final = 7.0
_BEFORE_DAYS: Final = 3.0
_ATOM_NEIGHBOUR: Final = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """The legs by the names of `Blend`, and what the reasons of a hit are read from."""

    legs: dict[str, Floats]
    matches: Floats
    cosines: Floats | None
    mask: Bools


def gather(index: StreamIndex, plan: Plan, vector: Floats | None, mask: Bools) -> Evidence:
    """All evidence of one index. Rows outside the mask show none and lend none."""
    matches = index.lexical.matches(plan.groups) * mask
    cosines = None if vector is None else index.dense.cosines(vector)
    legs = _term_legs(index, plan, matches)
    if cosines is not None:
        legs |= _dense_legs(index, cosines, mask)
    legs |= _turn_legs(index, plan, mask)
    return Evidence(legs, matches, cosines, mask)


def _term_legs(index: StreamIndex, plan: Plan, matches: Floats) -> dict[str, Floats]:
    worth = np.array([index.lexical.idf(group) * group.weight for group in plan.groups], np.float32)
    worth /= max(float(worth.sum()), 1e-9)
    layout = index.layout
    return {
        **_around("term", worth @ matches, layout),
        "window": worth @ _widened(matches, layout),
        "session_term": worth @ _over_sessions(matches, layout),
    }


def _widened(matches: Floats, layout: Layout) -> Floats:
    """Each row's matches together with those of its neighbours, which count for less."""
    wide = matches.copy()
    hit = np.flatnonzero(matches.any(axis=0) & layout.message)
    for step, share in _STEPS:
        near = _neighbours(layout, step)
        rows = np.flatnonzero(np.append(_flagged(hit, len(near)), False)[near])
        wide[:, rows] = np.maximum(wide[:, rows], matches[:, near[rows]] * np.float32(share))
    return wide


def _flagged(rows: NDArray[np.intp], size: int) -> Bools:
    flags = np.zeros(size, np.bool_)
    flags[rows] = True
    return flags


def _around(name: str, leg: Floats, layout: Layout) -> dict[str, Floats]:
    """A leg, and the same of the turns around.

    A fact stands for itself: where a turn is backed by its neighbours, it is backed by its own words.
    """
    own = np.where(layout.message, 0, leg * np.float32(_ATOM_NEIGHBOUR)).astype(np.float32)
    before = _lent(leg, layout, "before")
    return {
        name: leg,
        f"{name}_before": before + own,
        f"{name}_two_before": _lent(leg, layout, "two_before") + own,
        f"{name}_after": _lent(leg, layout, "after") + own,
        f"{name}_answer": np.where(layout.answers, before, np.float32(0)),
    }


def _neighbours(layout: Layout, step: str) -> NDArray[np.int32]:
    if step == "before":
        return layout.before
    if step == "after":
        return layout.after
    return np.append(layout.before, np.int32(-1))[layout.before]


def _lent(values: Floats, layout: Layout, step: str) -> Floats:
    """What the neighbour of each row has; 0 where there is none."""
    padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1), np.float32)], axis=-1)
    return padded[..., _neighbours(layout, step)]


def _over_sessions(values: Floats, layout: Layout) -> Floats:
    """The best of each row's session; a row that is no message is its own session."""
    if not len(layout.order):
        return values
    best = values.copy()
    tops = np.maximum.reduceat(values[..., layout.order], layout.starts, axis=-1)
    best[..., layout.order] = tops[..., layout.group[layout.order]]
    return best


def _dense_legs(index: StreamIndex, cosines: Floats, mask: Bools) -> dict[str, Floats]:
    present = index.dense.present
    usual = (float(cosines.sum()) + _USUAL * _USUAL_WEIGHT) / (int(present.sum()) + _USUAL_WEIGHT)
    lift = np.where(present & mask, (cosines - usual) / max(1 - usual, 0.05), 0).astype(np.float32)
    return _around("dense", lift, index.layout) | {"session_dense": _over_sessions(lift, index.layout)}


def _turn_legs(index: StreamIndex, plan: Plan, mask: Bools) -> dict[str, Floats]:
    layout = index.layout
    asked_last = _lent(mask.astype(np.float32), layout, "before") > 0
    legs = {
        "speaker": _about(index, plan),
        "length": layout.length,
        "question": index.asks & layout.message,
        "answer": layout.answers & asked_last,
        "user": index.user & layout.message if layout.roles else np.zeros(index.rows, np.bool_),
    }
    if plan.ranges:
        legs["date"] = _dated(index, plan.ranges)
    if plan.when:
        legs["when"] = (index.lexical.flags & TIME) > 0
    if plan.amount:
        legs["amount"] = (index.lexical.flags & NUMBER) > 0
    return {name: leg.astype(np.float32) for name, leg in legs.items()}


def _about(index: StreamIndex, plan: Plan) -> Floats:
    """1 for what a person named in the question said, or for atoms that name the person."""
    if not plan.names:
        return np.zeros(index.rows, np.float32)
    said: Floats = np.isin(index.speaker.codes, list(plan.speakers)).astype(np.float32)
    if not index.layout.message.all() and plan.named:
        told = index.lexical.matches(plan.named).max(axis=0)
        said = np.where(index.layout.message, said, np.maximum(said, told))
    return said


def _dated(index: StreamIndex, ranges: tuple[Range, ...]) -> Floats:
    """1 within a range, less the further outside: things are told some days after they happen, or planned before."""
    times = index.moment("time")
    times = np.where(np.isnan(times), index.moment("valid_from"), times)
    near = np.zeros(index.rows, np.float64)
    for each in ranges:
        reach = max(1.0, (each.end - each.start) / DAY) ** 0.5 * DAY
        late = 0.8 * np.exp(-np.maximum(times - each.end, 0) / (_AFTER_DAYS * reach))
        early = 0.5 * np.exp(-np.maximum(each.start - times, 0) / (_BEFORE_DAYS * reach))
        outside = np.where(times >= each.end, late, early)
        near = np.fmax(near, np.where((times >= each.start) & (times < each.end), 1.0, outside))
    return near.astype(np.float32)
