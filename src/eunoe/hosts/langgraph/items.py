"""Items as a memory keeps them: the text is what is searched, metadata holds the value and the times."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import inf, isfinite
from numbers import Real
from typing import Any, Final, TypeGuard

from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path

from eunoe.errors import InputError
from eunoe.hosts.langgraph.names import Namespace, escape, id_of, unescape
from eunoe.hosts.plain_values import plain_mapping
from eunoe.model.atom import Atom

INDEXED: Final = "indexed"
"""The label of an item that a question may find by its vectors."""
_UPDATED: Final = "updated"
_CREATED: Final = "created"
"""Where that was another moment."""
_SINCE: Final = "since"
"""When the first item of its namespace came, where it was another one: namespaces are searched in that order."""
_TTL: Final = "ttl"
"""In minutes."""
_MAX_MINUTES: Final = 1000 * 365 * 24 * 60
"""A thousand years: whoever says more means for ever."""
_KEY: Final = "key"
"""The key, where the id is only a fingerprint of it."""
_VALUE: Final = "value"


def with_plain_value(op: PutOp) -> PutOp:
    """The same put with a value that JSON can carry, and a ttl that is a number or None."""
    value = None if op.value is None else plain_mapping(op.value, "value")
    return op._replace(value=value, ttl=_plain_ttl(op.ttl))


def _plain_ttl(ttl: Any) -> float | None:
    if ttl is None or ttl == inf:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, Real) or not isfinite(ttl):
        raise InputError(f"ttl is {ttl!r}: give a number of minutes, or None for ever")
    return float(ttl)


def new_item(op: PutOp, texts: Sequence[str], now: datetime, old: Atom | None, since: str) -> dict[str, Any]:
    """What `remember` takes for a put."""
    id, value, moment = id_of(op.key), op.value or {}, now.isoformat()
    metadata: dict[str, Any] = {_VALUE: value, _UPDATED: moment}
    if old:
        metadata[_CREATED] = created_of(old)
    if since:
        metadata[_SINCE] = since
    if id != op.key:
        metadata[_KEY] = escape(op.key)
    if op.ttl is not None:
        metadata[_TTL] = op.ttl
    return {
        "id": id,
        "text": "\n".join(texts).strip() or get_text_at_path(value, "$")[0],
        "label": INDEXED if texts else "",
        "valid_to": None if op.ttl is None else end_of_life(op.ttl, now),
        "metadata": metadata,
    }


def end_of_life(ttl: float, now: datetime) -> datetime:
    """When an item with so many minutes to live ends."""
    return now + timedelta(minutes=min(max(ttl, 0), _MAX_MINUTES))


def is_item(atom: object) -> TypeGuard[Atom]:
    """Whether an atom holds an item. One that was replaced does not, nor what somebody wrote there by hand."""
    return isinstance(atom, Atom) and atom.retired is None and _VALUE in atom.metadata and _UPDATED in atom.metadata


def is_expired(atom: Atom, now: datetime) -> bool:
    return atom.valid_to is not None and atom.valid_to <= now


def ttl_of(atom: Atom) -> float | None:
    """How many minutes an item was given to live."""
    return atom.metadata.get(_TTL)


def created_of(atom: Atom) -> str:
    """When an item was put for the first time."""
    return str(atom.metadata.get(_CREATED) or atom.metadata[_UPDATED])


def since_of(atom: Atom) -> str:
    """When the first item of its namespace came."""
    return str(atom.metadata.get(_SINCE) or created_of(atom))


def age_of(atom: Atom) -> tuple[str, str]:
    """Where an item stands in the order of insertion."""
    return since_of(atom), created_of(atom)


def value_of(atom: Atom) -> dict[str, Any]:
    """The value of an item."""
    value: dict[str, Any] = atom.metadata[_VALUE]
    return value


def conditions(wanted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a filter asks of metadata, as far as the memory can look it up; None if that is nothing.

    1 is True to LangGraph's stores, and a missing field is None: those are left to the filter itself.
    """
    plain = {name: each for name, each in (wanted or {}).items() if "." not in name and _is_unambiguous(each)}
    return {f"{_VALUE}.{name}": each for name, each in plain.items()} or None


def _is_unambiguous(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int | float) and isfinite(value) and value not in (0, 1))


def key_of(atom: Atom) -> str:
    """The key of an item."""
    return unescape(atom.metadata[_KEY]) if _KEY in atom.metadata else atom.id


def item_of(atom: Atom, namespace: Namespace) -> Item:
    """The item that an atom holds."""
    data = atom.metadata
    return Item(
        value=value_of(atom),
        key=key_of(atom),
        namespace=namespace,
        created_at=data.get(_CREATED) or data[_UPDATED],  # LangGraph reads times that are texts
        updated_at=data[_UPDATED],
    )


def search_item_of(atom: Atom, namespace: Namespace, score: float | None) -> SearchItem:
    """The item that an atom holds, as a search gives it."""
    data = atom.metadata
    created = data.get(_CREATED) or data[_UPDATED]
    return SearchItem(namespace, key_of(atom), value_of(atom), created, data[_UPDATED], score)
