"""Conversations that went quiet: formed without waiting for more, with what was left undone before."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import chain, islice

from eunoe.form.chunk import describe_failure
from eunoe.form.former import Former
from eunoe.model.arguments import utc_now
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.records.log import load_session
from eunoe.records.streams import SettingsReader
from eunoe.records.summaries import has_due_summary
from eunoe.store.contract import Reading, Store, Writing
from eunoe.store.schema import SummaryState

_MAX_IDLE_SECONDS = 10_000_000_000.0
"""Some 300 years: what is longer would be before any date."""


def form_idle_sessions(
    store: Store, former: Former, idle: float, minimum: int, limit: int, concurrency: int
) -> FormReport:
    """Form sessions idle for so many seconds with at least so many new messages, a few at a time."""
    before = utc_now() - timedelta(seconds=min(idle, _MAX_IDLE_SECONDS))

    def find(store: Reading) -> list[Scope]:
        found = store.idle_sessions(before, minimum, limit)
        streams = {stream.id: stream.scope for stream in store.streams(ids=[session.stream for session in found])}
        return [streams[session.stream] for session in found]

    sessions = store.read((), find)
    with ThreadPoolExecutor(concurrency, thread_name_prefix="eunoe-idle") as pool:
        report = _total(pool.map(lambda scope: _form_session(store, former, scope, minimum), sessions))
        # To find what was left undone every stream is looked at: not while there is enough else to do.
        due = _find_due_summaries(store, limit) if len(sessions) < limit else []
        report += _total(pool.map(former.consolidate, due))
        targets = {target.scope: target for scope in sessions for target in former.find_targets(scope)}
        return report + _total(pool.map(lambda target: former.clean_up([target]), targets.values()))


def _total(reports: Iterable[FormReport]) -> FormReport:
    return sum(reports, FormReport())


def _form_session(store: Store, former: Former, scope: Scope, minimum: int) -> FormReport:
    """Form one session. Its failures are in the report: one session never stops the others."""
    try:
        report = former.form(scope, least=minimum, ignore_pause=False)
        if report == FormReport():
            # One that gives no job, since its streams are switched off, does not stand in the way of others.
            store.write([scope], partial(_touch, scope))
    except Exception as error:
        return FormReport(failed=(describe_failure(scope.text, error),))
    return report


def _touch(scope: Scope, store: Writing) -> None:
    session = load_session(store, store.stream(scope))
    if session:
        store.save([session._replace(active=utc_now())])


def _find_due_summaries(store: Store, limit: int) -> list[Scope]:
    """Streams whose summary waits to be written anew, or has waited for long enough: whoever was to write it may have
    been stopped."""

    def find(store: Reading) -> list[Scope]:
        reader = SettingsReader(store)
        torn = [summary.stream for summary in store.load(SummaryState, rebuild=True)]
        others = (stream for stream in store.iterate_streams() if stream.id not in torn)
        due = (
            stream.scope for stream in chain(store.streams(ids=torn), others) if has_due_summary(store, reader, stream)
        )
        return list(islice(due, limit))

    return store.read((), find)
