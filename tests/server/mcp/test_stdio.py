"""`eunoe mcp` as assistants start it: many on one store, following its server, ended with their client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client
from tests.support.mcp_client import ANNA, call, refusal, stdio_parameters
from tests.support.waiting import wait_until

import eunoe
from eunoe.cli.app import run
from eunoe.net.local_server import find_local_server

PROCESSES, MEMORIES = 4, 25
END_SECONDS = 20
"""A limit for the test, not a measure."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.mark.parametrize("mode", ["auto", "legacy"], indirect=True)
@pytest.mark.anyio
async def test_an_assistant_remembers_across_processes(tmp_path: Path, mode: str):
    store = tmp_path / "memory.db"
    async with Client(stdio_parameters(store), mode=mode) as client:
        kept = await call(client, "remember", text="Anna is allergic to peanuts.")
    async with Client(stdio_parameters(store), mode=mode) as client:
        found = await call(client, "recall", query="What must Anna not eat?")
        assert found["memories"][0]["id"] == kept["id"]
        preview = await call(client, "forget", words="peanuts")
        assert (await call(client, "forget", token=preview["token"]))["removed"] == 1
        assert "within user=anna" in await refusal(client, "list", scope="user=bob")


@pytest.mark.anyio
async def test_many_processes_write_at_once_and_lose_nothing(tmp_path: Path):
    store = tmp_path / "memory.db"
    ids: list[str] = []

    async def write(process: int) -> None:
        async with Client(stdio_parameters(store)) as client:
            for number in range(MEMORIES):
                text = f"Process {process} says number {number}."
                ids.append((await call(client, "remember", text=text))["id"])

    async with anyio.create_task_group() as group:
        for process in range(PROCESSES):
            group.start_soon(write, process)
    with eunoe.open(store, embedder="none") as memory:
        stored = {item.id for item in memory.list(ANNA, limit=10_000).items}
    assert len(ids) == len(set(ids)) == PROCESSES * MEMORIES
    assert stored == set(ids)


@contextmanager
def started(store: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """`eunoe mcp` with pipes of our own; when they close it must end by itself."""
    parameters = stdio_parameters(store, *args)
    command = [parameters.command, *parameters.args]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=parameters.env, text=True) as process:
        yield process
        rest, _ = process.communicate(timeout=END_SECONDS)
    assert rest == ""
    assert process.returncode == 0


def ask(process: subprocess.Popen[str], message: dict[str, object]) -> dict[str, object]:
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def loaded_modules(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_the_handshake_comes_before_the_memory_is_opened(tmp_path: Path):
    """Neither the store nor numpy nor a model is there when the client is answered."""
    store = tmp_path / "memory.db"
    with started(store) as server:
        assert ask(server, INITIALIZE)["result"]["serverInfo"]["name"] == "eunoe"
        assert len(ask(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})["result"]["tools"]) == 7
        assert "numpy" not in loaded_modules(server.pid)
        assert not store.exists()


def test_to_remember_loads_no_model(tmp_path: Path):
    store = tmp_path / "memory.db"
    params = {"name": "remember", "arguments": {"text": "Anna likes tea."}}
    with started(store) as server:
        ask(server, INITIALIZE)
        answer = ask(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        assert answer["result"]["structuredContent"]["outcome"] == "stored"
        listing = {"name": "list", "arguments": {}}
        ask(server, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": listing})
        assert "onnxruntime" not in loaded_modules(server.pid)
    with eunoe.open(store) as memory:
        assert memory.status().unembedded == 1
        assert memory.recall(ANNA, "What does Anna drink?")[0].text == "Anna likes tea."
        assert memory.status().unembedded == 0


def test_nothing_but_the_protocol_is_on_standard_output(tmp_path: Path):
    with started(tmp_path / "memory.db") as server:
        server.stdin.write("\n")
        assert ask(server, INITIALIZE)["id"] == 1


DEEP = "[" * 100_000


LINES = [
    ("this is no JSON", None, -32700),
    (DEEP, None, -32700),
    ("[]", None, -32600),
    ("{}", None, -32600),
    ('{"jsonrpc": "2.0", "id": 7}', 7, -32600),
    ('{"jsonrpc": "1.0", "id": 7, "method": "ping"}', 7, -32600),
    ('{"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": []}', "a", -32602),
    ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"query": "\\ud800"}}', 7, -32700),
    ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None, -32700),
]


def test_a_line_that_is_no_message_is_answered(tmp_path: Path):
    with started(tmp_path / "memory.db") as server:
        for line, id, code in LINES:
            server.stdin.write(line + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert (answer["id"], answer["error"]["code"]) == (id, code), line[:100]
        assert ask(server, INITIALIZE)["id"] == 1


def test_a_notification_that_cannot_be_read_is_not_answered(tmp_path: Path):
    with started(tmp_path / "memory.db") as server:
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}\n')
        assert ask(server, INITIALIZE)["id"] == 1


CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
holder = subprocess.Popen(["sleep", "300"], pass_fds=[server.stdin.fileno()])
server.stdin.write(sys.argv[1].encode() + b"\\n")
server.stdin.flush()
server.stdout.readline()
print(server.pid, holder.pid, flush=True)
time.sleep(300)
"""


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_it_ends_with_a_client_that_was_killed_though_its_input_stays_open(tmp_path: Path):
    parameters = stdio_parameters(tmp_path / "memory.db")
    command = [sys.executable, "-c", CLIENT, json.dumps(INITIALIZE), parameters.command, *parameters.args]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, env=parameters.env, text=True)
    server, holder = map(int, client.stdout.readline().split())
    try:
        client.send_signal(signal.SIGKILL)
        client.wait()
        end = time.monotonic() + END_SECONDS
        while not has_ended(server) and time.monotonic() < end:
            time.sleep(0.05)
        assert has_ended(server)
    finally:
        os.kill(holder, signal.SIGKILL)
        client.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "unknown"], "there is no profile"),
        (["--scope", "anna"], "cannot read"),
        (["--within", "user=anna", "--any-scope"], "not both"),
        (["--import", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str):
    assert run(["mcp", "--store", str(tmp_path / "memory.db"), *arguments])
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "eunoe.server.mcp.stdio", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.stdio", None)
    assert run(["mcp", "--store", str(tmp_path / "memory.db")])
    assert "pip install 'eunoe[server]'" in capsys.readouterr().err


def test_the_file_of_the_reference_server_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    store, file = tmp_path / "memory.db", tmp_path / "memory.jsonl"
    entity = {"type": "entity", "name": "Alice", "entityType": "person", "observations": ["likes tea"]}
    file.write_text(f"{json.dumps(entity)}\nbroken\n")
    command = ["mcp", "--store", str(store), "--scope", "user=anna", "--embedder", "none", "--import", str(file)]
    assert run(command) == 0
    counts, skipped = capsys.readouterr().err.splitlines()
    assert "1 entities, 0 relations and 1 observations" in counts
    assert skipped.endswith(": 2")
    with eunoe.open(store, embedder="none") as memory:
        assert [hit.text for hit in memory.recall(ANNA, "tea")] == ["Alice: likes tea"]


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


@pytest.mark.anyio
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


@pytest.mark.anyio
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
