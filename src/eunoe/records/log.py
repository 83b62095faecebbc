"""The verbatim log: which of the messages given are new, and where they go.

A message is known again by its id; without one, by its words and time; without either, by its words and place: the
opening messages of a batch that repeat the end of the log are a retry or a replayed history, what follows is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.time import micros
from eunoe.records.ids import new_ids
from eunoe.records.rows import id_key, lane, message_content, message_row, row_content, time_key, words_key
from eunoe.records.vectors import Vectors, write
from eunoe.store.contract import Row, Store, StreamRow, Tombstone
from eunoe.text.normalize import digest


class Reading(NamedTuple):
    """A batch of messages compared with the log."""

    keys: list[bytes]
    """How each message is known again; empty if only its place can tell, which is not yet fixed."""
    known: dict[int, str]
    """Messages that are in the log already: place in the batch, id in the log."""
    forgotten: set[int]
    """Messages that were forgotten on purpose."""
    conflicts: set[int]
    """Messages whose id stands for other words."""
    gaps: set[int]
    """Forgotten messages said anew: the log keeps a gap for them, so that a replay still falls into step."""

    def fresh(self, count: int) -> list[int]:
        return [place for place in range(count) if place not in self.known and place not in self.forgotten]


def compare(store: Store, stream: StreamRow, messages: Sequence[Message]) -> Reading:
    """Finds out what the log has already. Runs inside a transaction."""
    reading = Reading(_keys(messages), {}, set(), set(), set())
    _match_keys(store, stream, messages, reading)
    _match_places(store, stream, messages, reading)
    _match_forgotten_words(store, stream, messages, reading)
    return reading


def new_among(store: Store, stream: StreamRow | None, messages: Sequence[Message]) -> list[Message]:
    """The messages that the log does not have."""
    if stream is None:
        return list(messages)
    return [messages[place] for place in compare(store, stream, messages).fresh(len(messages))]


def append(
    store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading, vectors: Vectors, recorded: int
) -> list[Receipt]:
    """Puts the fresh messages and their vectors into the log; gives a receipt for every message."""
    fresh = reading.fresh(len(messages))
    taken = {place: stream.position + step for step, place in enumerate(sorted({*fresh, *reading.gaps}))}
    rows = [
        _row(messages[place], reading.keys[place], taken[place], new_id, recorded)
        for place, new_id in zip(fresh, new_ids(len(fresh)), strict=True)
    ]
    if not rows and taken:
        store.advance(stream.id, len(taken))
    stored = dict(zip(fresh, write(store, stream, rows, vectors, len(taken)), strict=True))
    store.bury(stream.id, [_gap(messages[place], taken[place]) for place in sorted(reading.gaps)])
    return [_receipt(place, reading, stored, message) for place, message in enumerate(messages)]


def _gap(message: Message, position: int) -> Tombstone:
    return Tombstone(digest("gap", str(position)), message_content(message), lane(message.session), position)


def _receipt(place: int, reading: Reading, stored: dict[int, Row], message: Message) -> Receipt:
    if place in stored:
        return Receipt("stored", stored[place].id, embedded=not stored[place].pending)
    if place in reading.forgotten:
        return Receipt("forgotten", message.id)
    return Receipt("conflict" if place in reading.conflicts else "duplicate", reading.known[place])


def _row(message: Message, key: bytes, position: int, new_id: str, recorded: int) -> Row:
    key = key or digest("place", str(position), message_content(message).hex())
    return message_row(message, message.id or new_id, key, position, recorded)


def _keys(messages: Iterable[Message]) -> list[bytes]:
    """Two equal messages of one batch at one moment are two messages, so the second is counted."""
    seen: Counter[bytes] = Counter()
    keys = []
    for message in messages:
        if message.id:
            keys.append(id_key(message.id))
        elif message.time:
            key = time_key(micros(message.time), message_content(message))
            seen[key] += 1
            keys.append(key if seen[key] == 1 else digest("nth", key.hex(), str(seen[key])))
        else:
            keys.append(b"")
    return keys


def _match_keys(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    keys = [key for key in reading.keys if key]
    known = {row.key: (row.id, row_content(row)) for row in store.by_key(stream.id, keys)}
    named = store.by_id(stream.id, [message.id for message in messages if message.id])
    known |= {id_key(row.id): (row.id, row_content(row)) for row in named}
    buried = {stone.key for stone in store.buried(stream.id, keys)}
    for place, (key, message) in enumerate(zip(reading.keys, messages, strict=True)):
        if not key:
            continue
        if key in known:
            reading.known[place], content = known[key]
            if content != message_content(message):
                reading.conflicts.add(place)
        elif key in buried:
            reading.forgotten.add(place)
        else:
            known[key] = (message.id, message_content(message))


class _Spot(NamedTuple):
    """A place in the log, or a message that may belong there."""

    key: bytes
    content: bytes
    id: str | None
    """None for the gap that a forgotten message left."""
    claimed: bool = False
    """Whether the batch names this very message, so that no other can be meant."""


def _match_places(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    """Finds, in each session, the longest opening of the batch that the log ends with."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for place, message in enumerate(messages):
        sessions[message.session].append(place)
    for session, places in sessions.items():
        if all(reading.keys[place] for place in places):
            continue
        batch = [
            _Spot(reading.keys[place], message_content(messages[place]), reading.known.get(place)) for place in places
        ]
        for place, spot in _opening(places, batch, _claimed(_tail(store, stream, session, len(batch)), batch)):
            if reading.keys[place]:
                continue
            if spot.id is None:
                reading.forgotten.add(place)
            else:
                reading.known[place] = spot.id


def _claimed(tail: Sequence[_Spot], batch: Sequence[_Spot]) -> list[_Spot]:
    keys = {given.key for given in batch if given.key}
    ids = {given.id for given in batch if given.id}
    return [spot._replace(claimed=spot.key in keys or spot.id in ids) for spot in tail]


def _opening(places: Sequence[int], batch: Sequence[_Spot], tail: Sequence[_Spot]) -> list[tuple[int, _Spot]]:
    """Which places of the batch stand where in the log."""
    found = list(zip(places, _overlap(tail, batch), strict=False))
    if any(spot.claimed for _, spot in found):
        return found
    # What the log had elsewhere was not written again when this batch came first: look past it.
    rest = [(place, given) for place, given in zip(places, batch, strict=True) if not given.key or given.id is None]
    past = _overlap([spot for spot in tail if not spot.claimed], [given for _, given in rest])
    return max(found, list(zip([place for place, _ in rest], past, strict=False)), key=len)


def _tail(store: Store, stream: StreamRow, session: str, limit: int) -> list[_Spot]:
    """The end of a session's log, oldest first, with gaps where messages were forgotten."""
    places: dict[int, _Spot] = {}
    for stone in store.buried_tail(stream.id, lane(session), limit):
        places[stone.position or 0] = _Spot(stone.key, stone.content, None)
    for row in store.tail(stream.id, session, limit):
        places[row.position or 0] = _Spot(row.key, message_content(row), row.id)
    return [places[position] for position in sorted(places)][-limit:]


def _overlap(tail: Sequence[_Spot], batch: Sequence[_Spot]) -> Sequence[_Spot]:
    """The longest end of the tail that the batch begins with."""
    for start in range(max(0, len(tail) - len(batch)), len(tail)):
        if all(map(_same, tail[start:], batch)):
            return tail[start:]
    return ()


def _same(spot: _Spot, given: _Spot) -> bool:
    if given.key:
        return spot.key == given.key or (given.id is not None and spot.id == given.id)
    return spot.content == given.content and not spot.claimed


def _match_forgotten_words(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    """Words that were forgotten stay away when nothing but the words is given."""
    bare = {
        place: words_key(message_content(message))
        for place, message in enumerate(messages)
        if not reading.keys[place] and place not in reading.known and place not in reading.forgotten
    }
    buried = {stone.key for stone in store.buried(stream.id, list(bare.values()))}
    reading.gaps.update(place for place, key in bare.items() if key in buried)
    reading.forgotten.update(reading.gaps)
