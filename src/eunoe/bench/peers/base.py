"""What the bench asks of an engine, its peers' and Eunoe's alike."""

from __future__ import annotations

import importlib
import sqlite3
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal

from eunoe.bench.workload import Batch, Query

Durability = Literal["fsync per commit", "files, no fsync", "memory only"]
LIMIT = 10


class Unavailable(Exception):
    """This engine cannot run here; the message says why."""


class Engine(ABC):
    """One store of memories in its own folder."""

    package: ClassVar[str]
    durability: ClassVar[Durability]
    setup: ClassVar[str]
    index: ClassVar[str] = ""
    """What adds feed for search beside the rows and their keys; empty if a search scans the vectors of its scope."""
    recipe: ClassVar[str] = "vector"
    more_recipes: ClassVar[tuple[str, ...]] = ()
    exact_recipe: ClassVar[str] = "vector"

    @abstractmethod
    def __init__(self, folder: Path, dimension: int) -> None:
        """Open an empty store."""

    @abstractmethod
    def add(self, batch: Batch) -> None:
        """Store a batch of one scope as durably as the engine promises."""

    @abstractmethod
    def search(self, query: Query, recipe: str) -> list[str]:
        """The texts of the ten best memories of the query's scope."""

    def loaded(self) -> None:
        """What the engine's documentation asks for after a bulk load; counted as part of it."""
        return

    def hurry(self, on: bool) -> None:
        """Give up durability while the rest of a slow store is filled untimed."""
        return

    @abstractmethod
    def close(self) -> None:
        """Release the store."""


class GivenVectors:
    """Stands in for an embedding model: hands out vectors it was given by text."""

    def __init__(self) -> None:
        self.known: dict[str, list[float]] = {}

    def give(self, batch: Batch) -> None:
        self.known = dict(zip(batch.texts, batch.lists, strict=True))

    def ask(self, query: Query) -> None:
        self.known = {query.text: query.floats}

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [self.known[text] for text in texts]


def load(name: str) -> Any:
    """Import a peer's module, or say that it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"not installed: {error}") from error


def sqlite_with_extensions() -> Any:
    """A `sqlite3` module that can load extensions: the standard one, else `pysqlite3` in its place."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        replacement = importlib.import_module("pysqlite3")
    except ImportError as error:
        reason = "this Python's sqlite3 cannot load extensions and pysqlite3 is not installed"
        raise Unavailable(reason) from error
    sys.modules["sqlite3"] = replacement
    sys.modules["sqlite3.dbapi2"] = importlib.import_module("pysqlite3.dbapi2")
    return replacement
