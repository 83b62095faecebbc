"""Conversations that went quiet: formed without waiting for more, and what was left undone before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import chain, islice

from eunoe.form.consolidation import is_summary_due
from eunoe.form.former import Former, describe_failure
from eunoe.model.report import FormReport
from eunoe.model.scope import Scope
from eunoe.model.time import to_micros, utc_now
from eunoe.records.revisions import load_summary, unabsorbed_count
from eunoe.records.sessions import load_session
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import Store, all_streams
from eunoe.store.tables import StreamState, SummaryState

_MAX_IDLE_SECONDS = 10_000_000_000.0
"""Some 300 years: what is longer would be before any date."""


def form_idle_sessions(
    store: Store, former: Former, idle: float, minimum: int, limit: int, concurrency: int
) -> FormReport:
    """Form sessions idle for so many seconds with at least so many new messages, a few at a time."""
    before = utc_now() - timedelta(seconds=min(idle, _MAX_IDLE_SECONDS))
    with store.reading():
        quiet = store.idle_sessions(to_micros(before), minimum, limit)
        streams = {stream.id: stream.scope for stream in store.streams(ids=[session.stream for session in quiet])}
    sessions = [streams[session.stream] for session in quiet]
    with ThreadPoolExecutor(concurrency, thread_name_prefix="eunoe-idle") as pool:
        report = _sum(pool.map(_guarded(lambda scope: _form_session(store, former, scope, minimum)), sessions))
        # To find what was left undone every stream is looked at: not while there is enough else to do.
        due = _due_summaries(store, limit) if len(sessions) < limit else []
        report += _sum(pool.map(_guarded(lambda scope: former.consolidate_due([scope])), due))
        touched = dict.fromkeys(target for scope in sessions for target in former.target_scopes(scope))
        return report + _sum(pool.map(_guarded(lambda scope: former.clean_up([scope])), touched))


def _form_session(store: Store, former: Former, scope: Scope, minimum: int) -> FormReport:
    report = former.form(scope, least=minimum, ignore_pause=False)
    if report == FormReport():
        _put_last(store, scope)
    return report


def _put_last(store: Store, scope: Scope) -> None:
    """A session that gives no job, since its streams are switched off, does not stand in the way of others."""
    with store.writing():
        session = load_session(store, store.stream(scope))
        if session:
            store.save([session._replace(active=utc_now())])


def _guarded(work: Callable[[Scope], FormReport]) -> Callable[[Scope], FormReport]:
    """The same work, with its faults in the report: one stream never stops the others."""

    def guarded(scope: Scope) -> FormReport:
        try:
            return work(scope)
        except Exception as error:
            return FormReport(failed=(describe_failure(scope.text, error),))

    return guarded


def _sum(reports: Iterable[FormReport]) -> FormReport:
    return sum(reports, FormReport())


def _due_summaries(store: Store, limit: int) -> list[Scope]:
    """Streams whose summary waits to be written anew, or has waited for long enough: whoever was to write it may have
    been stopped."""
    with store.reading():
        torn = [summary.stream for summary in store.load(SummaryState, rebuild=True)]
        reader = SettingsReader(store)
        rebuilds = (stream for stream in store.streams(ids=torn) if _may_try(store, stream))
        due = (stream for stream in all_streams(store) if _is_due(store, reader, stream))
        return list(dict.fromkeys(stream.scope for stream in islice(chain(rebuilds, due), limit)))


def _is_due(store: Store, reader: SettingsReader, stream: StreamState) -> bool:
    count = unabsorbed_count(store, stream.id)
    own = reader.of(stream.scope) if count else None
    if own is None or not own.settings.is_active or not own.settings.consolidation_prompt:
        return False
    return is_summary_due(load_summary(store, stream), own.settings, count, utc_now())


def _may_try(store: Store, stream: StreamState) -> bool:
    retry = load_summary(store, stream).lease.retry
    return retry is None or retry <= utc_now()
