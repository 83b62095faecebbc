"""Retraction: messages that are taken back by who said them stay in the log, word for word, and count no more."""

from collections.abc import Sequence
from datetime import datetime

from eunoe.errors import ConflictError, InputError
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Record
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.model.turn import turns_to_form
from eunoe.records.atoms import find_record
from eunoe.records.sessions import load_session, recount
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.store.tables import Job, StreamState


def retract_messages(store: Store, scope: Scope, ids: Sequence[str], retracted: bool) -> list[Receipt]:
    """Take messages back, or restore them; all of them or, on an error, none."""
    with store.writing():
        stream = store.stream(scope)
        records = [_check_message(find_record(store, stream, id)) for id in ids]
        changed = [record for record in records if (record.retired is None) == retracted]
        if stream and changed:
            _check_not_said_again(store, stream, [] if retracted else changed)
            _write(store, stream, changed, utc_now() if retracted else None)
            _count_anew(store, stream, [] if retracted else changed)
    return [Receipt("stored" if record in changed else "duplicate", record.id) for record in records]


def _check_message(record: Record) -> Record:
    if record.kind != "message":
        raise InputError(f"ids: {record.id} is no message: update, expire or forget it")
    return record


def _check_not_said_again(store: Store, stream: StreamState, records: Sequence[Record]) -> None:
    identities = [record.identity for record in records]
    same = store.select(ItemQuery(stream.id, identities=identities, open=True)) if identities else []
    if same:
        raise ConflictError(f"the same was said again as {same[0].id}: what was retracted before it stays so")


def _write(store: Store, stream: StreamState, records: Sequence[Record], retired: datetime | None) -> None:
    version = store.advance(stream.id).version
    store.update([record._replace(version=version, retired=retired) for record in records])


def _count_anew(store: Store, stream: StreamState, restored: Sequence[Record]) -> None:
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
