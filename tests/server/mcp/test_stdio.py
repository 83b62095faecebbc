"""`eunoe mcp` as assistants start it: many at once on one store, ended with their client, silent but for the protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client

import eunoe
from tests.support.mcp_client import ANNA, call, refusal, stdio_parameters

PROCESSES, MEMORIES = 6, 50
END_SECONDS = 20
"""A limit for the test, not a measure."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


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


class Process:
    """`eunoe mcp` with pipes of our own."""

    def __init__(self, store: Path, *args: str, **options: object) -> None:
        parameters = stdio_parameters(store, *args)
        self.process = subprocess.Popen(
            [parameters.command, *parameters.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=parameters.env,
            text=True,
            **options,
        )

    def ask(self, message: dict[str, object]) -> dict[str, object]:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def loaded_modules(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_the_handshake_comes_before_the_memory_is_opened(tmp_path: Path):
    """Neither the store nor numpy nor a model is there when the client is answered."""
    store = tmp_path / "memory.db"
    server = Process(store)
    answer = server.ask(INITIALIZE)
    assert answer["result"]["serverInfo"]["name"] == "eunoe"
    listed = server.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert len(listed["result"]["tools"]) == 7
    assert "numpy" not in loaded_modules(server.process.pid)
    assert not store.exists()
    server.process.stdin.close()
    assert server.process.wait(END_SECONDS) == 0
    assert server.process.stdout.read() == ""


def test_to_remember_loads_no_model(tmp_path: Path):
    server = Process(tmp_path / "memory.db")
    server.ask(INITIALIZE)
    arguments = {"name": "remember", "arguments": {"text": "Anna likes tea."}}
    answer = server.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments})
    assert answer["result"]["structuredContent"]["outcome"] == "stored"
    assert "onnxruntime" not in loaded_modules(server.process.pid)
    server.process.stdin.close()
    assert server.process.wait(END_SECONDS) == 0


def test_nothing_but_the_protocol_is_on_standard_output(tmp_path: Path):
    server = Process(tmp_path / "memory.db")
    server.process.stdin.write("this is no JSON\n")
    server.ask(INITIALIZE)
    said, _ = server.process.communicate(timeout=END_SECONDS)
    for line in said.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"


CLIENT = """
import subprocess, sys, time
command = sys.argv[1:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
holder = subprocess.Popen(["sleep", "300"], stdin=subprocess.PIPE, pass_fds=[server.stdin.fileno()])
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
    command = [sys.executable, "-c", CLIENT, parameters.command, *parameters.args]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, env=parameters.env, text=True)
    server, holder = map(int, client.stdout.readline().split())
    try:
        while "_asyncio" not in loaded_modules(server):
            time.sleep(0.05)
        client.send_signal(signal.SIGKILL)
        client.wait()
        end = time.monotonic() + END_SECONDS
        while not has_ended(server) and time.monotonic() < end:
            time.sleep(0.05)
        assert has_ended(server)
    finally:
        os.kill(holder, signal.SIGKILL)
        client.stdout.close()


def test_misuse_is_one_line(tmp_path: Path):
    for arguments, words in (
        (["--profile", "unknown"], "there is no profile"),
        (["--scope", "anna"], "cannot read"),
        (["--within", "user=anna", "--any-scope"], "not both"),
    ):
        command = [sys.executable, "-m", "eunoe", "mcp", "--store", str(tmp_path / "memory.db"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
