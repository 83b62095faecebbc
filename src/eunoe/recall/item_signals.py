"""Signals of each row by itself: what it names, who said it and when, whether it has a time or a number."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from eunoe.index.dense import Floats
from eunoe.index.lexical import NUMBER, TIME
from eunoe.index.stream import StreamIndex
from eunoe.recall.query import QueryPlan
from eunoe.text.dates import DAY_SECONDS, DateRange

_DAYS_TOLD_LATER: Final = 7.0
_DAYS_PLANNED_BEFORE: Final = 3.0
"""Things are told some days after they happen, or planned some days before."""


def item_signals(index: StreamIndex, plan: QueryPlan, matches: Floats) -> dict[str, Floats]:
    """The signals that this question asks for."""
    signals: dict[str, Floats] = {}
    if plan.identifiers:
        held = matches.take(plan.identifiers, axis=0)
        signals["exact"] = np.add.reduce(held, axis=0) / np.float32(len(plan.identifiers))
    if plan.speaker_words:
        signals["speaker"] = _speaker_signal(index, plan)
    if plan.date_ranges:
        signals["date"] = _date_signal(index, plan.date_ranges)
    if plan.question.asks_time:
        signals["time"] = ((index.lexical.rows["flags"] & TIME) > 0).astype(np.float32)
    if plan.question.asks_number:
        signals["number"] = ((index.lexical.rows["flags"] & NUMBER) > 0).astype(np.float32)
    return signals


def _speaker_signal(index: StreamIndex, plan: QueryPlan) -> Floats:
    """1 for what a person named in the question said, or for atoms that name the person."""
    said: Floats = index.rows_with("speaker", plan.speakers).astype(np.float32)
    if not index.layout.message.all() and plan.name_groups:
        named = index.lexical.matches(plan.name_groups).max(axis=0)
        said = np.where(index.layout.message, said, np.maximum(said, named))
    return said


def _date_signal(index: StreamIndex, ranges: Sequence[DateRange]) -> Floats:
    """1 within a range, less the further outside."""
    times, valid_from = index.columns["time"], index.columns["valid_from"]
    times = np.where(np.isnan(times), valid_from, times)
    nearness = np.zeros(index.rows, np.float64)
    for range in ranges:
        scale = max(1.0, (range.end - range.start) / DAY_SECONDS) ** 0.5 * DAY_SECONDS
        late = 0.8 * np.exp(-np.maximum(times - range.end, 0) / (_DAYS_TOLD_LATER * scale))
        early = 0.5 * np.exp(-np.maximum(range.start - times, 0) / (_DAYS_PLANNED_BEFORE * scale))
        outside = np.where(times >= range.end, late, early)
        nearness = np.fmax(nearness, np.where((times >= range.start) & (times < range.end), 1.0, outside))
    return nearness.astype(np.float32)
