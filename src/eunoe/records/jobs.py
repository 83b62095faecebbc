"""Which part of a conversation is still to be formed, who works on it, and how far the cursor is."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile

from eunoe.errors import ConflictError, InputError, ScopeError
from eunoe.model.message import Message
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.time import micros, now
from eunoe.records.rows import encode, message_row
from eunoe.records.streams import LAYERS, found, may_form, targets
from eunoe.records.turns import Turn, turns_of, weight
from eunoe.store.books import SessionRow, WorkRow
from eunoe.store.contract import Row, Store, StreamRow
from eunoe.text.normalize import digest, same_name, tokens

LEASE = "EUNOE_LEASE"

_LEASE_SECONDS = 60.0
_SECOND = 1_000_000
_FIRST_PAUSE = 30 * _SECOND
_LONGEST_PAUSE = 3600 * _SECOND
_BREAK = 30 * 60 * _SECOND
_MOST_ROWS = 2000
_LONGEST_ERROR = 300
CLEARED = "the last attempt failed; what it said was cleared by forget"
NOBODY = "(forgotten)"
"""Stands for a user whose name was forgotten."""
_threads = threading.local()


def note(
    store: Store, scope: Scope, stream: StreamRow, messages: Sequence[Message], receipts: Sequence[Receipt], now: int
) -> bool:
    """Counts new messages in the step that stores them; True if the conversation is due."""
    pairs = zip(messages, receipts, strict=True)
    rows = [message_row(message, receipt.id, b"", 0, now) for message, receipt in pairs if receipt.outcome == "stored"]
    if not rows or not may_form(store, scope):
        return False
    known = store.books.session(stream.id)
    if known is None and stream.position:
        rows = list(_log(store, stream.id, 0))  # what came before anybody counted is due as well
    turns = turns_of(rows, scope)
    before = known or SessionRow(stream.id)
    users = _joined(before.users, scope, turns)
    settings = settings_of(store, scope, users)
    if settings is None and known is None:
        return False
    session = before._replace(
        messages=before.messages + len(turns),
        weight=before.weight + (weight(turns, settings) if settings else 0.0),
        active=max(before.active, now),
        users=encode(users) if users else "",
    )
    store.books.put_session(session)
    if known is None or users != users_of(known):
        link(store, scope, stream, users)
    return settings is not None and is_due(session, settings)


def link(store: Store, scope: Scope, stream: StreamRow, users: Sequence[str]) -> None:
    """Lets a conversation be found from its users' own streams, also where nothing was formed from it."""
    for target in targets(store, scope, users):
        if target.user and target.scope != scope:
            store.books.link(stream.id, store.make_stream(str(target.scope)).id)


def settings_of(store: Store, scope: Scope, users: Sequence[str] = ()) -> Settings | None:
    """What decides when a conversation is formed: the settings of its own stream, else of the first one it feeds."""
    own = found(store, scope)
    if own and own[1].is_active:
        return own[1]
    return next((target.settings for target in targets(store, scope, users)), None)


def users_of(session: SessionRow | None) -> list[str]:
    """The users who took part so far."""
    return json.loads(session.users) if session and session.users else []


def is_due(session: SessionRow, settings: Settings) -> bool:
    """Whether enough was said to form memories from."""
    if session.messages < settings.formation_minimum:
        return False
    return session.messages >= settings.formation_messages or session.weight >= settings.formation_tokens


def owner() -> str:
    """Who works: a name for this thread of this process, made by chance."""
    known: tuple[int, str] = getattr(_threads, "owner", (0, ""))
    if known[0] != os.getpid():
        known = _threads.owner = (os.getpid(), secrets.token_hex(8))
    return known[1]


def lease() -> float:
    """Seconds that a piece of work is held without a sign of life."""
    given = os.environ.get(LEASE, "")
    try:
        seconds = float(given) if given else _LEASE_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"{LEASE} is {given!r}: it is a number of seconds above 0")
    return seconds


def claim(store: Store, scope: Scope, least: int | None, again: bool, tried: Collection[int] = ()) -> WorkRow | None:
    """Leases the next piece of work in a conversation: one that somebody left, else a new one if it is due.

    `least` messages are enough for new work; None leaves that to the settings. `again` also takes what failed before
    and should wait. Pieces whose start is among `tried` are left alone.
    """
    stream = store.stream(str(scope))
    if stream is None:
        return None
    moment = micros(now())
    free = [row for row in store.books.work(stream.id) if row.start not in tried and _is_free(row, moment, again)]
    work = free[0] if free else _cut_off(store, scope, stream, least)
    return _leased(store, work, moment) if work else None


def may_claim(store: Store, scope: Scope, least: int | None, again: bool, tried: Collection[int] = ()) -> bool:
    """Whether `claim` would find something; only reads, so that nobody waits for a look."""
    stream = store.stream(str(scope))
    if stream is None or is_hidden(store, scope):
        return False
    moment = micros(now())
    if any(row.start not in tried and _is_free(row, moment, again) for row in store.books.work(stream.id)):
        return True
    session = store.books.session(stream.id) or SessionRow(stream.id)
    return _ripe(store, scope, session, least) is not None and any(_log(store, stream.id, session.cursor, 1))


def renew(store: Store, work: WorkRow) -> bool:
    """Holds on to a piece of work; False if somebody else has it, or it is gone."""
    held = _held(store, work)
    if held:
        store.books.put_work([held._replace(until=_end(micros(now())))])
    return held is not None


def finish(store: Store, work: WorkRow) -> bool:
    """Ends a piece of work in the step that writes its memories; False if it is no longer ours, and nothing may be
    written."""
    held = _held(store, work)
    if held:
        store.books.drop_work(work.stream, work.start)
    return held is not None


def fail(store: Store, work: WorkRow, error: str) -> None:
    """Lets go of a piece of work that went wrong; it is due again after a pause that grows."""
    held = _held(store, work)
    if held:
        attempts = held.attempts + 1
        retry = micros(now()) + pause(held._replace(attempts=attempts))
        free = held._replace(owner="", until=0, attempts=attempts, retry=retry, error=_one_line(error))
        store.books.put_work([free])


def let_go(store: Store, work: WorkRow) -> None:
    """Gives a piece of work back as if nobody had begun it."""
    held = _held(store, work)
    if held:
        store.books.put_work([held._replace(owner="", until=0)])


def pause(work: WorkRow) -> int:
    """Microseconds before the next attempt. A share that depends on the row keeps many from coming back at once."""
    longest = min(_FIRST_PAUSE << min(work.attempts - 1, 20), _LONGEST_PAUSE)
    chance = digest(str(work.stream), str(work.start), str(work.attempts))[0]
    return longest - longest * chance // 1024


def messages(store: Store, work: WorkRow) -> list[Row]:
    """The messages of a piece of work that are still there."""
    return list(takewhile(lambda row: row.seq <= work.stop, _log(store, work.stream, work.start)))


def cut(rows: Sequence[Row], settings: Settings) -> list[list[Row]]:
    """Pieces of a log that are small enough to be formed at once, ended where the talk paused if it did."""
    chunks, start = [], 0
    while start < len(rows):
        stop = _fitting(rows, start, settings)
        stop = _pause_before(rows, start, stop) if stop < len(rows) else stop
        chunks.append(list(rows[start:stop]))
        start = stop
    return chunks


def is_hidden(store: Store, scope: Scope, session: str = "") -> bool:
    """Whether the session of this scope is incognito, or the one that a message in it names."""
    return any(map(store.books.hidden, _marks(scope, session)))


def hidden_among(store: Store, scope: Scope, messages: Sequence[Message]) -> set[int]:
    """The places of the messages that belong to an incognito session."""
    hidden = {session: is_hidden(store, scope, session) for session in {message.session for message in messages}}
    return {place for place, message in enumerate(messages) if hidden[message.session]}


def check_shown(store: Store, scope: Scope) -> None:
    """Refuses what would leave something behind in a session that is incognito."""
    if is_hidden(store, scope):
        raise ConflictError(f"{scope} is incognito, so that nothing of it is kept: take that mark off first")


def hide(store: Store, scope: Scope, on: bool) -> None:
    """Marks a session as incognito, or takes the mark off. Only a fingerprint of its scope is kept."""
    if on and _has_messages(store, scope):
        raise ConflictError(f"{scope} has messages already: forget them first, then make it incognito")
    if on:
        store.books.hide(_fingerprint(scope))
    else:
        for mark in _marks(scope):
            store.books.show(mark)


def _marks(scope: Scope, session: str = "") -> Iterator[bytes]:
    """What a session may be marked by: itself, or the very scope that was given."""
    yield _fingerprint(scope)
    yield digest(str(scope))
    if session and session != scope.get("session"):
        with suppress(ScopeError):  # it is no name that a scope could have
            yield _fingerprint(Scope(**{**scope, "session": session}))


def _fingerprint(scope: Scope) -> bytes:
    return digest(str(_session_alone(scope)))


def _session_alone(scope: Scope) -> Scope:
    """A session whoever takes part in it: the same for each user and each thread."""
    last = next((key for key in ("session", "thread") if key in scope), "")
    return Scope.of({key: value for key, value in scope.items() if key == last or _is_around(key)}) if last else scope


def _is_around(key: str) -> bool:
    return key == "agent" or key not in LAYERS


def _has_messages(store: Store, scope: Scope) -> bool:
    """Whether anything was said in a session, under whatever scope it is kept."""
    alone = _session_alone(scope)
    around = {key: value for key, value in alone.items() if _is_around(key)}
    for stream in _streams_with(store, around):
        other = Scope.parse(stream.scope)
        if _session_alone(other) == alone and store.page(stream.id, 0, 1, ("message",), True):
            return True
        named = {key: value for key, value in other.items() if _is_around(key)} == around
        if named and "session" in alone and store.tail(stream.id, alone["session"], 1):
            return True
    return False


def _streams_with(store: Store, keys: Mapping[str, str]) -> Iterator[StreamRow]:
    """Streams whose scopes hold these keys; others may be among them."""
    parts, after = [str(Scope.of({key: value})) for key, value in keys.items()], ""
    while streams := store.streams(after):
        yield from (stream for stream in streams if all(part in stream.scope for part in parts))
        after = streams[-1].scope


def clean(store: Store, stream: StreamRow, whole: bool, person: str) -> None:
    """Takes what was forgotten out of the books of a stream: its counts, a person among its users, and errors, which
    may repeat words. Runs in the step that removes the rows, after they are gone."""
    for near in (stream, *store.books.rests_on(stream.id), *store.books.resting_on(stream.id)):
        _clear_errors(store, near)
    if whole:
        store.books.drop_session(stream.id)
        return
    session = store.books.session(stream.id)
    if session:
        users = _without(users_of(session), person, Scope.parse(stream.scope))
        store.books.put_session(_counted(store, stream, session._replace(users=encode(users) if users else "")))


def _without(users: Sequence[str], person: str, scope: Scope) -> list[str]:
    """Who takes part, without a person's name. Their place stays taken: a group must not pass for one user who is
    alone, since that one's own memory would be shown to all."""
    gone = {user for user in users if person and same_name(user) == same_name(person)}
    named = [NOBODY if user in gone and user != scope.get("user") else user for user in users]
    return list(dict.fromkeys(user for user in named if user not in gone))


def _clear_errors(store: Store, stream: StreamRow) -> None:
    failed = [row._replace(error=CLEARED) for row in store.books.work(stream.id) if row.error]
    store.books.put_work(failed)
    summary = store.books.summary(stream.id)
    if summary and summary.error:
        store.books.put_summary(summary._replace(error=CLEARED))


def _counted(store: Store, stream: StreamRow, session: SessionRow) -> SessionRow:
    """A session counted anew from the messages after its cursor."""
    scope = Scope.parse(stream.scope)
    settings = settings_of(store, scope, users_of(session))
    turns = turns_of(_log(store, stream.id, session.cursor), scope)
    return session._replace(messages=len(turns), weight=weight(turns, settings) if settings else 0.0)


def _joined(known: str, scope: Scope, turns: Sequence[Turn]) -> list[str]:
    given = [scope.get("user", ""), *(turn.user for turn in turns)]
    users = dict.fromkeys([*(json.loads(known) if known else ()), *filter(is_name, given)])
    return list(users)


def is_name(user: str) -> bool:
    """Whether a user can have a memory under this name."""
    try:
        return bool(Scope(user=user))
    except ScopeError:
        return False


def _is_free(work: WorkRow, moment: int, again: bool) -> bool:
    return work.until < moment and (again or work.retry <= moment)


def _leased(store: Store, work: WorkRow, moment: int) -> WorkRow:
    leased = work._replace(owner=owner(), until=_end(moment))
    store.books.put_work([leased])
    return leased


def _end(moment: int) -> int:
    return moment + int(lease() * _SECOND)


def _held(store: Store, work: WorkRow) -> WorkRow | None:
    """The piece of work as it stands, if it is still in the hands of whom it was leased to."""
    rows = store.books.work(work.stream)
    return next((row for row in rows if row.start == work.start and row.owner == work.owner), None)


def _cut_off(store: Store, scope: Scope, stream: StreamRow, least: int | None) -> WorkRow | None:
    """Turns the messages after the cursor into pieces of work, if there are enough; gives the first."""
    session = store.books.session(stream.id) or SessionRow(stream.id)
    settings = _ripe(store, scope, session, least)
    if settings is None:
        return None
    rows = list(_log(store, stream.id, session.cursor, _MOST_ROWS))
    if not rows:
        return None
    chunks = cut(rows, settings)
    if len(rows) == _MOST_ROWS and len(chunks) > 1:
        chunks.pop()  # more may follow that belongs to it
    work = [WorkRow(stream.id, before, chunk[-1].seq) for before, chunk in _after(session.cursor, chunks)]
    store.books.put_work(work)
    moved = session._replace(cursor=work[-1].stop, active=session.active or micros(now()))
    store.books.put_session(_counted(store, stream, moved))
    return work[0]


def _ripe(store: Store, scope: Scope, session: SessionRow, least: int | None) -> Settings | None:
    """The settings to cut a conversation by, if it has enough messages. Those that came by import were never counted,
    so that one message is always worth a look."""
    settings = settings_of(store, scope, users_of(session))
    if settings is None or (least is None and not is_due(session, settings)):
        return None
    return settings if least is None or least <= 1 or session.messages >= least else None


def _after(cursor: int, chunks: Sequence[Sequence[Row]]) -> Iterator[tuple[int, Sequence[Row]]]:
    for chunk in chunks:
        yield cursor, chunk
        cursor = chunk[-1].seq


def _log(store: Store, stream: int, after: int, limit: int = 0) -> Iterator[Row]:
    """Messages after a row number, in order."""
    size = limit or _MOST_ROWS
    while True:
        rows = store.page(stream, after, size, ("message",), True)
        yield from rows
        if limit or len(rows) < size:
            return
        after = rows[-1].seq


def _fitting(rows: Sequence[Row], start: int, settings: Settings) -> int:
    """Where a piece that starts here has to end at the latest; it has one message at least."""
    room, most = settings.chunk_tokens, settings.formation_messages * 4
    for place in range(start, min(len(rows), start + most)):
        room -= tokens(rows[place].text)
        if room < 0 and place > start:
            return place
    return min(len(rows), start + most)


def _pause_before(rows: Sequence[Row], start: int, stop: int) -> int:
    """The last change of session, or long pause, in the second half of a piece; its end if there is none."""
    middle = start + (stop - start) // 2
    places = range(stop, max(middle, start), -1)
    return next((place for place in places if _is_break(rows[place - 1], rows[place])), stop)


def _is_break(before: Row, after: Row) -> bool:
    if before.session != after.session:
        return True
    return before.time is not None and after.time is not None and after.time - before.time >= _BREAK


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_ERROR else f"{line[: _LONGEST_ERROR - 1]}…"
