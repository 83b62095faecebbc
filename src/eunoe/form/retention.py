"""Clean-up: what is too old, unused for too long or worth the least is archived, and can be brought back.

An atom is worth

    0.5 ^ (age / 90 days)  +  log2(1 + times recalled) * 0.5 ^ (days since then / 30)

so a fresh one is worth 1, every doubling of its use adds 1, and both wear off. Of two that are worth the same the
younger stays. Pinned atoms are never archived, nor are observations that wait to be consolidated; of these two the
pinned count among the best, the waiting do not. Messages are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import log2
from typing import Any, NamedTuple

from eunoe.errors import InputError
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.record import Record
from eunoe.model.report import RetentionReport
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.time import utc_now
from eunoe.records.access import AccessLog
from eunoe.records.atoms import archive
from eunoe.records.revisions import unabsorbed
from eunoe.records.streams import SettingsReader
from eunoe.store.contract import Store, all_items
from eunoe.store.query import ItemQuery
from eunoe.store.tables import AccessCount, StreamState

POLICY = ("max_age_days", "max_idle_days", "keep_best")

_AGE_HALF_LIFE_DAYS = 90.0
_ACCESS_HALF_LIFE_DAYS = 30.0


class Standing(NamedTuple):
    """An atom with what speaks for keeping it."""

    record: Record
    age: float
    """Days since it happened, or since it was recorded if it names no time."""
    idle: float
    """Days since it was recalled or recorded, whichever is later."""
    value: float


def apply_retention(
    store: Store, access: AccessLog, scope: Scope, policy: Mapping[str, Any], dry_run: bool
) -> RetentionReport:
    """Archive what the policy does not keep; a dry run only tells."""
    unknown = sorted(set(policy) - set(POLICY))
    if unknown:
        raise InputError(f"a clean-up knows no {', '.join(unknown)}: it takes {', '.join(POLICY)}")
    access.save()
    with store.reading():
        report = _apply(store, scope, policy, dry_run=True)
    if dry_run or not report.archived:
        return replace(report, dry_run=dry_run)
    with store.writing():
        return _apply(store, scope, policy, dry_run=False)


def _apply(store: Store, scope: Scope, policy: Mapping[str, Any], dry_run: bool) -> RetentionReport:
    own = SettingsReader(store).of(scope)
    settings = (own.settings if own else Settings(owner=tuple(scope), consolidation_prompt="")).changed(**policy)
    stream = store.stream(scope)
    if stream is None:
        return RetentionReport(dry_run=dry_run)
    query = ItemQuery(stream.id, kinds=ATOM_KINDS, open=True)
    if not any(getattr(settings, name) for name in POLICY):
        return RetentionReport(kept=store.count(query), dry_run=dry_run)
    records = list(all_items(store, query))
    moment = utc_now()
    reasons = _reasons(store, stream, records, settings, moment)
    if reasons and not dry_run:
        archive(store, stream, [record for record in records if record.seq in reasons], moment)
    archived = tuple((record.id, reasons[record.seq]) for record in records if record.seq in reasons)
    return RetentionReport(archived, len(records) - len(archived), dry_run)


def standing(record: Record, access: AccessCount | None, moment: datetime) -> Standing:
    """How old an atom is, how long unused, and what it is worth."""
    age = _days_between(record.happened, moment)
    worth = 0.5 ** (age / _AGE_HALF_LIFE_DAYS)
    last_used = record.recorded
    if access:
        last_used = max(record.recorded, access.last)
        worth += log2(1 + access.times) * 0.5 ** (_days_between(access.last, moment) / _ACCESS_HALF_LIFE_DAYS)
    return Standing(record, age, _days_between(last_used, moment), worth)


def _reasons(
    store: Store, stream: StreamState, records: Sequence[Record], settings: Settings, moment: datetime
) -> dict[int, str]:
    """Why each record that goes does go, by its number."""
    # Observations that a summary is still to absorb stay. Where no summary is written, none wait.
    waiting = {each.seq for each in unabsorbed(store, stream.id)} if settings.consolidation_prompt else set()
    loose = [record for record in records if not record.pinned and record.seq not in waiting]
    counts = {count.seq: count for count in store.load(AccessCount, seq=[record.seq for record in loose])}
    standings = [standing(record, counts.get(record.seq), moment) for record in loose]
    reasons = {one.record.seq: reason for one in standings if (reason := _overdue(one, settings))}
    left = sorted((one for one in standings if one.record.seq not in reasons), key=_rank)
    pinned = sum(1 for record in records if record.pinned and record.seq not in waiting)
    over = len(left) + pinned - settings.keep_best if settings.keep_best else 0
    for one in left[: max(over, 0)]:
        reasons[one.record.seq] = f"worth less than the best {settings.keep_best}"
    return reasons


def _overdue(one: Standing, settings: Settings) -> str:
    if settings.max_age_days and one.age > settings.max_age_days:
        return f"older than {settings.max_age_days:g} days"
    if settings.max_idle_days and one.idle > settings.max_idle_days:
        return f"not recalled for {settings.max_idle_days:g} days"
    return ""


def _rank(one: Standing) -> tuple[float, int]:
    return one.value, one.record.seq


def _days_between(then: datetime, now: datetime) -> float:
    return max((now - then) / timedelta(days=1), 0.0)
