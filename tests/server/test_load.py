"""Many clients at once, and many messages in the queue: no errors, bounded counts, nothing lost or told to others.

`EUNOE_LOAD_SECONDS=60 EUNOE_LOAD_MESSAGES=10000` asks for it: `make soak` does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.llm.model_server import ModelServer, hangs, serve
from tests.support.clients import TENANTS, Clients
from tests.support.server_load import stored_texts
from tests.support.server_process import ServerProcess, StartProcess, server_processes

_SECONDS = float(os.environ.get("EUNOE_LOAD_SECONDS", "0"))
_MESSAGES = int(os.environ.get("EUNOE_LOAD_MESSAGES", "0"))
pytestmark = pytest.mark.skipif(not _SECONDS, reason="make soak asks for load")
_MEGABYTE = 1024 * 1024
_MAX_THREADS = 80
_MAX_OPEN_FILES = 200 + 6 * 80
"""A connection for each client, and a few files for each thread that has the store open."""
_MAX_GROWTH = 300 * _MEGABYTE
"""Indexes of some hundred scopes, and what so many requests at once hold."""
_MAX_QUEUE_GROWTH = 100 * _MEGABYTE


@pytest.fixture
def start() -> Iterator[StartProcess]:
    with server_processes() as start:
        yield start


@pytest.fixture
def slow_endpoint() -> Iterator[ModelServer]:
    """A language model that does not answer as long as the test runs."""
    with serve(hangs) as endpoint:
        yield endpoint


def test_two_hundred_clients(start: StartProcess, tmp_path: Path) -> None:
    server = start(tmp_path / "memory.db")
    keys = {tenant: _create_key(server, tenant) for tenant in TENANTS}
    before = server.resident_bytes()
    clients = Clients(server.port, keys, _SECONDS)
    running, threads, files = threading.Thread(target=clients.run), 0, 0
    running.start()
    while running.is_alive():
        threads, files = max(threads, server.threads()), max(files, server.open_files())
        running.join(0.2)
    assert clients.faults == []
    assert len(clients.answers) == 5  # paths: each was asked
    assert threads <= _MAX_THREADS
    assert files <= _MAX_OPEN_FILES
    assert server.resident_bytes() - before < _MAX_GROWTH
    for (tenant, scope), texts in clients.stored.items():
        found = stored_texts(server, {scope}, keys[tenant])
        assert texts <= {text for _, text in found}
        assert set(found.values()) == {1}
    server.stop()


def test_a_long_queue_takes_little_memory(start: StartProcess, slow_endpoint: ModelServer, tmp_path: Path) -> None:
    server = start(tmp_path / "memory.db", EUNOE_LLM=f"openai:test@{slow_endpoint.url}")
    _observe(server, 100)
    before = server.resident_bytes()
    _observe(server, _MESSAGES)
    assert slow_endpoint.requests
    assert server.resident_bytes() - before < _MAX_QUEUE_GROWTH
    assert server.call("GET", "/v1/status").json["messages"] == _MESSAGES + 100
    slow_endpoint.release.set()


def _observe(server: ServerProcess, count: int) -> None:
    """So many messages, in conversations that are due after some of them."""
    for start in range(0, count, 50):
        messages = [f"Message {start + place} says that the tide comes in at noon." for place in range(50)]
        body = {"scope": f"session=s{start}-{count}/user=u{start % 7}", "messages": messages}
        assert server.call("POST", "/v1/messages", body).status == 200


def _create_key(server: ServerProcess, tenant: str) -> str:
    answer = server.call("POST", "/v1/keys", {"name": "load", "tenant": tenant})
    assert answer.status in (200, 201), answer.content
    return str(answer.json["token"])
