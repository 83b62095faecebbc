"""Summaries as a caller reads and writes them, each in one step of the store, and when one is due."""

from datetime import datetime

from eunoe.model.arguments import utc_now
from eunoe.model.result import Lease
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings
from eunoe.records import revisions
from eunoe.records.revisions import NewSummary
from eunoe.records.streams import SettingsReader, check_not_incognito
from eunoe.store.contract import Reading, Store, Writing
from eunoe.store.schema import StreamState, SummaryState
from eunoe.work.leases import end_lease


def keeps_summary(settings: Settings) -> bool:
    return settings.is_active and bool(settings.consolidation_prompt)


def is_summary_due(settings: Settings, summary: SummaryState, waiting: int, moment: datetime) -> bool:
    """Whether enough observations wait, or a part was forgotten, and no failed attempt has to be waited for."""
    if not keeps_summary(settings) or (summary.lease.retry is not None and summary.lease.retry > moment):
        return False
    return waiting > 0 and (summary.rebuild or waiting >= settings.consolidation_trigger)


def has_due_summary(store: Reading, reader: SettingsReader, stream: StreamState) -> bool:
    count = revisions.unabsorbed_count(store, stream.id)
    own = reader.of(stream.scope) if count else None
    return own is not None and is_summary_due(own.settings, revisions.load_summary(store, stream), count, utc_now())


def read_revisions(store: Store, scope: Scope) -> list[Revision]:
    def read(store: Reading) -> list[Revision]:
        return revisions.all_revisions(store, store.stream(scope))

    return store.read([scope], read)


def restore_summary(store: Store, scope: Scope, number: int) -> Revision:
    def restore(store: Writing) -> Revision:
        return revisions.restore_revision(store, store.stream(scope), number, utc_now())

    return store.write([scope], restore)


def write_summary(store: Store, scope: Scope, new: NewSummary, lease: Lease | None) -> Revision:
    def write(store: Writing) -> Revision:
        check_not_incognito(store, scope)
        stream = store.create_stream(scope)
        end_lease(store, stream, lease)
        return revisions.write_revision(store, stream, new, utc_now())

    return store.write([scope], write)
