"""What an import of foreign data cannot read: it is named with its place, and the rest comes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

ODD_DATA = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""What data of another shape raises."""


class Problems:
    """Each problem once, in the order in which they came up."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def add(self, place: str, reason: object, prefix: str = "") -> None:
        text = str(reason)
        if isinstance(reason, KeyError):
            text = f"{reason.args[0]} is missing"
        elif isinstance(reason, json.JSONDecodeError):
            text = f"not JSON: {reason.msg}"
        elif isinstance(reason, UnicodeDecodeError):
            text = "not UTF-8 text"
        elif isinstance(reason, RecursionError):
            text = "nested too deep"
        self._lines[f"{place}: {' '.join((prefix + text).split())}"] = None

    @contextmanager
    def catch(self, place: str, prefix: str = "") -> Iterator[None]:
        """Make a problem of what odd data raises."""
        try:
            yield
        except ODD_DATA as error:
            self.add(place, error, prefix)
