"""Alignment: which messages of a request stand in the log already, by the sequence of who said what.

Both are given as keys, one for each message; equal keys mean equal role and content. The request is usually the end of
the log and something new. Where it is not, messages that occur once on either side are the fixed points, and what lies
between them is compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

Key = str
_NEW_COST: Final = 0.6
"""A new message at the end is likelier than a change further up."""
_CUT_COST: Final = 3
"""Where a request begins as the log does, what is missing may have been cut off all at once."""
_MAX_CELLS: Final = 40_000
"""Longer stretches without a fixed point are not compared pair by pair: that would take quadratic time."""
_SPARE: Final = 16
"""Messages of the log that are looked at beyond the length of what they are compared with."""


class Pair(NamedTuple):
    """A place in the log and the place in the request that holds the same message."""

    log: int
    request: int


def align(log: Sequence[Key], request: Sequence[Key]) -> list[Pair]:
    """Return the pairs of places that hold the same message, in order.

    >>> align(["ok", "fine"], ["fine", "ok"])
    [Pair(log=1, request=0)]
    >>> align(["a", "b", "c"], ["a", "x", "c", "d"])
    [Pair(log=0, request=0), Pair(log=2, request=2)]
    """
    count = _overlap(log, request)
    appended = [Pair(len(log) - count + place, place) for place in range(count)]
    if count == len(request) or not set(request[count:]) & set(log):
        return appended
    compared = _compare(log, request)
    if not count:
        return compared
    return min((appended, compared), key=lambda pairs: _cost(log, request, pairs))  # of equals what loses nothing


def _overlap(log: Sequence[Key], request: Sequence[Key]) -> int:
    """How many messages at the end of the log the request begins with, at most (Knuth, Morris and Pratt)."""
    shorter = _borders(request)
    length = 0
    for key in log[max(0, len(log) - len(request)) :]:
        while length and (length == len(request) or request[length] != key):
            length = shorter[length - 1]
        if length < len(request) and request[length] == key:
            length += 1
    return length


def _borders(keys: Sequence[Key]) -> list[int]:
    """For each opening of the sequence: how long its longest proper opening is that it also ends with."""
    lengths = [0] * len(keys)
    length = 0
    for place in range(1, len(keys)):
        while length and keys[place] != keys[length]:
            length = lengths[length - 1]
        length += keys[place] == keys[length]
        lengths[place] = length
    return lengths


def _cost(log: Sequence[Key], request: Sequence[Key], pairs: Sequence[Pair]) -> float:
    """How much would have been changed, if these pairs are meant."""
    if not pairs:
        return float(len(request))
    first, last = pairs[0], pairs[-1]
    gone = last.log - first.log + 1 - len(pairs)
    gone_at_end = len(log) - 1 - last.log
    inserted = last.request + 1 - len(pairs) + first.request  # what comes before all else is rarely new
    known = set(log)
    new = sum(1 if key in known else _NEW_COST for key in request[last.request + 1 :])
    return (min(gone, _CUT_COST) if first == (0, 0) else gone) + max(gone_at_end, new) + inserted


def _compare(log: Sequence[Key], request: Sequence[Key]) -> list[Pair]:
    anchors = _anchors(log, request)
    if not anchors:
        return _compare_ends(log, request, Pair(len(log), len(request)))
    first, last = anchors[0], anchors[-1]
    pairs = _compare_head(log, request, first)
    for before, after in pairwise(anchors):
        pairs += [before, *_compare_gap(log, request, Pair(before.log + 1, before.request + 1), after)]
    return [*pairs, last, *_compare_tail(log, request, last)]


def _compare_ends(log: Sequence[Key], request: Sequence[Key], end: Pair) -> list[Pair]:
    """What comes before two places, compared from there backwards: the beginning may be cut off."""
    start = max(0, end.log - 2 * end.request - _SPARE)
    if (end.log - start) * end.request <= _MAX_CELLS:
        return _common(log, request, Pair(start, 0), end)
    return _compare_gap(log, request, Pair(max(0, end.log - end.request), 0), end)


def _compare_head(log: Sequence[Key], request: Sequence[Key], first: Pair) -> list[Pair]:
    """What comes before the first fixed point: what stands right before it on both sides, and what is left of it."""
    room, count = min(first), 0
    while count < room and log[first.log - 1 - count] == request[first.request - 1 - count]:
        count += 1
    end = Pair(first.log - count, first.request - count)
    neighbours = [Pair(end.log + step, end.request + step) for step in range(count)]
    if end.request <= end.log and log[: end.request] == request[: end.request]:
        return [*(Pair(place, place) for place in range(end.request)), *neighbours]
    return [*_compare_ends(log, request, end), *neighbours]


def _compare_tail(log: Sequence[Key], request: Sequence[Key], last: Pair) -> list[Pair]:
    rest = len(request) - last.request - 1
    end = min(len(log), last.log + 1 + 2 * rest + _SPARE) if rest else last.log + 1
    return _compare_gap(log, request, Pair(last.log + 1, last.request + 1), Pair(end, len(request)))


def _compare_gap(log: Sequence[Key], request: Sequence[Key], start: Pair, end: Pair) -> list[Pair]:
    """The pairs between two places, the second not included."""
    opening = 0
    room = min(end.log - start.log, end.request - start.request)
    while opening < room and log[start.log + opening] == request[start.request + opening]:
        opening += 1
    ending = 0
    while ending < room - opening and log[end.log - 1 - ending] == request[end.request - 1 - ending]:
        ending += 1
    inner = Pair(start.log + opening, start.request + opening), Pair(end.log - ending, end.request - ending)
    return [
        *(Pair(start.log + step, start.request + step) for step in range(opening)),
        *_common(log, request, *inner),
        *(Pair(end.log - step, end.request - step) for step in range(ending, 0, -1)),
    ]


def _anchors(log: Sequence[Key], request: Sequence[Key]) -> list[Pair]:
    """Messages that occur once on either side; of those that crossed, the most that stand in order."""
    in_log, in_request = Counter(log), Counter(request)
    places = {key: place for place, key in enumerate(log) if in_log[key] == 1}
    pairs = [Pair(places[key], place) for place, key in enumerate(request) if in_request[key] == 1 and key in places]
    return _longest_rise(pairs)


def _longest_rise(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest run of pairs whose places in the log rise, too; of several the one nearest to the end of the log."""
    starts: list[int] = []
    at_start: list[int] = []
    behind = [-1] * len(pairs)
    for number in range(len(pairs) - 1, -1, -1):
        length = bisect_left(starts, -pairs[number].log)
        behind[number] = at_start[length - 1] if length else -1
        starts[length : length + 1] = [-pairs[number].log]
        at_start[length : length + 1] = [number]
    rise = []
    number = at_start[-1] if at_start else -1
    while number >= 0:
        rise.append(pairs[number])
        number = behind[number]
    return rise


def _common(log: Sequence[Key], request: Sequence[Key], start: Pair, end: Pair) -> list[Pair]:
    """The longest common subsequence between two places; nothing if the stretch is too long to compare."""
    height, width = end.log - start.log, end.request - start.request
    if not height or not width or height * width > _MAX_CELLS:
        return []
    lengths = [[0] * (width + 1) for _ in range(height + 1)]
    for row in range(height - 1, -1, -1):
        for column in range(width - 1, -1, -1):
            same = log[start.log + row] == request[start.request + column]
            below, right = lengths[row + 1][column], lengths[row][column + 1]
            lengths[row][column] = lengths[row + 1][column + 1] + 1 if same else max(below, right)
    return _trace(lengths, start)


def _trace(lengths: Sequence[Sequence[int]], start: Pair) -> list[Pair]:
    pairs = []
    row = column = 0
    while lengths[row][column]:
        if lengths[row][column] == lengths[row + 1][column]:
            row += 1
        elif lengths[row][column] == lengths[row][column + 1]:
            column += 1
        else:
            pairs.append(Pair(start.log + row, start.request + column))
            row, column = row + 1, column + 1
    return pairs
