"""A memory behind an address: the verbs of `Memory` over HTTP.

`discovery` and `transport` are quick to import, for whoever has no time for more.
"""

from eunoe.client.discovery import LocalServer, find_local_server

__all__ = ["LocalServer", "find_local_server"]
