"""Forgetting: which records go, what goes with them, and what keeps them from coming back.

`remove` is the procedure, in one step of the store. `Reach` finds what rests on what goes,
`records/scrubbing.py` wipes the bytes off the disk, and `records/traces.py` searches for what should be gone.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from eunoe.errors import NotFoundError
from eunoe.model.arguments import show
from eunoe.model.atom import NO_BOUNDS, Bounds, Record, SourcePlace, source_place, unique_supports
from eunoe.model.result import ForgetReport
from eunoe.model.scope import Scope
from eunoe.model.turn import AFTER, hand_on, in_order, speaking_user, speaking_users, user_named_by
from eunoe.records.identity import (
    id_identity,
    message_content,
    new_tombstone_identities,
    record_content,
    session_hash,
    time_identity,
    words_identity,
)
from eunoe.records.log import forget_in_session, linked_streams
from eunoe.records.reading import find_records
from eunoe.records.revisions import cut_forgotten, drop_revisions, purge_revisions
from eunoe.records.scrubbing import mark_scrub_due
from eunoe.records.streams import SettingsReader, drop_prompts
from eunoe.records.versions import all_versions, bridge_gaps, reworded_versions
from eunoe.store.codec import dump_json
from eunoe.store.contract import ItemQuery, Reading, Writing, streams_of
from eunoe.store.schema import RevisionRecord, StreamLink, StreamState, Tombstone
from eunoe.text.normalize import SPACELESS, normalize_name
from eunoe.work.leases import forget_in_leases


class _Supported(NamedTuple):
    """An atom and the groups that bear it out, each member by its scope and id."""

    record: Record
    groups: tuple[frozenset[SourcePlace], ...]


class Reach:
    """Follows what rests on forgotten records, in whatever stream it is and however far away."""

    def __init__(self, store: Reading) -> None:
        self._store = store
        self._streams: dict[int, StreamState] = {}
        self._fallen: dict[int, dict[int, Record]] = {}
        self._supported: dict[int, list[_Supported]] = {}
        self._gone: set[SourcePlace] = set()
        self._named: set[SourcePlace] = set()
        """What the chosen atoms came from."""
        self._chosen: set[SourcePlace] = set()
        self._newer: dict[SourcePlace, None] = {}

    def add(self, stream: StreamState, records: Iterable[Record], chosen: bool = True) -> None:
        """Let records of one stream fall: with all their versions if they were chosen, else with those made out of
        their words."""
        self._streams.setdefault(stream.id, stream)
        fallen = self._fallen.setdefault(stream.id, {})
        records = list(records)
        self._chosen |= {(stream.scope, record.id) for record in records if chosen}
        for record in records:
            if record.seq not in fallen:
                versions = self._versions(stream, record, chosen)
                fallen |= {version.seq: version for version in versions}
                self._gone |= {(stream.scope, version.id) for version in versions}
                if chosen:
                    names = (name for version in versions for name in version.sources)
                    self._named |= {source_place(name, stream.scope) for name in names}
                    places = [(stream.scope, version.id) for version in versions]
                    self._newer |= dict.fromkeys(places[places.index((stream.scope, record.id)) + 1 :])

    def _versions(self, stream: StreamState, record: Record, chosen: bool) -> list[Record]:
        if record.kind == "message":
            return [record]
        return all_versions(self._store, stream, record) if chosen else reworded_versions(self._store, record)

    def spread(self) -> None:
        """Follow everything that rests on what fell, until nothing more falls."""
        while True:
            for stream in [stream for stream in self.streams() if self._fallen[stream.id]]:
                for near in (stream, *self._resting_on(stream)):
                    self._load(near)
            falling = {number: self._find_falling(number) for number in self._supported}
            if not any(falling.values()):
                return
            for number, records in falling.items():
                self.add(self._streams[number], records, chosen=False)

    def _resting_on(self, stream: StreamState) -> list[StreamState]:
        links = self._store.load(StreamLink, source=stream.id)
        return self._store.streams(ids=[link.stream for link in links]) if links else []

    def streams(self) -> list[StreamState]:
        """Those that were named first, then those that were reached."""
        return list(self._streams.values())

    def touches(self, stream: StreamState) -> bool:
        return bool(self._fallen[stream.id] or self.weakened(stream))

    def fallen(self, stream: StreamState) -> list[Record]:
        records = self._fallen[stream.id]
        return [records[seq] for seq in sorted(records)]

    @property
    def origins(self) -> set[SourcePlace]:
        """What the chosen atoms came from and does not fall itself."""
        return self._named - self._gone

    @property
    def corrections(self) -> list[str]:
        """Ids of the newer versions of what was chosen that were not chosen themselves."""
        return [id for scope, id in self._newer if (scope, id) not in self._chosen]

    def weakened(self, stream: StreamState) -> list[Record]:
        """Atoms that stay, on the supports that are left to them."""
        return [
            each.record._replace(supports=_standing_supports(each, self._gone))
            for each in self._supported.get(stream.id, ())
            if each.record.seq not in self._fallen[stream.id] and any(map(self._is_hit, each.groups))
        ]

    def _load(self, stream: StreamState) -> None:
        if stream.id not in self._supported:
            self.add(stream, ())
            records = self._store.select(ItemQuery(stream.id, supported=True))
            self._supported[stream.id] = [_read_supports(record, stream) for record in records]

    def _find_falling(self, number: int) -> list[Record]:
        fallen = self._fallen[number]
        return [
            each.record
            for each in self._supported[number]
            if each.record.seq not in fallen and all(map(self._is_hit, each.groups))
        ]

    def _is_hit(self, group: frozenset[SourcePlace]) -> bool:
        return not self._gone.isdisjoint(group)


def _read_supports(record: Record, stream: StreamState) -> _Supported:
    groups = (frozenset(source_place(name, stream.scope) for name in group) for group in record.supports)
    return _Supported(record, tuple(groups))


def _standing_supports(each: _Supported, gone: Set[SourcePlace]) -> tuple[tuple[str, ...], ...]:
    pairs = zip(each.record.supports, each.groups, strict=True)
    return unique_supports(names for names, group in pairs if gone.isdisjoint(group))


_MAX_NAMED: Final = 10
"""Missing ids that an error names."""
_UNREACHED: Final = "what this came from or was said in, where it is out of reach: use a key that reaches it"
_COPIES: Final = "exports, backups, replicas and other copies made before"


class Selection(Protocol):
    """Says which records of what a scope means are to go."""

    @property
    def whole(self) -> bool:
        """Whether everything in the scope goes."""

    @property
    def person(self) -> str:
        """The name of the person who is forgotten, if it is a person."""

    @property
    def mentions(self) -> bool:
        """Whether what others said of the person goes too."""

    def records(self, store: Reading, scope: Scope) -> list[Record]: ...


@dataclass(frozen=True, slots=True)
class ByIds:
    """Records with these ids; all must be there, or have been forgotten before. `@SCOPE#ID` names one within."""

    ids: Sequence[str]
    whole: bool = False
    person: str = ""
    mentions: bool = False

    def records(self, store: Reading, scope: Scope) -> list[Record]:
        wanted = defaultdict[Scope, list[str]](list)
        for name in self.ids:
            owner, id = source_place(name, scope.alone)
            is_within = owner != scope.alone and scope.covers(owner)
            wanted[owner if is_within else scope].append(id if owner == scope.alone or is_within else name)
        records, missing = [], set[str]()
        for owner, ids in wanted.items():
            found = find_records(store, owner, ids)
            left = set(ids) - {record.id for record in found}
            for stream in streams_of(store, owner) if left else ():
                tombstones = store.tombstones(stream.id, list(map(id_identity, left)))
                forgotten = {tombstone.identity for tombstone in tombstones}
                left = {id for id in left if id_identity(id) not in forgotten}
            records += found
            missing |= left
        if missing:
            named = ", ".join(map(show, sorted(missing)[:_MAX_NAMED]))
            raise NotFoundError(f"there is no memory {named} in this scope; nothing was removed")
        return records


@dataclass(frozen=True, slots=True)
class Everything:
    whole: bool = True
    person: str = ""
    mentions: bool = False

    def records(self, store: Reading, scope: Scope) -> list[Record]:
        return [record for stream in streams_of(store, scope) for record in store.iterate(ItemQuery(stream.id))]


@dataclass(frozen=True, slots=True)
class ByPerson:
    """What a person said and what was noted about them; with `mentions` also what others said of them."""

    person: str
    mentions: bool = False
    whole: bool = False

    def records(self, store: Reading, scope: Scope) -> list[Record]:
        wanted, is_mentioned = normalize_name(self.person), mention_matcher(self.person)
        return [
            record
            for stream in streams_of(store, scope)
            for record in store.iterate(ItemQuery(stream.id))
            if wanted in map(normalize_name, _owners(record, stream.scope))
            or (self.mentions and is_mentioned(_all_words(record)))
        ]


def _owners(record: Record, scope: Scope) -> tuple[str, ...]:
    """Whose a record is known to be. A message that names nobody is the user's to whom the conversation belongs."""
    if record.kind != "message":
        return record.people
    return (record.speaker or speaking_user(record, scope), user_named_by(record))


def _all_words(record: Record) -> str:
    """All of a record that may name somebody: its text, what its picture shows, and its metadata."""
    metadata = json.dumps(record.metadata, ensure_ascii=False) if record.metadata else ""
    return f"{record.content}\n{record.speaker}\n{metadata}"


def mention_matcher(person: str) -> Callable[[str], bool]:
    """Whether a text has the name as a word of its own; letters of a script without spaces are no part of a word."""
    name = normalize_name(person)
    spaceless = re.compile(f"[{SPACELESS}]")
    before = "" if spaceless.match(name[:1]) else rf"(?<![^\W{SPACELESS}])"
    after = "" if spaceless.match(name[-1:]) else rf"(?![^\W{SPACELESS}])"
    pattern = re.compile(before + re.escape(name) + after)
    return lambda text: pattern.search(normalize_name(text)) is not None


class Held(NamedTuple):
    """What stays and still has the words."""

    places: Mapping[Scope, tuple[str, ...]]
    """Ids by scope."""
    is_own: bool = False
    """Whether some of it is in the scopes that were named, or is what a memory came from."""
    is_unreached: bool = False
    """Whether some of it may be out of bounds."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What was taken out of one stream."""

    stream: StreamState
    records: tuple[Record, ...]
    vectors: int = 0
    mentions: tuple[str, ...] = ()
    """Ids of what stays but mentions the forgotten person."""
    is_mentioned_in_summary: bool = False
    revisions: int = 0
    """Revisions of its summary that went."""
    rebuild: bool = False
    """Whether its summary must be written anew."""
    prompts: tuple[str, ...] = ()
    """Texts of its settings that went."""


class Forgotten(NamedTuple):
    """What was taken out of a store."""

    removals: list[Removal]
    origins: frozenset[SourcePlace]
    """What the chosen memories came from, where it was not taken out too."""
    corrections: Sequence[str]
    """Ids of the newer versions of what was chosen, which went with it."""
    is_unreached: bool
    """Whether conversations with a user who is forgotten whole are out of bounds."""


def remove(
    store: Writing, scopes: Sequence[Scope], selection: Selection, may_return: bool, bounds: Bounds = NO_BOUNDS
) -> Forgotten:
    """Take records out with everything that rests on them in any scope, and leave tombstones unless they may return."""
    reach = Reach(store)
    asked = _add_selected(store, reach, scopes, selection)
    shared, is_unreached = _add_said_elsewhere(store, reach, scopes, selection, asked, bounds)
    reach.spread()
    own = asked | _add_shown(store, reach, bounds)
    touched = [stream for stream in reach.streams() if stream.id in own or stream.id in shared or reach.touches(stream)]
    gone = [text for stream in touched for record in reach.fallen(stream) for text in (record.text, record.caption)]
    is_mentioned = mention_matcher(selection.person) if selection.person else None
    removals = []
    for stream in touched:
        whole = selection.whole and stream.id in asked
        is_unwanted = is_mentioned if selection.mentions and stream.id in asked else None
        removals.append(
            _remove_from(store, stream, reach, may_return, whole, is_unwanted, gone if stream.id in own else ())
        )
        forget_in_session(store, stream, whole, shared.get(stream.id, selection.person))
        forget_in_leases(store, stream.id, linked_streams(store, stream.id), removals[-1].records, whole)
    if is_mentioned is not None:
        removals = [
            _with_mentions(store, removal, is_mentioned) if removal.stream.id in asked else removal
            for removal in removals
        ]
    return Forgotten(removals, frozenset(reach.origins), reach.corrections, is_unreached)


def _add_said_elsewhere(
    store: Reading, reach: Reach, scopes: Sequence[Scope], selection: Selection, asked: Set[int], bounds: Bounds
) -> tuple[dict[int, str], bool]:
    """Let fall what users who are forgotten whole said in conversations with others, within bounds. Return the names of
    these users, by the streams of the conversations, and whether some are out of bounds."""
    found, is_unreached = dict[int, str](), False
    for scope in scopes if selection.whole else ():
        if not scope.within or "user" not in scope.pairs:
            continue
        user = scope.pairs["user"]
        for stream, records in _said_by(store, user).items():
            rest = {**stream.scope.pairs, "user": user}.items()
            is_meant = scope.pairs.items() <= rest and scope.pairs.get("tenant") == stream.scope.pairs.get("tenant")
            if stream.id in asked or not is_meant:
                continue
            if bounds.covers(stream.scope):
                reach.add(stream, records)
                found[stream.id] = user
            else:
                is_unreached = True
    return found, is_unreached


def _said_by(store: Reading, user: str) -> dict[StreamState, list[Record]]:
    """The messages that name this user, by their streams. Any conversation may have some, so all are looked through."""
    named = [[dump_json({"user": user})[1:-1]]]
    records = store.iterate(ItemQuery(kinds=("message",), metadata_parts=named))
    said = [record for record in records if user_named_by(record) == user]
    streams = store.streams(ids=sorted({record.stream for record in said})) if said else []
    return {stream: [record for record in said if record.stream == stream.id] for stream in streams}


def _add_selected(store: Reading, reach: Reach, scopes: Sequence[Scope], selection: Selection) -> set[int]:
    """Let what was selected fall; return the streams of the scopes that were named."""
    asked = set()
    for scope in scopes:
        records = selection.records(store, scope)
        for stream in streams_of(store, scope):
            asked.add(stream.id)
            own = [record for record in records if record.stream == stream.id]
            reach.add(stream, [*own, *_archived_duplicates(store, stream, own)])
    return asked


def _add_shown(store: Reading, reach: Reach, bounds: Bounds) -> set[int]:
    """Add the streams of the same users, within bounds, that a context of what fell shows: their summaries may say it.
    Return their numbers."""
    reader = SettingsReader(store)
    fallen = [(stream.scope, records) for stream in reach.streams() if (records := reach.fallen(stream))]
    targets = {
        target.scope
        for scope, records in fallen
        for target in reader.targets(scope, speaking_users(records, scope))
        if target.user
    }
    shown = [stream for scope in targets if bounds.covers(scope) and (stream := store.stream(scope))]
    for stream in shown:
        reach.add(stream, ())
    return {stream.id for stream in shown}


def _archived_duplicates(store: Reading, stream: StreamState, records: Sequence[Record]) -> list[Record]:
    """Archived atoms that say the same as one of these: put away, but not forgotten."""
    atoms = [record for record in records if record.kind != "message"]
    contents = {identity for record in atoms for identity in new_tombstone_identities(record.text)}
    if not contents:
        return []
    archived = store.select(ItemQuery(stream.id, archived=True))
    return [record for record in archived if record.kind != "message" and record_content(record) in contents]


def _remove_from(
    store: Writing,
    stream: StreamState,
    reach: Reach,
    may_return: bool,
    whole: bool,
    is_unwanted: Callable[[str], bool] | None,
    gone: Sequence[str],
) -> Removal:
    records, weakened = reach.fallen(stream), reach.weakened(stream)
    texts = [revision.text for revision in store.load(RevisionRecord, stream=stream.id)]
    is_touched = whole or records or weakened or any(map(is_unwanted or (lambda _: False), texts))
    vectors = _delete(store, stream, records, weakened) if is_touched else 0
    if not may_return:
        store.add_tombstones(stream.id, [tombstone for record in records for tombstone in _tombstones(record, whole)])
    rebuild, prompts = False, tuple[str, ...]()
    if whole:
        drop_revisions(store, stream)
        prompts = drop_prompts(store, stream) if "user" in stream.scope.pairs else ()
    else:
        rebuild = _purge_revisions(store, stream, records, is_unwanted, gone)
    left = len(store.load(RevisionRecord, stream=stream.id))
    return Removal(stream, tuple(records), vectors, revisions=len(texts) - left, rebuild=rebuild, prompts=prompts)


def _purge_revisions(
    store: Writing,
    stream: StreamState,
    records: Sequence[Record],
    is_unwanted: Callable[[str], bool] | None,
    gone: Sequence[str],
) -> bool:
    atoms = [record.id for record in records if record.kind != "message"]
    observed = min((record.recorded for record in records if record.kind == "observation"), default=None)
    return purge_revisions(store, stream, atoms, is_unwanted, observed, cut_forgotten(store, stream, gone))


def _delete(store: Writing, stream: StreamState, records: Sequence[Record], weakened: Sequence[Record]) -> int:
    """Delete records, and write those that lose a source or a version to them; return the number of vectors."""
    version = store.advance(stream.id).version
    mark_scrub_due(store, stream, version)
    store.update([record._replace(version=version) for record in weakened])
    bridged = [*bridge_gaps(store, stream, records), *_hand_on_places(store, stream, records)]
    vectors = store.delete(stream.id, [record.seq for record in records], version)
    store.update([record._replace(version=version) for record in bridged])
    return vectors


def _hand_on_places(store: Reading, stream: StreamState, removed: Sequence[Record]) -> list[Record]:
    """Messages of a chat that were put after a removed one, put after the one before that."""
    ids = {record.id for record in removed if AFTER in record.metadata}
    if not ids:
        return []
    messages = in_order(store.iterate(ItemQuery(stream.id, kinds=("message",))))
    names = hand_on(messages, ids)
    return [
        record._replace(metadata={**record.metadata, AFTER: names[record.id]})
        for record in messages
        if record.id in names
    ]


def _with_mentions(store: Reading, removal: Removal, is_mentioned: Callable[[str], bool]) -> Removal:
    items = store.iterate(ItemQuery(removal.stream.id))
    revisions = store.load(RevisionRecord, stream=removal.stream.id)
    return replace(
        removal,
        mentions=tuple(record.id for record in items if is_mentioned(_all_words(record))),
        is_mentioned_in_summary=any(is_mentioned(revision.text) for revision in revisions),
    )


def _tombstones(record: Record, whole: bool) -> Iterator[Tombstone]:
    if record.kind != "message":
        yield from map(Tombstone, [id_identity(record.id), *new_tombstone_identities(record.text)])
        return
    content = message_content(record)
    yield Tombstone(record.identity, content, session_hash(record.session), record.position)
    identities = [id_identity(record.id)]
    if record.time is not None:
        identities.append(time_identity(record.time, content))
    if not whole:  # when a whole scope went, small talk such as "hello" must be free to be said again
        identities.append(words_identity(content))
    yield from (Tombstone(identity) for identity in identities if identity != record.identity)


def forget_report(
    removals: Sequence[Removal],
    rebuilt: Sequence[Scope],
    held: Held,
    traces: Sequence[str] | None,
    unscrubbed: str,
    notes: tuple[str, ...] = (),
) -> ForgetReport:
    """What was removed; `traces` is None if nobody looked, `unscrubbed` says what is still to be wiped."""
    found = tuple(filter(None, [*(traces or ()), unscrubbed]))
    mentions, summaries = _places_of_mentions(removals)
    is_gone = not (found or mentions or summaries or held.is_own or held.is_unreached)
    changed = [removal for removal in removals if removal.records or removal.revisions or removal.prompts]
    return ForgetReport(
        messages=_removed_ids(removals, are_messages=True),
        atoms=_removed_ids(removals, are_messages=False),
        vectors=sum(removal.vectors for removal in removals),
        removed={removal.stream.scope: tuple(record.id for record in removal.records) for removal in changed},
        held_by=held.places,
        unsearched=(*([_UNREACHED] if held.is_unreached else ()), *([_COPIES] if changed else ())),
        mentions=tuple(id for ids in mentions.values() for id in ids),
        mentions_by_scope=mentions,
        summaries=summaries,
        verified=None if traces is None else is_gone,
        traces=found,
        revisions=sum(removal.revisions for removal in removals),
        rebuilt=tuple(rebuilt),
        notes=notes,
    )


def correction_notes(ids: Sequence[str]) -> tuple[str, ...]:
    """Say that corrections went with what they correct."""
    more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
    return (f"Newer versions of what was named went too: {', '.join(ids[:_MAX_NAMED])}{more}",) if ids else ()


def _places_of_mentions(removals: Sequence[Removal]) -> tuple[dict[Scope, tuple[str, ...]], tuple[Scope, ...]]:
    """Ids by scope, and the scopes of summaries."""
    ids = {removal.stream.scope: removal.mentions for removal in removals if removal.mentions}
    return ids, tuple(removal.stream.scope for removal in removals if removal.is_mentioned_in_summary)


def _removed_ids(removals: Sequence[Removal], are_messages: bool) -> tuple[str, ...]:
    records = [record for removal in removals for record in removal.records]
    return tuple(record.id for record in records if (record.kind == "message") == are_messages)
