"""Ids that sort by the time they were made."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 52


def new_ids(count: int) -> list[str]:
    """Fresh ids of twenty characters, ascending within one call.

    >>> ids = new_ids(3)
    >>> ids == sorted(set(ids)) and len(ids[0]) == 20
    True
    """
    # The top random bit stays clear so that counting up from it cannot overflow into the time.
    start = int.from_bytes(os.urandom(8)) >> (64 - _RANDOM_BITS + 1)
    first = (time.time_ns() // 1_000_000 << _RANDOM_BITS) + start
    return [_encode(first + step) for step in range(count)]


def _encode(number: int) -> str:
    letters = []
    for _ in range(20):
        number, digit = number >> 5, number & 31
        letters.append(_ALPHABET[digit])
    return "".join(reversed(letters))
