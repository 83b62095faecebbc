"""Streams: their settings and presets, which of them a conversation feeds, incognito sessions, and what is said where a
part of them is damaged."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from eunoe.errors import ConflictError, DamagedStoreError, InputError, ScopeError
from eunoe.model.arguments import show
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.message import Message
from eunoe.model.result import Damage, Receipt
from eunoe.model.scope import Scope
from eunoe.model.stream import PRESETS, Settings, Stream, Target, settings_of
from eunoe.records.revisions import current_revision, unabsorbed, unabsorbed_count
from eunoe.store.codec import dump_json
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import IncognitoMark, RevisionRecord, SessionState, SettingsRecord, StreamState
from eunoe.text.normalize import fingerprint

LAYERS = frozenset({"agent", "user", "session", "thread", "shard"})
"""Scope keys that presets choose among. All other keys, such as a tenant, always stay."""
_PRESETS_VALUE = "presets"
CONVERSATION_KEYS = ("session", "thread")
_ALL_STREAMS = 2**31
_MAX_NAMED = 200
"""Observations of a stream that wait for a summary: one summary takes in as many."""
_PROMPTS = ("extraction_prompt", "consolidation_prompt")


class StreamSettings(NamedTuple):
    """The preset and the settings of one stream."""

    preset: str
    settings: Settings


def load_presets(store: Reading) -> dict[str, Settings]:
    """The built-in presets with their changes, then those that were added, by name."""
    return dict(_read_presets(store.get_value(_PRESETS_VALUE) or "{}"))


def changed_presets(store: Reading) -> dict[str, Any]:
    """What was changed in each preset, and those that were added, whole."""
    return dict(json.loads(store.get_value(_PRESETS_VALUE) or "{}"))


@lru_cache(maxsize=16)
def _read_presets(stored: str) -> Mapping[str, Settings]:
    changes = json.loads(stored)
    names = [*PRESETS, *sorted(changes.keys() - PRESETS.keys())]
    return {name: settings_of(PRESETS.get(name), changes.get(name, {})) for name in names}


def save_preset(store: Writing, name: str, like: str, changes: Mapping[str, Any]) -> Settings:
    """Change a preset or make one; `like` gives a new one its start."""
    known, stored = load_presets(store), changed_presets(store)
    if like and like not in known:
        raise InputError(f"like: there is no preset {show(like)}: there are {', '.join(known)}")
    if like and name in known:
        raise InputError(f"name: preset {show(name)} is there already: change it without `like`")
    if not name.isidentifier():
        raise InputError(f"name: {show(name)} is no name: use letters, digits and _")
    start = _as_json(asdict(known[like])) if like else stored.get(name, {})
    changed = _as_json({**start, **changes})
    settings = settings_of(PRESETS.get(name), changed)
    store.set_value(_PRESETS_VALUE, dump_json({**stored, name: changed}))
    return settings


def configure_stream(store: Writing, scope: Scope, preset: str, changes: Mapping[str, Any]) -> Settings:
    """Change the settings of one stream; it keeps its preset unless another is named."""
    known = load_presets(store)
    here = store.stream(scope)
    own = _load_one(store, here)
    kind = preset or (own.preset if own else _fitting_preset(known, scope))
    if kind not in known:
        raise InputError(f"there is no preset {show(kind)}: there are {', '.join(known)}")
    if not _has_shape(scope, known[kind]):
        raise ScopeError(f"{scope} is no stream of preset {kind!r}, whose streams have the keys {known[kind].owner}")
    if "owner" in changes:
        raise InputError("a stream's owner is its scope: change the owner of a preset instead")
    changed = _as_json({**(own.changes if own else {}), **changes})
    settings = known[kind].changed(**changed)
    stream = here or store.create_stream(scope)
    store.save([SettingsRecord(stream.id, kind, changed)])
    store.advance(stream.id)
    return settings


def drop_prompts(store: Writing, stream: StreamState) -> tuple[str, ...]:
    """Take the texts out of a stream's settings, which may say something of whose they are; return them."""
    own = _load_one(store, stream)
    texts = {name: own.changes[name] for name in _PROMPTS if own.changes.get(name)} if own else {}
    if own and texts:
        left = {name: value for name, value in own.changes.items() if name not in texts}
        store.drop(SettingsRecord, stream=stream.id)
        store.save([own._replace(changes=left)] if left else [])
    return tuple(texts.values())


class SettingsReader:
    """Reads settings for one step: each stream's are read once."""

    def __init__(self, store: Reading, *streams: StreamState) -> None:
        self._store = store
        self._streams = {stream.scope.text: stream for stream in streams}
        """Those that the caller has read already."""
        self._own: dict[str, StreamSettings | None] = {}

    @cached_property
    def presets(self) -> Mapping[str, Settings]:
        return _read_presets(self._store.get_value(_PRESETS_VALUE) or "{}")

    def of(self, scope: Scope) -> StreamSettings | None:
        """The settings of the stream of this very scope; None if no preset has such streams."""
        if scope.text not in self._own:
            stream = self._streams.get(scope.text) or self._store.stream(scope)
            fitting = (StreamSettings(*pair) for pair in self.presets.items() if _has_shape(scope, pair[1]))
            self._own[scope.text] = self._changed_settings(_load_one(self._store, stream)) or next(fitting, None)
        return self._own[scope.text]

    def may_feed(self, conversation: Scope) -> bool:
        """Whether a conversation can feed any stream at all; cheap, and never wrong when it says no."""
        return any(key in conversation.pairs for settings in self.presets.values() for key in settings.owner)

    def targets(self, conversation: Scope, users: Sequence[str] = ()) -> list[Target]:
        """The active streams that a conversation feeds and its context shows, each once."""
        targets: dict[str, Target] = {}
        for target in self._candidates(conversation, users):
            targets.setdefault(target.scope.text, target)
        return [target for target in targets.values() if target.settings.is_active]

    def forming(self, conversation: Scope, users: Sequence[str] = ()) -> Settings | None:
        """What decides when a conversation is formed: the settings of its own stream, else of the first it feeds."""
        own = self.of(conversation)
        if own and own.settings.is_active:
            return own.settings
        return next((target.settings for target in self.targets(conversation, users)), None)

    def _candidates(self, conversation: Scope, users: Sequence[str]) -> Iterator[Target]:
        pairs = conversation.pairs
        everyone = list(dict.fromkeys([*([pairs["user"]] if "user" in pairs else []), *users]))
        for preset, settings in self.presets.items():
            last = settings.owner[-1]
            if last == "user":
                for user in everyone:
                    yield self._target(preset, _project(conversation.extended({"user": user}), settings), user)
            elif last in pairs:
                yield self._target(preset, _project(conversation, settings))
            else:
                yield from self._targets_by_hand(preset, conversation)

    def _target(self, preset: str, scope: Scope, user: str = "") -> Target:
        record = self._configured_streams[scope.text][1] if scope.text in self._configured_streams else None
        own = self._changed_settings(record) or StreamSettings(preset, self.presets[preset])
        return Target(own.preset, scope, own.settings, user)

    def _changed_settings(self, own: SettingsRecord | None) -> StreamSettings | None:
        preset = self.presets.get(own.preset) if own else None
        return StreamSettings(own.preset, preset.changed(**own.changes)) if own and preset else None

    def _targets_by_hand(self, preset: str, conversation: Scope) -> Iterator[Target]:
        """Streams that were set up one by one under what the conversation belongs to; another conversation's own is
        none of them."""
        settings = self.presets[preset]
        last = settings.owner[-1]
        kept = _kept_pairs(conversation, settings)
        if not kept or last in CONVERSATION_KEYS:
            return
        for scope, own in self._configured_streams.values():
            rest = {name: value for name, value in scope.pairs.items() if name != last}
            if own.preset == preset and last in scope.pairs and rest == kept:
                yield Target(preset, scope, settings.changed(**own.changes))

    @cached_property
    def _configured_streams(self) -> dict[str, tuple[Scope, SettingsRecord]]:
        """All streams with settings of their own, by their scopes' texts and in the order of these."""
        records = {record.stream: record for record in self._store.load(SettingsRecord)}
        streams = self._store.streams(ids=list(records)) if records else []
        return {stream.scope.text: (stream.scope, records[stream.id]) for stream in streams}


def describe_streams(store: Reading, keys: Mapping[str, str], bounds: Bounds = NO_BOUNDS) -> list[Stream]:
    """The streams that hold something, of scopes that have these keys and that a preset has settings for."""
    reader = SettingsReader(store)
    held = (stream for stream in written_streams(store, keys, bounds) if holds_anything(store, stream))
    return [described for stream in held if (described := describe_stream(store, reader, stream))]


def describe_stream(store: Reading, reader: SettingsReader, stream: StreamState) -> Stream | None:
    own = reader.of(stream.scope)
    if own is None:
        return None
    revision = current_revision(store, stream)
    moments = [moment for _, moment in store.last_recorded([stream.id])]
    moments += [revision.recorded] if revision and revision.recorded else []
    return Stream(
        scope=stream.scope,
        preset=own.preset,
        settings=own.settings,
        version=stream.version,
        revision=revision.number if revision else 0,
        summary=revision.text if revision else "",
        facts=store.count(ItemQuery(stream.id, kinds=("fact",), open=True, reviewed=True)),
        observations=unabsorbed_count(store, stream.id),
        in_review=store.count(ItemQuery(stream.id, open=True, in_review=True)),
        unabsorbed=tuple(record.id for record in unabsorbed(store, stream.id, limit=_MAX_NAMED)),
        updated=max(moments, default=None),
    )


def written_streams(store: Reading, keys: Mapping[str, str], bounds: Bounds = NO_BOUNDS) -> Iterator[StreamState]:
    """Streams within bounds that were ever written to, with these keys and no other tenant.

    One that was only named as a source was not written to."""
    tenant = bounds.keys.get("tenant") or keys.get("tenant", "")
    parts = [Scope.of_pairs({key: value}).text for key, value in keys.items()]
    # With keys, the database picks: a stream that is decoded only to be dropped costs far more than one that is not.
    streams = (
        store.streams(limit=_ALL_STREAMS, containing=parts, tenant=tenant) if keys else store.iterate_streams(tenant)
    )
    for stream in streams:
        is_asked = not keys or Scope.of_pairs(keys, within=True).covers(stream.scope)
        if stream.version and is_asked and bounds.covers(stream.scope):
            yield stream


def holds_anything(store: Reading, stream: StreamState, tombstones: bool = False) -> bool:
    """Whether anything is left in a stream; with `tombstones` these count too."""
    if store.select(ItemQuery(stream.id, limit=1)):
        return True
    if any(store.load(table, stream=stream.id) for table in (SettingsRecord, SessionState, RevisionRecord)):
        return True
    return tombstones and bool(store.tombstones(stream.id, limit=1))


def _load_one(store: Reading, stream: StreamState | None) -> SettingsRecord | None:
    found = store.load(SettingsRecord, stream=stream.id) if stream else []
    return found[0] if found else None


def _kept_pairs(conversation: Scope, settings: Settings) -> dict[str, str]:
    """What of a conversation's scope says whose memory it is. Keys that are no layer are never dropped: that would
    show one project's memory in another."""
    return {key: value for key, value in conversation.pairs.items() if key in settings.owner or key not in LAYERS}


def _project(conversation: Scope, settings: Settings) -> Scope:
    return conversation.only(_kept_pairs(conversation, settings))


def _has_shape(scope: Scope, settings: Settings) -> bool:
    return settings.owner[-1] in scope.pairs and len(_kept_pairs(scope, settings)) == len(scope.pairs)


def _fitting_preset(known: Mapping[str, Settings], scope: Scope) -> str:
    fitting = [name for name, settings in known.items() if _has_shape(scope, settings)]
    if not fitting:
        raise ScopeError(f"no preset has streams such as {scope}: name one of {', '.join(known)}, or make one for it")
    return fitting[0]


def _as_json(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in changes.items()}


def is_incognito(store: Reading, scope: Scope, session: str = "") -> bool:
    """Whether the session of this scope is incognito, or the one that a message in it names."""
    return bool(store.load(IncognitoMark, key=_marks(scope, session)))


def incognito_places(store: Reading, scope: Scope, messages: Sequence[Message]) -> set[int]:
    """The places of the messages that belong to an incognito session."""
    sessions = {message.session for message in messages}
    hidden = {session for session in sessions if is_incognito(store, scope, session)}
    return {place for place, message in enumerate(messages) if message.session in hidden} if hidden else set()


def all_receipts(messages: Sequence[Message], hidden: Set[int], kept: Sequence[Receipt]) -> list[Receipt]:
    """Receipts for all messages, also for those of an incognito session."""
    rest = iter(kept)
    return [Receipt("ignored", message.id) if place in hidden else next(rest) for place, message in enumerate(messages)]


def check_not_incognito(store: Reading, scope: Scope) -> None:
    """Refuse what would leave something behind in a session that is incognito."""
    if is_incognito(store, scope):
        raise ConflictError(f"{scope} is incognito, so that nothing of it is kept: take that mark off first")


def set_incognito(store: Writing, scope: Scope, on: bool, bounds: Bounds = NO_BOUNDS) -> None:
    """Mark a session as incognito, or take the mark off. Where the session is out of bounds, others have a part in it:
    then only the scope itself is marked."""
    session = _session_scope(scope)
    marked = [each for each in (session, scope) if bounds.covers(each)]
    if on and (_has_messages(store, session) if session in marked else _holds_messages(store, store.stream(scope))):
        raise ConflictError(f"{scope} has messages already: forget them first, then make it incognito")
    marks = [fingerprint(each.text) for each in marked]
    if on:
        store.save([IncognitoMark(marks[0])])
    else:
        store.drop(IncognitoMark, key=marks)


def _marks(scope: Scope, session: str = "") -> list[bytes]:
    """What a session may be marked by: itself, or the very scope that was given."""
    marked = [_session_scope(scope), scope]
    if session and session != scope.pairs.get("session"):
        with suppress(ScopeError):  # it is no name that a scope could have
            marked.append(_session_scope(scope.extended({"session": session})))
    return [fingerprint(each.text) for each in marked]


def _session_scope(scope: Scope) -> Scope:
    """A session whoever takes part in it: the same for each user and each thread."""
    last = next((key for key in ("session", "thread") if key in scope.pairs), "")
    return scope.only([key for key in scope.pairs if key == last or _is_outer(key)]) if last else scope


def _is_outer(key: str) -> bool:
    """Whether a key says where a session belongs, and not who takes part in it."""
    return key == "agent" or key not in LAYERS


def _holds_messages(store: Reading, stream: StreamState | None) -> bool:
    return bool(stream and store.select(ItemQuery(stream.id, kinds=("message",), limit=1)))


def _has_messages(store: Reading, session: Scope) -> bool:
    outer = {key: value for key, value in session.pairs.items() if _is_outer(key)}
    parts = [Scope(**{key: value}).text for key, value in outer.items()]
    streams = store.streams(limit=_ALL_STREAMS, containing=parts or ("=",), tenant=outer.get("tenant", ""))
    return any(_is_in_session(store, stream, session, outer) for stream in streams)


def _is_in_session(store: Reading, stream: StreamState, session: Scope, outer: dict[str, str]) -> bool:
    if _session_scope(stream.scope) == session:
        return _holds_messages(store, stream)
    own = {key: value for key, value in stream.scope.pairs.items() if _is_outer(key)}
    name = session.pairs.get("session")
    return bool(name and own == outer and store.select(ItemQuery(stream.id, session=name, limit=1)))


_MOST_ROWS: Final = 1000
"""Of a stream that is read whole before a part of it is shown: about 20 ms."""


def damage_notes(damage: Iterable[Damage]) -> tuple[str, ...]:
    """What a caller is told of damage that was left out."""
    return tuple(f"damaged, and left out: {each}" for each in damage)


def stream_notes(store: Reading, streams: Iterable[StreamState | None]) -> tuple[str, ...]:
    """What a caller is told who was shown a part of some streams: to be called when that part was read."""
    return damage_notes(damage for stream in streams if stream for damage in store.damage(stream.id, _MOST_ROWS))


def check_undamaged(store: Reading, stream: StreamState) -> None:
    """Raise DamagedStoreError if something of a stream is lost: what was not found may have been there."""
    if damage := store.damage(stream.id):
        raise DamagedStoreError(
            f"it cannot be told whether {stream.scope} holds it, because the store is damaged ({damage[0]}): "
            "restore a backup, or run `eunoe check` to see all that is lost"
        )


def renew_vectors(store: Store) -> None:
    """Mark the records whose vectors are lost, so that these are made again."""
    seqs = list(store.lost_vectors)

    def renew(store: Writing) -> None:
        records = store.select(ItemQuery(seqs=seqs))
        versions = {stream: store.advance(stream).version for stream in {record.stream for record in records}}
        store.update([record._replace(pending=True, version=versions[record.stream]) for record in records])

    store.write((), renew)
    store.lost_vectors.difference_update(seqs)
