"""What a store keeps beside messages and atoms, one typed record for each table.

A record's fields are its table's columns. `store/codec.py` turns the types into what a database holds.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from eunoe.model.atom import NO_METADATA, Record
from eunoe.model.scope import Scope
from eunoe.store.codec import Table, TimeOrNever


class StreamState(NamedTuple):
    """A scope's number, its version and the next free position in its log."""

    id: int
    scope: Scope
    version: int
    position: int


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


ITEMS: Final = Table("items", Record, ("seq",))
STREAMS: Final = Table("streams", StreamState, ("id",))
TOMBSTONES: Final = Table("tombstones", TombstoneRow, ("stream", "identity"))
VECTORS: Final = Table("vectors", VectorRow, ("model", "seq"))
MODELS: Final = Table("models", ModelRow, ("id",))
VALUES: Final = Table("meta", ValueRow, ("name",))
"""Tables that have methods of their own in the contract."""

TABLES: Final[Mapping[type, Table[Any]]] = {
    table.record: table
    for table in (
        Table("settings", SettingsRecord, ("stream",)),
        Table("sessions", SessionState, ("stream",)),
        Table("jobs", Job, ("stream", "start")),
        Table("leases", LeaseRecord, ("stream", "name")),
        Table("summaries", SummaryState, ("stream",)),
        Table("revisions", RevisionRecord, ("stream", "number")),
        Table("absorptions", Absorption, ("stream", "id")),
        Table("links", StreamLink, ("source", "stream")),
        Table("passage_graphs", PassageGraphRecord, ("seq",)),
        Table("access_counts", AccessCount, ("seq",)),
        Table("usage", UsageRecord, ("operation", "model")),
        Table("calls", CallRecord, ("number",)),
        Table("incognito", IncognitoMark, ("key",)),
    )
}
"""Tables that are loaded, saved and dropped by their keys."""

ALL_TABLES: Final[Sequence[Table[Any]]] = (ITEMS, STREAMS, TOMBSTONES, VECTORS, MODELS, VALUES, *TABLES.values())
STREAM_TABLES: Final = tuple(table for table in ALL_TABLES if "stream" in table.values)
"""Tables whose rows each belong to a stream, which counts them and adds up their checksums."""
