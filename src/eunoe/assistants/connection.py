"""The memory that hooks work on: that of the running server, else the store itself."""

from typing import Any

import eunoe
from eunoe.memory import Memory
from eunoe.net.local_server import find_local_server


def open_memory(store: str, **options: Any) -> Memory:
    """Open a store, over its server if one runs."""
    if server := find_local_server(store):
        return eunoe.connect(server.url, server.token)
    return eunoe.open(store, **options)
