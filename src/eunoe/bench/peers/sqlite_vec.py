"""sqlite-vec, in the two ways its documentation shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from eunoe.bench.peers.base import LIMIT, Durability, Engine, load, sqlite_with_extensions
from eunoe.bench.workload import Batch, Query


class SqliteVec(Engine):
    """A `vec0` table partitioned by scope, beside an ordinary table for the texts."""

    package = "sqlite-vec"
    durability: ClassVar[Durability] = "fsync per commit"
    setup = "vec0 table, scope as partition key, cosine; WAL, synchronous=FULL"
    index = "vec0, chunked by scope"

    tables: ClassVar[tuple[str, ...]] = (
        "create table memory (id integer primary key, text text not null)",
        "create virtual table vector using vec0("
        "scope text partition key, embedding float[{dimension}] distance_metric=cosine)",
    )
    nearest: ClassVar[str] = (
        "select memory.text from"
        " (select rowid, distance from vector where scope = ? and embedding match ? and k = ?) near"
        " join memory on memory.id = near.rowid order by near.distance"
    )

    def __init__(self, folder: Path, dimension: int) -> None:
        sqlite = sqlite_with_extensions()
        extension = load("sqlite_vec")
        self.connection: Any = sqlite.connect(folder / "memory.db", isolation_level=None)
        self.connection.enable_load_extension(True)
        extension.load(self.connection)
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        for statement in self.tables:
            self.connection.execute(statement.format(dimension=dimension))
        self.count = 0

    def add(self, batch: Batch) -> None:
        ids = range(self.count, self.count + len(batch))
        self.count += len(batch)
        self.connection.execute("begin immediate")
        self._insert(ids, batch)
        self.connection.execute("commit")

    def _insert(self, ids: range, batch: Batch) -> None:
        texts = zip(ids, batch.texts, strict=True)
        self.connection.executemany("insert into memory (id, text) values (?, ?)", texts)
        vectors = [(number, batch.scope, vector.tobytes()) for number, vector in zip(ids, batch.matrix, strict=True)]
        self.connection.executemany("insert into vector (rowid, scope, embedding) values (?, ?, ?)", vectors)

    def search(self, query: Query, recipe: str) -> list[str]:
        rows = self.connection.execute(self.nearest, (query.scope, query.vector.tobytes(), LIMIT))
        return [text for (text,) in rows]

    def close(self) -> None:
        self.connection.close()


class SqliteVecScan(SqliteVec):
    """An ordinary table indexed by scope, and sqlite-vec's distance function."""

    setup = "ordinary table indexed by scope, vec_distance_cosine(); WAL, synchronous=FULL"
    index = ""
    tables = (
        "create table memory (id integer primary key, scope text not null, text text not null, embedding blob)",
        "create index memory_scope on memory (scope)",
    )
    nearest = "select text from memory where scope = ? order by vec_distance_cosine(embedding, ?) limit ?"

    def _insert(self, ids: range, batch: Batch) -> None:
        rows = [
            (number, batch.scope, text, vector.tobytes())
            for number, text, vector in zip(ids, batch.texts, batch.matrix, strict=True)
        ]
        self.connection.executemany("insert into memory values (?, ?, ?, ?)", rows)
