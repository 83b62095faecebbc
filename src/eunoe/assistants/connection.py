"""The memory that hooks work on: that of the running server, else the store itself."""

from typing import Any, cast

import eunoe
from eunoe.memory import Memory


def open_memory(store: str, **options: Any) -> Memory:
    """Open a store, over its server if one runs."""
    if server := find_server(store):
        return cast(Memory, eunoe.connect(*server))  # type: ignore[attr-defined, unused-ignore]
    return eunoe.open(store, **options)


def find_server(store: str) -> tuple[str, str] | None:
    """The address and the token of the server that runs on a store, if one does."""
    try:
        from eunoe.client.discovery import find_local_server  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return cast(tuple[str, str] | None, find_local_server(store))
