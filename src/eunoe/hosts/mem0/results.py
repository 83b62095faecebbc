"""What mem0 gives back of a memory: its id, its dict, its history, and why it was found.

An id holds in the whole store: it is a memory's own id, then its scope, so that a memory is found without looking
through scopes. It stays when the memory is changed.
"""

import base64
import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import eunoe.memory
from eunoe.errors import EunoeError, InputError, ScopeError
from eunoe.hosts.common import plain_mapping
from eunoe.hosts.mem0.arguments import OWNERS
from eunoe.model.arguments import parse_time, utc_now
from eunoe.model.atom import Item
from eunoe.model.result import Hit
from eunoe.model.scope import Scope

TIMES: Final = ("created_at", "updated_at")
_PLAIN: Final = re.compile(r"[\w-]+", re.ASCII)
_ENCODED: Final = "~"
"""Before an own id that an address could not hold as it is."""
_SHOWN_BESIDE: Final = ("actor_id", "role", "attributed_to", "expiration_date")
"""Fields that stand beside the metadata in a result, not in it."""
_COMPUTED: Final = frozenset({"data", "hash", "id", "text_lemmatized", "updated_at"})
"""Fields that a caller's metadata cannot set."""
_IDENTITY: Final = frozenset({*OWNERS, "actor_id"})
_RENAMED: Final = {"memory_key": "mem0_memory_key"}
"""Fields with a meaning of their own in the engine, and how a caller's field of that name is kept."""
_ORIGINAL: Final = {field: name for name, field in _RENAMED.items()}
_SIGNALS: Final = {"dense": "semantic_score", "lexical": "bm25_score", "graph": "entity_boost"}
"""Signals of a recall, and what mem0 calls them."""
_DELETIONS: Final[Mapping[str, str]] = {"mem0": "deleted"}
"""What a scope has besides its owner if it only notes which memories were deleted."""

_log = logging.getLogger(__name__)


def to_id(scope: Scope, id: str) -> str:
    """
    >>> to_id(Scope(user="anna"), "7b0c")
    '7b0c.dXNlcj1hbm5h'
    """
    own = id if _PLAIN.fullmatch(id) else _ENCODED + _encode(id)
    return f"{own}.{_encode(scope.text)}"


def from_id(text: str) -> tuple[Scope, str] | None:
    """Read an id; None if it is not one of these.

    >>> from_id(to_id(Scope(user="anna"), "a/b"))
    (Scope(user='anna'), 'a/b')
    >>> from_id("7b0c")
    """
    own, sign, place = text.rpartition(".")
    try:
        scope = Scope.parse(_decode(place))
        id = _decode(own[1:]) if own.startswith(_ENCODED) else own
    except (ValueError, ScopeError):
        return None
    return (scope, id) if sign and id and to_id(scope, id) == text else None


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def has_owner(scope: Scope) -> bool:
    return not scope.pairs.keys().isdisjoint(OWNERS.values())


def holds_memories(scope: Scope) -> bool:
    return has_owner(scope) and not _DELETIONS.items() <= scope.pairs.items()


def scope_of(item: Item) -> Scope:
    assert item.scope is not None  # whatever a store gives has one
    return item.scope


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


def created_at(item: Item) -> str:
    return str(item.metadata.get("created_at") or (item.recorded.isoformat() if item.recorded else ""))


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
        **{name: scope.pairs[key] for name, key in OWNERS.items() if key in scope.pairs},
        **{name: fields[name] for name in _SHOWN_BESIDE if name in fields},
    }


def score_details(hit: Hit, threshold: float) -> dict[str, Any]:
    """The share of the score that each signal has. What mem0 has no name for is among the reasons alone."""
    shares = dict.fromkeys(_SIGNALS.values(), 0.0)
    for reason in hit.reasons:
        if name := _SIGNALS.get(reason.name):
            shares[name] += reason.share * hit.score
    scores = {"raw_score": hit.score, "max_possible_score": 1.0, "final_score": hit.score, "threshold": threshold}
    return {"score_details": {**shares, **scores, "reasons": [str(reason) for reason in hit.reasons]}}


def history_rows(memory_id: str, versions: Sequence[Item]) -> list[dict[str, Any]]:
    """What happened to a memory: a row for each version, oldest first."""
    rows, old = [], None
    for version in versions:
        rows.append(
            {
                "id": to_id(scope_of(version), version.id),
                "memory_id": memory_id,
                "old_memory": old,
                "new_memory": version.text,
                "event": "ADD" if old is None else "UPDATE",
                "created_at": created_at(versions[0]),
                "updated_at": version.metadata.get("updated_at") or created_at(version),
                "is_deleted": False,
                "actor_id": version.metadata.get("actor_id"),
                "role": version.metadata.get("role"),
            }
        )
        old = version.text
    return rows


def mark_deleted(memory: eunoe.memory.Memory, item: Item) -> None:
    """Note that a memory was deleted, and when. No words are left of it."""
    times = {"created_at": created_at(item), "updated_at": utc_now().isoformat()}
    scope = scope_of(item).extended(_DELETIONS)
    memory.remember(scope, "deleted", id=item.id, metadata=times, again=True, replace=True)


def deletion_rows(memory: eunoe.memory.Memory, memory_id: str, scope: Scope, id: str) -> list[dict[str, Any]]:
    """The row of a memory that was deleted; none if nothing is known of it."""
    try:
        note = memory.get(scope.extended(_DELETIONS), id)
    except EunoeError:
        return []
    [row] = history_rows(memory_id, [note])
    place = to_id(scope.extended(_DELETIONS), id)
    return [row | {"id": place, "event": "DELETE", "new_memory": None, "is_deleted": True}]
