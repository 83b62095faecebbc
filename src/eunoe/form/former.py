"""Forming: a conversation's new messages become memories, chunk by chunk, each in one step or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from eunoe.errors import ConflictError
from eunoe.form.chunk import Extraction, StreamsRead, describe_failure
from eunoe.form.consolidation import Consolidator
from eunoe.form.extraction import Chunk, Extractor
from eunoe.form.resolution import Resolver
from eunoe.form.retention import apply_retention, has_policy
from eunoe.llm.models import Models, asking_for
from eunoe.model.arguments import REVIEW_MODES, utc_now
from eunoe.model.atom import NO_BOUNDS, Bounds
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings, Target
from eunoe.model.turn import read_turns, speaking_users, turns_to_form
from eunoe.recall.search import Searcher, SimilarAtoms, find_similar_atoms
from eunoe.records.corrections import CorrectionReader
from eunoe.records.counters import AccessLog
from eunoe.records.insertion import VectorBatch, fit_to_store
from eunoe.records.jobs import can_claim, claim_job, finish_job, job_messages, messages_before
from eunoe.records.log import is_user_name, load_session
from eunoe.records.revisions import current_revision, load_summary, unabsorbed_count
from eunoe.records.streams import CONVERSATION_KEYS, SettingsReader
from eunoe.records.summaries import is_summary_due, keeps_summary
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Job, SessionState, StreamState
from eunoe.work import leases

_MAX_ROUNDS = 4
"""How often a chunk is formed anew because something was forgotten while it was formed."""
_MAX_EARLIER = 100
"""Messages before a chunk that may explain whom and what it speaks of."""

ExtractionWatch = Callable[[Chunk, Extraction], None]


class Former:
    """Turns conversations into memories, and keeps the summaries of the streams they feed up to date."""

    def __init__(self, searcher: Searcher, models: Models, access: AccessLog, corrections: CorrectionReader) -> None:
        self._searcher = searcher
        self._store = searcher.store
        self._models = models
        self._access = access
        self._corrections = corrections
        self._extractor = Extractor(searcher, models)
        self.watch: ExtractionWatch | None = None
        """Told of each chunk and what was extracted from it."""
        self.consolidator = Consolidator(searcher.store, models)

    def form(
        self,
        scope: Scope,
        least: int | None,
        ignore_pause: bool,
        bounds: Bounds = NO_BOUNDS,
        is_open: Callable[[], bool] = lambda: True,
    ) -> FormReport:
        """Form chunk after chunk while there are any and `is_open` says so. One that fails does not stop the rest.

        `least` messages are enough; None leaves that to the settings. `ignore_pause` takes what failed before at once.
        What happened in streams that are out of bounds is not told.
        """
        reports, tried = list[FormReport](), set[int]()
        while is_open() and (claim := self._claim(scope, least, ignore_pause, tried)):
            stream, job = claim
            # The first job alone takes up a summary that failed before: one call asks for it once.
            reports += self.form_job(stream, job, bounds, ignore_pause and not tried)
            tried.add(job.start)
        if not tried and is_open():  # nothing to form, but a summary may be due
            return self._consolidate_due(self.find_targets(scope), bounds, ignore_pause)
        return sum(reports, FormReport())

    def find_minimum(self, scope: Scope) -> int:
        """Return how many messages of a conversation that is over are worth forming."""

        def find(store: Reading) -> int:
            settings, _ = _session_settings(store, scope)
            return settings.formation_minimum if settings else 1

        return self._store.read([scope], find)

    def seconds_until_idle(self, scope: Scope) -> float:
        """Return how long a conversation still has to be without a new message to count as idle."""
        settings, session = self._store.read([scope], lambda store: _session_settings(store, scope))
        if settings is None or session is None or session.active is None:
            return 0.0
        return settings.formation_idle_seconds - (utc_now() - session.active).total_seconds()

    def find_targets(self, scope: Scope) -> list[Target]:
        """Return the streams that a conversation feeds."""

        def find(store: Reading) -> list[Target]:
            session = load_session(store, store.stream(scope))
            return SettingsReader(store).targets(scope, session.users if session else ())

        return self._store.read([scope], find)

    def consolidate(self, scope: Scope, force: bool = False) -> FormReport:
        """Bring the summary of a stream up to date if that is due. What goes wrong is in the report."""
        try:
            revision = self.consolidator.write_revision(scope, force)
        except Exception as error:
            return FormReport(failed=(describe_failure(f"the summary of {scope}", error),))
        return FormReport(consolidated=(scope,) if revision else ())

    def clean_up(self, targets: Sequence[Target], bounds: Bounds = NO_BOUNDS) -> FormReport:
        """Archive what the settings of these streams do not keep; tell what failed within the bounds."""
        failed = []
        for target in targets:
            try:
                if has_policy(target.settings):
                    apply_retention(self._store, self._access, target.scope, {}, dry_run=False)
            except Exception as error:
                failed.append((target.scope, describe_failure(f"the clean-up of {target.scope}", error)))
        return FormReport(failed=tuple(failure for scope, failure in failed if bounds.covers(scope)))

    def _consolidate_due(self, targets: Sequence[Target], bounds: Bounds, ignore_pause: bool = False) -> FormReport:

        def find(store: Reading) -> Iterator[tuple[Scope, bool]]:
            for target in targets:
                stream = store.stream(target.scope) if keeps_summary(target.settings) else None
                if stream:
                    summary, waiting = load_summary(store, stream), unabsorbed_count(store, stream.id)
                    is_retry = ignore_pause and summary.lease.attempts > 0
                    if is_retry or is_summary_due(target.settings, summary, waiting, utc_now()):
                        yield target.scope, is_retry

        due = self._store.read([target.scope for target in targets], lambda store: list(find(store)))
        reports = {scope: self.consolidate(scope, is_retry) for scope, is_retry in due}
        return sum((report for scope, report in reports.items() if bounds.covers(scope)), FormReport())

    def _claim(
        self, scope: Scope, least: int | None, ignore_pause: bool, tried: set[int]
    ) -> tuple[StreamState, Job] | None:

        def look(store: Reading) -> StreamState | None:
            stream = store.stream(scope)
            return stream if stream and can_claim(store, stream, least, ignore_pause, tried) else None

        stream = self._store.read([scope], look)
        if stream is None:
            return None
        job = self._store.write([scope], lambda store: claim_job(store, stream, least, ignore_pause, tried))
        return (stream, job) if job else None

    def form_job(self, stream: StreamState, job: Job, bounds: Bounds, ignore_pause: bool = False) -> list[FormReport]:
        """Bring one job to its end, good or bad, and then the summaries of the streams that it feeds; with
        `ignore_pause` also those that failed before."""
        store, chunk, report = self._store, None, None
        try:
            for _ in range(_MAX_ROUNDS):
                chunk = self._read_chunk(stream, job)
                report = self._form_chunk(chunk, bounds)
                if report is not None:
                    break
            else:
                raise ConflictError("something was forgotten each time while they were formed; they stay due")
        except Exception as error:
            failure = describe_failure(f"messages of {stream.scope}", error)
            is_conflict, basis = isinstance(error, ConflictError), chunk

            def fail(store: Writing) -> str:
                # The error may quote what was forgotten meanwhile.
                is_forgotten = basis and not is_conflict and basis.reading.is_forgotten(store)
                leases.fail(store, job, said := leases.CLEARED if is_forgotten else failure)
                return said

            report = FormReport(failed=(store.write([stream.scope], fail),))
        except BaseException:
            store.write([stream.scope], lambda store: leases.release(store, job))
            raise
        targets = chunk.all_targets if chunk else []
        return [report, self._consolidate_due(targets, bounds, ignore_pause), self.clean_up(targets, bounds)]

    def _read_chunk(self, stream: StreamState, job: Job) -> Chunk:
        store, scope = self._store, stream.scope

        def read(store: Reading) -> Chunk:
            records = job_messages(store, job)
            turns, speaking = turns_to_form(records, scope), speaking_users(records, scope)
            speaking = list(filter(is_user_name, speaking))
            session = load_session(store, stream)
            users = list(dict.fromkeys([*speaking, *(session.users if session else ())]))
            all_targets = SettingsReader(store).targets(scope, users)
            reading = StreamsRead.of(store, [scope, *(target.scope for target in all_targets)])
            earlier = read_turns(messages_before(store, job, _MAX_EARLIER), scope)
            revision = current_revision(store, stream)
            corrections = self._corrections.read(store, [scope, *(target.scope for target in all_targets)])
            present = {"", scope.pairs.get("user", ""), *speaking}
            targets = [target for target in all_targets if target.user in present]
            summary = revision.text if revision else ""
            return Chunk(
                stream, job, turns, len(users) > 1, targets, all_targets, reading, earlier, summary, corrections
            )

        return store.read([scope], read)

    def _form_chunk(self, chunk: Chunk, bounds: Bounds) -> FormReport | None:
        """Form a chunk; None if something that it was formed from was forgotten meanwhile."""
        with leases.renewing(lambda: leases.renew(self._store, chunk.job)):
            with asking_for(chunk.stream.scope):
                extraction = self._extractor.extract(chunk)
            if self.watch:
                self.watch(chunk, extraction)
            texts = [proposal.text for proposal in extraction.proposals]
            vectors = self._searcher.embedder.embed_now(texts) if texts else VectorBatch()
            # For each target the open atoms that may say the same as one of its proposals, by the proposal's text.
            similar = list[Mapping[str, SimilarAtoms]]()
            for place, target in enumerate(chunk.targets):
                own = {each.text: vectors.mean(each.text) for each in extraction.proposals if each.target == place}
                similar.append(find_similar_atoms(self._searcher, target.scope, own))

        def write(store: Writing) -> FormReport | None:
            """Write the atoms of all streams and end the job; nothing if it is no longer ours."""
            if leases.find_held(store, chunk.job) and chunk.reading.is_forgotten(store):
                return None
            if not finish_job(store, chunk.job):
                return FormReport()
            return _resolve(store, chunk, extraction, similar, fit_to_store(store, vectors), bounds)

        return self._store.write([chunk.stream.scope], write)


def _resolve(
    store: Writing,
    chunk: Chunk,
    extraction: Extraction,
    similar: Sequence[Mapping[str, SimilarAtoms]],
    vectors: VectorBatch,
    bounds: Bounds,
) -> FormReport:
    proposals, now = extraction.proposals, utc_now()
    turns = [*chunk.earlier, *chunk.turns]
    records = store.select(ItemQuery(chunk.stream.id, ids=[turn.id for turn in turns], open=True))
    messages = {record.id: record for record in records}
    borne_out = [each for each in proposals if each.sources and messages.keys() >= set(each.sources)]
    kept = list(filter(chunk.allows, borne_out))
    refused = extraction.refused + len(proposals) - len(kept)
    formed = sum(turn.id in messages for turn in chunk.turns)
    report = FormReport(messages=formed, refused=refused, failed=extraction.failures)
    for place, target in enumerate(chunk.targets):
        if own := [proposal for proposal in kept if proposal.target == place]:
            stream = store.create_stream(target.scope)
            review = _find_review(target, chunk.all_targets)
            resolver = Resolver(store, chunk.stream, stream, turns, messages, vectors, now, review)
            done = resolver.resolve(own, similar[place])
            report += done if bounds.covers(target.scope) else FormReport()
    return report


def _session_settings(store: Reading, scope: Scope) -> tuple[Settings | None, SessionState | None]:
    session = load_session(store, store.stream(scope))
    return SettingsReader(store).forming(scope, session.users if session else ()), session


def _find_review(target: Target, all_targets: Sequence[Target]) -> str:
    """The review of a target; a session's is the strictest of its own and those of the users in it."""
    if target.user or target.scope.pairs.keys().isdisjoint(CONVERSATION_KEYS):
        return target.settings.review
    reviews = {target.settings.review, *(each.settings.review for each in all_targets if each.user)}
    return next(mode for mode in reversed(REVIEW_MODES) if mode in reviews)
