"""HippoRAG's face on a store of its own, and an environment that names no model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eunoe.apps.projects import ProjectSettings
from eunoe.hosts.hipporag import HippoRAG


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"MEMORY_{name.upper()}" for name in ProjectSettings.__slots__]
    for name in (*names, "EUNOE_LLM", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[HippoRAG]:
    with HippoRAG(save_dir=str(tmp_path / "rag"), llm_model_name="none", embedding_model_name="none") as rag:
        yield rag
