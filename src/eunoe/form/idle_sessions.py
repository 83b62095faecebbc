"""Conversations that went quiet: formed without waiting for more, and what was left undone before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice

from eunoe.form.former import consolidated, fed, tidied, told, work_off
from eunoe.kit import Kit
from eunoe.model.scope import Scope
from eunoe.model.stream import FormReport
from eunoe.model.time import micros, now
from eunoe.records.streams import found
from eunoe.store.contract import Store, StreamRow

_SECOND = 1_000_000
_LONGEST_IDLE = 10_000_000_000.0
_MOST_REBUILDS = 10_000


def form_cold(kit: Kit, idle: float, minimum: int, limit: int, concurrency: int) -> FormReport:
    """Forms sessions idle for so many seconds with at least so many new messages, a few at a time."""
    store = kit.store
    with store.reading():
        quiet = store.books.idle(micros(now()) - int(min(idle, _LONGEST_IDLE) * _SECOND), minimum, limit)
    sessions = [Scope.parse(stream.scope) for stream, _ in quiet]
    with ThreadPoolExecutor(concurrency, thread_name_prefix="eunoe-cold") as pool:
        report = _sum(pool.map(_safely(lambda scope: _session(kit, scope, minimum)), sessions))
        # To find what was left undone every stream is looked at: not while there is enough else to do.
        owing = _owing(store, limit) if len(sessions) < limit else []
        report += _sum(pool.map(_safely(lambda scope: consolidated(kit, [scope])), owing))
        touched = dict.fromkeys(target for scope in sessions for target in fed(store, scope))
        return report + _sum(pool.map(_safely(lambda scope: tidied(kit, [scope])), touched))


def _session(kit: Kit, scope: Scope, minimum: int) -> FormReport:
    report = work_off(kit, scope, least=minimum, again=False)
    if report == FormReport():
        _put_last(kit.store, scope)
    return report


def _put_last(store: Store, scope: Scope) -> None:
    """A session that gives no work, since its streams are switched off, does not stand in the way of others."""
    with store.writing():
        stream = store.stream(str(scope))
        session = store.books.session(stream.id) if stream else None
        if session:
            store.books.put_session(session._replace(active=micros(now())))


def _safely(work: Callable[[Scope], FormReport]) -> Callable[[Scope], FormReport]:
    """The same work, with its faults in the report: one stream never stops the others."""

    def safe(scope: Scope) -> FormReport:
        try:
            return work(scope)
        except Exception as error:
            return FormReport(failed=(told(str(scope), error),))

    return safe


def _sum(reports: Iterable[FormReport]) -> FormReport:
    return sum(reports, FormReport())


def _owing(store: Store, limit: int) -> list[Scope]:
    """Streams whose summary waits to be written anew, or has waited for long enough: whoever was to write it may have
    been stopped."""
    with store.reading():
        torn = (stream for stream in store.books.rebuilds(_MOST_REBUILDS) if _may_try(store, stream))
        due = (stream for stream in _streams(store) if _is_due(store, stream) and _may_try(store, stream))
        scopes = dict.fromkeys(stream.scope for stream in islice(chain(torn, due), limit))
    return [Scope.parse(scope) for scope in scopes]


def _streams(store: Store) -> Iterator[StreamRow]:
    after = ""
    while streams := store.streams(after):
        yield from streams
        after = streams[-1].scope


def _is_due(store: Store, stream: StreamRow) -> bool:
    count = store.books.unabsorbed_count(stream.id)
    own = found(store, Scope.parse(stream.scope)) if count else None
    if own is None or not own[1].is_active or not own[1].consolidation_prompt:
        return False
    return count >= own[1].consolidation_trigger


def _may_try(store: Store, stream: StreamRow) -> bool:
    summary = store.books.summary(stream.id)
    return summary is None or summary.retry <= micros(now())
