"""A memory with mem0's verbs, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eunoe
from eunoe.hosts.mem0 import Memory


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as store:
        yield Memory(memory=store)


@pytest.fixture
def dense_memory(path: Path) -> Iterator[Memory]:
    """It also finds what is said in other words."""
    with eunoe.open(path, llm="none", form=False) as store:
        yield Memory(memory=store)
