"""From nouns to what JSON can carry."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

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


def _message_value(message: Message) -> dict[str, Any]:
    return {"kind": message.kind, **_fields_value(message, _MESSAGE_FIELDS)}


def _hit_value(hit: Hit) -> dict[str, Any]:
    """The memory with its score and reasons."""
    value: dict[str, Any] = json_value(hit.item)
    value["score"], value["reasons"] = hit.score, [_reason_value(reason) for reason in hit.reasons]
    value["source"] = list(hit.source)
    return value


def _reason_value(reason: Reason) -> dict[str, Any]:
    return {"name": reason.name, "share": reason.share, "detail": reason.detail}


def _mapping_value(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    return {key.text if isinstance(key, Scope) else str(key): json_value(item) for key, item in mapping.items()}


def _list_value(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [item if type(item) in _PLAIN else json_value(item) for item in items]


_MESSAGE_FIELDS: Final = tuple(field.name for field in fields(Message))
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    Scope: lambda scope: scope.text,
    datetime: datetime.isoformat,
    Hit: _hit_value,
    Message: _message_value,
    Reason: _reason_value,
    Mapping: _mapping_value,
    list: _list_value,
    tuple: _list_value,
}
"""By type; the first that fits counts."""


def hits_value(hits: Hits) -> dict[str, Any]:
    """Hits with their notes."""
    return {"hits": _list_value(hits), "notes": list(hits.notes)}
