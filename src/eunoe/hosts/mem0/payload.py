"""What mem0 keeps beside the words of a memory, and the dict in which it gives both back."""

import hashlib
import logging
from collections.abc import Mapping
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.common import plain_mapping
from eunoe.hosts.mem0.arguments import OWNERS
from eunoe.hosts.mem0.ids import to_id
from eunoe.model.arguments import parse_time
from eunoe.model.atom import Item
from eunoe.model.scope import Scope

TIMES: Final = ("created_at", "updated_at")
_SHOWN_BESIDE: Final = ("actor_id", "role", "attributed_to", "expiration_date")
"""Fields that stand beside the metadata in a result, not in it."""
_COMPUTED: Final = frozenset({"data", "hash", "id", "text_lemmatized", "updated_at"})
"""Fields that a caller's metadata cannot set."""
_IDENTITY: Final = frozenset({*OWNERS, "actor_id"})
_RENAMED: Final = {"memory_key": "mem0_memory_key"}
"""Fields with a meaning of their own in the engine, and how a caller's field of that name is kept."""
_ORIGINAL: Final = {field: name for name, field in _RENAMED.items()}

_log = logging.getLogger(__name__)


def to_field(name: str) -> str:
    """The field of an atom's metadata in which a field of mem0's metadata is kept."""
    return _RENAMED.get(name, name)


def parse_metadata(metadata: object, method: str, current: Mapping[str, Any] = {}) -> dict[str, Any]:
    """A caller's metadata as it is kept. Whose memory it is, is never taken from there."""
    if metadata is None:
        return {}
    metadata = plain_mapping(metadata, "metadata")
    for name in sorted(_IDENTITY & metadata.keys()):
        if metadata[name] != current.get(name):
            _log.warning("%s: metadata cannot say whose memory it is; %s there is ignored", method, name)
    kept = {to_field(name): value for name, value in metadata.items() if name not in _IDENTITY | _COMPUTED}
    return kept | {name: to_utc(kept[name], name) for name in TIMES if name in kept}


def to_utc(value: Any, name: str) -> Any:
    """A time as it is kept and compared: as text, in UTC. What is no time stays as it is."""
    try:
        return parse_time(value, name).isoformat() if isinstance(value, str) else value
    except InputError:
        return value


def to_result(item: Item, *, score: bool = True) -> dict[str, Any]:
    """A memory as `get` and `get_all` give it."""
    scope, fields = scope_of(item), item.metadata
    hidden = {*_SHOWN_BESIDE, *TIMES, *_RENAMED} if item.kind != "message" else set(fields)
    metadata = {_ORIGINAL.get(name, name): value for name, value in fields.items() if name not in hidden}
    recorded = item.recorded.isoformat() if item.recorded else None
    return {
        "id": to_id(scope, item.id),
        "memory": item.text,
        "hash": hashlib.md5(item.text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest(),
        "metadata": metadata or None,
        **({"score": None} if score else {}),
        **{name: fields.get(name) or recorded for name in TIMES},
        **owner_ids(scope),
        **{name: fields[name] for name in _SHOWN_BESIDE if name in fields},
    }


def created_at(item: Item) -> str:
    return str(item.metadata.get("created_at") or (item.recorded.isoformat() if item.recorded else ""))


def owner_ids(scope: Scope) -> dict[str, str]:
    return {name: scope.pairs[key] for name, key in OWNERS.items() if key in scope.pairs}


def scope_of(item: Item) -> Scope:
    assert item.scope is not None  # whatever a store gives has one
    return item.scope
