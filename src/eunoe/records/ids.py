"""Ids that sort by the time they were made."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256

_RANDOM_BITS = 48
_first: ContextVar[int | None] = ContextVar("first", default=None)


def new_ids(count: int) -> list[str]:
    """Fresh ids of 24 characters, ascending within one call.

    >>> ids = new_ids(3)
    >>> ids == sorted(set(ids)) and len(ids[0]) == 24
    True
    """
    return _count_from(_first_id(time.time_ns() // 1_000_000, os.urandom(8)), count)


@contextmanager
def repeatable(name: bytes, moment: float) -> Iterator[None]:
    """Give the messages that are stored in this block ids by which another block of the same name and moment, in
    seconds since 1970, knows them again."""
    token = _first.set(_first_id(int(moment * 1000), sha256(name).digest()[:8]))
    try:
        yield
    finally:
        _first.reset(token)


def repeatable_ids(count: int) -> list[str]:
    """The same ids each time; none outside a repeatable block."""
    first = _first.get()
    return [] if first is None else _count_from(first, count)


def _first_id(millis: int, random: bytes) -> int:
    # The top random bit stays clear so that counting up from it cannot overflow into the time.
    return (millis << _RANDOM_BITS) + (int.from_bytes(random) >> (64 - _RANDOM_BITS + 1))


def _count_from(first: int, count: int) -> list[str]:
    return [f"{number:024x}" for number in range(first, first + count)]
