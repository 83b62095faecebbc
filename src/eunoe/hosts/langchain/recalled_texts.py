"""What was recalled for the turns that are under way."""

from threading import Lock
from typing import Final
from uuid import uuid4

_MOST: Final = 1000


class RecalledTexts:
    """Texts outside of agents' states, each under a key that nobody else has.

    A run that breaks off leaves its text behind. So the oldest make room; a run whose text is gone recalls again.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._texts: dict[str, str] = {}
        self._lock = Lock()

    def add(self, text: str) -> str:
        """Take in a text and return its key."""
        key = uuid4().hex
        with self._lock:
            self._texts[key] = text
            if len(self._texts) > self._most:
                del self._texts[next(iter(self._texts))]
        return key

    def get(self, key: str | None) -> str | None:
        return self._texts.get(key or "")

    def remove(self, key: str | None) -> None:
        with self._lock:
            self._texts.pop(key or "", None)
