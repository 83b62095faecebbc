"""How much an answer may say. All of it counts: its text, and the same again as structured content."""

import json
from collections.abc import Callable
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.text.tokens import text_width

DEFAULT_TOKENS: Final = 2000
MIN_TOKENS: Final = 200
MAX_TOKENS: Final = 100_000
_CHARACTERS_PER_TOKEN: Final = 4
"""Fewer than in prose: JSON has many signs."""
_FRAME_CHARACTERS: Final = 360
"""What stands around the memories of an answer: tags, notes, a cursor."""


class Budget:
    """The characters that an answer may still take."""

    def __init__(self, tokens: int) -> None:
        self._room = float(tokens * _CHARACTERS_PER_TOKEN - _FRAME_CHARACTERS)

    def fits(self, *values: Any) -> bool:
        return _width(values) <= self._room

    def take(self, *values: Any) -> bool:
        """Make room for values as JSON writes them; return False, and take nothing, if there is not enough."""
        width = _width(values)
        if width > self._room:
            return False
        self._room -= width
        return True


def longest_part(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of a text that fits. It is an error if nothing of it does."""
    if fits(text):
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    if low == 0:
        raise InputError("max_tokens leaves no room for a memory: pass more")
    return text[:low]


def _width(values: tuple[Any, ...]) -> float:
    return sum(text_width(json.dumps(value, ensure_ascii=False)) + 1 for value in values)
