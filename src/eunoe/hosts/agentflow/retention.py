"""How memories age: their scores fade, and the least valuable are archived where there are too many."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from eunoe.hosts.agentflow.framework import MemorySearchResult, MemoryType

_LEAST_SHARE: Final = 0.5
"""What age leaves of a score at least: an old memory that fits perfectly still says so."""
_SECONDS_PER_DAY: Final = 86_400


def is_archived(memory: MemorySearchResult) -> bool:
    return bool(memory.metadata.get("archived"))


def is_pinned(memory: MemorySearchResult) -> bool:
    """Whether it stays as it is: pinned by somebody, or a summary."""
    return bool(memory.metadata.get("pinned") or is_summary(memory))


def is_summary(memory: MemorySearchResult) -> bool:
    return bool(memory.metadata.get("summary"))


def aware_time(memory: MemorySearchResult) -> datetime | None:
    """When it was stored. Agentflow's own times are local and do not say so."""
    return memory.timestamp.astimezone() if memory.timestamp else None


def apply_age(memory: MemorySearchResult, half_life_days: float | None, now: datetime) -> MemorySearchResult:
    """The memory with the score that its age leaves it: never less than half, and all of it if it is pinned."""
    stored = aware_time(memory)
    if half_life_days is None or stored is None or is_pinned(memory):
        return memory
    days = max((now - stored).total_seconds() / _SECONDS_PER_DAY, 0.0)
    share = _LEAST_SHARE + (1 - _LEAST_SHARE) * 0.5 ** (days / half_life_days)
    return memory.model_copy(update={"score": memory.score * share})


def surplus(memories: Sequence[MemorySearchResult], most: int) -> list[MemorySearchResult]:
    """Those that are to be archived so that `most` are left: the least valuable first, pinned ones never."""
    current = [memory for memory in memories if not is_archived(memory)]
    movable = sorted((memory for memory in current if not is_pinned(memory)), key=_value)
    return movable[: max(len(current) - most, 0)]


def _value(memory: MemorySearchResult) -> tuple[Any, ...]:
    """What a summary says already is worth least, then old talk, then old facts."""
    stored = aware_time(memory)
    is_fact = memory.memory_type != MemoryType.EPISODIC
    return not memory.metadata.get("consolidated_into"), is_fact, stored.timestamp() if stored else 0.0
