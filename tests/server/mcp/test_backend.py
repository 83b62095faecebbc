"""`eunoe mcp` and `eunoe serve` on one store: calls go to the server while it runs; nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client
from tests.support.mcp_client import ANNA, call, stdio_parameters
from tests.support.waiting import wait_until

import eunoe
from eunoe.net.local_server import find_local_server

pytestmark = pytest.mark.anyio


@contextmanager
def served(store: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`eunoe serve` on a free port, until the end or until it is killed."""
    command = [sys.executable, "-m", "eunoe", "serve", "--store", str(store), "--port", "0", "--embedder", "static"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
        wait_until(lambda: find_local_server(store) is not None or process.poll() is not None)
        assert process.poll() is None
        yield process
        process.send_signal(signal.SIGINT)


def child_of_this_process() -> int:
    """The `eunoe mcp` that the client started."""
    (found,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/stat")
        if _parent(path) == os.getpid() and b"\0mcp\0" in path.with_name("cmdline").read_bytes()
    ]
    return found


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def holds(pid: int, store: Path) -> bool:
    """Whether a process has the store open."""
    files = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            files.append(os.readlink(path))
        except FileNotFoundError:
            continue
    return str(store) in files


async def test_calls_follow_the_server_as_it_comes_and_goes(tmp_path: Path):
    store = tmp_path / "memory.db"
    ids: list[str] = []

    async def remember(client: Client) -> None:
        ids.append((await call(client, "remember", text=f"The tower of number {len(ids)} is high."))["id"])

    async with Client(stdio_parameters(store, "--embedder", "static")) as client:
        await remember(client)
        process = child_of_this_process()
        assert holds(process, store)
        with served(store) as server:
            with anyio.fail_after(60):
                while holds(process, store):
                    await remember(client)
            found = await call(client, "recall", query="tower")
            assert found["memories"]
            await remember(client)
            assert not holds(process, store)
            server.kill()
            server.wait()
            for _ in range(5):
                await remember(client)
            assert holds(process, store)
            preview = await call(client, "forget", words="tower")
            gone = await call(client, "forget", token=preview["token"])
    with eunoe.open(store, embedder="none") as memory:
        kept = {item.id for item in memory.list(ANNA, limit=10_000).items}
    assert kept == set(ids) - set(gone["ids"])


async def test_a_process_that_hands_over_loads_no_memory_of_its_own(tmp_path: Path):
    store = tmp_path / "memory.db"
    with served(store) as server:
        async with Client(stdio_parameters(store)) as client:
            await call(client, "remember", text="Anna is allergic to peanuts.")
            found = await call(client, "recall", query="What must Anna not eat?")
            assert found["memories"][0]["text"] == "Anna is allergic to peanuts."
            assert "peanuts" in (await call(client, "context", message="May Anna have peanuts?"))["text"]
            process = child_of_this_process()
            assert not holds(process, store)
            maps = Path(f"/proc/{process}/maps").read_text()
            assert "onnxruntime" not in maps
            assert "wordllama" not in maps
            resources = (await client.list_resources()).resources
            assert [resource.name for resource in resources] == ["user=anna"]
        assert server.poll() is None
