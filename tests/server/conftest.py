"""A started server to call, on a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_server import LiveServer, StartServer

from eunoe.server.config import ServerConfig


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers with any configuration."""
    servers: list[LiveServer] = []

    def begin(**settings: Any) -> LiveServer:
        settings = {
            "target": str(tmp_path / "memory.db"),
            "embedder": "none",
            "llm": "none",
            "port": 0,
            "worker": False,
            **settings,
        }
        servers.append(LiveServer(ServerConfig(**settings)))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def started_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    target = str(tmp_path_factory.mktemp("shared") / "memory.db")
    server = LiveServer(ServerConfig(target=target, embedder="none", llm="none", port=0, worker=False))
    yield server
    server.stop()


@pytest.fixture
def server(started_server: LiveServer) -> LiveServer:
    """A server that stays for many tests, without what those before made."""
    started_server.reset()
    return started_server


@pytest.fixture
def fresh_server(start_server: StartServer) -> LiveServer:
    """A server with a store that nobody has used."""
    return start_server()
