"""Servers and clients of the official SDK, in one process and across processes, in both protocols."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.support.mcp_client import ANNA, SECRET, Connect

import eunoe
from eunoe.model.arguments import RIGHTS
from eunoe.model.scope import Scope
from eunoe.server.mcp.server import create_mcp_server
from eunoe.server.mcp.tool import Caller, ScopeRule

MODES = ("auto", "legacy")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def mode(request: pytest.FixtureRequest) -> str:
    """The newest protocol; tests that are marked so have both."""
    return str(getattr(request, "param", MODES[0]))


@pytest.fixture
def memory(tmp_path: Path):
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as memory:
        yield memory


@pytest.fixture
def connect(memory: eunoe.Memory, mode: str) -> Connect:
    """A client of a server in this process."""

    @asynccontextmanager
    async def connect(
        profile: str = "default", rights: Any = RIGHTS, default: Scope | None = ANNA, within: Scope | None = ANNA
    ) -> AsyncIterator[Client]:
        caller = Caller(lambda: memory, rights=frozenset(rights), scopes=ScopeRule(default, within), id="tests")
        server = create_mcp_server(
            lambda request: caller, profile=profile, secret=SECRET, default_scope=default, can_notify=True
        )
        async with Client(server, mode=mode) as client:
            yield client

    return connect
