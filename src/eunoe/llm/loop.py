"""An event loop in a thread of its own, for models that can only be awaited.

One loop for all of them: clients keep connections, which belong to the loop they were made on.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable
from typing import Any

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def result(awaitable: Awaitable[Any], patience: float | None = None) -> Any:
    """What an awaitable gives, for a caller that may block; after `patience` seconds it is cancelled."""
    future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), _loop())
    try:
        return future.result(patience)
    finally:
        future.cancel()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process: a forked child has none of its parent's threads."""
    with _lock:
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="eunoe-llm", daemon=True)
            thread.start()
            atexit.register(_end, loop, thread)
        return _loops[os.getpid()]


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join(1)
    if not loop.is_running():
        loop.close()
