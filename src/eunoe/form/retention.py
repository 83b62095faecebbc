"""Retention: what is too old, unused for too long or worth the least is archived, and can be brought back.

An atom is worth

    0.5 ^ (age / 90 days)  +  log2(1 + times recalled) * 0.5 ^ (days since then / 30)

so a fresh one is worth 1, every doubling of its use adds 1, and both wear off. Of two that are worth the same the
younger stays. Pinned atoms are never archived, nor are observations that wait to be consolidated; of these two the
pinned count among the best, the waiting do not. Messages and what is in review are never touched.
"""

from collections.abc import Mapping, Sequence, Set
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
    access.save()
    report = store.read([scope], lambda store: _apply(store, scope, policy, None))
    if dry_run or not report.archived:
        return replace(report, dry_run=dry_run)
    return store.write([scope], lambda store: _apply(store, scope, policy, store))


def _apply(store: Reading, scope: Scope, policy: Mapping[str, Any], writing: Writing | None) -> RetentionReport:
    """What the policy does not keep; archived if there is something to write with."""
    if not scope.within:
        return _apply_alone(store, store.stream(scope), scope, policy, writing)
    reports = [_apply_alone(store, stream, stream.scope, policy, writing) for stream in store.streams_within(scope)]
    archived = tuple(pair for report in reports for pair in report.archived)
    return RetentionReport(archived, sum(report.kept for report in reports), writing is None)


def _apply_alone(
    store: Reading, stream: StreamState | None, scope: Scope, policy: Mapping[str, Any], writing: Writing | None
) -> RetentionReport:
    own = SettingsReader(store).of(scope)
    settings = (own.settings if own else Settings(owner=tuple(scope), consolidation_prompt="")).changed(**policy)
    if stream is None:
        return RetentionReport(dry_run=writing is None)
    query = ItemQuery(stream.id, kinds=ATOM_KINDS, open=True, reviewed=True)
    if not has_policy(settings):
        return RetentionReport(kept=store.count(query), dry_run=writing is None)
    records, moment = list(store.iterate(query)), utc_now()
    # Observations that a summary is still to absorb stay. Where no summary is written, none wait.
    waiting = unabsorbed(store, stream.id) if settings.consolidation_prompt else []
    reasons = _find_reasons(store, records, {record.seq for record in waiting}, settings, moment)
    archived = [record for record in records if record.seq in reasons]
    if archived and writing:
        archive(writing, stream, archived, moment)
    pairs = tuple((record.id, reasons[record.seq]) for record in archived)
    return RetentionReport(pairs, len(records) - len(archived), writing is None)


def _find_reasons(
    store: Reading, records: Sequence[Record], waiting: Set[int], settings: Settings, moment: datetime
) -> dict[int, str]:
    """Why each atom goes that does, by its number. Pinned ones stay, and count among the best; those that wait stay
    as well, and do not count."""
    candidates = [record for record in records if record.seq not in waiting]
    worths = _weigh(store, [record for record in candidates if not record.pinned], moment)
    reasons = {worth.record.seq: reason for worth in worths if (reason := _reason_by_age(worth, settings))}
    excess = len(candidates) - len(reasons) - settings.keep_best if settings.keep_best else 0
    left = [worth for worth in worths if worth.record.seq not in reasons]
    for worth in left[: max(excess, 0)]:
        reasons[worth.record.seq] = f"worth less than the best {settings.keep_best}"
    return reasons


def _weigh(store: Reading, records: Sequence[Record], moment: datetime) -> list[AtomWorth]:
    """Those that are worth the least first."""
    counts = {count.seq: count for count in store.load(AccessCount, seq=[record.seq for record in records])}
    worths = (worth_of(record, counts.get(record.seq), moment) for record in records)
    return sorted(worths, key=lambda worth: (worth.worth, worth.record.seq))


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
