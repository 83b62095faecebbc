"""Embedders that need no model: one counts letters, the other does it behind the reply and can be held up there."""

import threading
from collections.abc import Callable, Sequence

import numpy as np


class Letters:
    """Counts letters; fails when told to; remembers what it was asked."""

    def __init__(self, name: str = "letters", alphabet: str = "abcdefghij") -> None:
        self.name = name
        self.alphabet = alphabet
        self.broken = False
        self.seen: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self.broken:
            raise ConnectionError("nobody there")
        self.meanwhile()
        self.seen += texts
        return np.array([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        if self.broken:
            raise ConnectionError("nobody there")
        counts = np.array([text.lower().count(letter) + 0.1 for letter in self.alphabet], np.float32)
        return counts / np.linalg.norm(counts)


class Slow(Letters):
    """Asks for its vectors to be made behind the reply. There it can be held up; where a verb waits it works."""

    is_slow = True

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.held = threading.Event()
        self.held.set()
        self.awaited = ""
        self.came = threading.Event()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if threading.current_thread() is not threading.main_thread():
            self.entered.set()
            assert self.held.wait(60)
        if self.awaited in texts:
            self.came.set()
        return super().embed(texts)
