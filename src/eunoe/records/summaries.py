"""Summaries as a caller reads and writes them, each in one step of the store."""

from eunoe.model.lease import Lease
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision
from eunoe.model.time import utc_now
from eunoe.records import revisions
from eunoe.records.incognito import check_not_incognito
from eunoe.records.named_leases import end_lease
from eunoe.records.revisions import NewSummary
from eunoe.store.contract import Store


def read_revisions(store: Store, scope: Scope) -> list[Revision]:
    with store.reading():
        return revisions.all_revisions(store, store.stream(scope))


def restore_summary(store: Store, scope: Scope, number: int) -> Revision:
    with store.writing():
        return revisions.restore_revision(store, store.stream(scope), number, utc_now())


def write_summary(store: Store, scope: Scope, new: NewSummary, lease: Lease | None) -> Revision:
    with store.writing():
        check_not_incognito(store, scope)
        stream = store.create_stream(scope)
        end_lease(store, stream, lease)
        return revisions.write_revision(store, stream, new, utc_now())
