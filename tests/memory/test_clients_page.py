"""The examples of docs/clients.md run against a started server."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.test_typescript import CLIENT, ROOT, build, run_node
from tests.support.live_server import LiveServer

from eunoe.server.config import ServerConfig

__all__ = ["build"]
PAGES = [ROOT / "docs" / "clients.md", CLIENT / "README.md"]
TYPESCRIPT_OPTIONS = ("--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck", "--types", "node")


def blocks(language: str) -> list[str]:
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for page in PAGES for block in fence.findall(page.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    store = tmp_path_factory.mktemp("server") / "memory.db"
    server = LiveServer(ServerConfig(target=str(store), port=0, embedder="none", llm="none"))
    yield server
    server.stop()


def filled(code: str, server: LiveServer) -> str:
    """An example with the address and the key of a server that runs."""
    assert '"http://127.0.0.1:8765"' in code
    return code.replace("http://127.0.0.1:8765", server.origin).replace("eun_...", server.owner)


@pytest.mark.parametrize("code", blocks("py"))
def test_python_examples_run(code: str, server: LiveServer) -> None:
    exec(compile(filled(code, server), "docs/clients.md", "exec"), {"__name__": "__main__"})


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm: make setup installs them")
def test_typescript_examples_compile_and_run(build: None, server: LiveServer) -> None:
    folder = CLIENT / "docs-examples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        files = [folder / f"example{number}.mts" for number, _ in enumerate(blocks("ts"))]
        for file, code in zip(files, blocks("ts"), strict=True):
            file.write_text(filled(code, server), encoding="utf-8")
        run_node("npx", "tsc", "--ignoreConfig", *TYPESCRIPT_OPTIONS, *(str(file) for file in files))
        said = [run_node("node", str(file.with_suffix(".mjs"))) for file in files]
    finally:
        shutil.rmtree(folder)
    assert "My dog is called Bruno." in said[0]
    assert "not_found" in said[0]
    assert len(files) == len(said) >= 4


def test_there_are_examples(tmp_path: Path) -> None:
    assert len(blocks("py")) >= 2
