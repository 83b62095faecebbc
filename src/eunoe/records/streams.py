"""Settings at rest: the presets, what was changed in them, and which streams a conversation feeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from eunoe.errors import InputError, LlmError, ScopeError
from eunoe.model.atom import KINDS, name_of
from eunoe.model.scope import Scope
from eunoe.model.settings import PRESETS, Settings, settings_of
from eunoe.model.stream import Stream, Target
from eunoe.records.rows import encode
from eunoe.store.books import SettingsRow
from eunoe.store.contract import Store, StreamRow

LAYERS = frozenset({"agent", "user", "session", "thread", "shard"})
_STORED = "presets"
_TALKS = ("session", "thread")


def presets(store: Store) -> dict[str, Settings]:
    """The built-in presets with their changes, then those that were added, by name."""
    return dict(_presets(store.get_meta(_STORED) or "{}"))


@lru_cache(maxsize=16)
def _presets(stored: str) -> Mapping[str, Settings]:
    changes = json.loads(stored)
    names = [*PRESETS, *sorted(changes.keys() - PRESETS.keys())]
    return {name: settings_of(PRESETS.get(name), changes.get(name, {})) for name in names}


def put_preset(store: Store, name: str, like: str, changes: Mapping[str, Any]) -> Settings:
    """Changes a preset or makes one; `like` gives a new one its start."""
    known = presets(store)
    stored = json.loads(store.get_meta(_STORED) or "{}")
    if like and like not in known:
        raise InputError(f"there is no preset {like!r}: there are {', '.join(known)}")
    if like and name in known:
        raise InputError(f"preset {name!r} is there already: change it without `like`")
    _check_models(changes)
    start = _plain(known[like]) if like else stored.get(name, {})
    changed = _readable({**start, **changes})
    settings = settings_of(PRESETS.get(name), changed)
    store.set_meta(_STORED, encode({**stored, _name(name): changed}))
    return settings


def configure(store: Store, scope: Scope, preset: str, changes: Mapping[str, Any]) -> Settings:
    """Changes the settings of one stream; it keeps its preset unless another is named."""
    known = presets(store)
    here = store.stream(str(scope))
    row = store.books.settings(here.id) if here else None
    kind = preset or (row.preset if row else _fitting(known, scope))
    if kind not in known:
        raise InputError(f"there is no preset {kind!r}: there are {', '.join(known)}")
    _check_owner(scope, kind, known[kind])
    if "owner" in changes:
        raise InputError("a stream's owner is its scope: change the owner of a preset instead")
    _check_models(changes)
    changed = _readable({**(json.loads(row.changes) if row else {}), **changes})
    settings = known[kind].changed(**changed)
    stream = store.make_stream(str(scope))
    store.books.put_settings(SettingsRow(stream.id, kind, encode(changed)))
    store.advance(stream.id)
    return settings


def found(store: Store, scope: Scope) -> tuple[str, Settings] | None:
    """Preset and settings of the stream of this very scope; None if no preset has such streams."""
    known = presets(store)
    own = _own(store, scope, known)
    if own:
        return own
    kind = next((name for name, settings in known.items() if _is_of(scope, settings)), None)
    return (kind, known[kind]) if kind else None


def targets(store: Store, conversation: Scope, users: Sequence[str] = ()) -> list[Target]:
    """The active streams that a conversation feeds and its context shows, each once."""
    known = presets(store)
    chosen: dict[Scope, Target] = {}
    for target in _candidates(store, known, conversation, users):
        chosen.setdefault(target.scope, target)
    return [target for target in chosen.values() if target.settings.is_active]


def may_form(store: Store, conversation: Scope) -> bool:
    """Whether a conversation can feed any stream at all; cheap, and never wrong when it says no."""
    known = presets(store).values()
    return any(key in conversation for settings in known for key in settings.owner)


def holds(store: Store, stream: StreamRow, forgotten: bool = False) -> bool:
    """Whether anything is left in a stream; `forgotten` counts the fingerprints of what was forgotten too."""
    books = store.books
    if store.page(stream.id, 0, 1, ("message", *KINDS), True):
        return True
    if books.settings(stream.id) or books.session(stream.id) or books.revisions(stream.id):
        return True
    return forgotten and any(store.tombstones(stream.id))


def described(store: Store, scopes: Sequence[Scope]) -> list[Stream]:
    """The streams of these scopes that a preset has settings for."""
    return [stream for scope in scopes if (stream := _described(store, scope))]


def _described(store: Store, scope: Scope) -> Stream | None:
    kind = found(store, scope)
    row = store.stream(str(scope))
    if kind is None or row is None:
        return None
    summary = store.books.summary(row.id)
    revision = store.books.revision(row.id, summary.revision) if summary and summary.revision else None
    return Stream(
        scope=scope,
        preset=kind[0],
        settings=kind[1],
        version=row.version,
        revision=revision.number if revision else 0,
        summary=revision.text if revision else "",
        facts=store.books.living(row.id, "fact"),
        observations=store.books.unabsorbed_count(row.id),
    )


def _candidates(
    store: Store, known: Mapping[str, Settings], conversation: Scope, users: Sequence[str]
) -> Iterator[Target]:
    everyone = list(dict.fromkeys([*([conversation["user"]] if "user" in conversation else []), *users]))
    for kind, settings in known.items():
        last = settings.owner[-1]
        if last == "user":
            for user in everyone:
                scope = _projected(Scope(**{**conversation, "user": user}), settings)
                yield _target(store, known, kind, scope, user)
        elif last in conversation:
            yield _target(store, known, kind, _projected(conversation, settings))
        else:
            yield from _by_hand(store, known, kind, conversation)


def _by_hand(store: Store, known: Mapping[str, Settings], kind: str, conversation: Scope) -> Iterator[Target]:
    """Streams that were set up one by one under what the conversation belongs to; another conversation's own is none
    of them."""
    last = known[kind].owner[-1]
    kept = _kept(conversation, known[kind])
    if not kept or last in _TALKS:
        return
    for stream, row in store.books.configured():
        scope = Scope.parse(stream.scope)
        if row.preset == kind and last in scope and _without(scope, last) == kept:
            yield Target(kind, scope, known[kind].changed(**json.loads(row.changes)))


def _target(store: Store, known: Mapping[str, Settings], kind: str, scope: Scope, user: str = "") -> Target:
    own = _own(store, scope, known)
    return Target(own[0] if own else kind, scope, own[1] if own else known[kind], user)


def _own(store: Store, scope: Scope, known: Mapping[str, Settings]) -> tuple[str, Settings] | None:
    stream = store.stream(str(scope))
    row = store.books.settings(stream.id) if stream else None
    if row is None or row.preset not in known:
        return None
    return row.preset, known[row.preset].changed(**json.loads(row.changes))


def _kept(conversation: Scope, settings: Settings) -> dict[str, str]:
    """What of a conversation's scope says whose memory it is. Keys that are no layer are never dropped: that would
    show one project's memory in another."""
    return {key: value for key, value in conversation.items() if key in settings.owner or key not in LAYERS}


def _projected(conversation: Scope, settings: Settings) -> Scope:
    return Scope(**_kept(conversation, settings))


def _without(scope: Scope, key: str) -> dict[str, str]:
    return {name: value for name, value in scope.items() if name != key}


def _is_of(scope: Scope, settings: Settings) -> bool:
    """Whether streams of this preset have scopes of this shape."""
    return settings.owner[-1] in scope and _kept(scope, settings) == dict(scope)


def _fitting(known: Mapping[str, Settings], scope: Scope) -> str:
    fitting = [name for name, settings in known.items() if _is_of(scope, settings)]
    if not fitting:
        raise ScopeError(f"no preset has streams such as {scope}: name one of {', '.join(known)}, or make one for it")
    return fitting[0]


def _check_owner(scope: Scope, kind: str, settings: Settings) -> None:
    if not _is_of(scope, settings):
        raise ScopeError(f"{scope} is no stream of preset {kind!r}, whose streams have the keys {settings.owner}")


def _check_models(changes: Mapping[str, Any]) -> None:
    """A model that can be none is refused when it is named, not when it is asked."""
    from eunoe.llm import check

    for name in ("extraction_model", "consolidation_model"):
        if isinstance(spec := changes.get(name, ""), str):
            try:
                check(spec)
            except LlmError as error:
                raise InputError(f"{name}: {error}") from error


def _name(name: str) -> str:
    if not name or not name_of(name, "preset").isidentifier():
        raise InputError(f"preset {name!r} is no name: use letters, digits and _")
    return name


def _plain(settings: Settings) -> dict[str, Any]:
    return _readable(asdict(settings))


def _readable(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes as JSON carries them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()}
