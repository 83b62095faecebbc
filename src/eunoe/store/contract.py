"""What a store must be able to do. It knows records, versions and transactions, and no rules.

What counts as a duplicate, what a word weighs or what forgetting reaches is decided above it, once, for every store.
`tests/store/conformance` tests all of it; `store/sql.py` does most of it for any SQL database.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from eunoe.errors import StoreError
from eunoe.model.arguments import Kind
from eunoe.model.atom import Record
from eunoe.model.result import BackupReport, CheckReport, Damage
from eunoe.model.scope import Scope
from eunoe.store.codec import T
from eunoe.store.schema import AccessCount, CallRecord, SessionState, StreamState, Tombstone, UsageRecord


class ItemQuery(NamedTuple):
    """Conditions that all have to hold; None and False are no condition, and an empty list finds nothing."""

    stream: int | None = None
    kinds: Sequence[Kind] | None = None
    labels: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    identities: Sequence[bytes] | None = None
    superseded_by: Sequence[str] | None = None
    """Those that one of these ids closed."""
    topics: Sequence[bytes] | None = None
    topic_start: bytes | None = None
    """Topics that begin so."""
    seqs: Sequence[int] | None = None
    after: int | None = None
    """Numbers above this one."""
    until: int | None = None
    """Numbers up to this one."""
    session: str | None = None
    """Messages of this session."""
    archived: bool = False
    """Retired, and nothing in its place."""
    open: bool = False
    """Not retired; with `known_at`, not retired by then."""
    known_at: datetime | None = None
    """Recorded by this moment."""
    since: datetime | None = None
    """Recorded from this moment on."""
    before: datetime | None = None
    """Recorded before this moment."""
    older_than: tuple[datetime, int] | None = None
    """Those that come after a record with this moment and number, from the latest on."""
    reviewed: bool = False
    """Not in review."""
    in_review: bool = False
    supported: bool = False
    """Atoms that name a source."""
    described: bool = False
    """Those with metadata."""
    metadata_parts: Sequence[Sequence[str]] = ()
    """Lists of texts. One of each list has to stand in the metadata, which is JSON without spaces."""
    pending: bool = False
    """Those whose vector is still to be made."""
    unabsorbed: bool = False
    """Those that no summary holds."""
    without_graph: bool = False
    """Those whose entities were not extracted."""
    streams: Sequence[int] | None = None
    """Those of any of these, where `stream` is one."""
    without_vector: int | None = None
    """Those that this model has not embedded."""
    order: Literal["seq", "newest", "latest", "position"] = "seq"
    """By number, by number from the last, by when they were recorded from the latest on, or by position from the
    last."""
    limit: int | None = None
    offset: int = 0
    """So many are passed over. The lists above must be short then: each fits one statement."""
    skip_damaged: bool = False
    """Leave out what is damaged, and note it, rather than raise DamagedStoreError."""


R = TypeVar("R")

CopyProgress = Callable[[int, int], None]
"""Told how many pages of a backup are copied, and how many there are."""


class IndexRow(NamedTuple):
    """The part of a record that a stream index is built from, with its vector, as the database holds it.

    Times are microseconds since 1970, lists are JSON. An index reads thousands of them at once, column by column.
    """

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
    in_review: int
    vector: bytes | None


RowMark = tuple[int, int, int, int, int]
"""The number of a record, the version of the stream that wrote it, and the checksums of its row, of its vector and of
its passage graph; -1 where it has none of these."""


class VectorModel(NamedTuple):
    """A model whose vectors the store keeps."""

    number: int
    dimensions: int


class Counts(NamedTuple):
    """How much a store holds, and what is due in it."""

    streams: int
    kinds: Mapping[str, int]
    retired: int
    pending: int
    tombstones: int
    vectors: Mapping[str, int]
    bytes: int
    due_messages: int
    """Messages that were not yet turned into memories."""
    jobs: int
    failing: int
    """Jobs, summaries and leases whose last attempt failed."""
    error: str
    """The last error of one that fails."""
    revisions: int
    in_review: int
    """Open atoms that wait to be looked at; `kinds` leaves them out."""


class Reading(ABC):
    """What a step reads, all of it from one snapshot.

    What is read is compared with its checksum: a damaged row raises DamagedStoreError where nothing else is said.
    """

    store: "Store"

    @abstractmethod
    def stream(self, scope: Scope) -> StreamState | None: ...

    @abstractmethod
    def streams(
        self,
        after: str = "",
        limit: int = 1000,
        ids: Sequence[int] | None = None,
        containing: Sequence[str] = (),
        tenant: str = "",
    ) -> list[StreamState]:
        """Return streams by the code points of their scopes' texts: those after a text, or those with these numbers.

        With `tenant` only its streams are looked at, and only these cost something. With `containing`, `limit` streams
        are looked at, and those returned whose text has all of these parts.
        """

    @abstractmethod
    def streams_within(self, scope: Scope) -> list[StreamState]:
        """Return the streams whose scopes have all keys and values of this one, and no other tenant; by their scopes'
        texts. Where it names a user, only what that user of this tenant has costs something."""

    @abstractmethod
    def last_recorded(self, streams: Sequence[int], until: datetime | None = None) -> list[tuple[int, datetime]]:
        """Return when the last atom of each of these streams was recorded, up to a moment, the latest first."""

    @abstractmethod
    def select(self, query: ItemQuery) -> list[Record]: ...

    @abstractmethod
    def count(self, query: ItemQuery) -> int:
        """Return how many records there are without the limit."""

    @abstractmethod
    def index_rows(self, stream: int, since: int, model: int | None) -> list[IndexRow]:
        """Return records changed after version `since`, in order, with their vectors of this model.

        What is damaged is left out: `noticed` names the records, and `lost_vectors` those whose vector it was.
        """

    @abstractmethod
    def row_marks(self, stream: int, model: int | None) -> list[RowMark]:
        """Return the marks of a stream's records in order, with the vectors of this model.

        Two records with the same mark are the same, and so is what is derived from them. `noticed` tells if the stream
        has counted others. Raise DamagedStoreError if that cannot be read.
        """

    @abstractmethod
    def removed(self, stream: int, since: int) -> list[int]:
        """Return the numbers of records deleted after version `since`."""

    @abstractmethod
    def tombstones(
        self,
        stream: int,
        identities: Sequence[bytes] | None = None,
        session_hash: bytes | None = None,
        limit: int | None = None,
    ) -> list[Tombstone]:
        """Return tombstones by identity: all, or those with these; or those of a session, last position first."""

    @abstractmethod
    def model(self, name: str) -> VectorModel | None: ...

    @abstractmethod
    def get_value(self, name: str) -> str | None:
        """Return a value that belongs to the whole store, such as the name of its model."""

    @abstractmethod
    def load(self, table: type[T], **key: Any) -> list[T]:
        """Return the records of a table with these values, in the order of their keys.

        Values are numbers, texts, bytes or truth values. A list means any of its values, an empty one none.
        """

    @abstractmethod
    def calls(self, limit: int, before: int | None = None) -> list[CallRecord]:
        """Return calls with numbers below one, the last first."""

    @abstractmethod
    def idle_sessions(self, before: datetime, messages: int, limit: int) -> list[SessionState]:
        """Return sessions without activity since a moment, longest idle first.

        They have at least so many messages after their cursor, or a job that nobody holds and that may be tried again
        by then.
        """

    @abstractmethod
    def counts(self, streams: Sequence[int] | None = None) -> Counts:
        """Count everything, or what belongs to these streams: then without the bytes that the store takes."""

    @abstractmethod
    def noticed(self, stream: int) -> tuple[Damage, ...]:
        """Return the damage that reading a stream has met so far; what was damaged was left out."""

    @abstractmethod
    def damage(self, stream: int, most: int | None = None) -> tuple[Damage, ...]:
        """Look for damage in all that belongs to a stream, once in this process, and return what was noticed.

        Of a stream with more than `most` rows these are only counted: that takes a hundredth of the time.
        """

    @abstractmethod
    def check(self, progress: Callable[[int], None] | None = None) -> CheckReport:
        """Read everything and return what is damaged. `progress` is called with the number of rows read."""

    def iterate(self, query: ItemQuery, page: int = 2000) -> Iterator[Record]:
        """Go through the records of a query in the order of their numbers, a page at a time."""
        after = query.after or 0
        while True:
            records = self.select(query._replace(after=after, limit=page))
            yield from records
            if len(records) < page:
                return
            after = records[-1].seq

    def iterate_streams(self, tenant: str = "") -> Iterator[StreamState]:
        """Go through all streams, or those of a tenant, by the code points of their scopes' texts."""
        after = ""
        while page := self.streams(after, tenant=tenant):
            yield from page
            after = page[-1].scope.text


class Writing(Reading):
    """What a step reads and writes: it is durable when the step has returned, and has never happened if it raises."""

    @abstractmethod
    def create_stream(self, scope: Scope) -> StreamState:
        """Return the stream of this scope, made if it is not there yet."""

    @abstractmethod
    def advance(self, stream: int, positions: int = 0) -> StreamState:
        """Raise the stream version by one and the log's next position by so many; return the stream as it is now."""

    @abstractmethod
    def insert(self, stream: StreamState, records: Sequence[Record]) -> list[Record]:
        """Insert records into a stream under its version and under numbers that were never used; return them so."""

    @abstractmethod
    def update(self, records: Sequence[Record]) -> None:
        """Write records anew under their numbers."""

    @abstractmethod
    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        """Remove records with their vectors, passage graphs and access counts; return the number of vectors.

        `removed` tells of it later.
        """

    @abstractmethod
    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None: ...

    @abstractmethod
    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None: ...

    @abstractmethod
    def create_model(self, name: str, dimensions: int) -> VectorModel:
        """Return the model of this name, made if it is not there yet."""

    @abstractmethod
    def drop_model(self, model: int) -> None:
        """Remove a model and its vectors."""

    @abstractmethod
    def adopt_model(self, model: int | None) -> None:
        """Mark anew which records lack a vector of this model (none do if there is no model); advance every stream."""

    @abstractmethod
    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None: ...

    @abstractmethod
    def copy_vectors(self, seq: int, to: int) -> None:
        """Give a record the vectors of another, those of every model."""

    @abstractmethod
    def delete_vectors(self, seqs: Sequence[int], model: int | None = None) -> int:
        """Remove the vectors of records, those of every model or of one; return how many there were."""

    @abstractmethod
    def set_value(self, name: str, value: str) -> None: ...

    @abstractmethod
    def save(self, records: Sequence[Any]) -> None:
        """Write records of one table; those with a known key are replaced."""

    @abstractmethod
    def drop(self, table: type[Any], **key: Any) -> None:
        """Remove the records that `load` would return."""

    @abstractmethod
    def add_access(self, counts: Sequence[AccessCount]) -> None:
        """Add to access counts, and keep the latest time. Records that are gone are left out."""

    @abstractmethod
    def add_usage(self, records: Sequence[UsageRecord]) -> None:
        """Add to what LLMs have taken before."""

    @abstractmethod
    def add_calls(self, records: Sequence[CallRecord], most: int) -> None:
        """Append calls of LLMs under numbers that rise, whichever they have; keep the last so many of all."""


class Store(ABC):
    """A store that is open. Threads may share it.

    A step is given what it reads and writes with, and keeps nothing of it. It may be run again where a database asks
    for that: it calls no model, starts no thread, and changes nothing but the store. It begins no other step, but for
    one that reads in one that reads: whoever is told how far it is may look at the store.
    """

    target: str
    """The name by which it was opened."""
    schema: int
    token: str
    """What tells it from other open stores, those of other processes on the same file too."""
    deleted: set[bytes]
    """What the records deleted since the last scrub held, where they are found by it; empty if that is not known."""
    lost_vectors: set[int]
    """Numbers of records whose vector was found damaged or missing, until somebody has them made anew. A record that
    another model has embedded is not among them: it is on its way from one model to another."""

    keeps_indexes: bool = False
    """Whether what is derived from it is worth keeping for the next process."""

    @abstractmethod
    def read(self, scopes: Sequence[Scope], step: Callable[[Reading], R]) -> R:
        """Run a step that reads the streams of these scopes; with none it may read the whole store."""

    @abstractmethod
    def write(self, scopes: Sequence[Scope], step: Callable[[Writing], R], *, timeout: float | None = None) -> R:
        """Run a step that writes to the streams of these scopes first; with none it may be any.

        A database that locks rows locks those of the scopes before the step, in one order for all. Raise StoreBusyError
        if another writer takes longer than so many seconds, by default the store's own timeout.
        """

    @abstractmethod
    def scrub(self, timeout: float | None = None) -> None:
        """Make sure that deleted bytes are gone from the disk too, logs and indexes included.

        Raise StoreBusyError or StoreFullError if that cannot be done within so many seconds or for want of room; it
        can be called again at any time.
        """

    @abstractmethod
    def find_traces(self, texts: Sequence[str | bytes]) -> dict[str | bytes, list[str]]:
        """Search every table and every file for these texts or bytes; return the places of each that was found."""

    def backup(self, target: Path, progress: CopyProgress | None = None) -> BackupReport:
        """Write a copy of the store as it stands to a file, in place of an earlier backup; writers go on meanwhile."""
        raise StoreError(f"{self.target} cannot be copied to a file: use the backup of its database, or an export")

    @abstractmethod
    def close(self) -> None: ...


def streams_of(store: Reading, scope: Scope) -> list[StreamState]:
    """The streams that a scope means, by their texts: its own, or everything within too."""
    if scope.within:
        return store.streams_within(scope)
    stream = store.stream(scope)
    return [stream] if stream else []
