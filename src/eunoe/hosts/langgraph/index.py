"""The index of a store: which texts of an item are embedded, by what, and how near a question is to them."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path, tokenize_path

from eunoe.embed.adapters import adapt
from eunoe.embed.contract import Embedder, to_unit_vectors
from eunoe.errors import EmbedderError, InputError
from eunoe.hosts.langgraph.vectors import Rows, cosine_of, query_rows, stored_rows
from eunoe.memory import Memory

_OWNER: Final = "the embedder of the index"


class IndexEmbedder:
    """What makes the vectors of a store that has an index, as the memory knows it."""

    def __init__(self, name: str, embeddings: Embeddings) -> None:
        self.name = f"langgraph:{name}"
        self._embeddings = embeddings

    def embed(self, texts: Sequence[str]) -> Rows:
        return stored_rows(to_unit_vectors(self._embeddings.embed_documents(list(texts)), _OWNER))

    def embed_query(self, text: str) -> Rows:
        row: Rows = query_rows(to_unit_vectors([self._embeddings.embed_query(text)], _OWNER))[0]
        return row


class MemoryEmbeddings(Embeddings):
    """A memory's own embedder, for an index that names none."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._embedder.embed(texts).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        row: list[float] = self._embedder.embed_query(text).tolist()
        return row


class FieldIndex:
    """What an index configuration says."""

    def __init__(self, config: IndexConfig, memory: Memory) -> None:
        self.config: dict[str, Any] = dict(config)
        if self.config.get("distance_type", "cosine") != "cosine":
            raise InputError(
                f"distance_type {self.config['distance_type']!r} is not known here: leave it out for cosine"
            )
        self._fields = _fields(self.config)
        self._dimensions = int(self.config.get("dims") or 0)
        embedder = embedder_of(config)
        self._is_own = embedder is not None
        self.embeddings: Embeddings = ensure_embeddings(config["embed"]) if embedder else _own(memory)
        if embedder:
            _adopt(memory, embedder)

    def texts(self, op: PutOp) -> list[str]:
        """What of an item is embedded; nothing if it is not to be found by a question."""
        if op.index is False or op.value is None:
            return []
        paths = self._fields if op.index is None else [tokenize_path(path) for path in op.index]
        return list(dict.fromkeys(text for path in paths for text in get_text_at_path(op.value, path)))

    def embed(self, texts: Iterable[str], queries: Iterable[str]) -> tuple[Mapping[str, Rows], Mapping[str, Rows]]:
        """The vectors of texts, and those of queries."""
        texts, queries = list(texts), list(queries)
        rows = self.embeddings.embed_documents(texts) if texts else []
        asked = [self.embeddings.embed_query(query) for query in queries]
        return self._rows(texts, rows, stored_rows), self._rows(queries, asked, query_rows)

    async def aembed(
        self, texts: Iterable[str], queries: Iterable[str]
    ) -> tuple[Mapping[str, Rows], Mapping[str, Rows]]:
        """The same, awaited."""
        texts, queries = list(texts), list(queries)
        rows = await self.embeddings.aembed_documents(texts) if texts else []
        asked = await asyncio.gather(*(self.embeddings.aembed_query(query) for query in queries))
        return self._rows(texts, rows, stored_rows), self._rows(queries, asked, query_rows)

    def _rows(self, texts: Sequence[str], rows: Sequence[Any], form: Callable[[Rows], Rows]) -> Mapping[str, Rows]:
        if len(rows) != len(texts):
            raise EmbedderError(f"{_OWNER} gave {len(rows)} vectors for {len(texts)} texts")
        if not texts:
            return {}
        matrix = to_unit_vectors(rows, _OWNER)
        self._dimensions = matrix.shape[1]
        return dict(zip(texts, form(matrix) if self._is_own else matrix, strict=True))

    def rows(self, texts: Sequence[str], vectors: Mapping[str, Rows]) -> Rows | None:
        """The vectors of an item: one, or a matrix of several; None if the memory has to make one."""
        if texts:
            return vectors[texts[0]] if len(texts) == 1 else np.stack([vectors[text] for text in texts])
        if not (self._is_own and self._dimensions):
            return None
        blank: Rows = stored_rows(np.zeros((1, self._dimensions), np.float32))[0]
        return blank

    def cosine(self, score: float) -> float:
        """The cosine that a score of the memory stands for."""
        return cosine_of(score) if self._is_own else score


def embedder_of(config: IndexConfig | None) -> IndexEmbedder | None:
    """The embedder for the memory of a store with this index; None if it names none."""
    if not config or (given := config.get("embed")) is None:
        return None
    return IndexEmbedder(_model_name(given), ensure_embeddings(given))


def _model_name(given: Any) -> str:
    """What tells the vectors of one model from those of another."""
    if isinstance(given, str):
        return given
    if inspect.isroutine(given):
        return f"{given.__module__}.{given.__qualname__}"
    try:
        adapted = adapt(given)
    except EmbedderError:
        adapted = None
    return adapted.name if adapted else type(given).__qualname__


def _fields(config: Mapping[str, Any]) -> list[list[str] | str]:
    fields = config.get("fields") or config.get("text_fields") or ["$"]
    if not isinstance(fields, list | tuple | str):
        raise InputError(f"fields must be a list of paths, not {type(fields).__name__}")
    paths = [fields] if isinstance(fields, str) else fields
    return [path if path == "$" else tokenize_path(path) for path in paths]


def _own(memory: Memory) -> Embeddings:
    if memory.embedder is None:
        raise InputError("the index names no `embed`, and the memory has no embedder of its own: name one")
    return MemoryEmbeddings(memory.embedder)


def _adopt(memory: Memory, embedder: IndexEmbedder) -> None:
    """Have the memory keep vectors of this embedder, if it keeps none of another yet."""
    stored = memory.embedder.name if memory.embedder else memory.status().embedder
    if stored == embedder.name:
        return
    if memory.scopes():
        raise InputError(
            f"the vectors of this memory come from {stored}, those of the index from {embedder.name}: "
            "leave `embed` out, or give the store a file of its own with EunoeStore.from_conn_string"
        )
    memory.admin.reembed(embedder)
