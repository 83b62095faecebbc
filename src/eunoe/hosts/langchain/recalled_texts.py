"""What was recalled for the turns that are under way."""

from threading import Lock
from time import monotonic
from typing import Final
from uuid import uuid4

_MOST: Final = 1000
_SECONDS: Final = 60.0
"""How long a text counts. Something in it may be forgotten while a run waits for a person."""


class RecalledTexts:
    """Texts outside of agents' states, each under a key that nobody else has.

    A run that breaks off leaves its text behind, so the oldest make room. A run whose text is gone or old recalls
    again.
    """

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._texts: dict[str, tuple[str, float]] = {}
        self._lock = Lock()

    def add(self, text: str) -> str:
        """Take in a text and return its key."""
        key = uuid4().hex
        with self._lock:
            self._texts[key] = text, monotonic() + self._seconds
            if len(self._texts) > self._most:
                del self._texts[next(iter(self._texts))]
        return key

    def get(self, key: str | None) -> str | None:
        text, end = self._texts.get(key or "", ("", 0.0))
        return text if monotonic() < end else None

    def remove(self, key: str | None) -> None:
        with self._lock:
            self._texts.pop(key or "", None)
