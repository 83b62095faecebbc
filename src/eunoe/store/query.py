"""Which records to read: a query as data."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from eunoe.model.arguments import Kind


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
    with_vector: int | None = None
    """Those that this model has embedded."""
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
