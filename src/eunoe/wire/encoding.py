"""From nouns to what JSON can carry."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from eunoe.model.hit import Hit, Hits, Reason
from eunoe.model.message import Message
from eunoe.model.scope import Scope


def json_value(value: Any) -> Any:
    """A value as JSON can carry it: fields by name, times as ISO 8601, scopes in their canonical form."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Scope | datetime):
        return value.text if isinstance(value, Scope) else value.isoformat()
    if isinstance(value, Hit):
        ranked = {"score": value.score, "reasons": json_value(value.reasons), "source": list(value.source)}
        return json_value(value.item) | ranked
    if is_dataclass(value):
        kind = {"kind": "message"} if isinstance(value, Message) else {}
        value = kind | {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, Reason):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {
            json_value(key) if isinstance(key, Scope) else str(key): json_value(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value


def hits_value(hits: Hits) -> dict[str, Any]:
    """Hits with their notes."""
    return {"hits": json_value(list(hits)), "notes": list(hits.notes)}
