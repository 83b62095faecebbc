"""The embedder of one store: its model is remembered, never mixed with another, and changed only on purpose."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from eunoe.embed import DEFAULT_EMBEDDER, absolute_spec, is_folder_spec, load_embedder
from eunoe.embed.contract import Embedder, Vectors, known_languages, to_unit_vectors
from eunoe.errors import EmbedderError, EunoeError, InputError, ModelMismatchError
from eunoe.model.atom import Record
from eunoe.records.insertion import NO_MODEL, VectorBatch, VectorKey, pack_vectors
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.text.normalize import one_line
from eunoe.text.sentences import split_into_parts

AUTO: Final = "auto"
BATCH_SIZE: Final = 256
"""Texts that an embedder is given at a time."""

_WITHOUT_VECTORS: Final = -1
"""Stands for the number of a model that has no vectors yet."""
_FIRST_PAUSE_SECONDS: Final = 1.0
_MAX_PAUSE_SECONDS: Final = 300.0
"""After a failure the next attempt waits, each time twice as long."""
_MAX_ERROR_CHARACTERS: Final = 300
_CLEARED: Final = "the embedder failed; what it said was cleared by forget"

Progress = Callable[[int, int], None]
"""Called with how many are done, and of how many."""
Made = TypeVar("Made", VectorBatch, Vectors)


class QuestionVector(NamedTuple):
    """The vector of a question. It says nothing about vectors of another model."""

    model: str
    vector: Vectors


class StoreEmbedder:
    """Makes the vectors of one store. A failing embedder costs nothing but its vectors, which are made later."""

    def __init__(self, store: Store, spec: Any = AUTO) -> None:
        self._store = store
        self._changing = Lock()
        self._clearings = 0
        self._is_off = spec is None or spec == NO_MODEL
        """Whether it was opened without an embedder: then it stays without, whatever model the store has."""
        self._last_question: tuple[str, QuestionVector] | None = None
        """The same question is often asked of several recipes."""
        name, remembered = store.read((), lambda store: (store.get_value("model") or "", store.get_value("embedder")))
        is_empty = store.read((), _is_empty)
        if spec == AUTO and name:
            self._reopen(name, remembered)
        else:
            self._open_with(DEFAULT_EMBEDDER if spec == AUTO else spec, name, is_empty)

    def _use(self, name: str, embedder: Embedder | None, error: str = "") -> None:
        self.embedder = embedder
        self.is_slow = getattr(embedder, "is_slow", False) is True
        """Whether vectors of small writes are better made after the reply."""
        self.languages: tuple[str, ...] = known_languages(embedder)
        """Names of those that the embedder reads well; empty where nobody knows."""
        self.name = name
        self.error = error
        """Why no vectors can be made at the moment, if so."""
        self._pause = self._next_try = 0.0

    def _reopen(self, name: str, spec: str | None) -> None:
        self._use(name, *((None, "") if self._is_off else _reload(name, spec)))

    def _open_with(self, spec: Any, stored: str, is_empty: bool) -> None:
        """Take the embedder that the caller names; a store that holds something keeps to its own model."""
        embedder, name = _load(spec)
        if not stored or is_empty:

            def remember(store: Writing) -> str:
                # Asked again: another process may have written to it first.
                known = store.get_value("model") or ""
                if known and not _is_empty(store):
                    return known
                _remember(store, name, spec)
                return name

            stored = self._store.write((), remember)
        if name not in (stored, NO_MODEL):
            raise ModelMismatchError(
                f"the store's vectors come from {stored}, not {name}: open it without naming an embedder, "
                "or change its model with reembed"
            )
        if name == stored and is_folder_spec(spec):
            self._follow_folder(name, absolute_spec(spec))
        self._use(stored, embedder)

    def _follow_folder(self, name: str, spec: str) -> None:
        """Remember where the model lies now: its folder may have been moved."""

        def follow(store: Writing) -> None:
            if store.get_value("model") == name:
                _remember(store, name, spec)

        if self._store.read((), lambda store: store.get_value("embedder")) != spec:
            self._store.write((), follow)

    @property
    def can_try(self) -> bool:
        """Whether the pause after the last failure is over."""
        return time.monotonic() >= self._next_try

    def embed_now(self, texts: Sequence[str]) -> VectorBatch:
        """Make vectors for texts about to be written; none of them if the embedder fails."""
        self.follow_store()
        name, embedder = self.name, self.embedder
        if name == NO_MODEL:
            return VectorBatch()
        if not texts or embedder is None or not self.can_try:
            return VectorBatch(name)
        # By the embedder's own name: another thread may have changed the store's model in the meantime.
        return self._attempt(embedder, lambda: _embed_texts(embedder, texts)) or VectorBatch(name)

    def take_vectors(self, vectors: Mapping[VectorKey, Any]) -> VectorBatch:
        """Check vectors that the caller made with the store's model: for each key one, or the rows of a matrix."""
        if self.name == NO_MODEL:
            raise InputError("this store keeps no vectors: open it with an embedder, or leave `vector` out")
        rows = list(map(_rows, vectors.values()))
        matrix = to_unit_vectors(list(chain.from_iterable(rows)), "the caller")
        due, embedder = self._stored_dimensions(self.name), self.embedder
        if not due and embedder:
            example = self._attempt(embedder, lambda: embedder.embed_query("."))
            due = 0 if example is None else len(example)
        if due and due != matrix.shape[1]:
            raise InputError(f"the vector has {matrix.shape[1]} dimensions; {self.name} has {due}")
        packed = pack_vectors(matrix, map(len, rows))
        return VectorBatch(self.name, matrix.shape[1], dict(zip(vectors, packed, strict=True)))

    def embed_question(self, text: str) -> QuestionVector | None:
        """Make the vector of a question; None if there is none to be had, and recall goes on without."""
        self.follow_store()
        embedder = self.embedder
        if embedder is None or not self.can_try:
            return None
        last = self._last_question
        if last and last[0] == text and last[1].model == embedder.name:
            return last[1]
        vector = self._attempt(embedder, lambda: embedder.embed_query(text))
        if vector is None or not vector.any():  # zeros are what an embedder gives for what it cannot read
            return None
        question = QuestionVector(embedder.name, vector)
        self._last_question = (text, question)
        return question

    def change_model(self, spec: Any, progress: Progress | None = None) -> int:
        """Embed everything with another model, then make it the store's own; return how many were embedded.

        It can be stopped and taken up again. Recall uses the old vectors until the last new one is there.
        """
        embedder, name = _load(spec)
        made = self._embed_all(embedder, progress) if embedder else 0

        def change(store: Writing) -> None:
            # Asked of the store: another process may have changed the model since this one looked.
            old = store.get_value("model") or NO_MODEL
            if old != name and (dropped := store.model(old)):
                store.drop_model(dropped.number)
            _remember(store, name, spec)
            new = store.model(name)
            # What came in meanwhile is marked, so that nothing is left without a vector.
            without = _WITHOUT_VECTORS if embedder else None
            store.adopt_model(new.number if new else without)

        with self._changing:
            self._store.write((), change)
            self._is_off = False
            self._use(name, embedder)
        return made

    def _embed_all(self, embedder: Embedder, progress: Progress | None) -> int:
        store, made, after = self._store, 0, 0
        counts, model = store.read((), lambda store: (store.counts(), store.model(embedder.name)))
        number = model.number if model else _WITHOUT_VECTORS
        total, done = sum(counts.kinds.values()) + counts.retired, counts.vectors.get(embedder.name, 0)
        while True:
            records = store.read((), partial(_next_records, after, number))
            if not records:
                return made
            number = self._embed_records(embedder, records)
            made, after = made + len(records), records[-1].seq
            if progress:
                progress(min(done + made, total), total)

    def _embed_records(self, embedder: Embedder, records: Sequence[Record]) -> int:
        """Store the vectors of those that are still there in the same words; return the number of the model."""
        batch = _embed_texts(embedder, [record.content for record in records])

        def put(store: Writing) -> int:
            model = store.create_model(embedder.name, batch.dimensions)
            if model.dimensions != batch.dimensions:
                raise EmbedderError(
                    f"{embedder.name} gives vectors of {batch.dimensions} dimensions, but the store has some of "
                    f"{model.dimensions} under that name: give the embedder another name"
                )
            left = store.select(ItemQuery(seqs=[record.seq for record in records]))
            same = [record for record in left if record.content in batch.data]
            store.put_vectors(model.number, [(record.seq, batch.data[record.content]) for record in same])
            return model.number

        return self._store.write((), put)

    def clear_error(self) -> None:
        """Drop what a failing embedder said, the last question, and what the embedder keeps of recent texts: all may
        repeat words that are now forgotten."""
        self._clearings += 1
        self._last_question = None
        if clear_recent := getattr(self.embedder, "clear_recent", None):
            clear_recent()
        if self._pause and self.error:
            self.error = _CLEARED

    def retry_now(self) -> None:
        """End the pause after a failure."""
        self._next_try = 0.0

    def follow_store(self) -> None:
        """Take over the store's model: another process may have changed it since it was opened."""
        name = self._store.read((), lambda store: store.get_value("model")) or NO_MODEL
        if name == self.name:
            return
        with self._changing:
            known, spec = self._store.read((), lambda store: (store.get_value("model"), store.get_value("embedder")))
            name = known or NO_MODEL
            # Unless another thread of this process has done so: it has the embedder too.
            if name != self.name:
                self._reopen(name, spec)

    def _attempt(self, embedder: Embedder, make: Callable[[], Made]) -> Made | None:
        """Return what an embedder makes, or None: whatever it does, words are kept and found."""
        clearings = self._clearings
        try:
            made = make()
            dimensions = made.dimensions if isinstance(made, VectorBatch) else len(made)
            due = self._stored_dimensions(embedder.name)
            if due and due != dimensions:
                raise EmbedderError(
                    f"{embedder.name} gives vectors of {dimensions} dimensions now, the store's have {due}: "
                    "give the embedder another name and change the store's model with reembed"
                )
        except Exception as error:
            reason = "" if isinstance(error, EunoeError) else f"{embedder.name} failed: {type(error).__name__}: "
            self._pause = min(max(self._pause * 2, _FIRST_PAUSE_SECONDS), _MAX_PAUSE_SECONDS)
            self._next_try = time.monotonic() + self._pause
            is_current = clearings == self._clearings
            self.error = one_line(f"{reason}{error}", _MAX_ERROR_CHARACTERS) if is_current else _CLEARED
            return None
        self._pause = self._next_try = 0.0
        self.error = ""
        return made

    def _stored_dimensions(self, name: str) -> int:
        model = self._store.read((), lambda store: store.model(name))
        return model.dimensions if model else 0


def _next_records(after: int, model: int, store: Reading) -> list[Record]:
    return store.select(ItemQuery(after=after, without_vector=model, limit=BATCH_SIZE))


def _is_empty(store: Reading) -> bool:
    return not store.streams(limit=1)


def _remember(store: Writing, name: str, spec: Any) -> None:
    """Note the model, and how to load it again where that can be written down."""
    store.set_value("model", name)
    store.set_value("embedder", absolute_spec(spec) if isinstance(spec, str) else "")


def _rows(vector: Any) -> Sequence[Any]:
    """The rows of a matrix, or one vector as the only row; whether they are vectors is not yet known."""
    try:
        matrix = np.asarray(vector)
    except (TypeError, ValueError, OverflowError):
        return [vector]
    if matrix.shape[:1] == (0,):
        raise InputError("vector is empty: give at least one vector, or leave it out")
    return list(matrix) if matrix.ndim == 2 else [vector]


def _load(spec: Any) -> tuple[Embedder | None, str]:
    embedder = load_embedder(spec)
    return embedder, NO_MODEL if embedder is None else embedder.name


def _reload(stored: str, spec: str | None) -> tuple[Embedder | None, str]:
    """The embedder that a store was made with; None, and why, if it cannot be had here."""
    if stored == NO_MODEL:
        return None, ""
    if not spec:
        return None, f"the store's vectors come from {stored}: open it with that embedder to use or make them"
    try:
        embedder, name = _load(spec)
    except EmbedderError as error:
        return None, str(error)
    if name != stored:
        return None, f"the vectors come from {stored}, and {spec!r} is {name} here: change them with reembed"
    return embedder, ""


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> VectorBatch:
    """The vectors of texts, of long ones in parts. No embedder is given more than a batch at a time."""
    pieces = {text: split_into_parts(text) for text in texts}
    flat = list(chain.from_iterable(pieces.values()))
    batches = (flat[start : start + BATCH_SIZE] for start in range(0, len(flat), BATCH_SIZE))
    matrix = np.concatenate([embedder.embed(batch) for batch in batches])
    packed = pack_vectors(matrix, map(len, pieces.values()))
    return VectorBatch(embedder.name, matrix.shape[1], dict(zip(pieces, packed, strict=True)))
