"""The memory of adapters that are given none: the store that the command line uses."""

import atexit
import os
from functools import cache
from threading import Lock

import eunoe
from eunoe.memory import Memory

_lock = Lock()


def default_memory() -> Memory:
    """Open the per-user store, or the one that EUNOE_STORE names, once in this process. It is closed at exit."""
    with _lock:
        return _open(os.environ.get("EUNOE_STORE"))


@cache
def _open(target: str | None) -> Memory:
    memory = eunoe.open(target or None)
    atexit.register(memory.close)
    return memory
