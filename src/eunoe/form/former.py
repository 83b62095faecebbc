"""Forming: a conversation's new messages become memories, chunk by chunk, each in one step or not at all."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from eunoe.errors import EunoeError
from eunoe.form import llm_extraction, resolution, rule_extraction
from eunoe.form.consolidation import Consolidator
from eunoe.form.llm_extraction import Unusable
from eunoe.form.proposal import Known, Proposal
from eunoe.form.retention import apply_retention
from eunoe.llm.answers import UNUSABLE
from eunoe.llm.contract import Llm
from eunoe.llm.models import Models
from eunoe.model.atom import EXTRACTIVE
from eunoe.model.choices import ATOM_KINDS
from eunoe.model.hit import Hit
from eunoe.model.report import FormReport
from eunoe.model.scope import Scope
from eunoe.model.stream import Target
from eunoe.model.time import utc_now
from eunoe.model.turn import Turn, read_turns, speaking_users
from eunoe.recall.recipes import RECIPES
from eunoe.recall.request import Filter, RecallRequest
from eunoe.recall.search import Searcher
from eunoe.records import leases
from eunoe.records.access import AccessLog
from eunoe.records.insertion import Floats, VectorBatch
from eunoe.records.jobs import can_claim, claim_job, fail_job, finish_job, job_messages, release_job, renew_job
from eunoe.records.leases import CLEARED
from eunoe.records.sessions import is_user_name, load_session
from eunoe.records.streams import SettingsReader
from eunoe.store.query import ItemQuery
from eunoe.store.tables import Job, Lease, StreamState, SummaryState

_MAX_KNOWN = 40
_MAX_KNOWN_EACH = 10
"""Known memories that an LLM is shown, in all and for each stream."""
_NEAR = 5
"""Known memories that a proposal is compared with."""
_MAX_QUESTION_CHARACTERS = 2000
_MAX_ATTEMPTS = 5
"""After so many, messages that an LLM only answers with nonsense are formed without it."""
_log = logging.getLogger("eunoe")

Near = dict[str, list[str]]
"""Ids of known memories that may say the same as a proposal, by its text."""


class Offer(NamedTuple):
    """What is proposed for the streams of a conversation."""

    proposals: list[Proposal]
    refused: int = 0
    """Items of an LLM's answers that cannot be used."""
    failed: tuple[str, ...] = ()
    """What went wrong and was made up for."""

    def of(self, place: int) -> list[Proposal]:
        """What is proposed for one stream."""
        return [proposal for proposal in self.proposals if proposal.target == place]


class Chunk(NamedTuple):
    """What one job is about, as it was read."""

    scope: Scope
    job: Job
    turns: list[Turn]
    users: list[str]
    """All who took part in the conversation so far."""
    targets: list[Target]


class Former:
    """Turns conversations into memories, and keeps the summaries of the streams they feed up to date."""

    def __init__(self, searcher: Searcher, models: Models, access: AccessLog) -> None:
        self._searcher = searcher
        self._store = searcher.store
        self._models = models
        self._access = access
        self.consolidator = Consolidator(searcher.store, models)

    def form(
        self,
        scope: Scope,
        least: int | None,
        ignore_pause: bool,
        is_open: Callable[[], bool] = lambda: True,
    ) -> FormReport:
        """Form chunk after chunk while there are any and `is_open` says so. One that fails does not stop the rest.

        `least` messages are enough; None leaves that to the settings. `ignore_pause` takes what failed before at once.
        """
        report, tried = FormReport(), set[int]()
        while is_open() and (job := self._claim(scope, least, ignore_pause, tried)):
            tried.add(job.start)
            report += self._attempt(scope, job)
            targets = self.target_scopes(scope)
            report += self.consolidate_due(targets) + self.clean_up(targets)
        if tried or not is_open():
            return report
        return self.consolidate_due(self.target_scopes(scope), ignore_pause)

    def target_scopes(self, scope: Scope) -> list[Scope]:
        """The streams that a conversation feeds."""
        with self._store.reading():
            session = load_session(self._store, self._store.stream(scope))
            targets = SettingsReader(self._store).targets(scope, session.users if session else ())
            return [target.scope for target in targets]

    def clean_up(self, scopes: Sequence[Scope]) -> FormReport:
        """Archive what the settings of these streams do not keep."""
        failed = []
        for scope in scopes:
            try:
                apply_retention(self._store, self._access, scope, {}, dry_run=False)
            except Exception as error:
                failed.append(describe_failure(f"the clean-up of {scope}", error))
        return FormReport(failed=tuple(failed))

    def consolidate_due(self, scopes: Sequence[Scope], ignore_pause: bool = False) -> FormReport:
        """Bring the summaries of these streams up to date where that is due."""
        return sum((self._consolidate_one(scope, ignore_pause) for scope in scopes), FormReport())

    def _consolidate_one(self, scope: Scope, ignore_pause: bool) -> FormReport:
        before = self._summary_lease(scope).attempts
        try:
            if self.consolidator.consolidate(scope, force=ignore_pause and before > 0):
                return FormReport(consolidated=(scope,))
        except Exception as error:
            return FormReport(failed=(describe_failure(f"the summary of {scope}", error),))
        lease = self._summary_lease(scope)
        return FormReport(failed=(f"the summary of {scope}: {lease.error}",) if lease.attempts > before else ())

    def _summary_lease(self, scope: Scope) -> Lease:
        with self._store.reading():
            stream = self._store.stream(scope)
            found = self._store.load(SummaryState, stream=stream.id) if stream else []
        return found[0].lease if found else Lease()

    def _claim(self, scope: Scope, least: int | None, ignore_pause: bool, tried: set[int]) -> Job | None:
        with self._store.reading():
            stream = self._store.stream(scope)
            if stream is None or not can_claim(self._store, stream, least, ignore_pause, tried):
                return None
        with self._store.writing():
            return claim_job(self._store, stream, least, ignore_pause, tried)

    def _attempt(self, scope: Scope, job: Job) -> FormReport:
        """Bring one job to its end, good or bad."""
        store = self._store
        versions = self._stream_versions(scope)
        try:
            return self._form_job(scope, job)
        except Exception as error:
            failure = describe_failure(f"messages of {scope}", error)
            with store.writing():
                if any(store.removed(stream, version) for stream, version in versions.items()):
                    failure = CLEARED  # it may repeat what was forgotten meanwhile
                fail_job(store, job, failure)
            return FormReport(failed=(failure,))
        except BaseException:
            with store.writing():
                release_job(store, job)
            raise

    def _stream_versions(self, scope: Scope) -> dict[int, int]:
        """The versions of the streams that an LLM is going to read."""
        with self._store.reading():
            streams = [self._store.stream(each) for each in (scope, *self.target_scopes(scope))]
            return {stream.id: stream.version for stream in streams if stream}

    def _form_job(self, scope: Scope, job: Job) -> FormReport:
        chunk = self._read_chunk(scope, job)
        with leases.renewing(lambda: self._renew(job)):
            offer = self._extract(chunk)
            texts = [proposal.text for proposal in offer.proposals]
            vectors = self._searcher.embedder.embed_now(texts) if texts else VectorBatch()
            near = [self._find_near(target, offer.of(place), vectors) for place, target in enumerate(chunk.targets)]
        return self._write(chunk, offer, near, vectors)

    def _renew(self, job: Job) -> bool:
        with self._store.writing():
            return renew_job(self._store, job)

    def _read_chunk(self, scope: Scope, job: Job) -> Chunk:
        store = self._store
        with store.reading():
            records = job_messages(store, job)
            here = list(filter(is_user_name, speaking_users(records, scope)))
            session = load_session(store, store.stream(scope))
            users = list(dict.fromkeys([*(session.users if session else ()), *here]))
            return Chunk(scope, job, read_turns(records, scope), users, SettingsReader(store).targets(scope, here))

    def _extract(self, chunk: Chunk) -> Offer:
        """What is proposed for each stream, with one call for all streams that share an LLM."""
        if not chunk.turns or not chunk.targets:
            return Offer([])
        groups: dict[int, list[int]] = defaultdict(list)
        models = [self._models.get(target.settings.extraction_model) for target in chunk.targets]
        for place, model in enumerate(models):
            groups[id(model)].append(place)
        offers = [self._extract_with(models[places[0]], chunk, places) for places in groups.values()]
        return Offer(
            _with_own_sources(chunk, [proposal for offer in offers for proposal in offer.proposals]),
            sum(offer.refused for offer in offers),
            tuple(failure for offer in offers for failure in offer.failed),
        )

    def _extract_with(self, model: Llm | None, chunk: Chunk, places: Sequence[int]) -> Offer:
        """What one LLM, or the rules, propose for some of the targets."""
        targets = [chunk.targets[place] for place in places]
        refused, failed = 0, tuple[str, ...]()
        author, proposals = EXTRACTIVE, list[Proposal]()
        if model is not None:
            try:
                known = self._find_known(targets, chunk.turns)
                extraction = llm_extraction.propose(model, targets, chunk.turns, known, utc_now())
                author, proposals, refused = model.name, extraction.proposals, extraction.refused
            except Unusable as error:
                if not _is_hopeless(chunk.job):
                    raise
                attempts = chunk.job.lease.attempts + 1
                said = f"messages of {chunk.scope}: {error}; after {attempts} attempts formed without the model"
                _log.warning("%s", said)
                model, failed = None, (said,)
        if model is None:
            proposals = rule_extraction.propose(targets, chunk.turns)
        return Offer(
            [replace(proposal, author=author, target=places[proposal.target]) for proposal in proposals],
            refused,
            failed,
        )

    def _find_known(self, targets: Sequence[Target], turns: Sequence[Turn]) -> list[Known]:
        """Memories of these streams that bear on the talk."""
        question = "\n".join(turn.text for turn in turns)[-_MAX_QUESTION_CHARACTERS:]
        places = {target.scope: place for place, target in enumerate(targets)}
        known: dict[int, list[Known]] = defaultdict(list)
        for hit in self._search(list(places), question, _MAX_KNOWN):
            place = places[hit.scope]
            if len(known[place]) < _MAX_KNOWN_EACH:
                known[place].append(Known(place, hit.id, hit.text))
        return [each for place in sorted(known) for each in known[place]]

    def _find_near(self, target: Target, proposals: Sequence[Proposal], vectors: VectorBatch) -> Near:
        """Open memories of a stream that may say the same as a proposal."""
        if not proposals or not self._has_atoms(target.scope):
            return {}
        texts = dict.fromkeys(proposal.text for proposal in proposals)
        hits = {text: self._search([target.scope], text, _NEAR, vectors.mean(text)) for text in texts}
        return {text: [hit.id for hit in found] for text, found in hits.items()}

    def _has_atoms(self, scope: Scope) -> bool:
        with self._store.reading():
            stream = self._store.stream(scope)
            return bool(stream and self._store.select(ItemQuery(stream.id, kinds=ATOM_KINDS, open=True, limit=1)))

    def _search(self, scopes: Sequence[Scope], question: str, limit: int, vector: Floats | None = None) -> list[Hit]:
        """Facts and observations close to a text."""
        kinds = Filter(kinds=frozenset(ATOM_KINDS))
        now = utc_now().timestamp()
        request = RecallRequest(question, kinds, RECIPES["default"], now, limit, tokens=None, vector=vector)
        return self._searcher.search(scopes, request).hits

    def _write(self, chunk: Chunk, offer: Offer, near: Sequence[Near], vectors: VectorBatch) -> FormReport:
        """Write the memories of all streams and end the job, in one step; nothing if the job is no longer ours."""
        store = self._store
        with store.writing():
            if not finish_job(store, chunk.job):
                return FormReport()
            source = store.create_stream(chunk.scope)
            there = _existing_ids(self._searcher, source, chunk.turns)
            turns = [turn for turn in chunk.turns if turn.id in there]
            kept = [each for each in offer.proposals if each.sources and there.issuperset(each.sources)]
            refused = offer.refused + len(offer.proposals) - len(kept)
            report = FormReport(messages=len(turns), refused=refused, failed=offer.failed)
            for place, target in enumerate(chunk.targets):
                if own := [proposal for proposal in kept if proposal.target == place]:
                    resolver = resolution.Resolver(store, source, target.scope, turns, vectors, utc_now())
                    report += resolver.resolve_all(own, near[place])
            return report


def _existing_ids(searcher: Searcher, stream: StreamState, turns: Sequence[Turn]) -> set[str]:
    records = searcher.store.select(ItemQuery(stream.id, ids=[turn.id for turn in turns]))
    return {record.id for record in records}


def _is_hopeless(job: Job) -> bool:
    """Whether an answer that cannot be used was the last of many attempts, and no server that was away is to blame."""
    return job.lease.attempts + 1 >= _MAX_ATTEMPTS and UNUSABLE in job.lease.error


def _with_own_sources(chunk: Chunk, proposals: list[Proposal]) -> list[Proposal]:
    """Proposals with the sources they may have: in a group, a user's memory rests on no other user's words. One that
    does may hold them, so that it loses all its sources and is refused."""
    if len(chunk.users) < 2:
        return proposals
    speaker = {turn.id: turn.user for turn in chunk.turns}
    checked = []
    for proposal in proposals:
        user = chunk.targets[proposal.target].user
        users = {speaker.get(id, "") for id in proposal.sources}
        is_own = not user or users in ({user}, {user, ""})
        checked.append(proposal if is_own else replace(proposal, sources=()))
    return checked


def describe_failure(what: str, error: Exception) -> str:
    """A failure in one line. Of one that nobody foresaw only the kind is told, since it may repeat what was said; the
    log has the rest."""
    if isinstance(error, EunoeError):
        return f"{what}: {error}"
    _log.error("forming failed: %s", what, exc_info=error)
    return f"{what}: {type(error).__name__}"
