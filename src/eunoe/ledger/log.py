"""The verbatim log: which of the messages given are new, and where they go.

A message is known again by its id; without one, by its words and time; without either, by its words and place: the
opening messages of a batch that repeat the end of the log are a retry or a replayed history, what follows is new.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eunoe.ledger.ids import new_ids
from eunoe.ledger.rows import id_key, lane, message_content, message_row
from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.text import digest
from eunoe.model.time import micros
from eunoe.store.contract import Row, Store, StreamRow


class Reading(NamedTuple):
    """A batch of messages compared with the log."""

    keys: list[bytes]
    """How each message is known again; empty if only its place can tell, which is not yet fixed."""
    known: dict[int, str]
    """Messages that are in the log already: place in the batch, id in the log."""
    forgotten: set[int]
    """Messages that were forgotten on purpose."""

    def fresh(self, count: int) -> list[int]:
        return [place for place in range(count) if place not in self.known and place not in self.forgotten]


def compare(store: Store, stream: StreamRow, messages: Sequence[Message]) -> Reading:
    """Finds out what the log has already. Runs inside a transaction."""
    reading = Reading(_keys(messages), {}, set())
    _match_keys(store, stream, messages, reading)
    _match_places(store, stream, messages, reading)
    _match_forgotten_words(store, stream, messages, reading)
    return reading


def append(
    store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading, recorded: int, pending: bool
) -> tuple[list[Receipt], list[Row]]:
    """Puts the fresh messages into the log; gives a receipt for each message and the rows written."""
    fresh = reading.fresh(len(messages))
    rows = _rows(stream, messages, reading, fresh, recorded, pending)
    if rows:
        version = store.advance(stream.id, len(rows)).version
        first = store.reserve(len(rows))
        rows = [row._replace(seq=first + step, version=version) for step, row in enumerate(rows)]
        store.insert(rows)
    stored = {place: row.id for place, row in zip(fresh, rows, strict=True)}
    return [_receipt(place, reading, stored, message, pending) for place, message in enumerate(messages)], rows


def _receipt(place: int, reading: Reading, stored: dict[int, str], message: Message, pending: bool) -> Receipt:
    if place in stored:
        return Receipt("stored", stored[place], embedded=not pending)
    if place in reading.forgotten:
        return Receipt("forgotten", message.id)
    return Receipt("duplicate", reading.known[place])


def _rows(
    stream: StreamRow,
    messages: Sequence[Message],
    reading: Reading,
    fresh: Sequence[int],
    recorded: int,
    pending: bool,
) -> list[Row]:
    rows = []
    for step, (place, new_id) in enumerate(zip(fresh, new_ids(len(fresh)), strict=True)):
        message, position = messages[place], stream.position + step
        key = reading.keys[place] or digest("place", str(position), message_content(message).hex())
        row = message_row(message, key, recorded, pending)
        rows.append(row._replace(stream=stream.id, id=message.id or new_id, position=position))
    return rows


def _keys(messages: Iterable[Message]) -> list[bytes]:
    """Two equal messages of one batch at one moment are two messages, so the second is counted."""
    seen: Counter[bytes] = Counter()
    keys = []
    for message in messages:
        if message.id:
            keys.append(id_key(message.id))
        elif message.time:
            key = digest("at", str(micros(message.time)), message_content(message).hex())
            seen[key] += 1
            keys.append(key if seen[key] == 1 else digest("nth", key.hex(), str(seen[key])))
        else:
            keys.append(b"")
    return keys


def _match_keys(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    keys = [key for key in reading.keys if key]
    known = {row.key: row.id for row in store.by_key(stream.id, keys)}
    buried = {stone.key for stone in store.buried(stream.id, keys)}
    first: dict[bytes, int] = {}
    for place, key in enumerate(reading.keys):
        if not key:
            continue
        if key in known:
            reading.known[place] = known[key]
        elif key in buried:
            reading.forgotten.add(place)
        elif key in first:
            reading.known[place] = messages[first[key]].id
        else:
            first[key] = place


def _match_places(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    """Finds, in each session, the longest opening of the batch that the log ends with."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for place, message in enumerate(messages):
        if not reading.keys[place]:
            sessions[message.session].append(place)
    for session, places in sessions.items():
        batch = [message_content(messages[place]) for place in places]
        tail = _tail(store, stream, session, len(batch))
        overlap = _overlap([content for content, _ in tail], batch)
        for place, (_, id) in zip(places[:overlap], tail[len(tail) - overlap :], strict=True):
            if id is None:
                reading.forgotten.add(place)
            else:
                reading.known[place] = id


def _tail(store: Store, stream: StreamRow, session: str, limit: int) -> list[tuple[bytes, str | None]]:
    """The end of a session's log, oldest first, with gaps where messages were forgotten."""
    places: dict[int, tuple[bytes, str | None]] = {}
    for row in store.tail(stream.id, session, limit):
        places[row.position or 0] = (message_content(row), row.id)
    for stone in store.buried_tail(stream.id, lane(session), limit):
        places[stone.position or 0] = (stone.content, None)
    return [places[position] for position in sorted(places)][-limit:]


def _overlap(tail: Sequence[bytes], batch: Sequence[bytes]) -> int:
    for length in range(min(len(tail), len(batch)), 0, -1):
        if tail[-length] == batch[0] and list(tail[-length:]) == list(batch[:length]):
            return length
    return 0


def _match_forgotten_words(store: Store, stream: StreamRow, messages: Sequence[Message], reading: Reading) -> None:
    """Words that were forgotten stay away when nothing but the words is given."""
    bare = {
        place: message_content(message)
        for place, message in enumerate(messages)
        if not reading.keys[place] and place not in reading.known and place not in reading.forgotten
    }
    buried = {stone.content for stone in store.buried(stream.id, list(bare.values()))}
    reading.forgotten.update(place for place, content in bare.items() if content in buried)
