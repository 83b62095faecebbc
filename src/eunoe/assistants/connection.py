"""The memory that hooks work on: that of the running server, else the store itself."""

from typing import Any, cast

import eunoe
from eunoe.memory import Memory


def open_memory(store: str, **options: Any) -> Memory:
    """Open a store, over its server if one runs."""
    return connect_to_server(store) or eunoe.open(store, **options)


def connect_to_server(store: str) -> Memory | None:
    """The memory of the server that runs on a store, if one does."""
    try:
        from eunoe.client import find_local_server  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return None
    found = find_local_server(store)
    return cast(Memory, eunoe.connect(*found)) if found else None  # type: ignore[attr-defined, unused-ignore]
