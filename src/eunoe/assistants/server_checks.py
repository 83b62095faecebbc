"""Look at the server of a store: whether it runs, is the right one, and keeps its token to itself."""

import json
import os
import socket
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from eunoe.assistants.findings import Finding, ok, problem, warning
from eunoe.net.local_server import LocalFiles, find_local_server

_DEFAULT_PORT: Final = 8765
_PATIENCE_SECONDS: Final = 1.0


def check_server(store: Path) -> Iterator[Finding]:
    files = LocalFiles.beside(store)
    address = files.address
    yield from _check_token(files.token)
    if not address.exists():
        yield _check_port()
        return
    try:
        told = json.loads(address.read_bytes())
        url, pid = str(told["url"]), int(told["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        yield problem("server", f"{address} cannot be read", "stop the server, delete the file, start it again")
        return
    if find_local_server(store):
        yield ok("server", f"runs at {url} (process {pid})")
    elif _answers(url):
        text = f"something else answers at {url}, where a server was"
        yield problem("server", text, f"stop it, or start `eunoe serve` on another --port; then delete {address}")
    else:
        yield warning("server", f"does not run any more, but {address} says so", f"delete {address}")


def check_mcp() -> Iterator[Finding]:
    try:
        yield ok("mcp", f"SDK {version('mcp')}")
    except PackageNotFoundError:
        yield problem("mcp", "the package mcp is not installed", "pip install 'eunoe[server]'")


def _check_token(token: Path) -> Iterator[Finding]:
    if os.name == "posix" and token.exists() and token.stat().st_mode & 0o077:
        yield problem("token", f"others on this computer can read {token}", f"chmod 600 {token}, and rotate the keys")


def _check_port() -> Finding:
    if _answers(f"http://127.0.0.1:{_DEFAULT_PORT}"):
        text = f"none runs on this store, and port {_DEFAULT_PORT} is taken"
        return warning("server", text, "start `eunoe serve` with another --port")
    return ok("server", "none runs; `eunoe serve` starts one, which also makes hooks quicker")


def _answers(url: str) -> bool:
    try:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname or "", parts.port or 80), _PATIENCE_SECONDS):
            return True
    except (OSError, ValueError):
        return False
