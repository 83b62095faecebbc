"""A store in a file, and a writer of memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.discussion_writer import DiscussionWriter

import eunoe
from eunoe.memory import Memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        yield memory


@pytest.fixture
def write(memory: Memory) -> DiscussionWriter:
    return DiscussionWriter(memory)
