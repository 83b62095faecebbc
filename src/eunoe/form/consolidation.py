"""Consolidation: waiting observations are absorbed into a new revision of the summary; what it leaves out waits on."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from eunoe.errors import ConflictError, EunoeError, LlmError
from eunoe.form.summaries import (
    UNUSABLE_SUMMARY,
    Summary,
    SummaryTask,
    UnusableSummaryError,
    find_absorbed,
    summarize_by_llm,
    summarize_by_rules,
)
from eunoe.llm.contract import AnswerError, CutAnswerError, Llm, Prompt, PromptTooLongError, Reply
from eunoe.llm.models import Models, asking_for
from eunoe.model.arguments import utc_now
from eunoe.model.atom import EXTRACTIVE, Atom, Record
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings
from eunoe.records.revisions import ancestry, commit_revision, forgotten_parts, load_summary, unabsorbed
from eunoe.records.streams import SettingsReader
from eunoe.records.summaries import is_summary_due, keeps_summary
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import Lease, RevisionRecord, StreamState, SummaryState
from eunoe.text.sentences import cut_to_words
from eunoe.work import leases

_MAX_ROUNDS = 4
"""How often a summary is written anew because something changed while it was written."""
_MAX_OBSERVATIONS = 200
"""Observations that an LLM is shown at a time; the rest waits for the next revision."""
_MAX_KNOWN = 200
"""Absorbed observations, the latest, that a new text is compared with: as many as it may be made from at a time."""
_MAX_ATTEMPTS = 3
"""After so many, observations that an LLM cannot sum up are summed up without it."""
_LASTING = (AnswerError, PromptTooLongError, UnusableSummaryError)
"""Failures that would come again however often it is asked; an outage is none."""
_log = logging.getLogger("eunoe")


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a summary is written from: the stream as it was when the work began."""

    stream: StreamState
    settings: Settings
    summary: SummaryState
    revisions: Sequence[RevisionRecord]
    """The current revision and those it was written from, latest first."""
    absorbed: Mapping[str, Record]
    """The observations that these absorbed."""
    waiting: Sequence[Record]
    moment: datetime

    @property
    def text(self) -> str:
        return self.revisions[0].text if self.revisions else ""

    def is_over(self, record: Record) -> bool:
        return record.valid_to is not None and record.valid_to <= self.moment

    def atoms(self, records: Sequence[Record]) -> list[Atom]:
        return [item for record in records if isinstance(item := record.item(self.stream.scope), Atom)]


class _MissingLlm:
    """Stands for an LLM that the settings name and nobody can load: it fails as one that does not answer."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    def ask(self, prompt: Prompt) -> Reply:
        raise LlmError(self._reason)


class Consolidator:
    """Writes the summaries of streams."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store = store
        self._models = models

    def consolidate(self, scope: Scope, force: bool) -> Revision | None:
        """Absorb the waiting observations into a new revision if that is due, or if it is forced and there is one.

        An LLM that fails raises only if it was forced; the failure is noted and everything stays as it was.
        """
        try:
            return self.write_revision(scope, force)
        except LlmError:
            if force:
                raise
            return None

    def rebuild(self, scope: Scope) -> Revision | None:
        """Write a summary anew that lost a part, if no LLM is needed; otherwise, or if it fails, it stays due."""
        try:
            basis = self._store.read([scope], lambda store: _read_basis(store, scope, force=True))
            if basis is None or self._find_llm(basis.settings):
                return None
            return self.write_revision(scope, force=True)
        except Exception as error:  # what was forgotten is gone by then, and that is what the caller has to hear
            _log.warning("the summary of %s was not rebuilt and stays due: %s", scope, type(error).__name__)
            return None

    def write_revision(self, scope: Scope, force: bool) -> Revision | None:
        """Do the same as `consolidate`, but raise whenever an LLM fails."""
        for _ in range(_MAX_ROUNDS):
            try:
                return self._try_once(scope, force)
            except ConflictError as error:
                conflict = error

        def release(store: Writing) -> None:
            if stream := store.stream(scope):
                leases.release(store, SummaryState(stream.id, lease=Lease(leases.current_owner())))

        self._store.write([scope], release)
        if force:
            raise conflict
        return None

    def _try_once(self, scope: Scope, force: bool) -> Revision | None:
        basis = self._store.read([scope], lambda store: _read_basis(store, scope, force))
        if basis is None or (not force and leases.is_held_by_other(basis.summary.lease, basis.moment)):
            return None
        llm = self._find_llm(basis.settings)
        if llm is None:
            return self._commit(basis, _extractive_text(basis), EXTRACTIVE, basis.waiting)
        leased = self._store.write([scope], lambda store: _claim(store, basis))
        try:
            with leases.renewing(lambda: leases.renew(self._store, leased)), asking_for(scope):
                summary, shown = _summarize(llm, basis)
            self._check_unforgotten(basis, summary.text)
        except LlmError as error:
            before, is_lasting = basis.summary.lease, isinstance(error, _LASTING)
            if is_lasting and before.attempts + 1 >= _MAX_ATTEMPTS and UNUSABLE_SUMMARY in before.error:
                return self._commit_without_llm(basis, leased)  # it failed for reasons that last, now and before
            failure = error
            noted = self._store.write([scope], lambda store: _note_failure(store, basis, leased, failure))
            if noted:
                raise noted from None
            if force:
                raise
            return None
        return self._commit(
            basis, summary.text, summary.author, _absorbed_records(basis, summary, shown), leased, shown
        )

    def _commit_without_llm(self, basis: _Basis, leased: SummaryState) -> Revision:
        """Sum up by rules what an LLM cannot sum up. What there is no room for waits, unless that is all of it."""
        text = _extractive_text(basis)
        task = _summary_task(basis, basis.waiting)
        summary = Summary(text, EXTRACTIVE, find_absorbed(text, range(1, len(task.observations) + 1), task))
        absorbed = _absorbed_records(basis, summary, basis.waiting) or basis.waiting
        _log.warning("the summary of %s was written without the model", basis.stream.scope)
        return self._commit(basis, text, EXTRACTIVE, absorbed, leased)

    def _find_llm(self, settings: Settings) -> Llm | None:
        try:
            return self._models.get(settings.consolidation_model)
        except EunoeError as error:
            return _MissingLlm(settings.consolidation_model, str(error))

    def _check_unforgotten(self, basis: _Basis, text: str) -> None:
        """An LLM may have words from elsewhere; only those that it was shown are its to repeat."""
        shown = " ".join([basis.text, *(record.text for record in basis.waiting)])
        forgotten = self._store.read([basis.stream.scope], lambda store: forgotten_parts(store, basis.stream, text))
        if any(part not in shown for part in forgotten):
            raise UnusableSummaryError(f"there is {UNUSABLE_SUMMARY}: it brings back words that were forgotten")

    def _commit(
        self,
        basis: _Basis,
        text: str,
        author: str,
        absorbed: Sequence[Record],
        leased: SummaryState | None = None,
        shown: Sequence[Record] = (),
    ) -> Revision:
        store, stream = self._store, basis.stream

        def commit(store: Writing) -> Revision:
            if leased and not leases.find_held(store, leased):
                raise ConflictError("the work on this summary went over to somebody else")
            ids, read = ([record.id for record in records] for records in (absorbed, shown))
            now = (
                {each.id: each.text for each in store.select(ItemQuery(stream.id, ids=[*ids, *read]))}
                if ids or read
                else {}
            )
            if any(now.get(record.id, record.text) != record.text for record in (*absorbed, *shown)):
                raise ConflictError("an observation was replaced while the summary was written: write it anew")
            # Dated by when it was read: what is superseded while it is written counts as superseded since.
            return commit_revision(store, stream, basis.summary.revision, text, ids, author, basis.moment, read)

        return store.write([stream.scope], commit)


def _read_basis(store: Reading, scope: Scope, force: bool) -> _Basis | None:
    """What there is to work with; None if nothing is due."""
    moment = utc_now()
    stream, own = store.stream(scope), SettingsReader(store).of(scope)
    if stream is None or own is None or not keeps_summary(own.settings):
        return None
    summary = load_summary(store, stream)
    waiting = unabsorbed(store, stream.id)
    if not waiting or not (force or is_summary_due(own.settings, summary, len(waiting), moment)):
        return None
    revisions = ancestry(store, stream, summary.revision)
    ids = [id for revision in revisions for id in revision.absorbed]
    absorbed = {record.id: record for record in store.select(ItemQuery(stream.id, ids=ids))}
    return _Basis(stream, own.settings, summary, revisions, absorbed, waiting, moment)


def _claim(store: Writing, basis: _Basis) -> SummaryState:
    summary = load_summary(store, basis.stream)
    if leases.is_held_by_other(summary.lease, utc_now()):
        raise ConflictError(f"the summary of {basis.stream.scope} is being written by somebody else: try again later")
    if summary.revision != basis.summary.revision:
        raise ConflictError("the summary changed before the work on it began")
    leased = summary._replace(lease=leases.take(summary.lease))
    store.save([leased])
    return leased


def _note_failure(store: Writing, basis: _Basis, leased: SummaryState, error: LlmError) -> LlmError | None:
    """Write down a failure and let go. Return the error as it may be told; None if the lease is not ours any
    more."""
    if not leases.find_held(store, leased):
        return None
    ids = [*basis.absorbed, *(record.id for record in basis.waiting)]
    # It may repeat what the LLM was shown and was forgotten meanwhile.
    is_all_there = store.count(ItemQuery(basis.stream.id, ids=ids)) == len(ids)
    is_named = not isinstance(error, _LASTING) or UNUSABLE_SUMMARY in str(error)
    told = error if is_named else UnusableSummaryError(f"there is {UNUSABLE_SUMMARY}: {error}")
    noted = told if is_all_there else LlmError(leases.CLEARED)
    leases.fail(store, leased, str(noted))
    return noted


def _summarize(llm: Llm, basis: _Basis) -> tuple[Summary, Sequence[Record]]:
    """The summary by an LLM, and what it was shown. If that is too much at once, it is shown half of it."""
    waiting = basis.waiting[:_MAX_OBSERVATIONS]
    while True:
        try:
            return summarize_by_llm(llm, _summary_task(basis, waiting)), waiting
        except (CutAnswerError, PromptTooLongError):
            if len(waiting) == 1:
                raise
            waiting = waiting[: len(waiting) // 2]


def _absorbed_records(basis: _Basis, summary: Summary, shown: Sequence[Record]) -> list[Record]:
    """Those that the summary absorbs, and those that were shown as not true any more."""
    ids = {atom.id for atom in summary.absorbed}
    return [record for record in shown if record.id in ids or (basis.revisions and basis.is_over(record))]


def _extractive_text(basis: _Basis) -> str:
    """The last text that somebody wrote, and the observations since; those that were closed or are over are left
    out."""
    written, since = "", list[str]()
    for revision in basis.revisions:
        if revision.author != EXTRACTIVE:
            written = revision.text
            break
        since = [*revision.absorbed, *since]
    known = (basis.absorbed[id] for id in since if id in basis.absorbed)
    records = [*(record for record in known if record.retired is None), *basis.waiting]
    atoms = basis.atoms([record for record in records if not basis.is_over(record)])
    max_words = basis.settings.consolidated_max_words
    text = summarize_by_rules(written, atoms, max_words, basis.moment).strip()
    last = basis.waiting[-1]
    past = f"{last.valid_to:%Y-%m-%d} (past): " if basis.is_over(last) else ""
    # What has no sentence to choose, such as a piece of code, still has words: a summary is never empty.
    return text or cut_to_words(written or f"{past}{last.text}", max_words)


def _summary_task(basis: _Basis, waiting: Sequence[Record]) -> SummaryTask:
    over = [record for record in waiting if basis.is_over(record)] if basis.revisions else []
    known = list(basis.absorbed.values())[-_MAX_KNOWN:]
    # A restored text is as old as the revision it was first written in.
    same_text = list(takewhile(lambda revision: revision.text == basis.text, basis.revisions))
    new, superseded = {record.id for record in basis.waiting}, list[Record]()
    for record in basis.absorbed.values() if same_text else ():
        is_since = record.retired is not None and record.retired >= same_text[-1].recorded
        if record.superseded_by in new or (record.superseded_by and is_since):
            superseded.append(record)
    return SummaryTask(
        purpose=basis.settings.consolidation_prompt,
        max_words=basis.settings.consolidated_max_words,
        summary=basis.text,
        observations=basis.atoms([record for record in waiting if record not in over]),
        untrue=basis.atoms([*superseded, *over]),
        now=basis.moment,
        absorbed=basis.atoms([record for record in known if record.retired is None and not basis.is_over(record)]),
    )
