"""An empty folder of runs, an empty project memory, and folders that a worker works in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.checkouts import make_checkout, write_files

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "logs")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ProjectMemory]:
    with ProjectMemory.open(tmp_path / "memory", embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "shop", {"forms.py": "name = raw\n", ".gitignore": "build/\n"})


@pytest.fixture(params=["git", "no git"])
def any_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    files = {"forms.py": "name = raw\n"}
    if request.param == "git":
        return make_checkout(tmp_path / "shop", files)
    write_files(tmp_path / "plain", files)
    return tmp_path / "plain"
