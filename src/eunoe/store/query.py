"""Which records to read: a query as data, and the SQL it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from eunoe.model.choices import Kind

MAX_PARAMETERS: Final = 500
"""Values in one list of a statement; databases limit them, SQLite before 3.32 to 999."""


class ItemQuery(NamedTuple):
    """Conditions that all have to hold; None and False are no condition."""

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
    "session": "i.session = ? AND i.position IS NOT NULL",
    "open": "i.retired IS NULL",
    "supported": "i.supports != ''",
    "described": "i.metadata != ''",
    "pending": "i.pending = 1",
    "unabsorbed": "NOT EXISTS (SELECT 1 FROM absorptions a WHERE a.stream = i.stream AND a.id = i.id)",
    "without_graph": "NOT EXISTS (SELECT 1 FROM passage_graphs g WHERE g.seq = i.seq)",
    "without_vector": "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = i.seq)",
}
_ORDERS: Final = {"seq": "i.seq", "newest": "i.seq DESC", "position": "i.position DESC"}
_LISTS: Final = ("ids", "identities", "topics", "seqs")


def statements(query: ItemQuery) -> Iterator[ItemQuery]:
    """Split a query whose list is too long for one statement; an empty list finds nothing."""
    if any(values is not None and not len(values) for values in (getattr(query, name) for name in _LISTS)):
        return
    name = next((name for name in _LISTS if len(getattr(query, name) or ()) > MAX_PARAMETERS), None)
    if name is None:
        yield query
        return
    values = getattr(query, name)
    for start in range(0, len(values), MAX_PARAMETERS):
        yield query._replace(**{name: values[start : start + MAX_PARAMETERS]})


def conditions(query: ItemQuery) -> tuple[str, list[Any]]:
    """The part of a statement after WHERE, and its values. Order and limit are not part of it."""
    shape: list[tuple[str, int]] = []
    values: list[Any] = []
    for name, value in zip(query._fields[:-2], query, strict=False):
        if value is None or value is False:
            continue
        if isinstance(value, Sequence) and not isinstance(value, str):
            shape.append((name, len(value)))
            values += value
        else:
            shape.append((name, 0))
            values += [] if value is True else [value]
    atoms_only = query.kinds is not None and "message" not in query.kinds
    return _where(tuple(shape), atoms_only), values


@lru_cache(maxsize=512)
def _where(shape: tuple[tuple[str, int], ...], atoms_only: bool) -> str:
    parts = [_CONDITIONS[name].format(", ".join("?" * count)) for name, count in shape]
    # Says nothing new, but lets the index on atoms be used.
    return " AND ".join([*parts, *(["i.kind != 'message'"] if atoms_only else [])]) or "1 = 1"


def ending(query: ItemQuery) -> str:
    """The part of a statement after its conditions; the limit is its last value, if there is one."""
    return f" ORDER BY {_ORDERS[query.order]}" + ("" if query.limit is None else " LIMIT ?")
