"""The public verbs: `Memory` blocks, `AsyncMemory` is awaited, `at()` binds either of them to a scope."""

from eunoe.memory.face import Change
from eunoe.memory.faces import AsyncMemory, AsyncScopedMemory, ScopedMemory
from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.memory import Memory
from eunoe.memory.pages import iterate, iterate_atoms
from eunoe.records.identity import repeatable
from eunoe.store.location import IN_MEMORY, STORE_VARIABLE, default_path, restore
from eunoe.store.output_file import check_no_store, open_output
from eunoe.work.leases import lease_seconds

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
    "iterate",
    "iterate_atoms",
    "lease_seconds",
    "open_output",
    "repeatable",
    "restore",
]
