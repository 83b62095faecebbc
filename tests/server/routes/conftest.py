"""A server that the tests of one module share: those that change nothing that the others see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.live_server import LiveServer

from eunoe.server.config import ServerConfig


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    target = str(tmp_path_factory.mktemp("server") / "memory.db")
    server = LiveServer(ServerConfig(target=target, embedder="none", llm="none", port=0))
    yield server
    server.stop()
