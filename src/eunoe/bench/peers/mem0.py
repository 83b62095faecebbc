"""mem0 with its local qdrant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, GivenVectors, load
from eunoe.bench.workload import Batch, Query


class Mem0(Engine):
    """`add(infer=False)`, so that no LLM is asked; the scope is the user id."""

    package = "mem0ai"
    durability: ClassVar[Durability] = "fsync per commit"
    setup = "local qdrant on disk, infer=False; commits message by message, also in a batch"

    def __init__(self, folder: Path, dimension: int) -> None:
        os.environ["MEM0_DIR"] = str(folder / "home")
        memory_class = load("mem0").Memory
        load("qdrant_client")
        qdrant = {"path": str(folder / "qdrant"), "embedding_model_dims": dimension, "on_disk": True}
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self.memory: Any = memory_class.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
                "embedder": unused,
                "llm": unused,
            }
        )
        self.vectors = GivenVectors()
        self.memory.embedding_model = Mem0Embedder(self.vectors)
        self.memory.llm = None

    def add(self, batch: Batch) -> None:
        self.vectors.give(batch)
        messages = [{"role": "user", "content": text} for text in batch.texts]
        self.memory.add(messages, user_id=batch.scope, infer=False)

    def search(self, query: Query, recipe: str) -> list[str]:
        self.vectors.ask(query)
        scope = {"user_id": query.scope}
        found = self.memory.search(query.text, top_k=LIMIT, filters=scope, threshold=0.0)
        return [item["memory"] for item in found["results"]]

    def hurry(self, on: bool) -> None:
        collections = self.memory.vector_store.client._client.collections.values()
        for connection in (self.memory.db.connection, *(each.storage.storage for each in collections)):
            connection.execute(f"pragma synchronous = {'off' if on else 'full'}")
            connection.execute(f"pragma journal_mode = {'memory' if on else 'delete'}")

    def close(self) -> None:
        self.memory.vector_store.client.close()
        self.memory.close()


class Mem0Embedder:
    """The part of mem0's embedder that `add` and `search` call."""

    def __init__(self, vectors: GivenVectors) -> None:
        self.vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.vectors.known[text]
