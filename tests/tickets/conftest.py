"""An empty folder of runs, and an empty project memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eunoe.projects import ProjectMemory
from eunoe.tickets import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "logs")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ProjectMemory]:
    with ProjectMemory.open(tmp_path / "memory", embedder="none", llm="none") as opened:
        yield opened
