"""What this machine says where nobody says it: the server that runs on a store, and whose memory is meant.

Another process may have taken the port of a server that was killed. So the one found first has to prove that it knows
the store's token; only then is the token sent to it.
"""

from __future__ import annotations

import getpass
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.errors import EunoeError
from eunoe.model.scope import Scope
from eunoe.net.http import Address, HttpClient, HttpError
from eunoe.store.location import store_path


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Where they lie."""

    state: Path
    """What the server keeps of its own: keys, audit, jobs."""
    token: Path
    """The token of whoever owns the store."""
    address: Path
    """Where the server listens, as long as it runs."""

    @classmethod
    def beside(cls, store: str | Path) -> LocalFiles:
        path = Path(store)
        return cls(*(path.with_suffix(suffix) for suffix in (".server.db", ".token", ".server.json")))


_PATIENCE_SECONDS: Final = 0.2
"""For connection and answer together. Whoever looks for a server can do without one."""
_NONCE_BYTES: Final = 32
_MAX_FILE_BYTES: Final = 4096
_MAX_ANSWER_BYTES: Final = 16 * 1024


class LocalServer(NamedTuple):
    """A server on a store of this machine, and what its owner sends it."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"LocalServer({self.url!r})"


def find_local_server(target: str | os.PathLike[str] | None = None) -> LocalServer | None:
    """Return the server that runs on a store and has proved it, or None. `target` is as in `eunoe.open`.

    It takes a few milliseconds, and at most 0.2 seconds whatever answers.
    """
    try:
        path = store_path(target)
        files = LocalFiles.beside(path) if path else None
        server = _read_server(files) if files else None
        return server if server and _proves_itself(server) else None
    except (OSError, ValueError, EunoeError, HttpError):
        return None


def _read_server(files: LocalFiles) -> LocalServer | None:
    address = json.loads(_read(files.address))
    url = address.get("url") if isinstance(address, dict) else None
    token = _read(files.token).strip()
    return LocalServer(url, token) if isinstance(url, str) and token else None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode()


def _proves_itself(server: LocalServer) -> bool:
    nonce = secrets.token_hex(_NONCE_BYTES)
    expected = hmac.new(server.token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    address = Address.parse(server.url)
    if address.is_secure or not address.is_loopback:
        return False
    client = HttpClient(server.url, timeout=_PATIENCE_SECONDS, max_answer_bytes=_MAX_ANSWER_BYTES)
    answer = json.loads(client.request("GET", f"/v1/identity?nonce={nonce}", headers={"Connection": "close"}))
    proof = answer.get("proof") if isinstance(answer, dict) else None
    return isinstance(proof, str) and hmac.compare_digest(proof.encode(), expected.encode())


SCOPE_VARIABLE: Final = "EUNOE_SCOPE"


def default_scope() -> Scope:
    """The scope that the environment names, else the one of who is logged in."""
    if text := os.environ.get(SCOPE_VARIABLE):
        return Scope.parse(text)
    return Scope(user=getpass.getuser())
