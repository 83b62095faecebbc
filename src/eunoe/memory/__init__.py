"""The public verbs: `Memory` blocks, `AsyncMemory` is awaited, `at()` binds either of them to a scope."""

from eunoe.memory.asynchronous import AsyncMemory, AsyncScopedMemory
from eunoe.memory.blocking import Memory
from eunoe.memory.changes import Change
from eunoe.memory.groups import Admin, Corrections, Graph, Streams, Summaries
from eunoe.memory.leases import Leases
from eunoe.memory.scoped import ScopedMemory
from eunoe.records.ids import repeatable
from eunoe.records.leases import lease_seconds
from eunoe.store.location import restore
from eunoe.store.output_file import check_no_store, open_output
from eunoe.store.paths import IN_MEMORY, STORE_VARIABLE, default_path

__all__ = [
    "IN_MEMORY",
    "STORE_VARIABLE",
    "Admin",
    "AsyncMemory",
    "AsyncScopedMemory",
    "Change",
    "Corrections",
    "Graph",
    "Leases",
    "Memory",
    "ScopedMemory",
    "Streams",
    "Summaries",
    "check_no_store",
    "default_path",
    "lease_seconds",
    "open_output",
    "repeatable",
    "restore",
]
