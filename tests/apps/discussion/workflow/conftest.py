"""A memory, and workflows in files."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion.workflow import Workflow

Write = Callable[[str, Any], Workflow]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as memory:
        yield memory


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a workflow to a file of the folder `workflows`, and reads it."""

    def write(name: str, document: Any) -> Workflow:
        path = tmp_path / "workflows" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        return Workflow.load(path)

    return write
