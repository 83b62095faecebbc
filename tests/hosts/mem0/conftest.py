"""A memory with mem0's verbs, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eunoe
from eunoe.hosts.mem0 import Memory


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="auto", llm="none", form=False) as store:
        yield Memory(memory=store)
