"""The scopes that filters mean, and the conditions on metadata that are left for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from heapq import merge
from typing import Any, Final, NamedTuple

import eunoe.memory
from eunoe.hosts.mem0.arguments import OWNERS
from eunoe.hosts.mem0.filters import own_keys, rest_of
from eunoe.hosts.mem0.payload import created_at
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope, ScopeLike

DELETIONS: Final[Mapping[str, str]] = {"mem0": "deleted"}
"""What a scope has besides its owner if it only notes which memories were deleted."""
_MAX_PAGE: Final = 1000


class ScopeGroup(NamedTuple):
    """Scopes for which the same conditions are left."""

    scopes: list[ScopeLike]
    where: dict[str, Any] | None


def find_groups(memory: eunoe.memory.Memory, filters: Mapping[str, Any]) -> list[ScopeGroup]:
    """Scopes that filters mean. Those that no id of theirs fits are not even looked at."""
    groups: dict[str, ScopeGroup] = {}
    for scope in owned_scopes(memory, own_keys(filters)):
        rest = rest_of(filters, scope)
        if rest is not False:
            groups.setdefault(repr(rest), ScopeGroup([], None if rest is True else rest)).scopes.append(scope)
    return list(groups.values())


def owned_scopes(memory: eunoe.memory.Memory, keys: Mapping[str, str] = {}) -> list[Scope]:
    """Scopes of users, agents and runs that hold memories, or those of them that have these keys."""
    return [scope for scope in memory.scopes(**keys) if holds_memories(scope)]


def holds_memories(scope: Scope) -> bool:
    return has_owner(scope) and not DELETIONS.items() <= scope.pairs.items()


def has_owner(scope: Scope) -> bool:
    return not scope.pairs.keys().isdisjoint(OWNERS.values())


def list_latest(
    memory: eunoe.memory.Memory, groups: Iterable[ScopeGroup], most: int, show_expired: bool
) -> Iterator[Atom]:
    """All memories of groups, the latest first, read in pages that hold the `most` that are wanted."""
    now, size = utc_now(), min(max(most, 1), _MAX_PAGE)
    each = [_pages(memory, scope, group.where, size) for group in groups for scope in group.scopes]
    for atom in merge(*each, key=created_at, reverse=True):
        if show_expired or not is_expired(atom, now):
            yield atom


def _pages(memory: eunoe.memory.Memory, scope: ScopeLike, where: dict[str, Any] | None, size: int) -> Iterator[Atom]:
    after = ""
    while True:
        page = memory.list(scope, kinds=ATOM_KINDS, where=where, newest=True, limit=size, after=after, exact=True)
        yield from (item for item in page.items if isinstance(item, Atom) and not item.in_review)
        if not (after := page.next):
            return


def is_expired(atom: Atom, now: datetime) -> bool:
    return atom.valid_to is not None and atom.valid_to <= now
