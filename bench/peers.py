"""The engines that are measured: Eunoe and its peers. A peer's package is imported only when it runs."""

import importlib
import os
import sqlite3
import sys
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, NoReturn

import eunoe
from bench.workload import SearchQuery, WorkloadBatch

Durability = Literal["fsync per commit", "files, no fsync", "memory only"]

_LIMIT = 10


class EngineUnavailable(Exception):
    """This engine cannot run here; the message says why."""


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What the report says about an engine: `peers.toml` has one for each."""

    package: str
    setup: str
    index: str = ""
    durability: Durability = "fsync per commit"
    recipes: Sequence[str] = ("vector",)
    exact_recipe: str = "vector"


class BenchEngine(ABC):
    """One store of memories in its own folder."""

    @abstractmethod
    def __init__(self, folder: Path, dimension: int) -> None:
        """Open an empty store."""

    @abstractmethod
    def add(self, batch: WorkloadBatch) -> None:
        """Store a batch of one scope as durably as the engine promises."""

    @abstractmethod
    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        """The texts of the ten best memories of the query's scope."""

    def finish_load(self) -> None:
        """Do what the engine's documentation asks for after a bulk load; counted as part of it."""
        return

    def set_durable(self, on: bool) -> None:
        """Give up durability, or take it up again, where a slow store is filled untimed."""
        return

    def close(self) -> None:
        """Release the store, where the end of the process is not enough."""
        return


def given_vectors(texts: list[str]) -> NoReturn:
    raise RuntimeError("the bench gives every vector")


class Eunoe(BenchEngine):
    def __init__(self, folder: Path, dimension: int) -> None:
        self.memory = eunoe.open(folder / "memory.db", embedder=given_vectors)

    def add(self, batch: WorkloadBatch) -> None:
        pairs = zip(batch.texts, batch.matrix, strict=True)
        items = [{"text": text, "vector": vector} for text, vector in pairs]
        self.memory.remember_many({"user": batch.scope}, items)

    def search(self, query: SearchQuery, recipe: Any) -> list[str]:
        hits = self.memory.recall({"user": query.scope}, query.text, vector=query.vector, limit=_LIMIT, recipe=recipe)
        return [hit.text for hit in hits]

    def close(self) -> None:
        self.memory.close()


class SqliteVec(BenchEngine):
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
        sqlite = _sqlite_with_extensions()
        extension = _import("sqlite_vec")
        self.connection: Any = sqlite.connect(folder / "memory.db", isolation_level=None)
        self.connection.enable_load_extension(True)
        extension.load(self.connection)
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        for statement in self.tables:
            self.connection.execute(statement.format(dimension=dimension))
        self.count = 0

    def add(self, batch: WorkloadBatch) -> None:
        ids = range(self.count, self.count + len(batch))
        self.count += len(batch)
        self.connection.execute("begin immediate")
        self._insert(ids, batch)
        self.connection.execute("commit")

    def _insert(self, ids: range, batch: WorkloadBatch) -> None:
        texts = zip(ids, batch.texts, strict=True)
        self.connection.executemany("insert into memory (id, text) values (?, ?)", texts)
        vectors = [(number, batch.scope, vector.tobytes()) for number, vector in zip(ids, batch.matrix, strict=True)]
        self.connection.executemany("insert into vector (rowid, scope, embedding) values (?, ?, ?)", vectors)

    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        rows = self.connection.execute(self.nearest, (query.scope, query.vector.tobytes(), _LIMIT))
        return [text for (text,) in rows]

    def close(self) -> None:
        self.connection.close()


class SqliteVecScan(SqliteVec):
    tables = (
        "create table memory (id integer primary key, scope text not null, text text not null, embedding blob)",
        "create index memory_scope on memory (scope)",
    )
    nearest = "select text from memory where scope = ? order by vec_distance_cosine(embedding, ?) limit ?"

    def _insert(self, ids: range, batch: WorkloadBatch) -> None:
        rows = [
            (number, batch.scope, text, vector.tobytes())
            for number, text, vector in zip(ids, batch.texts, batch.matrix, strict=True)
        ]
        self.connection.executemany("insert into memory values (?, ?, ?, ?)", rows)


class Chroma(BenchEngine):
    def __init__(self, folder: Path, dimension: int) -> None:
        chromadb = _import("chromadb")
        settings = _import("chromadb.config").Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(folder), settings=settings)
        self.collection: Any = client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, batch: WorkloadBatch) -> None:
        scopes = [{"scope": batch.scope}] * len(batch)
        self.collection.add(ids=batch.keys, embeddings=batch.matrix, documents=batch.texts, metadatas=scopes)

    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        result = self.collection.query(
            query_embeddings=[query.vector],
            n_results=_LIMIT,
            where={"scope": query.scope},
            include=["documents", "distances"],
        )
        return list(result["documents"][0])


class LanceDB(BenchEngine):
    def __init__(self, folder: Path, dimension: int) -> None:
        lancedb = _import("lancedb")
        self.arrow = _import("pyarrow")
        self.dimension = dimension
        vector = self.arrow.list_(self.arrow.float32(), dimension)
        text = self.arrow.string()
        self.schema = self.arrow.schema([("scope", text), ("text", text), ("vector", vector)])
        self.table: Any = lancedb.connect(str(folder)).create_table("memories", schema=self.schema)

    def add(self, batch: WorkloadBatch) -> None:
        flat = self.arrow.array(batch.matrix.ravel())
        columns = {
            "scope": [batch.scope] * len(batch),
            "text": batch.texts,
            "vector": self.arrow.FixedSizeListArray.from_arrays(flat, self.dimension),
        }
        self.table.add(self.arrow.table(columns, schema=self.schema))

    def finish_load(self) -> None:
        self.table.create_index("scope", config=_import("lancedb.index").Bitmap())
        self.table.optimize()

    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        nearest = self.table.search(query.vector).distance_type("cosine")
        nearest = nearest.where(f"scope = '{query.scope}'", prefilter=True)
        return [row["text"] for row in nearest.select(["text", "_distance"]).limit(_LIMIT).to_list()]


class LangGraphStore(BenchEngine):
    """A namespace per scope; a batch is one `batch` of puts."""

    store: Any
    vectors: dict[str, list[float]]
    """Of the texts that it will embed next, in place of a model."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self.put: Any = _import("langgraph.store.base").PutOp
        # SqliteStore reads `text_fields` where InMemoryStore reads `fields`.
        fields = ["text"]
        self.open(folder, {"dims": dimension, "embed": self._embed, "fields": fields, "text_fields": fields})

    def _embed(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]

    @abstractmethod
    def open(self, folder: Path, index: dict[str, Any]) -> None:
        """Make the store."""

    def add(self, batch: WorkloadBatch) -> None:
        self.vectors = dict(zip(batch.texts, batch.lists, strict=True))
        namespace = ("memories", batch.scope)
        pairs = zip(batch.keys, batch.texts, strict=True)
        self.store.batch([self.put(namespace, key, {"text": text}) for key, text in pairs])

    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        self.vectors = {query.text: query.floats}
        items = self.store.search(("memories", query.scope), query=query.text, limit=_LIMIT)
        return [item.value["text"] for item in items]


class LangGraphSqlite(LangGraphStore):
    def open(self, folder: Path, index: dict[str, Any]) -> None:
        _sqlite_with_extensions()
        module = _import("langgraph.store.sqlite")
        self.context = module.SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self.store = self.context.__enter__()
        self.store.setup()

    def close(self) -> None:
        self.context.__exit__(None, None, None)


class LangGraphMemory(LangGraphStore):
    def open(self, folder: Path, index: dict[str, Any]) -> None:
        self.store = _import("langgraph.store.memory").InMemoryStore(index=index)


class Mem0(BenchEngine):
    vectors: dict[str, list[float]]
    """Of the texts that it will embed next, in place of a model."""

    def __init__(self, folder: Path, dimension: int) -> None:
        os.environ["MEM0_DIR"] = str(folder / "home")
        memory_class = _import("mem0").Memory
        _import("qdrant_client")
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
        self.memory.embedding_model = SimpleNamespace(embed=lambda text, memory_action=None: self.vectors[text])
        self.memory.llm = None

    def add(self, batch: WorkloadBatch) -> None:
        self.vectors = dict(zip(batch.texts, batch.lists, strict=True))
        messages = [{"role": "user", "content": text} for text in batch.texts]
        self.memory.add(messages, user_id=batch.scope, infer=False)

    def search(self, query: SearchQuery, recipe: str) -> list[str]:
        self.vectors = {query.text: query.floats}
        result = self.memory.search(query.text, top_k=_LIMIT, filters={"user_id": query.scope}, threshold=0.0)
        return [item["memory"] for item in result["results"]]

    def set_durable(self, on: bool) -> None:
        collections = self.memory.vector_store.client._client.collections.values()
        for connection in (self.memory.db.connection, *(each.storage.storage for each in collections)):
            connection.execute(f"pragma synchronous = {'full' if on else 'off'}")
            connection.execute(f"pragma journal_mode = {'delete' if on else 'memory'}")

    def close(self) -> None:
        self.memory.vector_store.client.close()
        self.memory.close()


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineUnavailable(f"not installed: {error}") from error


def _sqlite_with_extensions() -> Any:
    """A `sqlite3` module that can load extensions: the standard one, else `pysqlite3` in its place."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    try:
        replacement = importlib.import_module("pysqlite3")
    except ImportError as error:
        reason = "this Python's sqlite3 cannot load extensions and pysqlite3 is not installed"
        raise EngineUnavailable(reason) from error
    sys.modules["sqlite3"] = replacement
    sys.modules["sqlite3.dbapi2"] = importlib.import_module("pysqlite3.dbapi2")
    return replacement


SUBJECT = "eunoe"
PEERS: dict[str, type[BenchEngine]] = {
    "sqlite-vec": SqliteVec,
    "sqlite-vec-scan": SqliteVecScan,
    "chroma": Chroma,
    "lancedb": LanceDB,
    "langgraph-sqlite": LangGraphSqlite,
    "langgraph-memory": LangGraphMemory,
    "mem0": Mem0,
}
ENGINES: dict[str, type[BenchEngine]] = {SUBJECT: Eunoe, **PEERS}
_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
DESCRIPTIONS = {name: EngineDescription(**each) for name, each in _DATA["engines"].items()}
NO_TELEMETRY: dict[str, str] = _DATA["environment"]
