"""What mem0 calls a memory, over the verbs of ours.

Its ids hold in the whole store, ours in their scope: an id here is both together. It stays the same when the memory is
changed, so that it names all versions.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from eunoe.errors import AccessError, NotFoundError, ScopeError
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.hit import Hit
from eunoe.model.record import Item
from eunoe.model.scope import Scope, ScopeLike
from eunoe.server.compat.mem0_filters import OWNERS, rest_of

DEFAULT_COUNT: Final = 20
_OWN_METADATA: Final = ("role", "actor_id")


class Mem0Memory:
    """The verbs of mem0 over a memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def add(
        self, owner: Scope, messages: list[dict[str, Any]], metadata: Mapping[str, Any], infer: bool
    ) -> list[dict[str, Any]]:
        """Keep messages word for word, or learn from them; return what is new."""
        if infer:
            self._memory.observe(owner, [{**message, "metadata": dict(metadata)} for message in messages])
            return [_event(atom, "ADD") for atom in self._find(owner, self._memory.form(owner).stored)]
        items = [
            {"text": message["content"], "metadata": {**metadata, "role": message["role"]}} for message in messages
        ]
        receipts = self._memory.remember_many(owner, items)
        kept = [receipt.id for receipt in receipts if receipt]
        return [_event(atom, "ADD") for atom in self._find(owner, kept)]

    def search(self, filters: Mapping[str, Any], query: str, count: int, threshold: float) -> list[dict[str, Any]]:
        hits = [
            hit
            for scopes, where in self._places(filters)
            for hit in self._memory.recall(scopes, query, limit=count, kinds=ATOM_KINDS, where=where)
            if hit.score >= threshold
        ]
        best = sorted(hits, key=lambda hit: hit.score, reverse=True)[:count]
        return [self._item(hit.item) | {"score": hit.score} for hit in best if isinstance(hit, Hit)]

    def get_all(self, owner: Scope, count: int) -> list[dict[str, Any]]:
        """The latest first."""
        found = [item for scope in self._memory.scopes(**owner) for item in self._items(scope)]
        found.sort(key=lambda item: item.recorded or datetime.min, reverse=True)
        return [self._item(item) for item in found[:count]]

    def get(self, id: str) -> dict[str, Any]:
        return self._item(self._versions(id)[-1])

    def update(self, id: str, text: str | None, metadata: Mapping[str, Any] | None) -> None:
        current = self._versions(id)[-1]
        changes: dict[str, Any] = {} if metadata is None else {"metadata": {**current.metadata, **metadata}}
        self._memory.update(_scope(current), current.id, text, **changes)

    def delete(self, id: str) -> None:
        current = self._versions(id)[-1]
        self._memory.forget(_scope(current), current.id, may_return=True)

    def delete_all(self, owner: Mapping[str, str]) -> None:
        """With the messages they were learned from. Nothing there is fine, as it is to mem0."""
        scopes: list[ScopeLike] = [*self._memory.scopes(**owner)]
        if scopes:
            self._memory.forget(scopes, everything=True, may_return=True)

    def history(self, id: str) -> list[dict[str, Any]]:
        versions = self._versions(id)
        return [
            {
                "id": to_id(_scope(version), version.id),
                "memory_id": id,
                "old_memory": before.text if before else None,
                "new_memory": version.text,
                "event": "UPDATE" if before else "ADD",
                "created_at": _time(versions[0].recorded),
                "updated_at": _time(version.recorded) if before else None,
                "is_deleted": 0,
            }
            for before, version in zip([None, *versions], versions, strict=False)
        ]

    def entities(self) -> list[dict[str, Any]]:
        counts: dict[tuple[str, str], int] = {}
        for stream in self._memory.streams.list():
            for name, key in OWNERS.items():
                if value := stream.scope.pairs.get(key):
                    place = name.removesuffix("_id"), value
                    counts[place] = counts.get(place, 0) + stream.facts + stream.observations
        return [
            {"id": id, "type": kind, "total_memories": count} for (kind, id), count in sorted(counts.items()) if count
        ]

    def _places(self, filters: Mapping[str, Any]) -> Iterator[tuple[list[Any], dict[str, Any] | None]]:
        """Scopes that filters mean, together with the conditions that are left for them."""
        groups: dict[str, tuple[list[Any], dict[str, Any] | None]] = {}
        for scope in self._memory.scopes():
            rest = rest_of(filters, scope)
            if rest is not False:
                groups.setdefault(repr(rest), ([], None if rest is True else rest))[0].append(scope)
        yield from groups.values()

    def _items(self, scope: Scope) -> Iterator[Item]:
        after = ""
        while True:
            page = self._memory.list(scope, kinds=ATOM_KINDS, limit=1000, after=after)
            yield from page.items
            if not (after := page.next):
                return

    def _find(self, owner: Scope, ids: Iterable[str]) -> Iterator[Atom]:
        """Atoms by their ids, in the scopes that a conversation feeds."""
        keys = {key: owner.pairs[key] for key in OWNERS.values() if key in owner.pairs}
        near = [scope for scope in self._memory.scopes() if any(scope.pairs.get(key) == keys[key] for key in keys)]
        for id in dict.fromkeys(ids):
            for scope in near:
                try:
                    item = self._memory.get(scope, id)
                except NotFoundError:
                    continue
                if isinstance(item, Atom):
                    yield item
                    break

    def _versions(self, id: str) -> list[Atom]:
        try:
            scope, own_id = from_id(id)
            return self._memory.history(scope, own_id)
        except (NotFoundError, AccessError):
            raise NotFoundError("Memory not found") from None

    def _item(self, item: Item) -> dict[str, Any]:
        atom = item if isinstance(item, Atom) else None
        first = self._memory.history(_scope(atom), atom.id)[0] if atom and atom.supersedes else item
        scope = _scope(item)
        return {
            "id": to_id(scope, first.id),
            "memory": item.text,
            "hash": hashlib.md5(item.text.encode(), usedforsecurity=False).hexdigest(),
            "created_at": _time(first.recorded),
            "updated_at": _time(item.recorded),
            "metadata": {name: value for name, value in item.metadata.items() if name not in _OWN_METADATA} or None,
            **{name: scope.pairs[key] for name, key in OWNERS.items() if key in scope.pairs},
            **{name: item.metadata[name] for name in _OWN_METADATA if name in item.metadata},
        }


def to_id(scope: Scope, id: str) -> str:
    return base64.urlsafe_b64encode(f"{scope.text}\n{id}".encode()).decode().rstrip("=")


def from_id(text: str) -> tuple[Scope, str]:
    """
    >>> from_id(to_id(Scope(user="anna"), "a/b"))
    (Scope(user='anna'), 'a/b')
    """
    try:
        place, sign, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("\n")
        scope = Scope.parse(place)
    except (ValueError, ScopeError):
        raise NotFoundError("Memory not found") from None
    if not sign or not id or to_id(scope, id) != text:
        raise NotFoundError("Memory not found")
    return scope, id


def _event(atom: Atom, event: str) -> dict[str, Any]:
    return {"id": to_id(_scope(atom), atom.id), "memory": atom.text, "event": event}


def _scope(item: Item) -> Scope:
    assert item.scope is not None  # whatever a store gives has one
    return item.scope


def _time(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
