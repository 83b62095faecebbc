"""The engines of the bench by name; each is imported only when it runs."""

from __future__ import annotations

import importlib

from eunoe.bench.peers.base import Engine, Unavailable

SUBJECT = "eunoe"
PEERS = {
    "sqlite-vec": ("sqlite_vec", "SqliteVec"),
    "sqlite-vec-scan": ("sqlite_vec", "SqliteVecScan"),
    "chroma": ("chroma", "Chroma"),
    "lancedb": ("lancedb", "LanceDB"),
    "langgraph-sqlite": ("langgraph", "LangGraphSqlite"),
    "langgraph-memory": ("langgraph", "LangGraphMemory"),
    "mem0": ("mem0", "Mem0"),
}
ENGINES = {SUBJECT: ("eunoe", "Eunoe"), **PEERS}


def engine_class(name: str) -> type[Engine]:
    """The class that drives the named engine."""
    module, cls = ENGINES[name]
    found: type[Engine] = getattr(importlib.import_module(f"{__name__}.{module}"), cls)
    return found


__all__ = ["ENGINES", "PEERS", "SUBJECT", "Engine", "Unavailable", "engine_class"]
