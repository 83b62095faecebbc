"""What an export brings beside memories: settings, how far a conversation was formed, and summaries with all revisions.

What is here already is never overwritten, and what was forgotten here does not come back in a summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any, NamedTuple

from eunoe.errors import InputError, ScopeError
from eunoe.model.message import as_object
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.records import jobs, revisions, streams
from eunoe.records.rows import encode
from eunoe.records.turns import turns_of, weight
from eunoe.store.books import RevisionRow, SessionRow, SummaryRow, WorkRow
from eunoe.store.contract import Row, Store, StreamRow

_STORED = ImportReport(stored=1)
_DUPLICATE = ImportReport(duplicates=1)
_FORGOTTEN = ImportReport(forgotten=1)
_CONFLICT = ImportReport(conflicts=1)
_PAGE = 2000
_ANY = Settings(owner=("any",), observation_extraction_max=100_000, fact_extraction_max=100_000)


class SettingsLine(NamedTuple):
    preset: str
    changes: Mapping[str, Any]


class SessionLine(NamedTuple):
    users: tuple[str, ...]


class SummaryLine(NamedTuple):
    current: int
    last: int
    rebuild: bool
    revisions: tuple[RevisionRow, ...]
    """In order, each after its parent; without a stream."""


def checked_changes(changes: object) -> Mapping[str, Any]:
    """Changes of settings that some stream could have."""
    known = as_object(changes, "changes")
    for name, value in known.items():
        _ANY.changed(**{name: value})
    return known


def changed_presets(store: Store) -> dict[str, Any]:
    """What was changed in each preset, and those that were added, whole."""
    return dict(json.loads(store.get_meta("presets") or "{}"))


def take_preset(store: Store, name: str, changes: Mapping[str, Any]) -> ImportReport:
    """A preset that was changed or made here too stays as it is here."""
    here = changed_presets(store).get(name)
    if here is not None:
        return _DUPLICATE if here == changes else _CONFLICT
    try:
        streams.put_preset(store, name, "", changes)
    except InputError:  # it fits no preset of this name here
        return _CONFLICT
    return _STORED


def take_settings(store: Store, scope: Scope, line: SettingsLine) -> ImportReport:
    """Settings for a stream that has none of its own here."""
    stream = store.stream(str(scope))
    here = store.books.settings(stream.id) if stream else None
    if here:
        return _DUPLICATE if (here.preset, json.loads(here.changes)) == (line.preset, line.changes) else _CONFLICT
    try:
        streams.configure(store, scope, line.preset, line.changes)
    except (InputError, ScopeError):  # no such preset here, or one whose streams have other scopes
        return _CONFLICT
    return _STORED


def take_session(store: Store, stream: StreamRow, line: SessionLine) -> ImportReport:
    """Users who take part in a conversation though none of its messages says so."""
    session = store.books.session(stream.id) or SessionRow(stream.id)
    users = jobs.users_of(session)
    joined = list(dict.fromkeys([*users, *line.users]))
    if joined == users:
        return _DUPLICATE
    store.books.put_session(session._replace(users=encode(joined)))
    jobs.link(store, Scope.parse(stream.scope), stream, joined)
    return _STORED


def take_messages(store: Store, scope: Scope, stream: StreamRow, rows: Sequence[Row], formed: Set[int]) -> None:
    """Counts messages that came, and moves the cursor past those that were formed elsewhere."""
    known = store.books.session(stream.id)
    session = known or SessionRow(stream.id)
    pieces = store.books.work(stream.id)
    late = {seq for seq in formed if seq > session.cursor or _in_work(pieces, seq)}
    users = list(dict.fromkeys([*jobs.users_of(session), *speakers(rows, scope)]))
    settings = jobs.settings_of(store, scope, users)
    if not late and (not rows or settings is None):
        return
    session = session._replace(
        active=max([session.active, *(row.recorded for row in rows)]), users=encode(users) if users else ""
    )
    if late:
        session = _pass(store, stream, session, late, settings)
    uncounted = rows if known and not late else list(_log(store, stream.id, session.cursor))
    before = session if known and not late else session._replace(messages=0, weight=0.0)
    turns = turns_of(uncounted, scope)
    added = weight(turns, settings) if settings else 0.0
    store.books.put_session(before._replace(messages=before.messages + len(turns), weight=before.weight + added))
    if known is None or users != jobs.users_of(known):
        jobs.link(store, scope, stream, users)


def speakers(rows: Sequence[Row], scope: Scope) -> list[str]:
    """The users of a conversation as its scope and its messages name them."""
    turns = turns_of(rows, scope)
    names = [scope.get("user", ""), *(turn.user for turn in turns)] if turns else []
    return list(dict.fromkeys(filter(jobs.is_name, names)))


def take_summary(store: Store, stream: StreamRow, line: SummaryLine) -> ImportReport:
    """Revisions that are not here yet, if those that are do not contradict them."""
    books = store.books
    here = {row.number: row for row in books.revisions(stream.id)}
    summary = books.summary(stream.id) or SummaryRow(stream.id)
    rows = [row._replace(stream=stream.id) for row in line.revisions]
    if any(row.number in here and here[row.number][:-1] != row[:-1] for row in rows):
        return _CONFLICT
    refused = _refused(store, stream, rows, summary)
    new = [row for row in rows if row.number not in here and row.number not in refused]
    if not new:
        return _FORGOTTEN if refused else _DUPLICATE
    if here and summary.revision not in {row.number for row in rows}:
        return _CONFLICT
    for row in new:
        books.put_revision(row)
    current = _clean(rows, refused, line.current)
    revisions.settle(store, stream, current)
    rebuild = (line.rebuild or current != line.current) and books.unabsorbed_count(stream.id) > 0
    books.put_summary(SummaryRow(stream.id, current, max(line.last, summary.last), int(rebuild)))
    store.advance(stream.id)
    return _STORED


def _refused(store: Store, stream: StreamRow, rows: Sequence[RevisionRow], summary: SummaryRow) -> set[int]:
    """Numbers of revisions that were taken back here, or that hold an observation which is not here, or forgotten
    words themselves."""
    ids = list(dict.fromkeys(id for row in rows for id in revisions.taken(row)))
    known = {row.id for row in store.by_id(stream.id, ids)}
    here = {row.number for row in store.books.revisions(stream.id)}
    refused: set[int] = set()
    for row in rows:
        dropped = row.number <= summary.last and row.number not in here
        unborne = row.parent in refused or not known.issuperset(revisions.taken(row))
        if dropped or unborne or (row.number not in here and revisions.forgotten(store, stream, row.text)):
            refused.add(row.number)
    return refused


def _clean(rows: Sequence[RevisionRow], refused: Set[int], number: int) -> int:
    """The nearest of a revision and those it was written from that may be here; 0 if none may."""
    parents = {row.number: row.parent for row in rows}
    while number in refused:
        number = parents[number]
    return number


def _in_work(pieces: Sequence[WorkRow], seq: int) -> bool:
    return any(piece.start < seq <= piece.stop for piece in pieces)


def _pass(
    store: Store, stream: StreamRow, session: SessionRow, late: Set[int], settings: Settings | None
) -> SessionRow:
    """Takes messages as formed. Due ones between them become pieces of work, so that nothing is passed over."""
    for piece in store.books.work(stream.id):
        if any(_in_work([piece], seq) for seq in late):
            store.books.drop_work(stream.id, piece.start)
            _cut(store, piece.start, jobs.messages(store, piece), late, settings)
    cursor = max([session.cursor, *late])
    passed = [row for row in _log(store, stream.id, session.cursor) if row.seq <= cursor]
    _cut(store, session.cursor, passed, late, settings)
    return session._replace(cursor=cursor)


def _cut(store: Store, start: int, rows: Sequence[Row], late: Set[int], settings: Settings | None) -> None:
    """Makes pieces of work of the rows that are still due."""
    for formed, run in groupby(rows, key=lambda row: row.seq in late):
        part = list(run)
        for chunk in [part] if formed or settings is None else jobs.cut(part, settings):
            if not formed:
                store.books.put_work([WorkRow(chunk[0].stream, start, chunk[-1].seq)])
            start = chunk[-1].seq


def _log(store: Store, stream: int, after: int) -> Iterator[Row]:
    while rows := store.page(stream, after, _PAGE, ("message",), True):
        yield from rows
        after = rows[-1].seq
