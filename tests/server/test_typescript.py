"""The TypeScript client, built and run by Node against a started server; its types are those of the server."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer
from tools.typescript_types import TARGET, openapi_document, typescript_types

from eunoe.server.config import ServerConfig

ROOT = Path(__file__).parent.parent.parent
CLIENT = ROOT / "clients" / "typescript"
NODE_SECONDS = 120

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="needs node and npm: make setup installs them")


def run_node(*command: str, **variables: str) -> str:
    result = subprocess.run(
        command,
        cwd=CLIENT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=NODE_SECONDS,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def build() -> None:
    """Builds the client, unless that is done: workers of one test run may come here at the same time."""
    (CLIENT / "node_modules").mkdir(exist_ok=True)
    with (CLIENT / "node_modules" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CLIENT / "node_modules" / "ai").exists():
            run_node("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
        if not is_built():
            run_node("npm", "run", "build")


def is_built() -> bool:
    sources = [CLIENT / "package.json", CLIENT / "tsconfig.json", *(CLIENT / "src").iterdir()]
    built = [CLIENT / "dist" / f"{path.stem}.js" for path in sources if path.suffix == ".ts"]
    if not all(path.exists() for path in built):
        return False
    return min(path.stat().st_mtime_ns for path in built) > max(path.stat().st_mtime_ns for path in sources)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    store = tmp_path_factory.mktemp("server") / "memory.db"
    server = LiveServer(ServerConfig(target=str(store), port=0, embedder="none", llm="none"))
    yield server
    server.stop()


def test_the_types_are_those_of_the_server() -> None:
    made = typescript_types(openapi_document())
    assert TARGET.read_text(encoding="utf-8") == made, "run make faces"


def test_it_works_in_node(build: None, server: LiveServer) -> None:
    said = run_node("node", "--test", "--test-reporter=tap", "test/", EUNOE_URL=server.origin, EUNOE_KEY=server.owner)
    assert "# fail 0" in said
    assert "# pass 0" not in said


def test_it_has_no_dependencies(build: None) -> None:
    built = [path for path in (CLIENT / "dist").glob("*.js") if path.name != "ai-sdk.js"]
    foreign = [
        (path.name, line)
        for path in built
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("import ", "export ")) and " from " in line and 'from "./' not in line
    ]
    assert len(built) >= 5
    assert foreign == []
