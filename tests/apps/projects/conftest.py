"""An environment without settings, and a project memory without an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eunoe.apps.projects import ProjectMemory, ProjectSettings

VARIABLES = [f"MEMORY_{name.upper()}" for name in ProjectSettings.__slots__]


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "EUNOE_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def lexical_memory(tmp_path: Path) -> Iterator[ProjectMemory]:
    with ProjectMemory.open(tmp_path / "projects", embedder="none") as memory:
        yield memory
