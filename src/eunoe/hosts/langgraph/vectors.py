"""The index of a store: which texts of an item are embedded, by what, and how near a question is to them.

A memory scores from 0 to 1, leaves out what is not similar at all, and keeps numbers of 16 bits. LangGraph's stores
give negative cosines too, of numbers of 32 bits. So unit vectors get one more component, the same for all, which makes
every score positive. And what 16 bits cannot hold of a number is kept beside it: cosines are right to five digits.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import sqrt
from typing import Any, Final

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path, tokenize_path
from numpy.typing import NDArray

from eunoe.embed.adapters import adapt
from eunoe.embed.contract import Embedder, to_unit_vectors
from eunoe.errors import EmbedderError, InputError
from eunoe.memory import Memory

Rows = NDArray[np.float32]
_Wide = NDArray[np.float64]

_OWNER: Final = "the embedder of the index"
_SHARED: Final = 2.0
"""Squared length of the component that all vectors share. Above 1, so that opposite vectors still have a score."""
_FINE: Final = 256.0
"""How many times as large as they are the remainders are kept: as they are they would be too small for 16 bits."""
_SHARE: Final = 0.98
"""What of the squared length of a row the numbers themselves take. The remainders vary: two more fill it up."""


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
        fields = self.config.get("fields") or self.config.get("text_fields") or ["$"]
        if not isinstance(fields, list | tuple | str):
            raise InputError(f"fields must be a list of paths, not {type(fields).__name__}")
        paths = [fields] if isinstance(fields, str) else fields
        self._fields: list[list[str] | str] = [path if path == "$" else tokenize_path(path) for path in paths]
        self._dimensions = int(self.config.get("dims") or 0)
        embedder = embedder_of(config)
        self._is_own = embedder is not None
        if embedder:
            self.embeddings: Embeddings = ensure_embeddings(config["embed"])
            _adopt(memory, embedder)
        elif memory.embedder:
            self.embeddings = MemoryEmbeddings(memory.embedder)
        else:
            raise InputError("the index names no `embed`, and the memory has no embedder of its own: name one")

    def texts(self, op: PutOp) -> list[str]:
        """What of an item is embedded; nothing if it is not to be found by a question."""
        if op.index is False or op.value is None:
            return []
        paths = self._fields if op.index is None else [tokenize_path(path) for path in op.index]
        return list(dict.fromkeys(text for path in paths for text in get_text_at_path(op.value, path)))

    def embed(self, texts: Iterable[str], queries: Iterable[str]) -> tuple[Mapping[str, Rows], Mapping[str, Rows]]:
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
        return score * sqrt((1 + _FINE**-2) / _SHARE) * (1 + _SHARED) - _SHARED if self._is_own else score


def embedder_of(config: IndexConfig | None) -> IndexEmbedder | None:
    """The embedder for the memory of a store with this index; None if it names none."""
    if not config or (given := config.get("embed")) is None:
        return None
    name = given if isinstance(given, str) else type(given).__qualname__  # it tells the vectors of models apart
    if inspect.isroutine(given):
        name = f"{given.__module__}.{given.__qualname__}"
    elif not isinstance(given, str):
        with suppress(EmbedderError):
            name = adapted.name if (adapted := adapt(given)) else name
    return IndexEmbedder(name, ensure_embeddings(given))


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


def stored_rows(unit: Rows) -> Rows:
    whole = _extend(unit) * sqrt(_SHARE)
    coarse = _round(whole)
    fine = _round((whole - coarse) * _FINE)
    left = 1 - np.vecdot(coarse, coarse) - np.vecdot(fine, fine)
    first = _round(np.sqrt(left) * 0.999)
    second = np.sqrt(left - first**2)
    return np.hstack([coarse, fine, first[:, None], second[:, None]]).astype(np.float32)


def query_rows(unit: Rows) -> Rows:
    whole = _extend(unit)
    return np.hstack([whole, whole / _FINE, np.zeros((len(whole), 2))]).astype(np.float32)


def _extend(unit: Rows) -> _Wide:
    """Unit vectors, each with the component that is the same for all, and one that only vectors of zeros need."""
    added = np.zeros((len(unit), 2))
    added[:, 0] = sqrt(_SHARED)
    added[~unit.any(axis=1), 1] = 1
    return np.hstack([unit.astype(np.float64), added]) / sqrt(1 + _SHARED)


def _round(rows: _Wide) -> _Wide:
    """Numbers as 16 bits hold them."""
    return rows.astype(np.float16).astype(np.float64)
