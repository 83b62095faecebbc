"""What tests of MCP share: the scope, how a client is started, and calls that must go well or be refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from eunoe.model.scope import Scope

ANNA = Scope(user="anna")
SECRET = b"the secret of the tests"

Connect = Callable[..., AbstractAsyncContextManager[Client]]


def stdio_parameters(store: Path, *args: str, scope: str = "user=anna") -> StdioServerParameters:
    """`eunoe mcp` as an assistant starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "eunoe", "mcp", "--store", str(store), "--scope", scope, *args],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
    )


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that must go well."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def refusal(client: Client, name: str, **arguments: Any) -> str:
    """What a call says that must be refused."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    return result.content[0].text
