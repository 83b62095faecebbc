"""How a store stands, or the part of it within bounds: what it holds and what is still due."""

from typing import Final

from eunoe.model.bounds import Bounds
from eunoe.model.report import Status
from eunoe.records.usage import total_usage
from eunoe.store.contract import Store, all_streams

_COUNTS: Final = (
    "retired",
    "tombstones",
    "bytes",
    "vectors",
    "due_messages",
    "jobs",
    "failing",
    "error",
    "revisions",
    "in_review",
)
"""Fields that a status takes over from the store's counts."""


def read_status(store: Store, bounds: Bounds, embedder: str, llm: str) -> Status:
    """Count what is within the bounds. What only the whole store has, such as its path and size, is then left empty."""
    is_whole = not bounds.scopes
    counts = store.counts(None if is_whole else _stream_numbers(store, bounds))
    return Status(
        target=store.target if is_whole else "",
        schema=store.schema if is_whole else 0,
        scopes=counts.streams,
        messages=counts.kinds.get("message", 0),
        facts=counts.kinds.get("fact", 0),
        observations=counts.kinds.get("observation", 0),
        unembedded=counts.pending,
        **{name: getattr(counts, name) for name in _COUNTS},
        embedder=embedder,
        llm=llm,
        usage=total_usage(store) if is_whole else (),
    )


def _stream_numbers(store: Store, bounds: Bounds) -> list[int]:
    streams = all_streams(store, bounds.keys.get("tenant", ""))
    return [stream.id for stream in streams if bounds.covers(stream.scope)]
