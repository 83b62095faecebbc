"""LanceDB in a local folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, load
from eunoe.bench.workload import Batch, Query


class LanceDB(Engine):
    """One table with a bitmap index on the scope, exact search behind a prefilter."""

    package = "lancedb"
    durability: ClassVar[Durability] = "files, no fsync"
    setup = "one table, bitmap index on scope built after the load, prefilter, cosine, no vector index"
    index = "bitmap of scopes, built after the load"

    def __init__(self, folder: Path, dimension: int) -> None:
        lancedb = load("lancedb")
        self.arrow = load("pyarrow")
        self.dimension = dimension
        vector = self.arrow.list_(self.arrow.float32(), dimension)
        text = self.arrow.string()
        self.schema = self.arrow.schema([("scope", text), ("text", text), ("vector", vector)])
        self.table: Any = lancedb.connect(str(folder)).create_table("memories", schema=self.schema)

    def add(self, batch: Batch) -> None:
        flat = self.arrow.array(batch.matrix.ravel())
        columns = {
            "scope": [batch.scope] * len(batch),
            "text": batch.texts,
            "vector": self.arrow.FixedSizeListArray.from_arrays(flat, self.dimension),
        }
        self.table.add(self.arrow.table(columns, schema=self.schema))

    def loaded(self) -> None:
        self.table.create_index("scope", config=load("lancedb.index").Bitmap())
        self.table.optimize()

    def search(self, query: Query, recipe: str) -> list[str]:
        found = (
            self.table.search(query.vector)
            .distance_type("cosine")
            .where(f"scope = '{query.scope}'", prefilter=True)
            .select(["text", "_distance"])
            .limit(LIMIT)
            .to_list()
        )
        return [row["text"] for row in found]

    def close(self) -> None:
        del self.table
