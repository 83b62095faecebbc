"""Items as a memory keeps them: the text is what is searched, metadata holds the value and the times."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypedDict

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from eunoe.hosts.langgraph.names import Namespace, escape, id_of, unescape
from eunoe.hosts.langgraph.values import plain_value
from eunoe.model.atom import Atom

INDEXED: Final = "indexed"
"""The label of an item that a question may find by its vectors."""


class ItemMetadata(TypedDict, total=False):
    """What the metadata of an item's atom holds."""

    value: dict[str, Any]
    created: str
    updated: str
    since: str
    """When the first item of its namespace came: namespaces are searched in that order."""
    ttl: float
    """In minutes."""
    key: str
    """Where the id is only a fingerprint of it."""


def new_item(op: PutOp, texts: Sequence[str], now: datetime) -> dict[str, Any]:
    """What `remember` takes for a put, but for the times that depend on what is there already."""
    assert op.value is not None
    id, metadata = id_of(op.key), ItemMetadata(value=dict(op.value), updated=now.isoformat())
    if id != op.key:
        metadata["key"] = escape(op.key)
    if op.ttl is not None:
        metadata["ttl"] = op.ttl
    return {
        "id": id,
        "text": "\n".join(texts).strip() or get_text_at_path(op.value, "$")[0],
        "label": INDEXED if texts else "",
        "valid_to": None if op.ttl is None else end_of_life(op.ttl, now),
        "metadata": metadata,
    }


def end_of_life(ttl: float, now: datetime) -> datetime:
    """When an item with so many minutes to live ends; never, where the calendar does."""
    try:
        return now + timedelta(minutes=ttl)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def with_plain_value(op: PutOp) -> PutOp:
    return op if op.value is None else op._replace(value=plain_value(op.value))


def is_expired(atom: Atom, now: datetime) -> bool:
    return atom.valid_to is not None and atom.valid_to <= now


def is_item(atom: Atom) -> bool:
    """Whether an atom holds an item: somebody may have written to the scope of a namespace by hand."""
    return "since" in atom.metadata


def age_of(atom: Atom) -> tuple[str, str]:
    """Where an item stands in the order of insertion."""
    return atom.metadata["since"], atom.metadata["created"]


def _fields(atom: Atom, namespace: Namespace) -> dict[str, Any]:
    data: Mapping[str, Any] = atom.metadata
    return {
        "namespace": namespace,
        "key": unescape(data["key"]) if "key" in data else atom.id,
        "value": data["value"],
        "created_at": data["created"],
        "updated_at": data["updated"],
    }


def item_of(atom: Atom, namespace: Namespace) -> Item:
    """The item that an atom holds."""
    return Item(**_fields(atom, namespace))


def search_item_of(atom: Atom, namespace: Namespace, score: float | None) -> SearchItem:
    return SearchItem(**_fields(atom, namespace), score=score)
