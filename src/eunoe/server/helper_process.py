"""Further processes that take requests from the same socket. No request depends on which process had the one before."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Final

from eunoe.server.config import ServerConfig

_STOP_SECONDS: Final = 15.0


@contextmanager
def helper_processes(config: ServerConfig, listener: socket.socket) -> Iterator[None]:
    """Start all processes but this one, and stop them with it."""
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks and open files
    own = replace(config, processes=1, worker=False)
    helpers = [context.Process(target=_serve, args=(own, listener), daemon=True) for _ in range(config.processes - 1)]
    for helper in helpers:
        helper.start()
    try:
        yield
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.join(_STOP_SECONDS)


def _serve(config: ServerConfig, listener: socket.socket) -> None:
    from eunoe.server.process import serve_requests

    threading.Thread(target=_stop_with_parent, name="eunoe-parent", daemon=True).start()
    serve_requests(config, listener)


def _stop_with_parent() -> None:
    """A parent that is killed stops nobody: whoever has no parent any more stops by itself."""
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
