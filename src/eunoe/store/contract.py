"""What a place to rest must be able to do. A backend is one class that does this and nothing more.

A store knows rows, versions and transactions; it knows no rules. What counts as a duplicate, what a word weighs or
what forgetting reaches is decided above it, once, for every backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from eunoe.store.books import Books


class StreamRow(NamedTuple):
    """One scope's memory: its number, its version and the next free place in its log."""

    id: int
    scope: str
    version: int
    position: int


class Row(NamedTuple):
    """One message or atom at rest. Times are microseconds since 1970; lists and objects are JSON, empty if none."""

    seq: int
    stream: int
    version: int
    pending: int
    """1 while its vector for the store's model is still to be made."""
    kind: str
    id: str
    key: bytes
    """What makes it the same as another one; unique among the stream's rows that are not retired."""
    text: str
    caption: str
    time: int | None
    session: str
    speaker: str
    role: str
    label: str
    people: str
    files: str
    valid_from: int | None
    valid_to: int | None
    recorded: int
    retired: int | None
    pinned: int
    position: int | None
    """A message's place in its log."""
    supersedes: str
    superseded_by: str
    source: str
    pages: str
    metadata: str


class EntryRow(NamedTuple):
    """The part of a row that a stream index is built from, with its vector."""

    seq: int
    id: str
    kind: str
    text: str
    caption: str
    time: int | None
    session: str
    speaker: str
    role: str
    label: str
    people: str
    files: str
    valid_from: int | None
    valid_to: int | None
    recorded: int
    retired: int | None
    pinned: int
    vector: bytes | None


class Bearer(NamedTuple):
    """The part of an atom that says what it is about."""

    seq: int
    kind: str
    people: str
    metadata: str


@dataclass(slots=True)
class Marks:
    """What the rules have read out of a stream's rows, up to a version. It holds numbers only, no words and no ids."""

    version: int = 0
    rows: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Fingerprints of names by row number, by a fingerprint of what the row is about."""


class Tombstone(NamedTuple):
    """A fingerprint of what was forgotten, so that it does not come back. It holds no words."""

    key: bytes
    content: bytes
    lane: bytes
    """Fingerprint of the session, for messages."""
    position: int | None


class Counts(NamedTuple):
    streams: int
    kinds: Mapping[str, int]
    retired: int
    pending: int
    tombstones: int
    vectors: Mapping[str, int]
    bytes: int


class Store(ABC):
    """The contract. Every method but `reading`, `writing`, `scrub`, `traces` and `close` runs inside one of the two.

    `reading` gives one consistent snapshot. `writing` gives one atomic step: it is durable when the block ends and
    has never happened if the block raises. Writers wait for each other, across threads and processes. `reading` inside
    another block of the same thread is part of that block; `writing` inside one is refused.
    """

    target: str
    schema: int
    books: Books
    """Settings, work, summaries, use and cost: part of the same steps."""
    marks: dict[int, Marks]
    """By stream; changed in writing steps only. A step that raises leaves none: what was read in that step has never
    happened."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]: ...

    @abstractmethod
    def writing(self, patience: float | None = None) -> AbstractContextManager[None]:
        """Raises StoreBusyError if another writer takes longer than so many seconds (the store's own patience if none
        are given)."""

    @abstractmethod
    def stream(self, scope: str) -> StreamRow | None: ...

    @abstractmethod
    def make_stream(self, scope: str) -> StreamRow:
        """The stream of this scope, made if it is not there yet."""

    @abstractmethod
    def streams(self, after: str = "", limit: int = 1000) -> list[StreamRow]:
        """Streams in the order of their scopes."""

    @abstractmethod
    def advance(self, stream: int, messages: int = 0) -> StreamRow:
        """Moves the version on by one and the log by as many places; gives the stream as it is now."""

    @abstractmethod
    def reserve(self, count: int) -> int:
        """The first of `count` row numbers that were never used and never will be again."""

    @abstractmethod
    def insert(self, rows: Sequence[Row]) -> None: ...

    @abstractmethod
    def replace(self, rows: Sequence[Row]) -> None:
        """Writes rows anew under their row numbers."""

    @abstractmethod
    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        """Removes rows, their vectors, readings and use; later `removed` tells of it. Gives the number of vectors."""

    @abstractmethod
    def by_id(self, stream: int, ids: Sequence[str]) -> list[Row]: ...

    @abstractmethod
    def by_key(self, stream: int, keys: Sequence[bytes]) -> list[Row]:
        """Rows that are not retired."""

    @abstractmethod
    def by_seq(self, seqs: Sequence[int]) -> list[Row]: ...

    @abstractmethod
    def page(self, stream: int, after: int, limit: int, kinds: Sequence[str], retired: bool) -> list[Row]:
        """Rows with numbers above `after`, in order; of these kinds; with or without the retired."""

    @abstractmethod
    def tail(self, stream: int, session: str, limit: int) -> list[Row]:
        """The last messages of a session, latest first."""

    @abstractmethod
    def citing(self, stream: int) -> list[Row]:
        """Rows that name a source."""

    @abstractmethod
    def entries(self, stream: int, since: int, model: int | None) -> list[EntryRow]:
        """Rows changed after version `since`, in order, with their vectors of this model."""

    @abstractmethod
    def bearing(self, stream: int, kinds: Sequence[str], text: str, since: int) -> list[Bearer]:
        """Living atoms of these kinds with this text in their metadata, of those changed after version `since`."""

    @abstractmethod
    def removed(self, stream: int, since: int) -> list[int]:
        """Numbers of rows deleted after version `since`."""

    @abstractmethod
    def bury(self, stream: int, tombstones: Sequence[Tombstone]) -> None: ...

    @abstractmethod
    def buried(self, stream: int, keys: Sequence[bytes]) -> list[Tombstone]:
        """Tombstones with these keys."""

    @abstractmethod
    def has_buried(self, stream: int) -> bool:
        """Whether anything was forgotten here."""

    @abstractmethod
    def buried_tail(self, stream: int, lane: bytes, limit: int) -> list[Tombstone]:
        """The last forgotten messages of a session, latest first."""

    @abstractmethod
    def tombstones(self, stream: int) -> Iterator[Tombstone]: ...

    @abstractmethod
    def unbury(self, stream: int, keys: Sequence[bytes]) -> None: ...

    @abstractmethod
    def model(self, name: str, dimensions: int) -> int:
        """The number of this model, made if it is not there yet."""

    @abstractmethod
    def find_model(self, name: str) -> tuple[int, int] | None:
        """Number and dimensions."""

    @abstractmethod
    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None: ...

    @abstractmethod
    def drop_model(self, model: int) -> None:
        """Removes a model and its vectors."""

    @abstractmethod
    def adopt(self, model: int | None) -> None:
        """Marks anew which rows lack a vector of this model (none do if there is no model); moves every stream on."""

    @abstractmethod
    def waiting(self, limit: int, streams: Sequence[int] | None = None) -> list[Row]:
        """Rows whose vector is still to be made: of all streams, oldest first, or of these, newest first.

        What other streams wait for must not make these slower.
        """

    @abstractmethod
    def without_vector(self, model: int, after: int, limit: int) -> list[Row]:
        """Rows with numbers above `after` that this model has not embedded."""

    @abstractmethod
    def get_meta(self, name: str) -> str | None: ...

    @abstractmethod
    def set_meta(self, name: str, value: str) -> None: ...

    @abstractmethod
    def counts(self) -> Counts: ...

    @abstractmethod
    def scrub(self, patience: float | None = None) -> None:
        """Makes sure that deleted bytes are gone from the disk too, logs included.

        Raises StoreBusyError or StoreFullError if that cannot be done within so many seconds (the store's own
        patience if none are given) or for want of room; it can be called again at any time.
        """

    @abstractmethod
    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Searches every table and every file for these texts; names the places of each that was found."""

    @abstractmethod
    def close(self) -> None: ...
