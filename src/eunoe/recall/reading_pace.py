"""How much a reranker can read in a given time."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

_MAX_BATCH: Final = 16
_MAX_RISE: Final = 2.0
_NEWEST_SHARE: Final = 0.3
"""The pace is the mean of all batches, the newest with this share. One moment of a busy machine is no pace: a batch
counts at most as so many times slower than those before."""
_RELAXATION: Final = 0.9


class ReadingPace:
    """Learnt from what was read before. Threads may share it: a number that is lost in between comes again.

    >>> pace = ReadingPace()
    >>> pace.note(characters=400, seconds=0.004)
    >>> pace.count_within([400, 400, 400, 400], seconds=0.02), pace.count_within([400], seconds=0.001)
    (2, 0)
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        """For a character; 0 before anything was read."""

    def count_within(self, sizes: Sequence[int], seconds: float) -> int:
        """How many texts of these sizes to read next: what takes half of the time, so that a wrong guess is noticed
        before it is over; the last one may take all of it. The very first text is read alone."""
        if not sizes or not seconds > 0 or sizes[0] * self._seconds > seconds:
            return 0
        if not self._seconds:
            return 1
        room = seconds / self._seconds
        return max(sum(total <= room / 2 for total in accumulate(sizes[:_MAX_BATCH])), 1)

    def note(self, characters: int, seconds: float) -> None:
        """Learn from a batch."""
        measured, known = seconds / max(characters, 1), self._seconds
        self._seconds = known + _NEWEST_SHARE * (min(measured, _MAX_RISE * known) - known) if known else measured

    def relax(self) -> None:
        """Expect a little less after reading nothing, or a pace that was too slow once would stay for ever."""
        self._seconds *= _RELAXATION
