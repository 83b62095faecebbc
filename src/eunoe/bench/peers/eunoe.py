"""Eunoe itself, through its public face."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, load
from eunoe.bench.workload import Batch, Query


class NoModel:
    """Names the space the given vectors live in; never asked to embed."""

    name = "bench-given"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def __call__(self, texts: list[str]) -> Any:
        raise RuntimeError("the bench gives every vector")


class Eunoe(Engine):
    """Searched with its default recipe, lexical and dense together."""

    package = "eunoe"
    durability: ClassVar[Durability] = "fsync per commit"
    setup = "one file, default recipe: hybrid lexical + dense with the query's text and vector"
    index = "words and vectors of a scope in memory, fed at the next recall"
    recipe = "default"
    more_recipes = ("dense", "lexical")
    exact_recipe = "dense"

    def __init__(self, folder: Path, dimension: int) -> None:
        self.memory: Any = load("eunoe").open(folder / "memory.db", embedder=NoModel(dimension)).sync

    def add(self, batch: Batch) -> None:
        pairs = zip(batch.texts, batch.matrix, strict=True)
        items = [{"text": text, "vector": vector} for text, vector in pairs]
        self.memory.remember_many({"user": batch.scope}, items)

    def search(self, query: Query, recipe: str) -> list[str]:
        hits = self.memory.recall({"user": query.scope}, query.text, vector=query.vector, limit=LIMIT, recipe=recipe)
        return [hit.text for hit in hits]

    def close(self) -> None:
        self.memory.close()
