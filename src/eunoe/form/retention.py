"""Clean-up: what is too old, unused for too long or worth the least is archived, and can be brought back.

An atom is worth

    0.5 ^ (age / 90 days)  +  log2(1 + times recalled) * 0.5 ^ (days since then / 30)

so a fresh one is worth 1, every doubling of its use adds 1, and both wear off. Of two that are worth the same the
younger stays. Pinned atoms are never archived, nor are observations that wait to be consolidated; of these two the
pinned count among the best, the waiting do not. Messages are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from typing import Any, NamedTuple

from eunoe.errors import InputError
from eunoe.kit import Kit
from eunoe.model.atom import KINDS
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.stream import TidyReport
from eunoe.model.time import micros, now
from eunoe.records.streams import found
from eunoe.store.books import Use
from eunoe.store.contract import Row, Store, StreamRow

POLICY = ("max_age_days", "max_idle_days", "keep_best")

_DAY = 86_400_000_000
_AGE_HALF_LIFE = 90.0
_USE_HALF_LIFE = 30.0
_PAGE = 1000


class Standing(NamedTuple):
    """An atom with what speaks for keeping it."""

    row: Row
    age: float
    """Days since it happened, or since it was recorded if it names no time."""
    idle: float
    """Days since it was recalled or recorded, whichever is later."""
    value: float


def tidy(kit: Kit, scope: Scope, policy: Mapping[str, Any], dry_run: bool) -> TidyReport:
    """Archives what the policy does not keep; a dry run only tells."""
    unknown = sorted(set(policy) - set(POLICY))
    if unknown:
        raise InputError(f"a clean-up knows no {', '.join(unknown)}: it takes {', '.join(POLICY)}")
    kit.uses.save()
    store = kit.store
    with store.reading():
        report = _tidy(store, scope, policy, dry_run=True)
    if dry_run or not report.archived:
        return TidyReport(report.archived, report.kept, dry_run)
    with store.writing():
        return _tidy(store, scope, policy, dry_run=False)


def _tidy(store: Store, scope: Scope, policy: Mapping[str, Any], dry_run: bool) -> TidyReport:
    settings = _settings(store, scope, policy)
    stream = store.stream(str(scope))
    if stream is None:
        return TidyReport(dry_run=dry_run)
    if not any(getattr(settings, name) for name in POLICY):
        return TidyReport(kept=sum(store.books.living(stream.id, kind) for kind in KINDS), dry_run=dry_run)
    rows = list(_living(store, stream))
    reasons = _reasons(store, stream, rows, settings)
    if reasons and not dry_run:
        archive(store, stream, [row for row in rows if row.seq in reasons])
    archived = tuple((row.id, reasons[row.seq]) for row in rows if row.seq in reasons)
    return TidyReport(archived, len(rows) - len(archived), dry_run)


def archive(store: Store, stream: StreamRow, rows: Sequence[Row]) -> None:
    """Closes atoms without anything in their place, in one version step."""
    version = store.advance(stream.id).version
    moment = micros(now())
    store.replace([row._replace(version=version, retired=moment) for row in rows])


def standing(row: Row, use: Use | None, moment: int) -> Standing:
    """How old an atom is, how long unused, and what it is worth."""
    age = _days(moment - (row.recorded if row.time is None else row.time))
    unused = _days(moment - use.last) if use else 0.0
    worth = 0.5 ** (age / _AGE_HALF_LIFE)
    if use:
        worth += log2(1 + use.times) * 0.5 ** (unused / _USE_HALF_LIFE)
    return Standing(row, age, _days(moment - max(row.recorded, use.last if use else 0)), worth)


def least_valuable(store: Store, rows: Sequence[Row], count: int, moment: int) -> list[Row]:
    """The rows to give up first, so many of them."""
    uses = store.books.uses([row.seq for row in rows])
    standings = [standing(row, uses.get(row.seq), moment) for row in rows]
    return [one.row for one in sorted(standings, key=_rank)[: max(count, 0)]]


def _settings(store: Store, scope: Scope, policy: Mapping[str, Any]) -> Settings:
    own = found(store, scope)
    return (own[1] if own else Settings(owner=tuple(scope), consolidation_prompt="")).changed(**policy)


def _reasons(store: Store, stream: StreamRow, rows: Sequence[Row], settings: Settings) -> dict[int, str]:
    """Why each row that goes does go, by row number."""
    waiting = _waiting(store, stream, settings)
    moment = micros(now())
    loose = [row for row in rows if not row.pinned and row.seq not in waiting]
    uses = store.books.uses([row.seq for row in loose])
    reasons = {}
    for row in loose:
        if reason := _overdue(standing(row, uses.get(row.seq), moment), settings):
            reasons[row.seq] = reason
    left = [row for row in loose if row.seq not in reasons]
    pinned = sum(1 for row in rows if row.pinned and row.seq not in waiting)
    over = len(left) + pinned - settings.keep_best if settings.keep_best else 0
    for row in least_valuable(store, left, over, moment):
        reasons[row.seq] = f"worth less than the best {settings.keep_best}"
    return reasons


def _overdue(one: Standing, settings: Settings) -> str:
    if settings.max_age_days and one.age > settings.max_age_days:
        return f"older than {settings.max_age_days:g} days"
    if settings.max_idle_days and one.idle > settings.max_idle_days:
        return f"not recalled for {settings.max_idle_days:g} days"
    return ""


def _waiting(store: Store, stream: StreamRow, settings: Settings) -> set[int]:
    """Observations that a summary is still to take in. Where no summary is written, none wait."""
    return {row.seq for row in store.books.unabsorbed(stream.id)} if settings.consolidation_prompt else set()


def _living(store: Store, stream: StreamRow) -> Iterator[Row]:
    after = 0
    while page := store.page(stream.id, after, _PAGE, KINDS, retired=False):
        yield from page
        after = page[-1].seq


def _rank(one: Standing) -> tuple[float, int]:
    return one.value, one.row.seq


def _days(micros: int) -> float:
    return max(micros, 0) / _DAY
