"""The embedder of one store: its model is remembered, never mixed with another, and changed only on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed import DEFAULT, load
from eunoe.embed.contract import Embedder, unit
from eunoe.errors import EmbedderError, EunoeError, InputError, ModelMismatchError
from eunoe.model.record import Record
from eunoe.records.insertion import VectorBatch, pack_vectors
from eunoe.store.contract import Store, VectorModel
from eunoe.store.query import ItemQuery
from eunoe.text.normalize import one_line
from eunoe.text.parts import parts

AUTO: Final = "auto"
NO_MODEL: Final = "none"
BATCH_SIZE: Final = 256
"""Texts that an embedder is given at a time."""

_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 300.0
"""After a failure the next attempt waits, each time twice as long."""
_MAX_ERROR_CHARACTERS: Final = 300
_CLEARED: Final = "the embedder failed; what it said was cleared by forget"

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""


class QuestionVector(NamedTuple):
    """The vector of a question. It says nothing about vectors of another model."""

    model: str
    vector: Floats


class StoreEmbedder:
    """Makes the vectors of one store. A failing embedder costs nothing but its vectors, which are made later."""

    def __init__(self, store: Store, spec: Any = AUTO) -> None:
        self._store = store
        self._pause = 0.0
        self._next_try = 0.0
        self._clearings = 0
        self._last_question: tuple[str, QuestionVector] | None = None
        """The same question is often asked of several recipes."""
        self.error = ""
        """Why no vectors can be made at the moment, if so."""
        with store.reading():
            self.name = store.get_value("model") or ""
            remembered = store.get_value("embedder")
            empty = not store.streams(limit=1)
        self.embedder = self._reload(remembered) if spec == AUTO and self.name else self._take(spec, empty)

    @property
    def keeps_vectors(self) -> bool:
        return self.name != NO_MODEL

    @property
    def is_slow(self) -> bool:
        """Whether vectors of small writes are better made after the reply."""
        return getattr(self.embedder, "is_slow", False) is True

    @property
    def can_try(self) -> bool:
        """Whether the pause after the last failure is over."""
        return time.monotonic() >= self._next_try

    def embed_now(self, texts: Sequence[str]) -> VectorBatch:
        """Make vectors for texts about to be written; none of them if the embedder fails."""
        self.follow_store()
        if not self.keeps_vectors:
            return VectorBatch()
        unique, embedder = list(dict.fromkeys(texts)), self.embedder
        if not unique or embedder is None or not self.can_try:
            return VectorBatch(self.name)
        pieces = [parts(text) for text in unique]
        matrix = self._attempt(partial(embed_parts, embedder), pieces)
        if matrix is None:
            return VectorBatch(self.name)
        packed = pack_vectors(matrix, map(len, pieces))
        # By the embedder's own name: another thread may have changed the store's model in the meantime.
        return VectorBatch(embedder.name, matrix.shape[1], dict(zip(unique, packed, strict=True)))

    def take_vectors(self, vectors: Mapping[str, Any]) -> VectorBatch:
        """Check vectors that the caller made with the store's model."""
        if not self.keeps_vectors:
            raise InputError("this store keeps no vectors: open it with an embedder, or leave `vector` out")
        matrix = unit(list(vectors.values()), "the caller")
        due = self._stored_dimensions() or self._embedder_dimensions()
        if due and due != matrix.shape[1]:
            raise InputError(f"the vector has {matrix.shape[1]} dimensions; {self.name} has {due}")
        packed = pack_vectors(matrix, [1] * len(matrix))
        return VectorBatch(self.name, matrix.shape[1], dict(zip(vectors, packed, strict=True)))

    def embed_question(self, text: str) -> QuestionVector | None:
        """Make the vector of a question; None if there is none to be had, and recall goes on without.

        A row of zeros is what an embedder gives for what it cannot read.
        """
        self.follow_store()
        embedder = self.embedder
        if embedder is None or not self.keeps_vectors or not self.can_try:
            return None
        last = self._last_question
        if last and last[0] == text and last[1].model == embedder.name:
            return last[1]
        vector = self._attempt(embedder.embed_query, text)
        question = QuestionVector(embedder.name, vector) if vector is not None and vector.any() else None
        self._last_question = (text, question) if question else None
        return question

    def change_model(self, spec: Any, progress: Progress | None = None) -> int:
        """Embed everything with another model and then make it the store's own; return how many were embedded.

        Can be stopped and taken up again: vectors already made are kept, and recall uses the old ones until the last
        is there.
        """
        embedder, name = _load(spec)
        made = self._embed_all(embedder, name, progress) if embedder else 0
        self._switch(embedder, name, spec)
        return made

    def _embed_all(self, embedder: Embedder, name: str, progress: Progress | None) -> int:
        made, after = 0, 0
        with self._store.reading():
            counts = self._store.counts()
            model = self._store.model(name)
        total, done = sum(counts.kinds.values()) + counts.retired, counts.vectors.get(name, 0)
        while True:
            query = ItemQuery(after=after, without_vector=model.number if model else -1, limit=BATCH_SIZE)
            with self._store.reading():
                records = self._store.select(query)
            if not records:
                return made
            model = self._embed_records(embedder, name, model, records)
            made, after = made + len(records), records[-1].seq
            if progress:
                progress(min(done + made, total), total)

    def _embed_records(
        self, embedder: Embedder, name: str, model: VectorModel | None, records: Sequence[Record]
    ) -> VectorModel:
        pieces = [parts(record.content) for record in records]
        matrix = embed_parts(embedder, pieces)
        if model and model.dimensions != matrix.shape[1]:
            raise EmbedderError(
                f"{name} gives vectors of {matrix.shape[1]} dimensions, but the store has some of {model.dimensions} "
                "under that name: give the embedder another name"
            )
        packed = pack_vectors(matrix, map(len, pieces))
        data = {record.seq: vector for record, vector in zip(records, packed, strict=True)}
        with self._store.writing():
            model = self._store.create_model(name, matrix.shape[1])
            left = {record.seq for record in self._store.select(ItemQuery(seqs=list(data)))}
            self._store.put_vectors(model.number, [(seq, vector) for seq, vector in data.items() if seq in left])
        return model

    def _switch(self, embedder: Embedder | None, name: str, spec: Any) -> None:
        """Make a model the store's own. What came in meanwhile is marked, so that nothing is left without a vector."""
        with self._store.writing():
            # Asked of the store: another process may have changed the model since this one looked.
            old = self._store.get_value("model") or NO_MODEL
            dropped = self._store.model(old) if old != name else None
            if dropped:
                self._store.drop_model(dropped.number)
            self._remember(name, spec)
            new = self._store.model(name)
            self._store.adopt_model(new.number if new else None)
        self.embedder, self.name = embedder, name

    def clear_error(self) -> None:
        """Drop what a failing embedder said, and the last question: both may repeat words that are now forgotten."""
        self._clearings += 1
        self._last_question = None
        if self._pause and self.error:
            self.error = _CLEARED

    def retry_now(self) -> None:
        """End the pause after a failure."""
        self._next_try = 0.0

    def follow_store(self) -> None:
        """Take over the store's model: another process may have changed it since it was opened."""
        with self._store.reading():
            name = self._store.get_value("model") or NO_MODEL
            spec = self._store.get_value("embedder") if name != self.name else None
        if name != self.name:
            self.name, self.error = name, ""
            self.embedder = self._reload(spec)

    def _attempt(self, make: Callable[[Any], Floats], given: Any) -> Floats | None:
        """What an embedder makes, or None: whatever it does, words are kept and found."""
        before = self._clearings
        try:
            made = make(given)
            self._check_dimensions(made.shape[-1])
        except EunoeError as error:
            self._note_failure(error, before)
        except Exception as error:
            self._note_failure(EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}"), before)
        else:
            self._pause = self._next_try = 0.0
            self.error = ""
            return made
        return None

    def _note_failure(self, error: Exception, clearings: int) -> None:
        """`clearings` is how often errors had been cleared when the embedder was asked."""
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
        self._next_try = time.monotonic() + self._pause
        self.error = one_line(str(error), _MAX_ERROR_CHARACTERS) if clearings == self._clearings else _CLEARED

    def _check_dimensions(self, dimensions: int) -> None:
        due = self._stored_dimensions()
        if due and due != dimensions:
            raise EmbedderError(
                f"{self.name} gives vectors of {dimensions} dimensions now, the store's have {due}: "
                "give the embedder another name and change the store's model with reembed"
            )

    def _stored_dimensions(self) -> int | None:
        with self._store.reading():
            model = self._store.model(self.name)
        return model.dimensions if model else None

    def _embedder_dimensions(self) -> int | None:
        made = None if self.embedder is None else self._attempt(self.embedder.embed_query, ".")
        return None if made is None else len(made)

    def _reload(self, spec: str | None) -> Embedder | None:
        """The embedder the store was made with, if it can be had here."""
        if self.name == NO_MODEL:
            return None
        if not spec:
            self.error = f"the store's vectors come from {self.name}: open it with that embedder to use or make them"
            return None
        try:
            embedder, name = _load(spec)
        except EmbedderError as error:
            self.error = str(error)
            return None
        if name != self.name:
            self.error = f"the vectors come from {self.name}, and {spec!r} is {name} here: change them with reembed"
            return None
        return embedder

    def _take(self, spec: Any, empty: bool) -> Embedder | None:
        """The embedder that the caller names; a store that holds something keeps to its own model."""
        spec = DEFAULT if spec == AUTO else spec
        embedder, name = _load(spec)
        if not self.name or empty:
            with self._store.writing():
                self._remember(name, spec)
            self.name = name
        elif name not in (self.name, NO_MODEL):
            raise ModelMismatchError(
                f"the store's vectors come from {self.name}, not {name}: open it without naming an embedder, "
                "or change its model with reembed"
            )
        return embedder

    def _remember(self, name: str, spec: Any) -> None:
        """Note the model, and how to load it again where that can be written down."""
        self._store.set_value("model", name)
        self._store.set_value("embedder", spec if isinstance(spec, str) else "")


def embed_parts(embedder: Embedder, pieces: Sequence[Sequence[str]]) -> Floats:
    """The vectors of all parts of all texts. No embedder is given more than a batch at a time."""
    flat = list(chain.from_iterable(pieces))
    batches = (flat[start : start + BATCH_SIZE] for start in range(0, len(flat), BATCH_SIZE))
    return np.concatenate([embedder.embed(batch) for batch in batches])


def _load(spec: Any) -> tuple[Embedder | None, str]:
    embedder = load(spec)
    return embedder, NO_MODEL if embedder is None else embedder.name
