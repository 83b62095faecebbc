"""Measurements: does the right memory come back, does a context hold it, what does it cost, how fast beside others?"""

from collections.abc import Callable
from typing import Any

Result = dict[str, Any]
"""The figures of a bench, as JSON carries them."""
Progress = Callable[[int, int], None]
"""Called with how many questions are done, and of how many."""
StatusLine = Callable[[str], None]
"""Called with what is being done."""


def silent(text: str) -> None:
    """A status line that nobody reads."""
