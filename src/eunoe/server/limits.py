"""How often somebody may ask: a bucket of tokens for each, in the memory of this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

_MINUTE: Final = 60.0
_BURST_SECONDS: Final = 10.0
"""So many seconds' worth may come at once."""
_MAX_BUCKETS: Final = 10_000


class Allowance(NamedTuple):
    """What is left of a limit."""

    limit: int
    remaining: int
    wait: float
    """Seconds until the next one is allowed; 0 if it is allowed now."""


class RateLimit:
    """So many a minute for each name. The names that were not heard of for longest are dropped first."""

    def __init__(
        self, per_minute: int, *, burst: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_minute / _MINUTE
        self._burst = float(burst or max(1, round(self._per_second * _BURST_SECONDS)))
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> Allowance:
        """Use one up, if there is one."""
        tokens, now = self._tokens(name)
        allowance = self._allowance(tokens)
        self._keep(name, tokens - 1 if not allowance.wait else tokens, now)
        return allowance

    def look(self, name: str) -> Allowance:
        """What there is, with nothing used up."""
        return self._allowance(self._tokens(name)[0])

    def _tokens(self, name: str) -> tuple[float, float]:
        now = self._clock()
        tokens, before = self._buckets.get(name, (self._burst, now))
        return min(self._burst, tokens + (now - before) * self._per_second), now

    def _allowance(self, tokens: float) -> Allowance:
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._per_second
        return Allowance(int(self._burst), max(0, int(tokens) - 1), wait)

    def _keep(self, name: str, tokens: float, now: float) -> None:
        self._buckets[name] = (tokens, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
