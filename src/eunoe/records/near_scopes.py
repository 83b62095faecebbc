"""Scopes that are nearly the one that was asked for: told where that one holds nothing."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from eunoe.model.atom import Bounds
from eunoe.model.scope import ALIASES, Scope
from eunoe.store.contract import Store, streams_of
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState

_MAX_STREAMS: Final = 5000
"""Streams that are looked at for longer scopes: an empty answer must not cost more the more others remember."""
_MAX_KEYS: Final = 6
_MAX_NAMED: Final = 3
_IMPERSONAL_KEYS: Final = frozenset({"agent", "app", "project", "shard"})
"""Their values name no person and may be shown to whoever did not name them."""


def near_scope_notes(store: Store, scopes: Sequence[Scope], bounds: Bounds, is_one: bool = False) -> tuple[str, ...]:
    """A note for each scope that holds nothing while a near one within the bounds does. Some verbs take one alone."""
    notes = []
    for scope in scopes:
        if not any(_holds_items(store, stream) for stream in streams_of(store, scope)):
            near = list(_near_scopes(store, scope.alone, bounds))
            if near:
                named = ", ".join(dict.fromkeys(_masked_text(each, scope) for each in near[:_MAX_NAMED]))
                can_widen = not (is_one or scope.within or "user" in scope.pairs)
                hint = f", or write {scope}/*" if can_widen and any(map(scope.everything.covers, near)) else ""
                notes.append(
                    f"{scope.alone} holds nothing, but {named} does: name every key of the scope you mean{hint}"
                )
    return tuple(notes)


def _masked_text(near: Scope, asked: Scope) -> str:
    """A near scope as it may be shown: who else there is, is nobody's business."""
    known = _IMPERSONAL_KEYS | asked.pairs.keys()
    return "/".join(f"{key}={value}" if key in known else f"{key}=..." for key, value in near.pairs.items())


def _near_scopes(store: Store, scope: Scope, bounds: Bounds) -> Iterator[Scope]:
    """Those with more keys, then those with fewer, then those with keys as other memories call them. What is out of
    bounds is not even looked for."""
    parts, tenant = scope.text.split("/"), scope.pairs.get("tenant", "")
    longer = store.streams(limit=_MAX_STREAMS, containing=parts, tenant=tenant)
    others = filter(bounds.covers, [*_shorter_scopes(scope), *_aliased_scopes(scope)])
    seen = {scope}
    for stream in (*filter(lambda each: bounds.covers(each.scope), longer), *map(store.stream, others)):
        if stream is None or stream.scope in seen:
            continue
        is_near = scope.is_near(stream.scope) or not ALIASES.keys().isdisjoint(stream.scope.pairs)
        if is_near and _holds_items(store, stream):
            seen.add(stream.scope)
            yield stream.scope


def _shorter_scopes(scope: Scope) -> Iterator[Scope]:
    keys = list(scope.pairs)[:_MAX_KEYS]
    for size in range(len(keys) - 1, 0, -1):
        for chosen in combinations(keys, size):
            yield scope.only(chosen)


def _aliased_scopes(scope: Scope) -> Iterator[Scope]:
    """The scope with one of its keys as an older store may have it."""
    for alias, key in ALIASES.items():
        if key in scope.pairs:
            yield Scope.of_pairs({alias if name == key else name: value for name, value in scope.pairs.items()})


def _holds_items(store: Store, stream: StreamState | None) -> bool:
    return bool(stream and stream.version and store.select(ItemQuery(stream.id, limit=1)))
