"""Alignment: what a request changes in a log: which of its messages stand there already, what it adds, takes back and
brings back.

Both are compared by keys, one for each message; equal keys mean equal role and content. The request is usually the end
of the log and something new. Where it is not, messages that occur once on either side are the fixed points, and what
lies between them is compared.

A request shows a part of the chat: front ends cut the beginning, and some keep the first messages and cut behind them.
So what a request does not show counts as deleted only between messages that it shows, or behind them, and only if it
shows enough of the chat beside it. What cannot be told apart by role and content is read as the case that loses
nothing; new messages remember what was left out before them, and later requests tell what it was: a cut moves as the
chat grows, and what was deleted stays where it was.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import SequenceMatcher
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
_TRUST: Final = 2
"""So many messages may be taken back for each one that shows that the request belongs there."""
_LEAST_OPENING: Final = 2
"""So many messages in common at the beginning say that a request begins where the log begins."""
_MOST_KEPT: Final = 16
"""Front ends that keep the first messages and cut behind them keep no more than this, such as examples."""
_EDIT_SIMILARITY: Final = 0.6
_COMPARED_CHARACTERS: Final = 2000


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
    """How many messages at the end of the log the request begins with, at most."""
    for count in range(min(len(log), len(request)), 0, -1):
        if log[-count] == request[0] and log[-1] == request[count - 1] and log[-count:] == request[:count]:
            return count
    return 0


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
    """From messages that occur once on either side to the next ones; of those that crossed, the most that stand in
    order count."""
    in_log, in_request = Counter(log), Counter(request)
    places = {key: place for place, key in enumerate(log) if in_log[key] == 1}
    once = [Pair(places[key], place) for place, key in enumerate(request) if in_request[key] == 1 and key in places]
    anchors = _longest_rise(once)
    if not anchors:
        return _compare_ends(log, request, Pair(len(log), len(request)))
    last = anchors[-1]
    pairs = _compare_head(log, request, anchors[0])
    for before, after in pairwise(anchors):
        pairs += [before, *_compare_gap(log, request, Pair(before.log + 1, before.request + 1), after)]
    rest = len(request) - last.request - 1
    end = min(len(log), last.log + 1 + 2 * rest + _SPARE) if rest else last.log + 1
    tail = _compare_gap(log, request, Pair(last.log + 1, last.request + 1), Pair(end, len(request)))
    return [*pairs, last, *tail]


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


class Hole(NamedTuple):
    """What a request left out, by the ids of the messages before and behind it. A cut that moves has none behind it."""

    left: str
    right: str = ""


class Line(NamedTuple):
    """A message as it is compared."""

    key: Key
    role: str
    text: str
    id: str = ""
    recorded: datetime | None = None
    retired: datetime | None = None
    holes: Sequence[Hole] = ()
    """What was left out by the request that brought this message, and by those before it."""

    @property
    def is_retracted(self) -> bool:
        return self.retired is not None


@dataclass(slots=True)
class LogChanges:
    """What brings a log in line with a request. Places of the log count retracted messages too."""

    places: list[int | None]
    """For each message of the request its place in the log; None if it is new."""
    before: dict[int, int] = field(default_factory=dict)
    """For each new message of the request the place in the log before which it goes."""
    retracted: list[int] = field(default_factory=list)
    restored: list[int] = field(default_factory=list)
    holes: dict[int, int | None] = field(default_factory=dict)
    """What new messages have to remember as left out: by the message of the request before it, the one behind it; None
    if the cut moves."""
    note: str = ""


class _Gap(NamedTuple):
    """New messages of a request, and the visible messages between which they go."""

    request: range
    left: int
    right: int


def find_changes(log: Sequence[Line], request: Sequence[Line], *, is_whole: bool = False) -> LogChanges:
    """Find out what a request changes. If it is the whole chat, all that it does not show was deleted."""
    return _Comparison(log, request, is_whole).changes()


class _Comparison:
    def __init__(self, log: Sequence[Line], request: Sequence[Line], is_whole: bool) -> None:
        self._log = log
        self._request = request
        self._is_whole = is_whole
        self._visible = [place for place, line in enumerate(log) if not line.is_retracted]
        self._keys = [log[place].key for place in self._visible]
        self._counts = Counter(self._keys)
        self._known_holes = log[self._visible[-1]].holes if self._visible else ()
        self._pairs = align(self._keys, [line.key for line in request])
        self._result = LogChanges([None] * len(request))
        # A short message that was also said far up means nothing.
        if self._pairs and not self._tail_is_gone() and self._rare_pairs() <= 1:
            starts_both = self._pairs[0] == (0, 0)
            self._pairs = self._pairs if starts_both and len(self._request) > len(self._pairs) else []

    def changes(self) -> LogChanges:
        for pair in self._pairs:
            self._result.places[pair.request] = self._visible[pair.log]
        for gap in self._gaps():
            self._fill(gap)
        self._result.restored.sort()
        # What earlier requests left out is remembered on, where this one shows the same two messages side by side.
        for before, after in pairwise(self._pairs) if self._known_holes else ():
            hole = Hole(self._line(before.log).id, self._line(after.log).id)
            if hole in self._known_holes and after.request == before.request + 1:
                self._result.holes.setdefault(before.request, after.request)
        return self._result

    def _gaps(self) -> Iterator[_Gap]:
        end, count = len(self._visible), len(self._request)
        if not self._pairs:
            self._retract(range(end if self._is_whole else 0))
            yield _Gap(range(count), end - 1, end)
            return
        yield self._head()
        for number, (before, after) in enumerate(pairwise(self._pairs), 1):
            gone, new = range(before.log + 1, after.log), range(before.request + 1, after.request)
            is_gone = bool(gone) and (self._is_whole or self._is_deleted(gone, new, before, number))
            self._retract(gone if is_gone else range(0))
            yield _Gap(new, before.log if is_gone or not gone else after.log - 1, after.log)
        yield self._tail()

    def _head(self) -> _Gap:
        """What the request has before the first message that both have."""
        first = self._pairs[0]
        new = range(first.request)
        if self._is_whole or first.log == first.request <= _TRUST * len(self._pairs):
            self._retract(range(first.log))
            return _Gap(new, -1, first.log)
        if first.request == 1 and first.log:
            old, edited = self._line(first.log - 1), self._request[0]
            texts = old.text[:_COMPARED_CHARACTERS], edited.text[:_COMPARED_CHARACTERS]
            matcher = SequenceMatcher(None, *texts, autojunk=False)
            if old.role == edited.role and matcher.quick_ratio() >= _EDIT_SIMILARITY <= matcher.ratio():
                self._retract(range(first.log - 1, first.log))
        return _Gap(new, first.log - 1, first.log)

    def _is_deleted(self, gone: range, new: range, before: Pair, shown: int) -> bool:
        """Whether messages between two that the request shows were deleted or edited; they may have been cut off.

        `shown` messages that both have stand before them.
        """
        left, behind = self._line(before.log).id, self._line(gone.stop)
        # What earlier requests left out behind the same message.
        known = None if new else next((hole for hole in self._known_holes if hole.left == left), None)
        may_be_cut = not new and before.request == shown - 1 < _MOST_KEPT
        has_more = self._pairs[-1].request + 1 < len(self._request)
        is_known = False
        if known:
            # Front ends cut more off as the chat grows.
            has_moved = has_more and any(self._line(place).id == known.right for place in gone)
            if may_be_cut and (not known.right or has_moved):
                self._result.restored += self._cut_before(before, known)
                self._result.holes[before.request] = None
                self._result.note = _note(len(gone)) if known.right else self._result.note
                return False
            # The same is missing though the chat went on, and enough is shown behind it: as much as is missing, or what
            # was never seen behind it, another branch of the chat.
            goes_on = has_more and self._pairs[-1].log == len(self._visible) - 1
            is_branch = any(hole.right == behind.id for hole in behind.holes)
            is_enough = is_branch or len(self._request) - new.stop >= len(gone)
            is_known = known.right == behind.id and goes_on and is_enough
        is_deleted = is_known or len(gone) <= _TRUST * max(shown, len(new))
        if may_be_cut or not (new or is_deleted):
            self._result.holes[before.request] = new.stop
        self._result.note = self._result.note if is_deleted else _note(len(gone))
        return is_deleted

    def _cut_before(self, before: Pair, known: Hole) -> list[int]:
        """What was taken for deleted when the hole was first seen, and was cut off."""
        first = min(line.recorded for line in self._log if line.recorded and known in line.holes)
        places: list[int] = []
        for place in range(self._visible[before.log] + 1, len(self._log)):
            line = self._log[place]
            if line.id == known.right:
                return places
            if line.retired and line.retired >= first:
                places.append(place)
        return []

    def _tail(self) -> _Gap:
        """What comes after the last message that both have."""
        last, end = self._pairs[-1], len(self._visible)
        new = range(last.request + 1, len(self._request))
        gone = range(last.log + 1, end)
        if self._tail_is_gone():
            self._retract(gone)
            return _Gap(new, last.log, end)
        if new:
            self._result.holes[last.request] = new.start
        self._result.note = _note(len(gone))
        return _Gap(new, end - 1, end)

    def _tail_is_gone(self) -> bool:
        """Whether what the log has behind the last common message was deleted or regenerated."""
        first, last = self._pairs[0], self._pairs[-1]
        gone = len(self._visible) - 1 - last.log
        if self._is_whole or not gone or self._is_branch():
            return True
        evidence = self._rare_pairs() - 1 + (first == (0, 0)) + self._is_replaced(last)
        return gone <= _TRUST * evidence

    def _is_branch(self) -> bool:
        """Whether the request begins as the log does, and goes on otherwise: what follows an edited message is gone."""
        shown, last = len(self._pairs), self._pairs[-1]
        new = len(self._request) - shown
        if shown < _LEAST_OPENING or last != (shown - 1, shown - 1) or not 0 < new <= max(_TRUST, shown):
            return False
        keys, starts = self._keys, range(1, len(self._keys) - shown + 1)
        is_said_again = any(keys[start : start + shown] == keys[:shown] for start in starts)
        return self._is_replaced(last) and not is_said_again

    def _rare_pairs(self) -> int:
        """How many of the common messages the log has only once."""
        return sum(self._counts[self._keys[pair.log]] == 1 for pair in self._pairs)

    def _is_replaced(self, last: Pair) -> bool:
        """Whether the message behind the last common one is another one of the same role."""
        if last.request + 1 == len(self._request):
            return False
        return self._line(last.log + 1).role == self._request[last.request + 1].role

    def _line(self, visible: int) -> Line:
        return self._log[self._visible[visible]]

    def _retract(self, visible: range) -> None:
        self._result.retracted += [self._visible[place] for place in visible]

    def _fill(self, gap: _Gap) -> None:
        """Bring back what stood here before, and put the rest in."""
        if not gap.request:
            return
        place = self._visible[gap.left] + 1 if gap.left >= 0 else 0
        right = self._visible[gap.right] if gap.right < len(self._visible) else len(self._log)
        retracted: dict[Key, list[int]] = {}
        for old in range(place, right):
            if self._log[old].is_retracted:
                retracted.setdefault(self._log[old].key, []).append(old)
        waiting = []
        for number in gap.request:
            places = retracted.get(self._request[number].key, [])
            choice = bisect_left(places, place)
            if choice == len(places):
                waiting.append(number)
                continue
            place = places[choice] + 1
            self._result.places[number] = places[choice]
            self._result.restored.append(places[choice])
            self._result.before.update(dict.fromkeys(waiting, places[choice]))
            waiting = []
        self._result.before.update(dict.fromkeys(waiting, right))


def _note(count: int) -> str:
    return (
        f"the request leaves out {count} messages of the log and shows too little to tell whether they were deleted: "
        "they are kept; take it in as the whole chat if they were"
    )


def find_turn_changes(log: Sequence[Line], turn: Sequence[Line]) -> LogChanges:
    """Find out what the latest turn changes. It goes to the end, whatever was said before in the same words.

    If it begins with the last question, that was asked again: what it does not repeat of the answer is taken back.

    >>> question, answer = Line("u1", "user", "Why?"), Line("a1", "assistant", "So.")
    >>> find_turn_changes([question, answer], [question, Line("a2", "assistant", "Because.")]).retracted
    [1]
    """
    last: list[int] = []  # the places of the last turn, from its last message with the role of the first one on
    for place in range(len(log) - 1, -1, -1) if turn else ():
        if not log[place].is_retracted:
            last.insert(0, place)
            if log[place].role in (turn[0].role, "user"):
                break
    known = 0
    while known < min(len(last), len(turn)) and log[last[known]].key == turn[known].key:
        known += 1
    new = range(known, len(turn))
    return LogChanges(
        places=[*last[:known], *(None for _ in new)],
        before=dict.fromkeys(new, len(log)),
        retracted=last[known:] if known and new else [],
    )
