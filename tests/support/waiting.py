"""Waiting for something to come true."""

import threading
from collections.abc import Callable

PATIENCE_SECONDS = 120
"""A limit for a machine that has much else to do, not a measure."""


def wait_until(condition: Callable[[], object]) -> None:
    """Look again and again; fail if it never comes true."""
    ticks = threading.Event()
    for _ in range(PATIENCE_SECONDS * 50):
        if condition():
            return
        ticks.wait(0.02)
    raise AssertionError("it never came true")
