"""The store's model: remembered, never mixed with another, changed only on purpose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

from eunoe.errors import EmbedderError, EunoeError, InputError, ModelMismatchError, StoreError
from eunoe.model.scope import Scope
from eunoe.records.rows import passage
from eunoe.records.vectors import Vectors, pack
from eunoe.store.contract import Row, Store
from eunoe.text.parts import parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eunoe.embed import Embedder

AUTO = "auto"
NONE = "none"
BATCH = 256
Progress = Callable[[int, int], None]

_FEW = 32
"""A write of more texts waits for its vectors: it is an import, and quicker so."""
_OWED = 500
"""So many texts may wait at a time, about a second's work for two cores if they are short; then a write waits for its
vectors again."""
_STEP = 32
_STEP_TEXT = 16_000
"""So many texts, of about so many characters, are made at a time behind the reply: a recall that comes in between waits
for no more than this."""
_LITTLE = 256
"""What closing makes up for. More is left to the next opening."""
_FAREWELL = 3.0
"""How many seconds closing gives to it."""
_TRIES = 3
"""How often those are tried that can be made neither here nor elsewhere, though nothing says why."""
_MOST = 2 * _OWED
"""What a recall makes up for. More comes from a failure that was mended or from another model, and is left to the
background."""
_SURE = 32_000
"""So many characters, a few hundred short turns, a recall makes up for in any case: what is found must not hang on how
busy a machine is."""
_PATIENCE = 1.0
"""How many seconds a recall gives to what it makes up for beyond that, and how many it waits for others: for those who
make vectors, and for another writer."""

_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 300.0
_LONGEST_ERROR = 300
_CLEARED = "the embedder failed; what it said was cleared by forget"


class Asked(NamedTuple):
    """The vector of a question. It says nothing about vectors of another model."""

    model: str
    vector: NDArray[np.float32]


class Embedding:
    """Makes the vectors of one store. A failing embedder costs nothing but its vectors, which are made up for later."""

    def __init__(self, store: Store, spec: Any = AUTO) -> None:
        self._store = store
        self._pause = 0.0
        self._next_try = 0.0
        self._missing = True
        self._owed = 0
        self._claimed = False
        self._changed = threading.Condition()
        self._making = False
        self._urgent = 0
        self._clearings = 0
        self._last: tuple[str, Asked] | None = None
        """The last question and its vector: the same one is often asked of several recipes."""
        self.error = ""
        with store.reading():
            self.name = store.get_meta("model") or ""
            remembered = store.get_meta("embedder")
            empty = not store.streams(limit=1)
        self.embedder = self._recalled(remembered) if spec == AUTO and self.name else self._given(spec, empty)

    @property
    def keeps_vectors(self) -> bool:
        return self.name != NONE

    @property
    def behind(self) -> bool:
        """Whether vectors of small writes are made behind the reply."""
        return getattr(self.embedder, "behind", False) is True

    def soon(self, texts: Sequence[str]) -> Vectors:
        """Vectors for texts about to be written; none yet if they are few and better made behind the reply."""
        self._follow()
        if not self.puts_off(len(texts)):
            return self.ahead(texts)
        self._owed += len(texts)
        return Vectors(self.name)

    def puts_off(self, texts: int) -> bool:
        """Whether a write of so many texts need not wait for their vectors."""
        return self.behind and texts <= _FEW and self._owed <= _OWED

    def wrote(self) -> None:
        """To be told after a write that may not have waited for its vectors."""
        if self.behind:
            self._missing = True

    def ahead(self, texts: Sequence[str]) -> Vectors:
        """Vectors for texts about to be written; none of them if the embedder fails."""
        self._follow()
        if not self.keeps_vectors:
            return Vectors()
        unique, embedder = list(dict.fromkeys(texts)), self.embedder
        if not unique or embedder is None or not self._may_try():
            return Vectors(self.name)
        pieces = [parts(text) for text in unique]
        matrix = self._tried(partial(_embedded, embedder), pieces)
        if matrix is None:
            return Vectors(self.name)
        packed = pack(matrix, map(len, pieces))
        # By the embedder's own name: another thread may have changed the store's model in the meantime.
        return Vectors(embedder.name, matrix.shape[1], dict(zip(unique, packed, strict=True)))

    def given(self, vectors: Mapping[str, Any]) -> Vectors:
        """Vectors that the caller made with the store's model."""
        from eunoe.embed.contract import unit

        if not self.keeps_vectors:
            raise InputError("this store keeps no vectors: open it with an embedder, or leave `vector` out")
        matrix = unit(list(vectors.values()), "the caller")
        due = self._length() or self._length_of_embedder()
        if due and due != matrix.shape[1]:
            raise InputError(f"the vector has {matrix.shape[1]} dimensions; {self.name} has {due}")
        return Vectors(self.name, matrix.shape[1], dict(zip(vectors, pack(matrix, [1] * len(matrix)), strict=True)))

    def query(self, text: str) -> Asked | None:
        """The vector of a question, or None if there is none to be had: recall goes on without. A row of zeros is what
        an embedder gives for what it cannot read."""
        self._follow()
        embedder = self.embedder
        if embedder is None or not self.keeps_vectors or not self._may_try():
            return None
        last = self._last
        if last and last[0] == text and last[1].model == embedder.name:
            return last[1]
        vector = self._tried(embedder.embed_query, text)
        asked = Asked(embedder.name, vector) if vector is not None and vector.any() else None
        self._last = (text, asked) if asked else None
        return asked

    def complete(self, scopes: Sequence[Scope]) -> None:
        """Makes what these scopes still wait for, where that was put off: what was just said is found by its meaning
        too, however quick the background was. Where the embedder fails or the store cannot be written, it is found by
        its words. The newest come first; what takes too long is left to the background."""
        if not self.behind or not self._may_try() or not self._waiting(1, scopes):
            return
        until = time.monotonic() + _PATIENCE
        with self._turn(_PATIENCE), suppress(StoreError):
            rows = self._waiting(_MOST + 1, scopes)
            if len(rows) <= _MOST:
                self._make_until(until, rows)

    def fill(self, step: int = BATCH, patience: float | None = None) -> int:
        """Makes up for missing vectors, at most so many; gives how many were made."""
        with self._turn():
            self._missing = False  # before looking: what is written from here on says so itself
            rows = self._waiting(min(step, _STEP) if self.behind else step)
            if rows:
                self._missing = True
            else:
                self._owed = 0
            return self._make(_few(rows) if self.behind else rows, patience)

    def step(self) -> None:
        """A batch of missing vectors made behind the reply. A store that others write to is left to them."""
        self.fill(_STEP if self.behind else BATCH, _PATIENCE)

    def finish(self, until: float | None = None) -> bool:
        """Makes all missing vectors that can be made now; False if a moment of the monotonic clock came first."""
        batches = self._batches(_STEP)
        while until is None or time.monotonic() < until:
            if next(batches, None) is None:
                return True
        return self._oldest() is None

    def finish_little(self) -> None:
        """Makes those that were put off, if they are few: for the end of a process."""
        if self.behind and len(self._waiting(_LITTLE + 1)) <= _LITTLE:
            self.finish(time.monotonic() + _FAREWELL)

    def due(self) -> bool:
        """Whether vectors may be missing and it is time to try again."""
        return self._missing and self.embedder is not None and self._may_try()

    def claim(self) -> bool:
        """Whether there is something to fill and nobody at it yet; who is told so fills, and then lets go."""
        with self._changed:
            if self._claimed or not self.due():
                return False
            self._claimed = True
            return True

    def let_go(self) -> None:
        self._claimed = False

    @contextmanager
    def _turn(self, patience: float | None = None) -> Iterator[None]:
        """One at a time, so that nothing is made twice. Who has little patience, as a recall, goes first, and then
        without a turn: better twice than late."""
        urgent = patience is not None
        with self._changed:
            self._urgent += urgent
            try:
                alone = self._changed.wait_for(lambda: not self._making and (urgent or not self._urgent), patience)
            finally:
                self._urgent -= urgent
            self._making = True
        try:
            yield
        finally:
            if alone:
                with self._changed:
                    self._making = False
                    self._changed.notify_all()

    def _waiting(self, limit: int, scopes: Sequence[Scope] | None = None) -> list[Row]:
        store = self._store
        with store.reading():
            if scopes is None:
                return store.waiting(limit)
            streams = [stream.id for scope in scopes if (stream := store.stream(str(scope)))]
            return store.waiting(limit, streams) if streams else []

    def _make(self, rows: Sequence[Row], patience: float | None = None) -> int:
        vectors = self.ahead([passage(row) for row in rows]) if rows else Vectors()
        return self._put(rows, vectors, patience) if vectors.data else 0

    def _batches(self, size: int) -> Iterator[int]:
        """Makes missing vectors batch by batch, to the last that can be made now; gives how many each time. That may be
        none: another process was quicker, or the model changed. It goes on all the same."""
        before, tried = 0, 0
        while (oldest := self._oldest()) is not None:
            tried = tried + 1 if oldest == before else 0
            if tried == _TRIES:
                return
            before = oldest
            yield self.fill(size)

    def _oldest(self) -> int | None:
        """The number of the first row whose vector is missing and could be made now."""
        rows = self._waiting(1) if self.embedder is not None and self._may_try() else ()
        return rows[0].seq if rows else None

    def _make_until(self, until: float, rows: Sequence[Row]) -> None:
        """Step by step, until a moment of the monotonic clock, but so many as are sure in any case."""
        made = 0
        while rows and self._may_try() and (made < _SURE or time.monotonic() < until):
            part = _few(rows)
            self._make(part, _PATIENCE)
            rows = rows[len(part) :]
            made += sum(len(passage(row)) for row in part)

    def make_up(self, progress: Progress | None = None) -> int:
        """Makes all missing vectors now; an embedder that fails is heard."""
        if self.embedder is None:
            raise EmbedderError(self.error or "this store keeps no vectors: name a model to make them with")
        self._next_try = 0.0
        with self._store.reading():
            total = self._store.counts().pending
        self._missing, made = True, 0
        for part in self._batches(BATCH):
            made += part
            if progress:
                progress(made, total)
        if self.error:
            raise EmbedderError(f"{self.error}; {made} of {total} vectors were made, the rest still wait")
        return made

    def change(self, spec: Any, progress: Progress | None = None) -> int:
        """Embeds everything with another model and then makes it the store's own. Can be stopped and taken up again:
        vectors already made are found and kept, and recall uses the old ones until the last is there."""
        embedder, name = self._load(spec)
        made = self._embed_all(embedder, name, progress) if embedder else 0
        self._switch(embedder, name, spec)
        return made

    def _embed_all(self, embedder: Embedder, name: str, progress: Progress | None) -> int:
        made, after = 0, 0
        with self._store.reading():
            counts = self._store.counts()
            known = self._store.find_model(name)
        total, done = sum(counts.kinds.values()) + counts.retired, counts.vectors.get(name, 0)
        while True:
            with self._store.reading():
                model = known[0] if known else -1
                rows = self._store.without_vector(model, after, BATCH)
            if not rows:
                return made
            pieces = [parts(passage(row)) for row in rows]
            matrix = _embedded(embedder, pieces)
            if known and known[1] != matrix.shape[1]:
                raise EmbedderError(
                    f"{name} gives vectors of {matrix.shape[1]} dimensions, but the store has some of {known[1]} under "
                    "that name: give the embedder another name"
                )
            data = dict(zip([row.seq for row in rows], pack(matrix, map(len, pieces)), strict=True))
            with self._store.writing():
                number = self._store.model(name, matrix.shape[1])
                known = (number, matrix.shape[1])
                left = {row.seq for row in self._store.by_seq(list(data))}
                self._store.put_vectors(number, [(seq, packed) for seq, packed in data.items() if seq in left])
            made, after = made + len(rows), rows[-1].seq
            if progress:
                progress(min(done + made, total), total)

    def _switch(self, embedder: Embedder | None, name: str, spec: Any) -> None:
        """What came in while the vectors were made is marked, so that nothing is left without one in silence."""
        with self._store.writing():
            # Asked of the store: another process may have changed the model since this one looked.
            old = self._store.get_meta("model") or NONE
            dropped = self._store.find_model(old) if old != name else None
            if dropped:
                self._store.drop_model(dropped[0])
            self._remember(name, spec)
            new = self._store.find_model(name)
            self._store.adopt(new[0] if new else None)
        self.embedder, self.name, self._missing = embedder, name, True

    def _put(self, rows: Sequence[Row], vectors: Vectors, patience: float | None) -> int:
        """Rows may have gone or been embedded by another process since they were read, or the model changed."""
        with self._store.writing(patience):
            if self._store.get_meta("model") != vectors.model:
                return 0
            there = self._store.by_seq([row.seq for row in rows])
            made = {row.seq: vector for row in there if row.pending and (vector := vectors.of(row))}
            still = [row for row in there if row.seq in made]
            versions = {stream: self._store.advance(stream).version for stream in {row.stream for row in still}}
            model = self._store.model(vectors.model, vectors.dimensions)
            self._store.put_vectors(model, list(made.items()))
            self._store.replace([row._replace(pending=0, version=versions[row.stream]) for row in still])
        self._owed = max(0, self._owed - len(still))
        return len(still)

    def _tried(self, make: Callable[[Any], NDArray[np.float32]], asked: Any) -> NDArray[np.float32] | None:
        """What an embedder makes, or None: it is a guest, and whatever it does, words are kept and found."""
        before = self._clearings
        try:
            made = make(asked)
            self._check(made.shape[-1])
        except EunoeError as error:
            self._failed(error, before)
        except Exception as error:
            self._failed(EmbedderError(f"{self.name} failed: {type(error).__name__}: {error}"), before)
        else:
            self._worked()
            return made
        return None

    def _check(self, length: int) -> None:
        due = self._length()
        if due and due != length:
            raise EmbedderError(
                f"{self.name} gives vectors of {length} dimensions now, the store's have {due}: "
                "give the embedder another name and change the store's model with re_embed"
            )

    def _length(self) -> int | None:
        """Dimensions of the vectors in the store, if there are any."""
        with self._store.reading():
            model = self._store.find_model(self.name)
        return model[1] if model else None

    def _length_of_embedder(self) -> int | None:
        made = None if self.embedder is None else self._tried(self.embedder.embed_query, ".")
        return None if made is None else len(made)

    def _follow(self) -> None:
        """Another process may have changed the store's model since it was opened."""
        with self._store.reading():
            name = self._store.get_meta("model") or NONE
            spec = self._store.get_meta("embedder")
        if name != self.name:
            self.name, self.error = name, ""
            self.embedder = self._recalled(spec)

    def _recalled(self, spec: str | None) -> Embedder | None:
        """The embedder the store was made with, if it can be had here."""
        if self.name == NONE:
            return None
        if not spec:
            self.error = f"the store's vectors come from {self.name}: open it with that embedder to use or make them"
            return None
        try:
            embedder, name = self._load(spec)
        except EmbedderError as error:
            self.error = str(error)
            return None
        if name != self.name:
            self.error = f"the vectors come from {self.name}, and {spec!r} is {name} here: change them with re_embed"
            return None
        return embedder

    def _given(self, spec: Any, empty: bool) -> Embedder | None:
        if spec == AUTO:
            from eunoe.embed import DEFAULT

            spec = DEFAULT
        embedder, name = self._load(spec)
        if not self.name or empty:
            with self._store.writing():
                self._remember(name, spec)
            self.name = name
        elif name not in (self.name, NONE):
            raise ModelMismatchError(
                f"the store's vectors come from {self.name}, not {name}: open it without naming an embedder, "
                f"or change its model with re_embed"
            )
        return embedder

    def _load(self, spec: Any) -> tuple[Embedder | None, str]:
        from eunoe.embed import load

        embedder = load(spec)
        return embedder, NONE if embedder is None else embedder.name

    def _remember(self, name: str, spec: Any) -> None:
        """The model, and how to load it again where that can be written down."""
        self._store.set_meta("model", name)
        self._store.set_meta("embedder", spec if isinstance(spec, str) else "")

    def _may_try(self) -> bool:
        return time.monotonic() >= self._next_try

    def clear_error(self) -> None:
        """Drops what a failing embedder said, and the last question: both may repeat words that are now forgotten."""
        self._clearings += 1
        self._last = None
        if self._pause and self.error:
            self.error = _CLEARED

    def _failed(self, error: Exception, before: int) -> None:
        """`before` is how often errors had been cleared when the embedder was asked."""
        self._missing = True
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        self._next_try = time.monotonic() + self._pause
        self.error = _one_line(str(error)) if before == self._clearings else _CLEARED

    def _worked(self) -> None:
        self._pause = self._next_try = 0.0
        self.error = ""


def _embedded(embedder: Embedder, pieces: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """The vectors of all parts of all texts. No embedder is given more than a batch at a time."""
    import numpy as np

    flat = list(chain.from_iterable(pieces))
    return np.concatenate([embedder.embed(flat[start : start + BATCH]) for start in range(0, len(flat), BATCH)])


def _few(rows: Sequence[Row]) -> Sequence[Row]:
    """The first of them, as many as are made at a time."""
    sizes = accumulate(len(passage(row)) for row in rows[:_STEP])
    return rows[: max(1, sum(size <= _STEP_TEXT for size in sizes))]


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_ERROR else f"{line[: _LONGEST_ERROR - 1]}…"
