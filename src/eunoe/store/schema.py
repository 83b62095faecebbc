"""The schema: every table with its key and its indexes, and the SQL that makes it.

A record's fields are its table's columns; `store/codec.py` turns their types into what a database holds.

A **place** is where all that belongs to one owner lies together: one of 65,536, as a hash of the tenant and the owner
says. It stands first in every key, so that a database on several machines can spread its rows by it. The number of a
stream begins with its place, that of a record with its stream: so every number tells where it lies, and none is taken
from a row that streams share.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple, get_args

from eunoe.model.atom import NO_METADATA, Record
from eunoe.model.scope import Scope
from eunoe.store.codec import Index, Table, TimeOrNever

APPLICATION_ID: Final = 0x45554E32
"""Marks the file of a store."""
SCHEMA: Final = 1
"""The number of this schema, which a file holds as its `user_version`."""
CURSOR_KEY: Final = "cursor_key"
"""The value of the store with the secret of its cursors, random and the same for all its processes."""
PLACE_BITS: Final = 16
STREAM_BITS: Final = 20
"""A million streams of one place."""
SEQ_BITS: Final = 27
"""A hundred million records of one stream. All three together are the bits of a positive number."""
_CONVERSATION_KEYS: Final = ("session", "thread")


@lru_cache(maxsize=4096)
def place_of(scope: Scope) -> int:
    """The place of a scope's stream: of its user, or else of whatever its conversations belong to."""
    pairs = scope.pairs
    owner = (
        {"user": pairs["user"]}
        if "user" in pairs
        else {key: value for key, value in pairs.items() if key not in ("tenant", *_CONVERSATION_KEYS)}
    )
    text = "\0".join([pairs.get("tenant", ""), *(f"{key}={value}" for key, value in sorted(owner.items()))])
    return int.from_bytes(blake2b(text.encode(), digest_size=PLACE_BITS // 8).digest())


class StreamState(NamedTuple):
    """A scope's number, its version and the next free position in its log."""

    id: int
    scope: Scope
    version: int
    position: int


class StreamRow(NamedTuple):
    """A stream, and what is counted of it. The tenant and the owner are those of its scope."""

    state: StreamState
    tenant: str = ""
    owner: str = ""
    """The user."""
    last: int = 0
    """The highest number within the stream that was ever given to a record."""
    rows: int = 0
    """How many rows of all tables belong to it."""
    digest: int = 0
    """What their checksums add up to."""


class PlaceRow(NamedTuple):
    """How many streams a place has."""

    place: int
    streams: int


class Change(NamedTuple):
    """What a version of a stream did to its records: see `store/sql.py`."""

    stream: int
    version: int
    what: int
    seq: int


class CounterRow(NamedTuple):
    """How many rows a table has that belongs to no stream."""

    name: str
    rows: int


class Tombstone(NamedTuple):
    """A fingerprint of something forgotten, so that it does not come back. It holds no words."""

    identity: bytes
    content: bytes = b""
    """Fingerprint of what was said, for messages."""
    session_hash: bytes = b""
    """Fingerprint of the session, for messages."""
    position: int | None = None


class TombstoneRow(NamedTuple):
    """A tombstone and its stream."""

    stream: int
    tombstone: Tombstone


class VectorRow(NamedTuple):
    """The vectors of a record by one model, as half floats."""

    model: int
    seq: int
    data: bytes


class ModelRow(NamedTuple):
    """A model whose vectors are kept."""

    id: int
    name: str
    dimensions: int


class ValueRow(NamedTuple):
    """A value that belongs to the whole store."""

    name: str
    value: str


class Lease(NamedTuple):
    """Who works on something, until when, and how earlier attempts ended."""

    owner: str = ""
    """Empty if nobody does."""
    until: TimeOrNever = None
    attempts: int = 0
    retry: TimeOrNever = None
    """Not to be tried again before this moment."""
    error: str = ""


class SettingsRecord(NamedTuple):
    """What was changed in a stream's settings, and the preset they start from."""

    stream: int
    preset: str
    changes: Mapping[str, Any] = NO_METADATA


class SessionState(NamedTuple):
    """How far the log of one conversation has been turned into memories."""

    stream: int
    cursor: int = 0
    """Messages with numbers up to this one are formed, or stand in a job."""
    messages: int = 0
    """Messages after the cursor."""
    weight: float = 0.0
    """Their tokens, weighted by who spoke."""
    active: TimeOrNever = None
    """When the last message came."""
    users: tuple[str, ...] = ()
    """The users who take part."""


class Job(NamedTuple):
    """One chunk of a conversation that is to be formed: messages numbered above `start` and up to `stop`."""

    stream: int
    start: int
    stop: int
    lease: Lease = Lease()


class LeaseRecord(NamedTuple):
    """A piece of work in a stream that somebody outside the engine does, by the name they gave it."""

    stream: int
    name: str
    data: Mapping[str, Any] = NO_METADATA
    lease: Lease = Lease()


class SummaryState(NamedTuple):
    """Which revision of a stream is current, and how the work on the next one stands."""

    stream: int
    revision: int = 0
    """0 if there is none."""
    last: int = 0
    """The highest number ever given to a revision."""
    rebuild: bool = False
    """Whether a part was forgotten and the summary waits to be written anew from what is left."""
    lease: Lease = Lease()


class RevisionRecord(NamedTuple):
    """One revision of a stream's summary. Numbers are never used twice in a stream."""

    stream: int
    number: int
    parent: int
    """The revision it was written from; 0 if there was none."""
    text: str
    absorbed: tuple[str, ...]
    """Ids of the observations it absorbed beyond its parent's."""
    author: str
    recorded: datetime


class Absorption(NamedTuple):
    """An observation that the current summary holds, and the revision that absorbed it."""

    stream: int
    id: str
    revision: int


class StreamLink(NamedTuple):
    """Atoms of `stream` rest on messages or atoms of `source`, or may: it is a conversation of that user."""

    source: int
    stream: int


class PassageGraphRecord(NamedTuple):
    """The entities and triples of one record, as JSON."""

    seq: int
    content: bytes
    """A fingerprint of the words that were read: the same words need not be read again."""
    model: str
    data: str


class KeptIndexPart(NamedTuple):
    """A part of a stream's index, kept for the next process; part 0 says what the others are."""

    stream: int
    part: int
    data: bytes


class AccessCount(NamedTuple):
    """How often a record was recalled, and when last."""

    seq: int
    times: int
    last: datetime


class UsageRecord(NamedTuple):
    """What calls of one LLM for one operation have taken together."""

    operation: str
    model: str
    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    micros: int = 0
    """Time spent waiting for it, in microseconds."""
    cost: float = 0.0
    """In the currency of the prices that were given."""


class CallRecord(NamedTuple):
    """One call of an LLM, without what was asked and answered."""

    number: int
    """Rises from call to call."""
    operation: str
    model: str
    scope: str
    """Empty if it is not known."""
    time: datetime
    micros: int
    """How long it took, in microseconds."""
    input_tokens: int
    output_tokens: int
    cost: float
    error: str
    """The kind of failure; empty if it answered."""


class IncognitoMark(NamedTuple):
    """The fingerprint of a session of which nothing is kept."""

    key: bytes


_BY_STREAM: Final = ("stream", STREAM_BITS)
_BY_SEQ: Final = ("seq", STREAM_BITS + SEQ_BITS)

# Words are kept in tables with row numbers only: what such a table leaves behind on a page is found and wiped. An index
# may leave bytes of what was deleted on its pages: it holds fingerprints, not words.
ITEMS: Final = Table(
    "items",
    Record,
    ("seq",),
    place=_BY_STREAM,
    indexes=(
        Index("items_stream", "place, stream, seq"),
        Index("items_id", "place, stream, id", unique=True),
        Index("items_identity", "place, stream, identity", "retired IS NULL", unique=True),
        Index("items_log", "place, stream, session, position, seq", "position IS NOT NULL"),
        Index("items_atoms", "place, stream, kind, seq", "kind <> 'message'"),
        Index("items_topic", "place, stream, topic", "topic IS NOT NULL"),
        Index("items_superseded_by", "place, stream, superseded_by", "superseded_by <> ''"),
        Index("items_archived", "place, stream, seq", "retired IS NOT NULL AND superseded_by = ''"),
        Index("items_in_review", "place, stream, seq", "in_review = 1"),
        Index("items_stream_pending", "place, stream, seq", "pending = 1"),
        # With what else is asked for in it, a search for the latest reads no row that it does not want.
        Index("items_stream_recorded", "place, stream, recorded, seq, kind, in_review", "kind <> 'message'"),
        # Of all streams:
        Index("items_pending", "place, seq", "pending = 1"),
        Index("items_recorded", "recorded, seq, stream, kind, in_review", "kind <> 'message'"),
    ),
)
STREAMS: Final = Table(
    "streams",
    StreamRow,
    ("id",),
    place=("id", STREAM_BITS),
    indexes=(
        Index("streams_place_scope", "place, scope", unique=True),
        Index("streams_scope", "scope"),
        Index("streams_tenant", "tenant, scope", "tenant <> ''"),
        Index("streams_owner", "place, tenant, owner", "owner <> ''"),
    ),
)
PLACES: Final = Table("places", PlaceRow, ("place",))
CHANGES: Final = Table(
    "changes",
    Change,
    ("stream", "version", "what", "seq"),
    place=_BY_STREAM,
    with_rowid=False,
    is_derived=True,
)
TOMBSTONES: Final = Table(
    "tombstones",
    TombstoneRow,
    ("stream", "identity"),
    place=_BY_STREAM,
    with_rowid=False,
    indexes=(Index("tombstones_session", "place, stream, session_hash, position", "position IS NOT NULL"),),
)
VECTORS: Final = Table("vectors", VectorRow, ("seq", "model"), place=_BY_SEQ, with_rowid=False)
MODELS: Final = Table("models", ModelRow, ("id",))
VALUES: Final = Table("meta", ValueRow, ("name",), with_rowid=False)
COUNTERS: Final = Table("counters", CounterRow, ("name",), with_rowid=False)
"""Tables that have methods of their own in the contract, or none."""

TABLES: Final[Mapping[type, Table[Any]]] = {
    table.record: table
    for table in (
        Table("settings", SettingsRecord, ("stream",), place=_BY_STREAM),
        Table(
            "sessions",
            SessionState,
            ("stream",),
            place=_BY_STREAM,
            indexes=(Index("sessions_active", "active"),),
        ),
        Table("jobs", Job, ("stream", "start"), place=_BY_STREAM),
        Table("leases", LeaseRecord, ("stream", "name"), place=_BY_STREAM),
        Table(
            "summaries",
            SummaryState,
            ("stream",),
            place=_BY_STREAM,
            indexes=(Index("summaries_rebuild", "stream", "rebuild = 1"),),
        ),
        Table("revisions", RevisionRecord, ("stream", "number"), place=_BY_STREAM),
        Table("absorptions", Absorption, ("stream", "id"), place=_BY_STREAM, with_rowid=False),
        Table(
            "links",
            StreamLink,
            ("stream", "source"),
            place=_BY_STREAM,
            with_rowid=False,
            indexes=(Index("links_source", "source"),),
        ),
        Table(
            "passage_graphs",
            PassageGraphRecord,
            ("seq",),
            place=_BY_SEQ,
            is_derived=True,
            indexes=(Index("passage_graphs_content", "content"),),
        ),
        Table("kept_indexes", KeptIndexPart, ("stream", "part"), place=_BY_STREAM, is_derived=True),
        Table("access_counts", AccessCount, ("seq",), place=_BY_SEQ),
        Table("usage", UsageRecord, ("operation", "model"), with_rowid=False),
        Table("calls", CallRecord, ("number",)),
        Table("incognito", IncognitoMark, ("key",), with_rowid=False),
    )
}
"""Tables that are loaded, saved and dropped by their keys."""

ALL_TABLES: Final[Sequence[Table[Any]]] = (
    *(ITEMS, STREAMS, PLACES, CHANGES, TOMBSTONES, VECTORS, MODELS, VALUES, COUNTERS),
    *TABLES.values(),
)
STREAM_TABLES: Final = tuple(table for table in ALL_TABLES if "stream" in table.values and not table.is_derived)
"""Tables whose rows each belong to a stream, which counts them and adds up their checksums."""
COUNTED_TABLES: Final = (MODELS, VALUES, TABLES[IncognitoMark])
"""Tables of no stream whose rows are counted."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a database says otherwise than others."""

    integer: str
    real: str
    binary: str
    text: str
    """Compared by code point."""
    table_end: str = ""
    """What follows a table that needs no row numbers."""
    index_hint: str = ""
    """What follows a table's name where a certain index should be used, with `{}` for that index."""
    has_part: str = "replace(i.metadata, ?, '') <> i.metadata"
    """Whether a text stands in the metadata. Unlike LIKE, `replace` heeds case in every database."""

    def column(self, table: Table[Any], name: str) -> str:
        """The definition of a column."""
        hint = table.hints.get(name, int)  # a checksum has none
        base = hint if isinstance(hint, type) else next(iter(get_args(hint)), hint)
        kinds = {int: self.integer, bool: self.integer, datetime: self.integer, float: self.real, bytes: self.binary}
        may_be_null = type(None) in get_args(hint) and hint != TimeOrNever
        kind = self.integer if hint == TimeOrNever else kinds.get(base, self.text)
        default = f" DEFAULT {table.defaults[name]!r}" if not may_be_null and name in table.defaults else ""
        return f"{name} {kind}{'' if may_be_null else ' NOT NULL'}{default}"


SQLITE: Final = Dialect(
    integer="INTEGER",
    real="REAL",
    binary="BLOB",
    text="TEXT",
    table_end=" WITHOUT ROWID",
    index_hint=" INDEXED BY {}",
    has_part="instr(i.metadata, ?) > 0",
)
POSTGRESQL: Final = Dialect(integer="bigint", real="double precision", binary="bytea", text='text COLLATE "C"')


def ddl(dialect: Dialect) -> Iterator[str]:
    """The statements that make the schema."""
    for table in ALL_TABLES:
        columns = ", ".join(dialect.column(table, name) for name in table.columns)
        end = "" if table.with_rowid else dialect.table_end
        yield f"CREATE TABLE {table.name} ({columns}, PRIMARY KEY ({', '.join(table.primary_key)})){end}"
        for index in table.indexes:
            where = f" WHERE {index.where}" if index.where else ""
            kind = "UNIQUE INDEX" if index.unique else "INDEX"
            yield f"CREATE {kind} {index.name} ON {table.name} ({index.columns}){where}"
