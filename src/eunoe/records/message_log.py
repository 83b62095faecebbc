"""The verbatim log: which of the messages given are new, and where they go.

A message is recognised by its id; without one, by its words and time; without either, by its words and place: the
opening messages of a batch that repeat the end of the log are a retry or a replayed history, what follows is new.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from eunoe.model.atom import Record
from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.turn import AFTER, FORMER
from eunoe.records.fingerprints import (
    Known,
    find_known,
    gap_identity,
    id_identity,
    message_content,
    nth_identity,
    place_identity,
    session_hash,
    time_identity,
    words_identity,
)
from eunoe.records.ids import new_ids, repeatable_ids
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import StreamState, Tombstone


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


def compare_with_log(store: Store, stream: StreamState, messages: Sequence[Message]) -> Comparison:
    """Find out what the log has already."""
    comparison = Comparison(_identities(messages), {}, set(), set(), set())
    if _match_repetition(store, stream, messages, comparison):
        return comparison
    _match_identities(store, stream, messages, comparison)
    _match_places(store, stream, messages, comparison)
    _match_forgotten_words(store, stream, messages, comparison)
    return comparison


def _match_repetition(store: Store, stream: StreamState, messages: Sequence[Message], comparison: Comparison) -> bool:
    """Whether the same request stored one of these before. Then it stored all that were new: it is one step."""
    ids = repeatable_ids(len(messages))
    found = {record.id for record in store.select(ItemQuery(stream.id, ids=ids))} if ids else set()
    if found:
        given = zip(ids, messages, strict=True)
        comparison.known.update(enumerate(id if id in found else message.id for id, message in given))
    return bool(found)


def append_messages(
    store: Store,
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


def _match_identities(store: Store, stream: StreamState, messages: Sequence[Message], comparison: Comparison) -> None:
    identities = [identity for identity in comparison.identities if identity]
    if not identities:
        return
    known = find_known(store, stream.id, identities, [message.id for message in messages if message.id])
    known |= _find_retracted(store, stream, messages, comparison)
    forgotten = {tombstone.identity for tombstone in store.tombstones(stream.id, identities)}
    for place, (identity, message) in enumerate(zip(comparison.identities, messages, strict=True)):
        if identity in known:
            comparison.known[place], content = known[identity]
            if content != message_content(message):
                comparison.conflicts.add(place)
        elif identity in forgotten:
            comparison.forgotten.add(place)
        elif identity:
            known[identity] = (message.id, message_content(message))


def _find_retracted(store: Store, stream: StreamState, messages: Sequence[Message], comparison: Comparison) -> Known:
    """Messages that were taken back, by their words and time; those with an id are found by it."""
    pairs = zip(comparison.identities, messages, strict=True)
    timed = [identity for identity, message in pairs if identity and not message.id]
    query = ItemQuery(stream.id, kinds=("message",), identities=timed, archived=True)
    return {record.identity: (record.id, message_content(record)) for record in store.select(query)} if timed else {}


class _Spot(NamedTuple):
    """A place in the log, or a message that may belong there."""

    identity: bytes
    content: bytes
    id: str | None
    """None for the gap that a forgotten message left."""
    claimed: bool = False
    """Whether the batch names this very message, so that no other can be meant."""


def _match_places(store: Store, stream: StreamState, messages: Sequence[Message], comparison: Comparison) -> None:
    """Find, in each session, the longest opening of the batch that the log ends with."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for place, message in enumerate(messages):
        sessions[message.session].append(place)
    for session, places in sessions.items():
        if all(comparison.identities[place] for place in places):
            continue
        batch = [
            _Spot(comparison.identities[place], message_content(messages[place]), comparison.known.get(place))
            for place in places
        ]
        tail = _mark_claimed(_log_tail(store, stream, session, len(batch)), batch)
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


def _log_tail(store: Store, stream: StreamState, session: str, limit: int) -> list[_Spot]:
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


def _match_forgotten_words(
    store: Store, stream: StreamState, messages: Sequence[Message], comparison: Comparison
) -> None:
    """Keep forgotten words away where nothing but the words is given, or an id that was derived from their place."""
    known_by_words = {
        place: words_identity(message_content(messages[place]))
        for place in comparison.new_places()
        if not comparison.identities[place] or (messages[place].id and FORMER in messages[place].metadata)
    }
    if not known_by_words:
        return
    tombstones = {tombstone.identity for tombstone in store.tombstones(stream.id, list(known_by_words.values()))}
    forgotten = {place for place, identity in known_by_words.items() if identity in tombstones}
    comparison.gaps.update(place for place in forgotten if not comparison.identities[place])
    comparison.forgotten.update(forgotten)
