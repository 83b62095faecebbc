"""Which records to read: a query as data, and the conditions that stand for it in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from eunoe.model.choices import Kind
from eunoe.model.record import Record

MAX_PARAMETERS: Final = 500
"""Values in one list of a statement; databases limit them, SQLite before 3.32 to 999 in all."""

Condition = tuple[str, Sequence[Any]]
"""A condition in SQL and its values: one for its `?`, or any number for its `{}`."""


class ItemQuery(NamedTuple):
    """Conditions that all have to hold; None and False are no condition, and an empty list finds nothing."""

    stream: int | None = None
    kinds: Sequence[Kind] | None = None
    ids: Sequence[str] | None = None
    identities: Sequence[bytes] | None = None
    topics: Sequence[bytes] | None = None
    seqs: Sequence[int] | None = None
    after: int | None = None
    """Numbers above this one."""
    session: str | None = None
    """Messages of this session."""
    open: bool = False
    """Not retired."""
    supported: bool = False
    """Atoms that name a source."""
    described: bool = False
    """Those with metadata."""
    pending: bool = False
    """Those whose vector is still to be made."""
    unabsorbed: bool = False
    """Those that no summary holds."""
    without_graph: bool = False
    """Those whose entities were not extracted."""
    without_vector: int | None = None
    """Those that this model has not embedded."""
    order: Literal["seq", "newest", "position"] = "seq"
    """By number, by number from the last, or by position from the last."""
    limit: int | None = None


_CONDITIONS: Final = {
    "stream": "i.stream = ?",
    "kinds": "i.kind IN ({})",
    "ids": "i.id IN ({})",
    "identities": "i.identity IN ({})",
    "topics": "i.topic IN ({})",
    "seqs": "i.seq IN ({})",
    "after": "i.seq > ?",
    "session": "i.position IS NOT NULL AND i.session = ?",
    "open": "i.retired IS NULL",
    "supported": "i.supports <> ''",
    "described": "i.metadata <> ''",
    "pending": "i.pending = 1",
    "unabsorbed": "NOT EXISTS (SELECT 1 FROM absorptions a WHERE a.stream = i.stream AND a.id = i.id)",
    "without_graph": "NOT EXISTS (SELECT 1 FROM passage_graphs g WHERE g.seq = i.seq)",
    "without_vector": "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = i.seq)",
}
_ORDERS: Final = {"seq": "i.seq", "newest": "i.seq DESC", "position": "i.position DESC NULLS LAST, i.seq DESC"}


def item_conditions(query: ItemQuery) -> list[Condition]:
    conditions: list[Condition] = []
    for name, sql in _CONDITIONS.items():
        value = getattr(query, name)
        if value is True:
            conditions.append((sql, ()))
        elif value is not None and value is not False:
            conditions.append((sql, value if "{}" in sql else (value,)))
    if query.kinds is not None and "message" not in query.kinds:
        conditions.append(("i.kind <> 'message'", ()))  # says nothing new, but lets the index on atoms be used
    return conditions


def item_order(query: ItemQuery) -> Condition:
    return limit_clause(f" ORDER BY {_ORDERS[query.order]}", query.limit)


def limit_clause(sql: str, limit: int | None) -> Condition:
    return (sql, ()) if limit is None else (f"{sql} LIMIT ?", (limit,))


def sort_items(records: list[Record], query: ItemQuery) -> list[Record]:
    """Order records of several statements as `item_order` does those of one."""
    if query.order == "position":
        records.sort(key=lambda record: (-1 if record.position is None else record.position, record.seq), reverse=True)
    else:
        records.sort(key=attrgetter("seq"), reverse=query.order == "newest")
    return records[: query.limit]


def where_clauses(conditions: Sequence[Condition]) -> Iterator[tuple[str, list[Any]]]:
    """Join conditions for statements that together find each record once. A list that is too long for one statement
    makes several, an empty one none."""
    choices = [chunks(values) if "{}" in sql else [values] for sql, values in conditions]
    for parts in product(*choices):
        texts = [sql.format(marks(part)) for (sql, _), part in zip(conditions, parts, strict=True)]
        yield " AND ".join(texts) or "1 = 1", [value for part in parts for value in part]


def chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Values in lists that are short enough for one statement, each value once."""
    unique = list(dict.fromkeys(values))
    return (unique[start : start + MAX_PARAMETERS] for start in range(0, len(unique), MAX_PARAMETERS))


def marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
