"""Consolidation: observations that wait are taken into a new revision of the summary, all of them or none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from eunoe.errors import ConflictError, EunoeError, LlmError, StoreError
from eunoe.form.llm_summary import Task, write
from eunoe.form.rule_summary import summarise
from eunoe.kit import Kit
from eunoe.llm.contract import Llm, Prompt, Reply
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.stream import Revision
from eunoe.model.time import from_micros, micros, now
from eunoe.records import jobs, revisions, streams
from eunoe.records.revisions import EXTRACTIVE, taken
from eunoe.records.rows import item_of
from eunoe.store.books import RevisionRow, SummaryRow, WorkRow
from eunoe.store.contract import Row, Store, StreamRow
from eunoe.text.sentences import cut

_log = logging.getLogger("eunoe")

_ROUNDS = 4
_MOST_AT_ONCE = 200
"""Observations that a model is shown at a time; the rest waits for the next revision."""
_LONGEST_ERROR = 300
_SECOND = 1_000_000
_CLEARED = "the last attempt failed; what it said went with what was forgotten meanwhile"


@dataclass(frozen=True, slots=True)
class _Stand:
    """How a stream stood when the work on its summary began."""

    stream: StreamRow
    settings: Settings
    summary: SummaryRow
    chain: Sequence[RevisionRow]
    """The current revision and those it was written from, latest first."""
    lineage: Mapping[str, Row]
    waiting: Sequence[Row]
    moment: datetime

    @property
    def scope(self) -> Scope:
        return Scope.parse(self.stream.scope)


class _Missing:
    """Stands for a model that the settings name and nobody can load."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    def ask(self, prompt: Prompt) -> Reply:
        raise LlmError(self._reason)


def consolidate(kit: Kit, scope: Scope, force: bool) -> Revision | None:
    """Takes the waiting observations into a new revision if that is due, or if it is forced and there is one at least.

    A model that fails is heard if it was forced; either way the failure is noted and everything stays as it was.
    """
    for _ in range(_ROUNDS):
        try:
            return _round(kit, scope, force)
        except ConflictError as error:
            clash = error
    with kit.store.writing():
        _let_go(kit.store, scope)
    if force:
        raise clash
    return None


def rebuild(kit: Kit, scope: Scope) -> Revision | None:
    """Writes a summary anew that lost a part, if no model is needed for it; otherwise, or if it fails, it stays due."""
    try:
        with kit.store.reading():
            stand = _stand(kit.store, scope, True, now())
        if stand is None or _model(kit, stand):
            return None
        return consolidate(kit, scope, True)
    except Exception as error:  # what was forgotten is gone by then, and that is what the caller has to hear
        _log.warning("the summary of %s was not rebuilt and stays due: %s", scope, type(error).__name__)
        return None


def _round(kit: Kit, scope: Scope, force: bool) -> Revision | None:
    with kit.store.reading():
        stand = _stand(kit.store, scope, force, now())
    if stand is None or (not force and _is_held(stand.summary, micros(stand.moment))):
        return None
    llm = _model(kit, stand)
    if llm is None:
        return _commit(kit.store, stand, _extracted(stand), EXTRACTIVE, stand.waiting)
    return _asked(kit.store, stand, llm, force)


def _model(kit: Kit, stand: _Stand) -> Llm | None:
    """The model that writes; one that cannot be had fails as one that does not answer."""
    name = stand.settings.consolidation_model
    try:
        return kit.models.named(name)
    except EunoeError as error:
        return _Missing(name, str(error))


def _stand(store: Store, scope: Scope, force: bool, moment: datetime) -> _Stand | None:
    """What there is to work with; None if nothing is due."""
    stream, kind = store.stream(str(scope)), streams.found(store, scope)
    if stream is None or kind is None or not kind[1].is_active or not kind[1].consolidation_prompt:
        return None
    summary = revisions.state(store, stream)
    waiting = store.books.unabsorbed(stream.id)
    if not waiting or not (force or _is_due(summary, kind[1], len(waiting), micros(moment))):
        return None
    chain = revisions.ancestry(store, stream, summary.revision)
    rows = store.by_id(stream.id, [id for row in chain for id in taken(row)])
    return _Stand(stream, kind[1], summary, chain, {row.id: row for row in rows}, waiting, moment)


def _is_due(summary: SummaryRow, settings: Settings, waiting: int, moment: int) -> bool:
    return summary.retry <= moment and bool(summary.rebuild or waiting >= settings.consolidation_trigger)


def _is_held(summary: SummaryRow, moment: int) -> bool:
    return summary.owner not in ("", jobs.owner()) and summary.until > moment


def _extracted(stand: _Stand) -> str:
    """The last text that somebody wrote, and the observations since; those that were closed or are over are left
    out."""
    base = ""
    since: list[str] = []
    for row in stand.chain:
        if row.author != EXTRACTIVE:
            base = row.text
            break
        since = [*taken(row), *since]
    rows = [stand.lineage[id] for id in since if id in stand.lineage and stand.lineage[id].retired is None]
    atoms = _atoms([row for row in (*rows, *stand.waiting) if not _is_over(row, stand)], stand.scope)
    most = stand.settings.consolidated_max_words
    # What has no sentence to choose, such as a piece of code, still has words.
    return summarise(base, atoms, most, stand.moment).strip() or cut(base or _last(stand), most)


def _is_over(row: Row, stand: _Stand) -> bool:
    return row.valid_to is not None and row.valid_to <= micros(stand.moment)


def _last(stand: _Stand) -> str:
    """What waits last, told as past if it is over: a summary is never empty."""
    row = stand.waiting[-1]
    if row.valid_to is None or not _is_over(row, stand):
        return row.text
    return f"{from_micros(row.valid_to):%Y-%m-%d} (past): {row.text}"


def _asked(store: Store, stand: _Stand, llm: Llm, force: bool) -> Revision | None:
    waiting = stand.waiting[:_MOST_AT_ONCE]
    with store.writing():
        _claim(store, stand)
    try:
        with _holding(store, stand.stream):
            text, author = write(llm, _task(stand, waiting))
        _check_unforgotten(store, stand, text)
    except LlmError as error:
        with store.writing():
            _note(store, stand, error)
        if force:
            raise
        return None
    return _commit(store, stand, text, author, waiting, held=True)


def _check_unforgotten(store: Store, stand: _Stand, text: str) -> None:
    """A model may have words from elsewhere; only those that it was shown are its to repeat."""
    shown = " ".join([*(row.text for row in stand.chain[:1]), *(row.text for row in stand.waiting)])
    with store.reading():
        back = revisions.forgotten(store, stand.stream, text)
    if any(part not in shown for part in back):
        raise LlmError("the answer brings back words that were forgotten")


def _task(stand: _Stand, waiting: Sequence[Row]) -> Task:
    over = [row for row in waiting if _is_over(row, stand)] if stand.chain else []
    return Task(
        purpose=stand.settings.consolidation_prompt,
        limit=stand.settings.consolidated_max_words,
        summary=stand.chain[0].text if stand.chain else "",
        observations=_atoms([row for row in waiting if row not in over], stand.scope),
        untrue=_atoms([*_closed(stand), *over], stand.scope),
        now=stand.moment,
    )


def _closed(stand: _Stand) -> list[Row]:
    """What the summary holds and was superseded since its text was written."""
    if not stand.chain:
        return []
    new = {row.id for row in stand.waiting}
    # A restored text is as old as the revision it was first written in.
    same = list(takewhile(lambda row: row.text == stand.chain[0].text, stand.chain))
    written = same[-1].recorded
    rows = stand.lineage.values()
    return [row for row in rows if row.superseded_by in new or (row.superseded_by and (row.retired or 0) >= written)]


def _atoms(rows: Sequence[Row], scope: Scope) -> list[Atom]:
    return [item for row in rows if isinstance(item := item_of(row, scope), Atom)]


def _commit(
    store: Store, stand: _Stand, text: str, author: str, waiting: Sequence[Row], held: bool = False
) -> Revision:
    with store.writing():
        if held and revisions.state(store, stand.stream).owner != jobs.owner():
            raise ConflictError("the work on this summary went over to somebody else")
        ids = [row.id for row in waiting]
        # Dated by when it was read: what is superseded while it is written counts as superseded since.
        moment = micros(stand.moment)
        return revisions.commit(store, stand.stream, stand.summary.revision, text, ids, author, moment)


def _claim(store: Store, stand: _Stand) -> None:
    summary = revisions.state(store, stand.stream)
    if _is_held(summary, micros(now())):
        raise ConflictError(f"the summary of {stand.stream.scope} is being written by somebody else: try again later")
    if summary.revision != stand.summary.revision:
        raise ConflictError("the summary changed before the work on it began")
    store.books.put_summary(summary._replace(owner=jobs.owner(), until=_end()))


def _end() -> int:
    return micros(now()) + int(jobs.lease() * _SECOND)


@contextmanager
def _holding(store: Store, stream: StreamRow) -> Iterator[None]:
    """Renews the lease for as long as the block lasts."""
    done = threading.Event()
    renewing = threading.Thread(target=_renew, args=(store, stream, jobs.owner(), done), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


def _renew(store: Store, stream: StreamRow, owner: str, done: threading.Event) -> None:
    while not done.wait(jobs.lease() / 3):
        try:
            with store.writing():
                summary = revisions.state(store, stream)
                if summary.owner != owner:
                    return
                store.books.put_summary(summary._replace(until=_end()))
        except StoreError as error:
            _log.warning("the lease on the summary of %s was not renewed: %s", stream.scope, error)


def _note(store: Store, stand: _Stand, error: LlmError) -> None:
    """Writes down a failure and lets go; the next attempt waits longer each time."""
    summary = revisions.state(store, stand.stream)
    if summary.owner != jobs.owner():
        return
    attempts = summary.attempts + 1
    pause = jobs.pause(WorkRow(stand.stream.id, 0, 0, attempts=attempts))
    said = " ".join(str(error).split())[:_LONGEST_ERROR] if _is_whole(store, stand) else _CLEARED
    summary = summary._replace(owner="", until=0, attempts=attempts, retry=micros(now()) + pause, error=said)
    store.books.put_summary(summary)


def _is_whole(store: Store, stand: _Stand) -> bool:
    """Whether all that the model was shown is still there: an error may repeat it."""
    ids = [*stand.lineage, *(row.id for row in stand.waiting)]
    return len(store.by_id(stand.stream.id, ids)) == len(ids)


def _let_go(store: Store, scope: Scope) -> None:
    stream = store.stream(str(scope))
    summary = store.books.summary(stream.id) if stream else None
    if summary and summary.owner == jobs.owner():
        store.books.put_summary(summary._replace(owner="", until=0))
