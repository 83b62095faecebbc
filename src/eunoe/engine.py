"""Engine: it holds the parts of one memory. The steps of each verb stand here, in the order of the verbs of `Memory`.

`streams_list` are the steps of `memory.streams.list`. Two verbs have modules of their own in `memory`: `preview` and
`corrections.add`.
"""

from __future__ import annotations

import builtins
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace as changed
from datetime import datetime
from functools import cached_property, partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeVar

from eunoe.embed.pending_vectors import PendingVectors
from eunoe.embed.store_embedder import Progress, StoreEmbedder
from eunoe.errors import ClosedError, EunoeError, NotFoundError, StoreBusyError, StoreError
from eunoe.llm.models import MAX_CALLS, Models
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Atom, Bounds, Correction, Item, Record, check_sources
from eunoe.model.message import Message
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    Context,
    ForgetReport,
    FormReport,
    GraphReport,
    GraphSize,
    Hits,
    ImportReport,
    Lease,
    LeaseStatus,
    LlmReport,
    ModelCall,
    Neighbourhood,
    Page,
    Receipt,
    RetentionReport,
    Status,
)
from eunoe.model.scope import Scope, Scopes
from eunoe.model.stream import Revision, Settings, Stream
from eunoe.records import atoms, log, reading, streams, summaries
from eunoe.records.atoms import replace_atoms
from eunoe.records.corrections import CorrectionReader, list_corrections, remove_correction
from eunoe.records.counters import AccessLog, UsageLog, read_status
from eunoe.records.forgetting import Removal, Selection, correction_notes, forget_report, remove
from eunoe.records.identity import given_identity
from eunoe.records.insertion import VectorKey
from eunoe.records.log import Formation, find_ended, note_messages
from eunoe.records.revisions import NewSummary
from eunoe.records.scrubbing import scrub_if_due
from eunoe.records.streams import renew_vectors
from eunoe.records.summaries import has_due_summary
from eunoe.records.traces import Traces, find_held, find_traces, is_repeated_in, own_streams, shown_streams
from eunoe.store.contract import ItemQuery, Reading, Store, Writing
from eunoe.store.schema import AccessCount, StreamState
from eunoe.transfer.export import export_scopes
from eunoe.transfer.importing import LineCheck, import_lines, read_batches, texts_to_embed
from eunoe.work import leases

if TYPE_CHECKING:
    from eunoe.form.background import Background
    from eunoe.form.former import Former
    from eunoe.index.cache import HeldIndex, IndexCache
    from eunoe.recall.context import ContextBuilder, LookupRequest
    from eunoe.recall.request import ContextRequest, RecallRequest
    from eunoe.recall.reranking import Reranker
    from eunoe.recall.search import Searcher


class OpenCalls:
    """The calls under way: none begins once it is closed, and closing waits for the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._count = 0
        self._is_open = True

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_open:
                raise ClosedError("this memory was closed: open it again")
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if not self._is_open:
                self._changed.notify_all()

    def close(self) -> bool:
        """Return True for the one that closed it."""
        with self._changed:
            if not self._is_open:
                return False
            self._is_open = False
            self._changed.wait_for(lambda: self._count == 0)
            return True


T = TypeVar("T")

_THREADS: Final = 2
"""For work after the reply: vectors and access counts."""
_log = logging.getLogger("eunoe")


class _BuiltOnFirstUse(cached_property[T]):
    """A part of the engine that is built, and its modules loaded, when it is first used: opening is quick that way."""

    def __get__(self, engine: Engine, owner: type[Engine] | None = None) -> T:  # type: ignore[override]
        with engine.building:  # threads share the parts: each is built once
            return super().__get__(engine, owner)


class Engine:
    """The parts of one memory, put together. Every method may block; threads may share it."""

    def __init__(
        self,
        store: Store,
        *,
        embedder: Any = "auto",
        llm: Any = "auto",
        fast_llm: Any = None,
        form: bool | Literal["due"] | Callable[[Scope], None] = True,
        cache_bytes: int | None = None,
        extractor: Any = "builtin",
        keep_indexes: bool = True,
    ) -> None:
        self.store = store
        self.embedder = StoreEmbedder(store, embedder)
        self.pending = PendingVectors(store, self.embedder, waits_for_recall=form == "due")
        self.models = Models(llm, fast_llm)
        self.access = AccessLog(store)
        self.views = reading.ViewCache(store)
        self.corrections = CorrectionReader()
        self.usage = UsageLog(store, self.models.drain, self.models.drain_calls, MAX_CALLS)
        self.building = threading.RLock()
        self._cache_bytes = cache_bytes
        self._keeps_indexes = keep_indexes
        self._extractor = None
        if not isinstance(extractor, str) or extractor != "builtin":
            from eunoe.text.entities import load_extractor

            self._extractor = load_extractor(extractor)
        self._form = form
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe")
        self._calls = OpenCalls()
        self._is_closing = False
        scrub_if_due(store, timeout=0)  # an earlier process may have ended before it had scrubbed

    @_BuiltOnFirstUse
    def searcher(self) -> Searcher:
        from eunoe.index.cache import IndexCache
        from eunoe.recall.reranking import Reranker
        from eunoe.recall.search import Searcher

        indexes = IndexCache(self.store, self._cache_bytes, self._extractor, self._keeps_indexes)
        return Searcher(self.store, indexes, self.embedder, self.pending, Reranker())

    @property
    def indexes(self) -> IndexCache:
        return self.searcher.indexes

    @property
    def reranker(self) -> Reranker:
        return self.searcher.reranker

    @_BuiltOnFirstUse
    def contexts(self) -> ContextBuilder:
        from eunoe.form.statements import sentence_value
        from eunoe.recall.context import ContextBuilder

        return ContextBuilder(self.searcher, self.models, self.access, sentence_value)

    @_BuiltOnFirstUse
    def former(self) -> Former:
        from eunoe.form.former import Former

        return Former(self.searcher, self.models, self.access, self.corrections)

    @_BuiltOnFirstUse
    def background(self) -> Background | None:
        from eunoe.form.background import Background

        if not self._form:
            return None
        submit = self._form if callable(self._form) else None
        return Background(lambda: self.former, self._find_ended, forms_when_idle=self._form is True, submit=submit)

    def run(self, verb: Callable[..., T], *args: Any) -> T:
        """Run a verb, then start what is due after the reply. Closing waits until it has returned."""
        with self._calls:
            result = verb(*args)
        self._work_after_reply()
        return result

    def observe(self, scope: Scope, messages: Sequence[Message]) -> builtins.list[Receipt]:
        if not messages:
            return []

        def compare(store: Reading) -> tuple[Set[int], Sequence[Message], Sequence[Message]]:
            hidden = streams.incognito_places(store, scope, messages)
            kept = [message for place, message in enumerate(messages) if place not in hidden]
            # Vectors are made for new messages only; where they are deferred there is nothing to tell apart yet.
            return hidden, kept, kept if self.pending.defers(len(kept)) else log.new_messages(store, scope, kept)

        hidden, kept, new = self.store.read([scope], compare)
        if not kept:
            return streams.all_receipts(messages, hidden, ())
        vectors = self.pending.embed([message.content for message in new])

        def append(store: Writing) -> tuple[builtins.list[Receipt], Sequence[Record], Formation]:
            stream = store.create_stream(scope)
            comparison = log.compare_with_log(log.read_log(store, stream, kept), kept)
            receipts, records = log.append_messages(store, stream, kept, comparison, vectors, utc_now())
            return receipts, records, note_messages(store, stream, records, utc_now())

        receipts, records, formation = self.store.write([scope], append)
        self.pending.note_write(has_all_vectors=not any(record.pending for record in records))
        if self.background:
            self.background.note(scope, formation)
        return streams.all_receipts(messages, hidden, receipts)

    def remember(
        self,
        scope: Scope,
        items: Sequence[Atom],
        vectors: Mapping[int, Any],
        again: bool,
        replace: bool,
        lease: Lease | None = None,
    ) -> builtins.list[Receipt]:
        """Keep atoms. `vectors` are those that the caller made, by the places of their atoms."""
        if not items and lease is None:
            return []
        given: dict[VectorKey, Any] = {
            (given_identity(items[place]), items[place].text): vector for place, vector in vectors.items()
        }
        if self.store.read([scope], lambda store: streams.is_incognito(store, scope)):
            self.pending.embed([], given)  # what is wrong with them is told even where nothing is kept
            return [Receipt("ignored", atom.id) for atom in items]
        texts = [atom.text for place, atom in enumerate(items) if place not in vectors]
        batch = self.pending.embed(texts, given)

        def keep(store: Writing) -> tuple[builtins.list[Receipt], bool]:
            stream = store.create_stream(scope)
            leases.end_lease(store, stream, lease)
            if replace:
                _keep_reviewed(store, stream, [atom.id for atom in items if atom.id])
            keep_all = replace_atoms if replace else atoms.keep_atoms
            receipts = keep_all(store, stream, items, batch, utc_now(), again)
            _keep_reviewed(store, stream, [receipt.id for receipt in receipts if receipt.outcome == "duplicate"])
            has_new = bool(self._form) and any(atom.kind == "observation" for atom in items)
            return receipts, has_new and has_due_summary(store, streams.SettingsReader(store, stream), stream)

        receipts, is_due = self.store.write([scope], keep)
        self.pending.note_write(has_all_vectors=all(receipt.embedded for receipt in receipts))
        if is_due and self.background:
            self.background.add(scope)
        return receipts

    def recall(self, scopes: Sequence[Scope], request: RecallRequest, bounds: Bounds) -> Hits:
        result = self.searcher.search(scopes, request)
        self._renew_vectors()
        self.access.note(result.hits)
        notes = result.notes
        if not result.hits:
            notes += self.store.read(scopes, lambda store: reading.near_scope_notes(store, scopes, bounds))
        return Hits(result.hits, notes)

    def context(self, request: ContextRequest) -> Context:
        return self.contexts.build(request)

    def look_up(self, request: LookupRequest) -> Hits:
        from eunoe.recall.context import look_up

        return Hits(look_up(self.searcher, self.access, request))

    def get(self, scope: Scope, id: str) -> Item:
        return reading.find_item(self.store, scope, id)

    def get_many(self, scope: Scope, ids: Sequence[str]) -> builtins.list[Item]:
        return reading.find_items(self.store, scope, ids)

    def list(self, scope: Scope, query: ItemQuery, choice: reading.Choice, after: str, bounds: Bounds) -> Page[Item]:
        return reading.list_page(self.store, scope, query, choice, after, bounds)

    def recent(self, scopes: Sequence[Scope] | None, query: ItemQuery, after: str, bounds: Bounds) -> Page[Item]:
        return reading.recent_page(self.store, scopes, query, after, bounds)

    def view(self, scope: Scope, bounds: Bounds, name: str, build: Callable[[], T]) -> T:
        view: T = self.views.view(scope, bounds, name, build)
        return view

    def by_files(self, scope: Scope, paths: Sequence[str]) -> builtins.list[Atom]:
        def find(store: Reading, held: Sequence[HeldIndex]) -> builtins.list[Atom]:
            owners = {stream: owner for each in held for stream, owner in each.owners.items()}
            seqs = [seq for each in held for seq in each.index.find_by_files(paths)]
            records = store.select(ItemQuery(seqs=seqs, open=True, reviewed=True, order="latest"))
            return [item for record in records if isinstance(item := record.item(owners[record.stream]), Atom)]

        return self.indexes.read([scope], find)

    def scopes(self, keys: Mapping[str, str], bounds: Bounds) -> builtins.list[Scope]:
        def find(store: Reading) -> builtins.list[Scope]:
            written = streams.written_streams(store, keys, bounds)
            return [each.scope for each in written if streams.holds_anything(store, each, tombstones=True)]

        return self.store.read((), find)

    def history(self, scope: Scope, id: str) -> builtins.list[Atom]:
        return reading.find_history(self.store, scope, id)

    def update(
        self, scope: Scope, id: str, text: str | None, changes: Mapping[str, Any], source_scopes: Scopes
    ) -> Receipt:
        with self._saying_where(scope, [id]):
            old, latest = self.store.read([scope], lambda store: atoms.find_updatable(store, store.stream(scope), id))
        new, vector = atoms.changed_atom(old.item(scope), text, changes)
        check_sources([name for name in new.source if name not in old.sources], scope, source_scopes)
        if atoms.is_as_wanted(latest.item(scope), new):  # an update that is repeated is no conflict
            is_waiting = latest.in_review and latest.retired is None
            return self.review(scope, [latest.id], keep=True)[0] if is_waiting else _known_receipt(latest)
        atoms.check_open(old)
        vectors = self.pending.embed([new.text] if vector is None else [], {} if vector is None else {new.text: vector})

        def supersede(store: Writing) -> Receipt:
            stream = store.create_stream(scope)
            _keep_reviewed(store, stream, [id])
            record = atoms.check_open(atoms.find_record(store, stream, id))
            receipt = atoms.supersede(store, stream, record, new, vectors, utc_now())
            _keep_reviewed(store, stream, [receipt.id])
            return receipt

        receipt = self.store.write([scope], supersede)
        self.pending.note_write()
        return receipt

    def expire(self, scope: Scope, ids: Sequence[str], end: datetime | None) -> builtins.list[Receipt]:
        with self._saying_where(scope, ids):
            return atoms.expire_atoms(self.store, scope, ids, end)

    def retract(self, scope: Scope, ids: Sequence[str], retracted: bool) -> builtins.list[Receipt]:
        with self._saying_where(scope, ids):
            return log.retract_messages(self.store, scope, ids, retracted)

    def pin(self, scope: Scope, id: str, pinned: bool) -> Receipt:
        def pin(store: Writing) -> Receipt:
            stream = store.stream(scope)
            if stream and pinned:
                _keep_reviewed(store, stream, [id])
            return atoms.pin_record(store, stream, id, pinned)

        with self._saying_where(scope, [id]):
            return self.store.write([scope], pin)

    @contextmanager
    def _saying_where(self, scope: Scope, ids: Sequence[str]) -> Iterator[None]:
        """Have the error about what is not in a scope say where within it that is."""
        try:
            yield
        except NotFoundError as error:
            place = reading.find_place(self.store, scope, ids)
            if place is None:
                raise
            raise NotFoundError(f"{error}; {place} has it: name that scope") from error

    def review(self, scope: Scope, ids: Sequence[str], keep: bool) -> builtins.list[Receipt]:
        from eunoe.form.resolution import review_atoms

        receipts = review_atoms(self.store, scope, ids, keep)
        self.pending.note_write()
        return receipts

    def forget(
        self, scopes: Sequence[Scope], selection: Selection, may_return: bool, verify: bool, bounds: Bounds
    ) -> ForgetReport:
        try:
            forgotten = self.store.write(scopes, lambda store: remove(store, scopes, selection, may_return, bounds))
        except NotFoundError:
            scrub_if_due(self.store)  # a forget may be repeated only to have its bytes overwritten
            raise
        removals: Sequence[Removal] = forgotten.removals
        self.indexes.forget([removal.stream.id for removal in removals if removal.records])
        self.contexts.static_contexts.clear()
        self.views.clear()
        self.corrections.clear()
        self.embedder.clear_error()
        rebuilt = self._rebuild_summaries([removal.stream.scope for removal in removals if removal.rebuild])
        unscrubbed = scrub_if_due(self.store)
        removals = [removal for removal in removals if bounds.covers(removal.stream.scope)]
        traces = self._find_traces(scopes, removals, bounds) if verify else None
        held = find_held(self.store, forgotten._replace(removals=removals), scopes, bounds, traces)
        is_done = any(removal.records for removal in removals)
        near = () if is_done else self.store.read(scopes, lambda store: reading.near_scope_notes(store, scopes, bounds))
        notes = near or correction_notes(forgotten.corrections)
        found = traces and traces.places
        return forget_report(removals, list(filter(bounds.covers, rebuilt)), held, found, unscrubbed, notes)

    def _rebuild_summaries(self, scopes: Sequence[Scope]) -> Sequence[Scope]:
        """Write summaries anew where that needs no LLM; where it does, that is left to the background."""
        rebuilt = [scope for scope in scopes if self.former.consolidator.rebuild(scope)]
        for scope in scopes:
            if self.background and scope not in rebuilt:
                self.background.add(scope)
        return rebuilt

    def _find_traces(self, scopes: Sequence[Scope], removals: Sequence[Removal], bounds: Bounds) -> Traces:
        own = self.store.read(scopes, lambda store: own_streams(store, scopes, bounds))
        shown = self.store.read(scopes, lambda store: shown_streams(store, removals, bounds))
        traces = find_traces(self.store, removals, own, shown, is_shared=bool(bounds.scopes))
        if is_repeated_in(removals, self.embedder.error):
            traces.places.append("the embedder's last error in status")
        for removal in removals:
            if self.indexes.holds(removal.stream.id, [record.seq for record in removal.records]):
                traces.places.append(f"index of {removal.stream.scope}")
        return traces

    def form(self, scope: Scope, force: bool, bounds: Bounds) -> FormReport:
        return self.former.form(scope, 1 if force else None, force, bounds)

    def flush(self, timeout: float | None, bounds: Bounds) -> bool:
        until = None if timeout is None else monotonic() + timeout
        is_formed = self.background.flush(timeout, bounds) if self.background else True
        is_embedded = self.pending.finish(until)
        is_indexed = self._finish_texts(None if until is None else max(until - monotonic(), 0.001))
        self._save_counts()
        return is_formed and is_embedded and is_indexed

    def status(self, bounds: Bounds) -> Status:
        with suppress(StoreError):  # only counts of access and usage would be missing
            self._save_counts()
        names = self.embedder.name, self.models.names
        status = self.store.read((), lambda store: read_status(store, bounds, *names))
        if bounds.scopes:  # what follows tells about all others too
            return status
        return changed(
            status,
            embedder_error=self.embedder.error,
            embedder_languages=self.embedder.languages,
            reranker_error=self.reranker.error,
            cached_streams=self.indexes.streams,
            cached_bytes=self.indexes.nbytes,
            unindexed=self.indexes.unfinished,
            faults=self.contexts.faults.counts(),
        )

    def streams_list(self, keys: Mapping[str, str], bounds: Bounds) -> builtins.list[Stream]:
        return self.store.read((), lambda store: streams.describe_streams(store, keys, bounds))

    def streams_configure(self, scope: Scope, preset: str, changes: Mapping[str, Any]) -> Stream:
        def change(store: Writing) -> Stream:
            streams.check_not_incognito(store, scope)
            streams.configure_stream(store, scope, preset, changes)
            described = streams.describe_stream(store, streams.SettingsReader(store), store.create_stream(scope))
            assert described is not None
            return described

        return self.store.write([scope], change)

    def streams_presets(self) -> dict[str, Settings]:
        return self.store.read((), streams.load_presets)

    def streams_set_preset(self, name: str, like: str, changes: Mapping[str, Any]) -> Settings:
        return self.store.write((), lambda store: streams.save_preset(store, name, like, changes))

    def streams_apply_retention(self, scope: Scope, policy: Mapping[str, Any], is_dry: bool) -> RetentionReport:
        from eunoe.form.retention import apply_retention

        return apply_retention(self.store, self.access, scope, policy, is_dry)

    def streams_unarchive(self, scope: Scope, id: str) -> Receipt:
        return self.store.write([scope], lambda store: atoms.unarchive(store, store.stream(scope), id))

    def streams_set_incognito(self, scope: Scope, on: bool, bounds: Bounds) -> None:
        self.store.write([scope], lambda store: streams.set_incognito(store, scope, on, bounds))

    def summaries_consolidate(self, scope: Scope, force: bool) -> Revision | None:
        return self.former.consolidator.consolidate(scope, force)

    def summaries_revisions(self, scope: Scope) -> builtins.list[Revision]:
        return summaries.read_revisions(self.store, scope)

    def summaries_restore(self, scope: Scope, number: int) -> Revision:
        return summaries.restore_summary(self.store, scope, number)

    def summaries_write(self, scope: Scope, summary: NewSummary, lease: Lease | None) -> Revision:
        return summaries.write_summary(self.store, scope, summary, lease)

    def corrections_list(self, scope: Scope) -> builtins.list[Correction]:
        return list_corrections(self.store, scope)

    def corrections_remove(self, scope: Scope, id: str) -> None:
        remove_correction(self.store, scope, id)

    def leases_acquire(
        self, scope: Scope, name: str, seconds: float | None, ignore_pause: bool, data: Mapping[str, Any] | None
    ) -> Lease | None:
        return leases.acquire_lease(self.store, scope, name, seconds, ignore_pause, data, streams.check_not_incognito)

    def leases_renew(self, scope: Scope, lease: Lease) -> bool:
        return leases.renew_lease(self.store, scope, lease)

    def leases_release(self, scope: Scope, lease: Lease) -> bool:
        return leases.release_lease(self.store, scope, lease)

    def leases_fail(self, scope: Scope, lease: Lease, error: str) -> bool:
        return leases.fail_lease(self.store, scope, lease, error)

    def leases_list(self, scope: Scope, prefix: str) -> builtins.list[LeaseStatus]:
        return leases.list_leases(self.store, scope, prefix)

    def leases_drop(self, scope: Scope, name: str) -> bool:
        return leases.drop_lease(self.store, scope, name)

    def graph_neighbours(self, scope: Scope, entity: str, depth: int, limit: int) -> Neighbourhood:
        from eunoe.recall.neighbourhood import find_neighbourhood

        return find_neighbourhood(self.indexes, scope, entity, depth, limit)

    def graph_size(self, scope: Scope) -> GraphSize:
        from eunoe.recall.neighbourhood import measure_graph

        return measure_graph(self.indexes, scope)

    def graph_extract(self, scope: Scope, limit: int | None, may_ask: bool) -> GraphReport:
        from eunoe.form.graph_extraction import extract_graph

        return extract_graph(self.store, self.models, scope, limit, may_ask)

    def admin_export(
        self,
        scopes: Sequence[Scope],
        target: str | Path | TextIO,
        progress: Callable[[int], None] | None,
        skip_damaged: bool,
        bounds: Bounds,
    ) -> int:
        return export_scopes(self.store, scopes, target, progress, skip_damaged, bounds)

    def admin_import(
        self, source: str | Path | Iterable[str], progress: Callable[[int], None] | None, check: LineCheck | None
    ) -> ImportReport:
        report = ImportReport()
        for batch in read_batches(source, check):
            vectors = self.embedder.embed_now(texts_to_embed(batch))
            report += self.store.write((), partial(import_lines, batch, vectors))
            self.pending.note_write()
            if progress:
                progress(report.lines)
        return report

    def admin_backup(self, target: Path, progress: Callable[[int, int], None] | None) -> BackupReport:
        with suppress(StoreError):  # only counts of access and usage would be missing
            self._save_counts()
        return self.store.backup(target, progress)

    def admin_reembed(self, model: Any, progress: Progress | None) -> int:
        if model is None:
            return self.pending.make_all(progress)
        made = self.embedder.change_model(model, progress)
        self.pending.note_model_change()
        return made

    def admin_check(self, progress: Callable[[int], None] | None) -> CheckReport:
        return self.store.read((), lambda store: store.check(progress))

    def admin_reindex(self, scopes: Sequence[Scope]) -> int:
        return self.indexes.rebuild(scopes)

    def admin_process_cold_sessions(self, idle: float, minimum: int, limit: int, concurrency: int) -> FormReport:
        from eunoe.form.idle_sessions import form_idle_sessions

        return form_idle_sessions(self.store, self.former, idle, minimum, limit, concurrency)

    def admin_calls(self, limit: int, after: str) -> Page[ModelCall]:
        return self.usage.calls(limit, after)

    def admin_test_llm(self) -> LlmReport:
        return self.models.check()

    def admin_access_counts(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, AccessCount | None]:
        return self.access.counts(scope, ids)

    def close(self) -> None:
        """Finish what runs in the background and close the store. Closing twice is fine."""
        if not self._calls.close():
            return
        if background := vars(self).get("background"):
            background.close()
        self._is_closing = True
        self._threads.shutdown()
        with suppress(EunoeError):  # the next opening makes them
            self.pending.finish_before_close()
        with suppress(EunoeError):  # counts, nothing more
            self._save_counts()
        with suppress(EunoeError):  # a reader may have kept a scrub from its end; the next opening tries again
            scrub_if_due(self.store, timeout=0)
        if "searcher" in vars(self):
            self.indexes.keep()
        self.store.close()

    def _work_after_reply(self) -> None:
        """Make missing vectors and write counts down, when it is time to."""
        if self.pending.claim():
            try:
                self._threads.submit(self._make_vectors)
            except RuntimeError:  # the pool is closing: what is not made now waits for the next opening
                self.pending.release()
        due: builtins.list[Callable[[], object]] = [self._save_counts] if self.access.is_due() else []
        if "searcher" in vars(self):
            due += [self._finish_texts] if self.indexes.has_unfinished else []
            due += [self.indexes.keep] if self.indexes.is_keep_due else []
        for work in due:
            with suppress(RuntimeError):  # the pool is closing: closing does it, or the next opening
                self._threads.submit(work)

    def _make_vectors(self) -> None:
        """One step at a time, so that the other work of this memory gets its turn."""
        try:
            self.pending.make_step()
        except StoreBusyError:  # the next verb tries again
            return
        except EunoeError as error:
            _log.warning("missing vectors have to wait: %s", error)
            return
        except Exception:
            _log.exception("missing vectors could not be made")
            return
        finally:
            self.pending.release()
        self._work_after_reply()

    def _finish_texts(self, patience: float | None = 0.0) -> bool:
        """Index the rest of huge texts, unless another thread does; with patience, wait for it that long."""
        end = monotonic() + patience if patience else inf
        is_used = "searcher" in vars(self)
        return not is_used or self.indexes.finish_texts(lambda: not self._is_closing and monotonic() < end, patience)

    def _save_counts(self) -> None:
        """Write down what was recalled and spent since the last time; what cannot be written waits for the next."""
        self.access.save()
        self.usage.save()

    def _find_ended(self, scope: Scope) -> Sequence[Scope]:
        return self.store.read([scope], lambda store: find_ended(store, scope))

    def _renew_vectors(self) -> None:
        """Have vectors made again that a search found damaged."""
        if self.store.lost_vectors:
            with suppress(StoreError):  # the next recall finds them again
                renew_vectors(self.store)
            self.pending.note_model_change()


def _known_receipt(record: Record) -> Receipt:
    return Receipt("duplicate", record.id, embedded=not record.pending)


def _keep_reviewed(store: Writing, stream: StreamState, ids: Sequence[str]) -> None:
    """Keep those that wait for review: who says, changes or pins one by hand has looked at it."""
    waiting = store.select(ItemQuery(stream.id, ids=ids, open=True, in_review=True)) if ids else []
    if waiting:
        from eunoe.form.resolution import keep_atom

        for record in waiting:
            keep_atom(store, stream, record, utc_now())
