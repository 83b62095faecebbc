"""The verbatim log: which of the messages given are new, where they go, how far a conversation has been formed, and
messages that are taken back.

A message is recognised by its id; without one, by its words and time; without either, by its words and place: the
opening messages of a batch that repeat the end of the log are a retry or a replayed history, what follows is new.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from eunoe.errors import ConflictError, InputError, ScopeError
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Record
from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings
from eunoe.model.turn import AFTER, FORMER, Turn, turns_to_form, weighted_tokens
from eunoe.records.atoms import find_record
from eunoe.records.identity import (
    Known,
    find_known,
    gap_identity,
    id_identity,
    message_content,
    new_ids,
    nth_identity,
    place_identity,
    repeatable_ids,
    session_hash,
    time_identity,
    words_identity,
)
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import Job, SessionState, StreamLink, StreamState, SummaryState, Tombstone
from eunoe.text.normalize import normalize_name
from eunoe.work.leases import CLEARED


class Comparison(NamedTuple):
    """A batch of messages compared with the log, by their places in the batch."""

    identities: list[bytes]
    """What each message is recognised by; empty if only its place can tell, which is not yet fixed."""
    known: dict[int, str]
    """Messages that are in the log already, with their ids there."""
    forgotten: set[int]
    """Messages that were forgotten on purpose."""
    conflicts: set[int]
    """Messages whose id stands for other words."""
    gaps: set[int]
    """Forgotten messages said anew: the log keeps a gap for them, so that a replay still falls into step."""

    def new_places(self) -> list[int]:
        places = range(len(self.identities))
        return [place for place in places if place not in self.known and place not in self.forgotten]


class _Spot(NamedTuple):
    """A place in the log, or a message that may belong there."""

    identity: bytes
    content: bytes
    id: str | None
    """None for the gap that a forgotten message left."""
    claimed: bool = False
    """Whether the batch names this very message, so that no other can be meant."""


class Found(NamedTuple):
    """What the log has that bears on a batch of messages."""

    repeated: Mapping[int, str]
    """The places of messages that the same request stored before, and their ids."""
    known: Known
    forgotten: frozenset[bytes]
    """Identities, and fingerprints of words, that have a tombstone."""
    tails: Mapping[str, Sequence[_Spot]]
    """The ends of the sessions of which some message is known by its place alone, oldest first."""


def read_log(store: Reading, stream: StreamState, messages: Sequence[Message]) -> Found:
    """Read what tells which of these messages the log has already."""
    identities, ids = _identities(messages), repeatable_ids(len(messages))
    stored = {record.id for record in store.select(ItemQuery(stream.id, ids=ids))} if ids else set()
    sure = [identity for identity in identities if identity]
    known = find_known(store, stream.id, sure, [message.id for message in messages if message.id]) if sure else {}
    pairs = list(zip(identities, messages, strict=True))
    if timed := [identity for identity, message in pairs if identity and not message.id]:
        # Those that were taken back, by their words and time; those with an id are found by it.
        query = ItemQuery(stream.id, kinds=("message",), identities=timed, archived=True)
        known |= {record.identity: (record.id, message_content(record)) for record in store.select(query)}
    wanted = [
        *sure,
        *(words_identity(message_content(message)) for each, message in pairs if _goes_by_words(each, message)),
    ]
    tombstones = store.tombstones(stream.id, wanted) if wanted else []
    sizes = Counter(message.session for message in messages)
    unsure = dict.fromkeys(message.session for identity, message in pairs if not identity)
    return Found(
        {place: id for place, id in enumerate(ids) if id in stored},
        known,
        frozenset(tombstone.identity for tombstone in tombstones),
        {session: _log_tail(store, stream, session, sizes[session]) for session in unsure},
    )


def _goes_by_words(identity: bytes, message: Message) -> bool:
    """Whether nothing but its words can tell a forgotten message, or an id that was derived from its place."""
    return not identity or (bool(message.id) and FORMER in message.metadata)


def compare_with_log(found: Found, messages: Sequence[Message]) -> Comparison:
    """Decide which messages the log has already, from what was found in it."""
    comparison = Comparison(_identities(messages), {}, set(), set(), set())
    if found.repeated:  # then it stored all that were new: it is one step
        comparison.known.update((place, found.repeated.get(place, each.id)) for place, each in enumerate(messages))
        return comparison
    known = dict(found.known)
    for place, (identity, message) in enumerate(zip(comparison.identities, messages, strict=True)):
        if identity in known:
            comparison.known[place], content = known[identity]
            if content != message_content(message):
                comparison.conflicts.add(place)
        elif identity in found.forgotten:
            comparison.forgotten.add(place)
        elif identity:
            known[identity] = (message.id, message_content(message))
    _match_places(found.tails, messages, comparison)
    for place in comparison.new_places():
        identity, message = comparison.identities[place], messages[place]
        if _goes_by_words(identity, message) and words_identity(message_content(message)) in found.forgotten:
            comparison.forgotten.add(place)
            if not identity:
                comparison.gaps.add(place)
    return comparison


def new_messages(store: Reading, scope: Scope, messages: Sequence[Message]) -> Sequence[Message]:
    """Those that the log does not have: only these need vectors."""
    stream = store.stream(scope)
    if stream is None:
        return messages
    return [messages[place] for place in compare_with_log(read_log(store, stream, messages), messages).new_places()]


def append_messages(
    store: Writing,
    stream: StreamState,
    messages: Sequence[Message],
    comparison: Comparison,
    vectors: VectorBatch,
    recorded: datetime,
) -> tuple[list[Receipt], list[Record]]:
    """Put the new messages and their vectors into the log; return a receipt for every message, and the new records."""
    new = comparison.new_places()
    positions = {place: stream.position + step for step, place in enumerate(sorted({*new, *comparison.gaps}))}
    ids = repeatable_ids(len(messages)) or new_ids(len(messages))
    messages = _hand_on_places(messages, comparison)
    records = [
        _record(messages[place], comparison.identities[place], positions[place], ids[place], recorded) for place in new
    ]
    if positions and not records:
        store.advance(stream.id, len(positions))
    inserted = insert_records(store, stream, records, vectors, len(positions))
    stored = dict(zip(new, inserted, strict=True))
    if comparison.gaps:
        store.add_tombstones(stream.id, [_gap(messages[place], positions[place]) for place in sorted(comparison.gaps)])
    return [_receipt(place, comparison, stored, message) for place, message in enumerate(messages)], inserted


def _hand_on_places(messages: Sequence[Message], comparison: Comparison) -> list[Message]:
    """Messages of a chat that come after a forgotten one of the same batch come after the one before that."""
    heirs: dict[str, str] = {}
    placed = []
    for place, message in enumerate(messages):
        after = message.metadata.get(AFTER)
        if after in heirs:
            message = replace(message, metadata={**message.metadata, AFTER: heirs[after]})
        if place in comparison.forgotten and AFTER in message.metadata:
            heirs[message.id] = message.metadata[AFTER]
        placed.append(message)
    return placed


def _record(message: Message, identity: bytes, position: int, new_id: str, recorded: datetime) -> Record:
    return Record(
        kind="message",
        id=message.id or new_id,
        identity=identity or place_identity(position, message_content(message)),
        text=message.text,
        recorded=recorded,
        caption=message.caption,
        time=message.time,
        session=message.session,
        speaker=message.speaker,
        role=message.role,
        position=position,
        metadata=message.metadata,
    )


def _gap(message: Message, position: int) -> Tombstone:
    return Tombstone(gap_identity(position), message_content(message), session_hash(message.session), position)


def _receipt(place: int, comparison: Comparison, stored: dict[int, Record], message: Message) -> Receipt:
    if place in stored:
        return Receipt("stored", stored[place].id, embedded=not stored[place].pending)
    if place in comparison.forgotten:
        return Receipt("forgotten", message.id)
    return Receipt("conflict" if place in comparison.conflicts else "duplicate", comparison.known[place])


def _identities(messages: Iterable[Message]) -> list[bytes]:
    """Two equal messages of one batch at one moment are two messages, so the second is counted."""
    seen: Counter[bytes] = Counter()
    identities = []
    for message in messages:
        if message.id:
            identities.append(id_identity(message.id))
        elif message.time:
            identity = time_identity(message.time, message_content(message))
            seen[identity] += 1
            identities.append(identity if seen[identity] == 1 else nth_identity(identity, seen[identity]))
        else:
            identities.append(b"")
    return identities


def _match_places(tails: Mapping[str, Sequence[_Spot]], messages: Sequence[Message], comparison: Comparison) -> None:
    """Find, in each session, the longest opening of the batch that the log ends with."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for place, message in enumerate(messages):
        sessions[message.session].append(place)
    for session, places in sessions.items():
        if session not in tails:
            continue
        batch = [
            _Spot(comparison.identities[place], message_content(messages[place]), comparison.known.get(place))
            for place in places
        ]
        tail = _mark_claimed(tails[session], batch)
        for place, spot in _match_opening(places, batch, tail):
            if comparison.identities[place]:
                continue
            if spot.id is None:
                comparison.forgotten.add(place)
            else:
                comparison.known[place] = spot.id


def _mark_claimed(tail: Sequence[_Spot], batch: Sequence[_Spot]) -> list[_Spot]:
    identities = {given.identity for given in batch if given.identity}
    ids = {given.id for given in batch if given.id}
    return [spot._replace(claimed=spot.identity in identities or spot.id in ids) for spot in tail]


def _match_opening(places: Sequence[int], batch: Sequence[_Spot], tail: Sequence[_Spot]) -> list[tuple[int, _Spot]]:
    """Which places of the batch stand where in the log."""
    matches = list(zip(places, _overlap(tail, batch), strict=False))
    if any(spot.claimed for _, spot in matches):
        return matches
    # What the log had elsewhere was not written again when this batch came first: look past it.
    pairs = zip(places, batch, strict=True)
    rest = [(place, given) for place, given in pairs if not given.identity or given.id is None]
    past = _overlap([spot for spot in tail if not spot.claimed], [given for _, given in rest])
    return max(matches, list(zip([place for place, _ in rest], past, strict=False)), key=len)


def _log_tail(store: Reading, stream: StreamState, session: str, limit: int) -> list[_Spot]:
    """The end of a session's log, oldest first, with gaps where messages were forgotten."""
    spots: dict[int, _Spot] = {}
    for tombstone in store.tombstones(stream.id, session_hash=session_hash(session), limit=limit):
        spots[tombstone.position or 0] = _Spot(tombstone.identity, tombstone.content, None)
    for record in store.select(ItemQuery(stream.id, session=session, open=True, order="position", limit=limit)):
        spots[record.position or 0] = _Spot(record.identity, message_content(record), record.id)
    return [spots[position] for position in sorted(spots)][-limit:]


def _overlap(tail: Sequence[_Spot], batch: Sequence[_Spot]) -> Sequence[_Spot]:
    """The longest end of the tail that the batch begins with."""
    for start in range(max(0, len(tail) - len(batch)), len(tail)):
        if all(map(_is_same, tail[start:], batch)):
            return tail[start:]
    return ()


def _is_same(spot: _Spot, given: _Spot) -> bool:
    if given.identity:
        return spot.identity == given.identity or (given.id is not None and spot.id == given.id)
    return spot.content == given.content and not spot.claimed


FORGOTTEN_USER = "(forgotten)"
"""Stands for a user whose name was forgotten."""


def load_session(store: Reading, stream: StreamState | None) -> SessionState | None:
    found = store.load(SessionState, stream=stream.id) if stream else []
    return found[0] if found else None


def log_after(store: Reading, stream: int, seq: int, limit: int = 0) -> Iterator[Record]:
    """The messages of a log after a number, in order, without those that were taken back."""
    query = ItemQuery(stream, kinds=("message",), after=seq, open=True)
    return iter(store.select(query._replace(limit=limit))) if limit else store.iterate(query)


class Formation(NamedTuple):
    """When a conversation is to be formed."""

    seconds: float | None = None
    """After so many seconds without a new message, 0 for at once; None while too little was said."""
    is_new: bool = False
    """Whether it has just begun."""


def note_messages(store: Writing, stream: StreamState, records: Sequence[Record], now: datetime) -> Formation:
    """Count new messages in the step that stores them; return when the conversation is to be formed."""
    reader = SettingsReader(store, stream)
    if not records or not reader.may_feed(stream.scope):
        return Formation()
    known = load_session(store, stream)
    before = known or SessionState(stream.id)
    # What came before anybody counted is due as well.
    uncounted = log_after(store, stream.id, 0) if known is None and stream.position else records
    turns = turns_to_form(uncounted, stream.scope)
    users = join_users(before.users, stream.scope, turns)
    settings = reader.forming(stream.scope, users)
    if settings is None and known is None:
        return Formation()
    session = add_turns(before, turns, settings)._replace(active=max(before.active or now, now), users=users)
    save_session(store, reader, stream, known, session)
    return Formation(_seconds_to_wait(session, settings) if settings else None, known is None)


def _seconds_to_wait(session: SessionState, settings: Settings) -> float | None:
    if is_due(session, settings):
        return 0.0
    is_enough = session.messages >= settings.formation_minimum
    return settings.formation_idle_seconds or None if is_enough else None


def find_ended(store: Reading, scope: Scope) -> list[Scope]:
    """Earlier conversations of the same users that have messages left to form: they ended when this one began."""
    stream = store.stream(scope)
    if stream is None:
        return []
    session = load_session(store, stream)
    users = set(session.users) if session else set()
    conversations = _conversations_of(store, stream, sorted(users)) - {stream.id}
    sessions = store.load(SessionState, stream=sorted(conversations)) if conversations else []
    ended = [each.stream for each in sessions if each.messages and set(each.users) == users]
    return [each.scope for each in store.streams(ids=ended)] if ended else []


def _conversations_of(store: Reading, stream: StreamState, users: Sequence[str]) -> set[int]:
    """Numbers of the conversations that feed the same streams of these users' own."""
    targets = SettingsReader(store, stream).targets(stream.scope, users)
    owned = [found.id for target in targets if target.user and (found := store.stream(target.scope))]
    return {link.source for link in store.load(StreamLink, stream=owned)} if owned else set()


def add_turns(session: SessionState, turns: Sequence[Turn], settings: Settings | None) -> SessionState:
    """Count new turns."""
    weight = weighted_tokens(turns, settings) if settings else 0.0
    return session._replace(messages=session.messages + len(turns), weight=session.weight + weight)


def is_due(session: SessionState, settings: Settings) -> bool:
    """Whether enough was said to form memories from."""
    if session.messages < settings.formation_minimum:
        return False
    return session.messages >= settings.formation_messages or session.weight >= settings.formation_tokens


def join_users(known: Sequence[str], scope: Scope, turns: Sequence[Turn]) -> tuple[str, ...]:
    """The users who took part so far, with those of new turns."""
    named = [scope.pairs.get("user", ""), *(turn.user for turn in turns)]
    return tuple(dict.fromkeys([*known, *filter(is_user_name, named)]))


def is_user_name(user: str) -> bool:
    """Whether a user can have a memory under this name."""
    try:
        return bool(Scope(user=user))
    except ScopeError:
        return False


def save_session(
    store: Writing, reader: SettingsReader, stream: StreamState, known: SessionState | None, session: SessionState
) -> None:
    """Save a session, known or new, and link its users if they are others than before."""
    store.save([session])
    if known is None or session.users != known.users:
        link_users(store, reader, stream, session.users)


def link_users(store: Writing, reader: SettingsReader, stream: StreamState, users: Sequence[str]) -> None:
    """Let a conversation be found from its users' own streams, also where nothing was formed from it."""
    targets = reader.targets(stream.scope, users)
    owned = [target.scope for target in targets if target.user and target.scope != stream.scope]
    store.save([StreamLink(stream.id, store.create_stream(scope).id) for scope in owned])


def recount(store: Reading, stream: StreamState, session: SessionState, settings: Settings | None) -> SessionState:
    """Count a session anew from the messages after its cursor."""
    turns = turns_to_form(log_after(store, stream.id, session.cursor), stream.scope)
    return add_turns(session._replace(messages=0, weight=0.0), turns, settings)


def forget_in_session(store: Writing, stream: StreamState, whole: bool, person: str) -> None:
    """Take what was forgotten out of a stream's session: its counts, a person among its users, and errors, which may
    repeat words. Runs in the step that removes the records, after they are gone."""
    for number in {stream.id, *linked_streams(store, stream.id)}:
        _clear_errors(store, number)
    if whole:
        store.drop(SessionState, stream=stream.id)
        store.drop(Job, stream=stream.id)
        return
    session = load_session(store, stream)
    if session:
        users = _users_without(session.users, person, stream.scope)
        settings = SettingsReader(store, stream).forming(stream.scope, users)
        store.save([recount(store, stream, session._replace(users=users), settings)])


def linked_streams(store: Reading, stream: int) -> set[int]:
    """Streams whose atoms rest on this one, and those that its own rest on."""
    above = {link.stream for link in store.load(StreamLink, source=stream)}
    return above | {link.source for link in store.load(StreamLink, stream=stream)}


def _users_without(users: Sequence[str], person: str, scope: Scope) -> tuple[str, ...]:
    """Who takes part, without a person's name. Their place stays taken: a group must not pass for one user who is
    alone, since that one's own memory would be shown to all."""
    gone = {user for user in users if person and normalize_name(user) == normalize_name(person)}
    named = [FORGOTTEN_USER if user in gone and user != scope.pairs.get("user") else user for user in users]
    return tuple(dict.fromkeys(user for user in named if user not in gone))


def _clear_errors(store: Writing, stream: int) -> None:
    tables: tuple[type[Any], ...] = (Job, SummaryState)
    for table in tables:
        failed = [each for each in store.load(table, stream=stream) if each.lease.error]
        store.save([each._replace(lease=each.lease._replace(error=CLEARED)) for each in failed])


def retract_messages(store: Store, scope: Scope, ids: Sequence[str], retracted: bool) -> list[Receipt]:
    """Take messages back, or restore them; all of them or, on an error, none."""

    def retract(store: Writing) -> list[Receipt]:
        stream = store.stream(scope)
        records = [_check_message(find_record(store, stream, id)) for id in ids]
        changed = [record for record in records if (record.retired is None) == retracted]
        if stream and changed:
            _check_not_said_again(store, stream, [] if retracted else changed)
            _write(store, stream, changed, utc_now() if retracted else None)
            _count_anew(store, stream, [] if retracted else changed)
        return [Receipt("stored" if record in changed else "duplicate", record.id) for record in records]

    return store.write([scope], retract)


def _check_message(record: Record) -> Record:
    if record.kind != "message":
        raise InputError(f"ids: {record.id} is no message: update, expire or forget it")
    return record


def _check_not_said_again(store: Reading, stream: StreamState, records: Sequence[Record]) -> None:
    identities = [record.identity for record in records]
    same = store.select(ItemQuery(stream.id, identities=identities, open=True)) if identities else []
    if same:
        raise ConflictError(f"the same was said again as {same[0].id}: what was retracted before it stays so")


def _write(store: Writing, stream: StreamState, records: Sequence[Record], retired: datetime | None) -> None:
    version = store.advance(stream.id).version
    store.update([record._replace(version=version, retired=retired) for record in records])


def _count_anew(store: Writing, stream: StreamState, restored: Sequence[Record]) -> None:
    """Count what is still to be formed. What the cursor passed by while it was retracted becomes a job."""
    session = load_session(store, stream)
    if session is None:
        return
    jobs = store.load(Job, stream=stream.id)
    passed = [
        record for record in restored if record.seq <= session.cursor and turns_to_form([_opened(record)], stream.scope)
    ]
    for record in passed:
        if not any(job.start < record.seq <= job.stop for job in jobs):
            store.save([Job(stream.id, record.seq - 1, record.seq)])
    settings = SettingsReader(store, stream).forming(stream.scope, session.users)
    store.save([recount(store, stream, session, settings)])


def _opened(record: Record) -> Record:
    return record._replace(retired=None)
