"""How a store stands, or the part of it within bounds: what it holds and what is still due."""

from collections import Counter
from typing import Final

from eunoe.model.atom import Bounds
from eunoe.model.result import Status
from eunoe.records.usage import total_usage
from eunoe.store.contract import Store, all_streams
from eunoe.store.query import ItemQuery
from eunoe.text.language_names import name_language

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
_SAMPLE: Final = 100


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
        languages=_count_languages(store) if is_whole else {},
    )


def _count_languages(store: Store) -> dict[str, int]:
    """The languages of the latest memories, most first: a sample, so that it costs the same in every store."""
    records = store.select(ItemQuery(order="newest", limit=_SAMPLE, skip_damaged=True))
    names = Counter(name_language(record.text) or "unclear" for record in records)
    return dict(names.most_common())


def _stream_numbers(store: Store, bounds: Bounds) -> list[int]:
    streams = all_streams(store, bounds.keys.get("tenant", ""))
    return [stream.id for stream in streams if bounds.covers(stream.scope)]
