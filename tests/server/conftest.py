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


@pytest.fixture
def server(start_server: StartServer) -> LiveServer:
    return start_server()
