"""Chroma's persistent client."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, load
from eunoe.bench.workload import Batch, Query


class Chroma(Engine):
    """One collection, the scope as metadata, searched with a `where` filter."""

    package = "chromadb"
    durability: ClassVar[Durability] = "fsync per commit"
    setup = "one collection, HNSW cosine, where={scope}"
    index = "HNSW"

    def __init__(self, folder: Path, dimension: int) -> None:
        chromadb = load("chromadb")
        settings = load("chromadb.config").Settings(anonymized_telemetry=False)
        self.client: Any = chromadb.PersistentClient(path=str(folder), settings=settings)
        self.collection = self.client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, batch: Batch) -> None:
        self.collection.add(
            ids=batch.keys,
            embeddings=batch.matrix,
            documents=batch.texts,
            metadatas=[{"scope": batch.scope}] * len(batch),
        )

    def search(self, query: Query, recipe: str) -> list[str]:
        found = self.collection.query(
            query_embeddings=[query.vector],
            n_results=LIMIT,
            where={"scope": query.scope},
            include=["documents", "distances"],
        )
        return list(found["documents"][0])

    def close(self) -> None:
        del self.collection, self.client
