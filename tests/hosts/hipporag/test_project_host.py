"""A host that keeps one HippoRAG for each project, in its own process, with its module replaced by one line."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.hosts.hipporag.samples import CINDERELLA, GEORGE, OLIVER

from eunoe.apps.projects import STORE_FILE_NAME

SETTINGS = {"llm_model_name": "gpt-4o-mini", "embedding_model_name": "static"}


class Host:
    """Its memory: made when it is first needed, kept, and used under a lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[UUID, tuple[Any, threading.Lock]] = {}

    def index(self, project: UUID, docs: list[str]) -> None:
        rag, lock = self._rag(project)
        with lock:
            rag.index(docs=docs)

    def retrieve(self, project: UUID, queries: list[str], count: int | None = None) -> list[dict[str, Any]]:
        rag, lock = self._rag(project)
        with lock:
            found = rag.retrieve(queries=queries, num_to_retrieve=count)
        return [
            {"question": each.question, "docs": each.docs, "doc_scores": [float(score) for score in each.doc_scores]}
            for each in found
        ]

    def delete(self, project: UUID, docs: list[str]) -> None:
        rag, lock = self._rag(project)
        with lock:
            rag.delete(docs_to_delete=docs)

    def remove(self, project: UUID) -> None:
        self.made.pop(project, None)
        shutil.rmtree(self.folder / str(project), ignore_errors=True)

    def _rag(self, project: UUID) -> tuple[Any, threading.Lock]:
        if project not in self.made:
            from hipporag_minimal import HippoRAG  # type: ignore[import-not-found]

            save_dir = self.folder / str(project)
            save_dir.mkdir(parents=True, exist_ok=True)
            self.made[project] = HippoRAG(save_dir=str(save_dir), **SETTINGS), threading.Lock()
        return self.made[project]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    package = tmp_path / "packages" / "hipporag_minimal"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from eunoe.hosts.hipporag import HippoRAG\n", encoding="utf-8")
    monkeypatch.syspath_prepend(package.parent)
    host = Host(tmp_path / "memory")
    yield host
    for rag, _ in host.made.values():
        rag.close()
    sys.modules.pop("hipporag_minimal", None)


def test_each_project_has_its_own_memory(host: Host) -> None:
    first, second = uuid4(), uuid4()
    host.index(first, [OLIVER, GEORGE])
    host.index(second, [CINDERELLA])
    (result,) = host.retrieve(first, ["Who is Oliver Badman?"], 1)
    assert (result["question"], result["docs"]) == ("Who is Oliver Badman?", [OLIVER])
    assert len(result["doc_scores"]) == 1
    assert host.retrieve(first, ["Which ball did Cinderella attend?"])[0]["docs"] == []
    host.index(first, ["Ticket: Ball. Cinderella was late. The coach has a clock now."])
    assert len(host.retrieve(first, ["Why was Cinderella late?"])[0]["docs"]) == 1
    host.delete(first, [OLIVER, "never there"])
    assert OLIVER not in host.retrieve(first, ["Who is Oliver Badman?"])[0]["docs"]


def test_a_project_that_is_removed_leaves_nothing(host: Host) -> None:
    project = uuid4()
    host.index(project, [OLIVER])
    host.remove(project)
    assert not (host.folder / str(project)).exists()
    assert host.retrieve(project, ["Who is Oliver Badman?"])[0]["docs"] == []
    assert (host.folder / str(project) / STORE_FILE_NAME).exists()
