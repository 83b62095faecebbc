"""The public verbs: `Memory` blocks, `AsyncMemory` is awaited, `at()` binds either of them to a scope."""

from eunoe.memory.asynchronous import AsyncMemory, AsyncScopedMemory
from eunoe.memory.blocking import Memory, ScopedMemory
from eunoe.memory.groups import Admin, Graph, Streams, Summaries

__all__ = [
    "Admin",
    "AsyncMemory",
    "AsyncScopedMemory",
    "Graph",
    "Memory",
    "ScopedMemory",
    "Streams",
    "Summaries",
]
