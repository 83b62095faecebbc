"""Retention: what is too old, unused for too long or worth the least is archived, and can be brought back.

An atom is worth

    0.5 ^ (age / 90 days)  +  log2(1 + times recalled) * 0.5 ^ (days since then / 30)

so a fresh one is worth 1, every doubling of its use adds 1, and both wear off. Of two that are worth the same the
younger stays. Pinned atoms are never archived, nor are observations that wait to be consolidated; of these two the
pinned count among the best, the waiting do not. Messages and what is in review are never touched.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import log2
from typing import Any, NamedTuple

from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.atom import Record
from eunoe.model.result import RetentionReport
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings
from eunoe.records.atoms import archive
from eunoe.records.counters import AccessLog
from eunoe.records.revisions import unabsorbed
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import AccessCount, StreamState

_POLICY = ("max_age_days", "max_idle_days", "keep_best")
_AGE_HALF_LIFE_DAYS = 90.0
_ACCESS_HALF_LIFE_DAYS = 30.0


class AtomWorth(NamedTuple):
    """An atom and what speaks for keeping it."""

    record: Record
    age_days: float
    """Since it happened, or since it was recorded if it names no time."""
    idle_days: float
    """Since it was recalled or recorded, whichever is later."""
    worth: float


def has_policy(settings: Settings) -> bool:
    """Whether anything is ever archived under these settings."""
    return any(getattr(settings, name) for name in _POLICY)


def apply_retention(
    store: Store, access: AccessLog, scope: Scope, policy: Mapping[str, Any], dry_run: bool
) -> RetentionReport:
    """Archive what the policy does not keep; a dry run only tells."""
    Settings(owner=tuple(scope)).changed(**policy)  # refuses what is no policy, be there a stream or not
    access.save()
    report = store.read([scope], lambda store: _apply(store, scope, policy, None))
    if dry_run or not report.archived:
        return replace(report, dry_run=dry_run)
    return store.write([scope], lambda store: _apply(store, scope, policy, store))


def _apply(store: Reading, scope: Scope, policy: Mapping[str, Any], writing: Writing | None) -> RetentionReport:
    """What the policy does not keep; archived if there is something to write with."""
    streams = store.streams_within(scope) if scope.within else filter(None, [store.stream(scope)])
    reports = [_apply_alone(store, stream, policy, writing) for stream in streams]
    archived = tuple(pair for report in reports for pair in report.archived)
    return RetentionReport(archived, sum(report.kept for report in reports), writing is None)


def _apply_alone(
    store: Reading, stream: StreamState, policy: Mapping[str, Any], writing: Writing | None
) -> RetentionReport:
    own = SettingsReader(store).of(stream.scope)
    settings = own.settings if own else Settings(owner=tuple(stream.scope), consolidation_prompt="")
    settings = settings.changed(**policy)
    query = ItemQuery(stream.id, kinds=ATOM_KINDS, open=True, reviewed=True)
    if not has_policy(settings):
        return RetentionReport(kept=store.count(query), dry_run=writing is None)
    records, moment = list(store.iterate(query)), utc_now()
    # Observations that a summary is still to absorb stay. Where no summary is written, none wait.
    waiting = {each.seq for each in unabsorbed(store, stream.id)} if settings.consolidation_prompt else set[int]()
    candidates = [record for record in records if record.seq not in waiting]
    unpinned = [record for record in candidates if not record.pinned]
    counts = {count.seq: count for count in store.load(AccessCount, seq=[record.seq for record in unpinned])}
    worths = [worth_of(record, counts.get(record.seq), moment) for record in unpinned]
    reasons = {worth.record.seq: reason for worth in worths if (reason := _reason_by_age(worth, settings))}
    # Pinned ones count among the best, those that wait do not.
    excess = len(candidates) - len(reasons) - settings.keep_best if settings.keep_best else 0
    left = sorted((worth.worth, worth.record.seq) for worth in worths if worth.record.seq not in reasons)
    reasons |= {seq: f"worth less than the best {settings.keep_best}" for _, seq in left[: max(excess, 0)]}
    archived = [record for record in records if record.seq in reasons]
    if archived and writing:
        archive(writing, stream, archived, moment)
    pairs = tuple((record.id, reasons[record.seq]) for record in archived)
    return RetentionReport(pairs, len(records) - len(archived), writing is None)


def worth_of(record: Record, access: AccessCount | None, moment: datetime) -> AtomWorth:
    """Tell how old an atom is, how long unused, and what it is worth."""
    age = _days_between(record.happened, moment)
    worth = 0.5 ** (age / _AGE_HALF_LIFE_DAYS)
    last_used = record.recorded
    if access:
        last_used = max(record.recorded, access.last)
        worth += log2(1 + access.times) * 0.5 ** (_days_between(access.last, moment) / _ACCESS_HALF_LIFE_DAYS)
    return AtomWorth(record, age, _days_between(last_used, moment), worth)


def _reason_by_age(worth: AtomWorth, settings: Settings) -> str:
    if settings.max_age_days and worth.age_days > settings.max_age_days:
        return f"older than {settings.max_age_days:g} days"
    if settings.max_idle_days and worth.idle_days > settings.max_idle_days:
        return f"not recalled for {settings.max_idle_days:g} days"
    return ""


def _days_between(then: datetime, now: datetime) -> float:
    return max((now - then) / timedelta(days=1), 0.0)
