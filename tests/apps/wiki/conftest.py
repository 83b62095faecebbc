"""A small repository, and the scripted author of its wiki."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.wiki_author import Author, AuthorModel

from eunoe.apps.wiki.workflow import WikiReport, generate_wiki
from eunoe.memory import Memory

Generate = Callable[..., WikiReport]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two files and a commit."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "README.md").write_text("# Shop\n")
    (root / "src" / "cart.py").write_text("def total(): ...\n")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True)
    return root


@pytest.fixture(autouse=True)
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before calls are tried again: they are noted, and nobody waits."""
    waits: list[float] = []

    def note(retry: int, *, backoff_factor: float, initial_delay: float, **_: Any) -> float:
        waits.append(initial_delay * backoff_factor**retry)
        return 0.0

    for module in ("model_retry", "tool_retry"):
        monkeypatch.setattr(f"langchain.agents.middleware.{module}.calculate_delay", note)
    return waits


@pytest.fixture
def author() -> Author:
    return Author()


@pytest.fixture
def generate(shop: Path, tmp_path: Path, memory: Memory, author: Author) -> Generate:
    """Writes the wiki of the shop."""

    def run(id: str = "r1", force: bool = False, **values: Any) -> WikiReport:
        places = {"repo_dir": shop, "out_dir": tmp_path / "wiki", "model": AuthorModel(author=author), "memory": memory}
        return asyncio.run(generate_wiki(id, force, **{**places, **values}))

    return run
