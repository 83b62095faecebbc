"""LangGraph's two local stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, GivenVectors, load, sqlite_with_extensions
from eunoe.bench.workload import Batch, Query


class LangGraphStore(Engine):
    """A namespace per scope; a batch is one `batch` of puts."""

    store: Any

    def __init__(self, folder: Path, dimension: int) -> None:
        self.vectors = GivenVectors()
        self.put: Any = load("langgraph.store.base").PutOp
        # SqliteStore reads `text_fields` where InMemoryStore reads `fields`.
        fields = ["text"]
        index = {"dims": dimension, "embed": self.vectors, "fields": fields, "text_fields": fields}
        self.open(folder, index)

    def open(self, folder: Path, index: dict[str, Any]) -> None:
        raise NotImplementedError

    def add(self, batch: Batch) -> None:
        self.vectors.give(batch)
        namespace = ("memories", batch.scope)
        pairs = zip(batch.keys, batch.texts, strict=True)
        self.store.batch([self.put(namespace, key, {"text": text}) for key, text in pairs])

    def search(self, query: Query, recipe: str) -> list[str]:
        self.vectors.ask(query)
        found = self.store.search(("memories", query.scope), query=query.text, limit=LIMIT)
        return [item.value["text"] for item in found]


class LangGraphSqlite(LangGraphStore):
    package = "langgraph-checkpoint-sqlite"
    durability: ClassVar[Durability] = "fsync per commit"
    setup = "SqliteStore.from_conn_string as documented: rollback journal, synchronous=FULL"

    def open(self, folder: Path, index: dict[str, Any]) -> None:
        sqlite_with_extensions()
        module = load("langgraph.store.sqlite")
        self.context = module.SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self.store = self.context.__enter__()
        self.store.setup()

    def close(self) -> None:
        self.context.__exit__(None, None, None)


class LangGraphMemory(LangGraphStore):
    package = "langgraph-checkpoint"
    durability: ClassVar[Durability] = "memory only"
    setup = "InMemoryStore; nothing is kept when the process ends"

    def open(self, folder: Path, index: dict[str, Any]) -> None:
        self.store = load("langgraph.store.memory").InMemoryStore(index=index)

    def close(self) -> None:
        del self.store
