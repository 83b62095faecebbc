"""Changes of a log: what a request adds to it, takes back and brings back.

A request shows a part of the chat: front ends cut the beginning, and some keep the first message and cut behind it. So
what a request does not show counts as deleted only between messages that it shows, or behind them, and only if it shows
enough of the chat beside it. What cannot be told apart by role and content is read as the case that loses nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

from eunoe.discussion.log.alignment import Key, Pair, align

_TRUST: Final = 2
"""So many messages may be taken back for each one that shows that the request belongs there."""
_EDIT_SIMILARITY: Final = 0.6
_COMPARED_CHARACTERS: Final = 2000


class Line(NamedTuple):
    """A message as it is compared."""

    key: Key
    role: str
    text: str
    is_retracted: bool = False


@dataclass(slots=True)
class LogChanges:
    """What brings a log in line with a request. Places of the log count retracted messages too."""

    places: list[int | None]
    """For each message of the request its place in the log; None if it is new."""
    before: dict[int, int] = field(default_factory=dict)
    """For each new message of the request the place in the log before which it goes."""
    retracted: list[int] = field(default_factory=list)
    restored: list[int] = field(default_factory=list)
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
        keys = [log[place].key for place in self._visible]
        self._counts = Counter(keys)
        self._pairs = align(keys, [line.key for line in request])
        self._result = LogChanges([None] * len(request))
        if not self._is_convincing():
            self._pairs = []

    def changes(self) -> LogChanges:
        for pair in self._pairs:
            self._result.places[pair.request] = self._visible[pair.log]
        for gap in self._gaps():
            self._fill(gap)
        self._result.restored.sort()
        return self._result

    def _is_convincing(self) -> bool:
        """Whether the pairs mean anything: a short message that was also said far up does not."""
        if not self._pairs or self._tail_is_gone():
            return True
        starts_both = self._pairs[0] == (0, 0)
        return self._rare_pairs() > 1 or (starts_both and len(self._request) > len(self._pairs))

    def _gaps(self) -> Iterator[_Gap]:
        end, count = len(self._visible), len(self._request)
        if not self._pairs:
            self._retract(range(end if self._is_whole else 0))
            yield _Gap(range(count), end - 1, end)
            return
        yield self._head()
        for number, (before, after) in enumerate(pairwise(self._pairs), 1):
            yield self._hole(before, after, number)
        yield self._tail()

    def _head(self) -> _Gap:
        """What the request has before the first message that both have."""
        first = self._pairs[0]
        new = range(first.request)
        if self._is_whole or first.log == first.request <= _TRUST * len(self._pairs):
            self._retract(range(first.log))
            return _Gap(new, -1, first.log)
        if first.request == 1 and first.log and self._is_edit(first.log - 1, 0):
            self._retract(range(first.log - 1, first.log))
        return _Gap(new, first.log - 1, first.log)

    def _hole(self, before: Pair, after: Pair, shown: int) -> _Gap:
        """What lies between two messages that both have; `shown` of them stand before it."""
        gone, new = range(before.log + 1, after.log), range(before.request + 1, after.request)
        if not gone:
            return _Gap(new, before.log, after.log)
        is_behind_first = shown == 1 and before == (0, 0)
        limit = max(1 if is_behind_first else _TRUST * shown, _TRUST * len(new))
        cut_before = self._cut_before(gone) if is_behind_first and not new else []
        if self._is_whole or (len(gone) <= limit and not cut_before):
            self._retract(gone)
            return _Gap(new, before.log, after.log)
        self._result.restored += cut_before
        return _Gap(new, after.log - 1, after.log)

    def _cut_before(self, gone: range) -> list[int]:
        """What is missing behind the first message was deleted, or cut by a front end that keeps the first message.

        A message that is missing alone is taken for deleted. If the next one is missing later, it was a cut.
        """
        left, right = self._visible[gone.start - 1], self._visible[gone.start]
        role = self._log[right].role
        return [place for place in range(left + 1, right) if self._log[place].role != role]

    def _tail(self) -> _Gap:
        """What comes after the last message that both have."""
        last, end = self._pairs[-1], len(self._visible)
        new = range(last.request + 1, len(self._request))
        gone = range(last.log + 1, end)
        if self._tail_is_gone():
            self._retract(gone)
            return _Gap(new, last.log, end)
        self._result.note = (
            f"the request ends {len(gone)} messages before the end of the log and shows too little to tell whether "
            "they were deleted: they are kept; take it in as the whole chat if they were"
        )
        return _Gap(new, end - 1, end)

    def _tail_is_gone(self) -> bool:
        """Whether what the log has behind the last common message was deleted or regenerated."""
        first, last = self._pairs[0], self._pairs[-1]
        gone = len(self._visible) - 1 - last.log
        if self._is_whole or not gone:
            return True
        evidence = self._rare_pairs() - 1 + (first == (0, 0)) + self._is_replaced(last)
        return gone <= _TRUST * evidence

    def _rare_pairs(self) -> int:
        """How many of the common messages the log has only once."""
        return sum(self._counts[self._log[self._visible[pair.log]].key] == 1 for pair in self._pairs)

    def _is_replaced(self, last: Pair) -> bool:
        """Whether the message behind the last common one is another one of the same role."""
        if last.request + 1 == len(self._request):
            return False
        return self._log[self._visible[last.log + 1]].role == self._request[last.request + 1].role

    def _is_edit(self, visible: int, request: int) -> bool:
        old, new = self._log[self._visible[visible]], self._request[request]
        texts = old.text[:_COMPARED_CHARACTERS], new.text[:_COMPARED_CHARACTERS]
        matcher = SequenceMatcher(None, *texts, autojunk=False)
        return old.role == new.role and matcher.quick_ratio() >= _EDIT_SIMILARITY <= matcher.ratio()

    def _retract(self, visible: range) -> None:
        self._result.retracted += [self._visible[place] for place in visible]

    def _fill(self, gap: _Gap) -> None:
        """Bring back what stood here before, and put the rest in."""
        if not gap.request:
            return
        place = self._visible[gap.left] + 1 if gap.left >= 0 else 0
        right = self._visible[gap.right] if gap.right < len(self._visible) else len(self._log)
        retracted = self._retracted_places(place, right)
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

    def _retracted_places(self, start: int, end: int) -> dict[Key, list[int]]:
        """The places of retracted messages by their keys."""
        places: dict[Key, list[int]] = {}
        for place in range(start, end):
            if self._log[place].is_retracted:
                places.setdefault(self._log[place].key, []).append(place)
        return places
