"""RemoteMemory: the verbs of `Memory`, answered by a server."""

from __future__ import annotations

import os
from typing import Any, Final, cast

from eunoe.client.address import Address
from eunoe.client.discovery import find_local_server
from eunoe.client.transport import Transport
from eunoe.client.verbs import NoEngine, remote_verb
from eunoe.errors import InputError, RemoteError
from eunoe.memory import Memory
from eunoe.model.context import Context
from eunoe.model.hit import Hits
from eunoe.model.report import Receipt, Status
from eunoe.model.validation import check_flag, check_seconds

KEY_VARIABLE: Final = "EUNOE_KEY"
DEFAULT_TIMEOUT_SECONDS: Final = 30.0
_BATCH_OPTIONS: Final = ("scope", "source_scopes", "again")
"""What is said once for all memories that are kept together."""


def _one_item(given: dict[str, Any]) -> dict[str, Any]:
    """A request to keep one memory: the same as for many."""
    item = {name: value for name, value in given.items() if name not in _BATCH_OPTIONS}
    return {name: given[name] for name in _BATCH_OPTIONS if name in given} | {"items": [item]}


class RemoteMemory(Memory):
    """A memory behind an address. Its verbs take and give what those of `Memory` do."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(cast("Any", NoEngine(transport.address.url)))
        self._transport = transport

    observe = remote_verb(Memory.observe, "POST /v1/messages", list[Receipt], "receipts", is_keyed=True)
    remember = remote_verb(Memory.remember, "POST /v1/memories", Receipt, "receipts", 0, is_keyed=True, shape=_one_item)
    remember_many = remote_verb(Memory.remember_many, "POST /v1/memories", list[Receipt], "receipts", is_keyed=True)
    recall = remote_verb(Memory.recall, "POST /v1/recall", Hits, reads=True)
    context = remote_verb(Memory.context, "POST /v1/context", Context, reads=True)
    status = remote_verb(Memory.status, "GET /v1/status", Status)

    @property
    def embedder(self) -> None:
        """None: the server has it, and `status` names it."""

    @property
    def llm(self) -> None:
        """None: the server has it, and `status` names it."""

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._transport.close()


def connect(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    insecure: bool = False,
) -> RemoteMemory:
    """Connect to a server; see `eunoe.connect`."""
    if check_seconds(timeout, "timeout") == 0:
        raise InputError("timeout is 0: give the seconds to wait for an answer")
    local = find_local_server() if url is None or not (key or os.environ.get(KEY_VARIABLE)) else None
    if url is None and local is None:
        raise RemoteError("no server runs on your own store: start one with `eunoe serve`, or give the url of another")
    address = Address.parse(local.url if url is None and local else url or "")
    if not (address.is_secure or address.is_loopback or check_flag(insecure, "insecure")):
        raise InputError(
            f"{address.url} would get the key and all memories unencrypted: use https://, or pass insecure=True "
            "in a network that you trust"
        )
    own_token = local.token if local and Address.parse(local.url) == address else ""
    return RemoteMemory(Transport(address, _check_key(key or os.environ.get(KEY_VARIABLE) or own_token), timeout))


def _check_key(key: object) -> str:
    if not key:
        raise InputError(f"no key: pass one, or set {KEY_VARIABLE}; `eunoe key create` makes one")
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError("the key is not one: it is a text of letters and digits without blanks")
    return key
