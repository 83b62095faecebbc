"""Nouns as JSON and back: what the command line prints, what a server sends and what a client reads.

A field that is not known is left out, and one that is missing has its default: so client and server of different
versions understand each other.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from eunoe.model.atom import Atom, Item, Record
from eunoe.model.message import Message
from eunoe.model.result import Hit, Hits, Reason
from eunoe.model.scope import Scope

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""What JSON carries as it is."""


def json_value(value: Any) -> Any:
    """A value as JSON can carry it: fields by name, times as ISO 8601, scopes in their canonical form."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    encode = _known_encoders.get(kind) or _known_encoders.setdefault(kind, _find_encoder(kind))
    return encode(value)


_known_encoders: dict[type, Callable[[Any], Any]] = {}
"""Found once for each type: a reply has thousands of values of few types."""


def _find_encoder(kind: type) -> Callable[[Any], Any]:
    known = next((encode for each, encode in _ENCODERS.items() if issubclass(kind, each)), None)
    if known is None and is_dataclass(kind):
        names = tuple(field.name for field in fields(kind))
        return lambda value: _fields_value(value, names)
    return known or (lambda value: value)


def _fields_value(value: Any, names: Iterable[str]) -> dict[str, Any]:
    items = ((name, getattr(value, name)) for name in names)
    return {name: item if type(item) in _PLAIN else json_value(item) for name, item in items}


def _hit_value(hit: Hit) -> dict[str, Any]:
    """The memory with its score and reasons."""
    value: dict[str, Any] = json_value(hit.item)
    value["score"], value["reasons"] = hit.score, [_reason_value(reason) for reason in hit.reasons]
    value["source"] = list(hit.source)
    return value


def _reason_value(reason: Reason) -> dict[str, Any]:
    return {"name": reason.name, "share": reason.share, "detail": reason.detail}


def _list_value(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [item if type(item) in _PLAIN else json_value(item) for item in items]


_MESSAGE_FIELDS: Final = tuple(field.name for field in fields(Message))
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    Scope: lambda scope: scope.text,
    datetime: datetime.isoformat,
    Hit: _hit_value,
    Message: lambda message: {"kind": message.kind, **_fields_value(message, _MESSAGE_FIELDS)},
    Reason: _reason_value,
    Mapping: lambda mapping: {
        key.text if isinstance(key, Scope) else str(key): json_value(item) for key, item in mapping.items()
    },
    list: _list_value,
    tuple: _list_value,
}
"""By type; the first that fits counts."""


def hits_value(hits: Hits) -> dict[str, Any]:
    """Hits with their notes."""
    return {"hits": _list_value(hits), "notes": list(hits.notes)}


Reader = Callable[[Any], Any]


def noun_of(kind: Any, value: Any) -> Any:
    """A value of this type, out of what `json_value` made of it.

    >>> noun_of(tuple[Scope, ...], ["user=anna"])
    (Scope(user='anna'),)
    """
    return _reader(kind)(value)


@cache
def _reader(kind: Any) -> Reader:
    """What reads values of a type."""
    if kind in _READERS:
        return _READERS[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        read_one = _reader(next(part for part in parts if part is not types.NoneType))
        return lambda value: None if value is None else read_one(value)
    if origin in (tuple, list):  # of any length, or of as many parts as it has types
        reads = [_reader(part) for part in parts if part is not Ellipsis]
        if len(parts) == 1 or parts[1] is Ellipsis:
            return lambda values: origin(map(reads[0], values))
        return lambda values: origin(read(value) for read, value in zip(reads, values, strict=True))
    if origin in (dict, Mapping):
        read_key, read_item = map(_reader, parts)
        return lambda values: {read_key(key): read_item(value) for key, value in values.items()}
    noun = origin or kind
    if not is_dataclass(noun) and not hasattr(noun, "_fields"):
        return lambda value: value
    names = [field.name for field in fields(noun)] if is_dataclass(noun) else noun._fields
    by_name = {}
    for name in names:
        hint = get_type_hints(noun)[name]
        # A field of a generic noun, such as a page of items, has the type that the noun was given.
        by_name[name] = _reader(hint[parts] if parts and getattr(hint, "__parameters__", ()) else hint)

    def read_noun(value: Any) -> Any:
        given = value if isinstance(value, Mapping) else dict(zip(by_name, value, strict=False))
        return noun(**{name: read(given[name]) for name, read in by_name.items() if name in given})

    return read_noun


def _read_item(value: Any) -> Item:
    item: Item = noun_of(Message if value["kind"] == Message.kind else Atom, value)
    return item


def _read_hit(value: Any) -> Hit:
    item = _read_item(value)
    scope = Scope.stored(value["scope"])
    known = {name: getattr(item, name) for name in Record._fields if hasattr(item, name)}
    record = Record(**{"identity": b"", "supports": (tuple(value["source"]),)} | known)
    return Hit(record, scope, value["score"], lambda: noun_of(tuple[Reason, ...], value["reasons"]))


_READERS: Final[Mapping[Any, Reader]] = {
    types.NoneType: lambda _: None,
    Scope: Scope.stored,
    datetime: datetime.fromisoformat,
    Item: _read_item,
    Hit: _read_hit,
    Hits: lambda value: Hits(map(_read_hit, value["hits"]), tuple(value["notes"])),
}
"""Of types that say more than their fields do."""
