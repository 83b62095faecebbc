"""From an address and a key to a memory."""

from __future__ import annotations

import os
from typing import Final

from eunoe.client.address import Address
from eunoe.client.discovery import find_local_server
from eunoe.client.memory import RemoteMemory
from eunoe.client.transport import Transport
from eunoe.errors import InputError, RemoteError
from eunoe.model.arguments import check_flag, check_seconds

KEY_VARIABLE: Final = "EUNOE_KEY"
DEFAULT_TIMEOUT_SECONDS: Final = 30.0


def connect(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    insecure: bool = False,
) -> RemoteMemory:
    """Connect to a server; see `eunoe.connect`."""
    if key is not None:
        _check_key(key)  # an empty one is a variable that was not set, not a wish for the owner's token
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
