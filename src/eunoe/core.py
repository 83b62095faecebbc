"""The blocking half of the engine: what each verb does, given checked nouns."""

from __future__ import annotations

import builtins
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from eunoe.embed.store_embedder import Embedding, Progress
from eunoe.errors import ConflictError, InputError, NotFoundError, ScopeError, StoreError
from eunoe.llm.models import Models
from eunoe.model.atom import Atom, atom_and_vector
from eunoe.model.message import Message
from eunoe.model.result import ForgetReport, Hit, ImportReport, Item, Page, Receipt, Status, Usage
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.stream import FormReport, Revision, Stream, TidyReport
from eunoe.model.time import micros, now
from eunoe.records import atoms, forgetting, jobs, log, revisions, streams, versions
from eunoe.records.access import Uses
from eunoe.records.rows import item_of, passage
from eunoe.records.vectors import Vectors
from eunoe.store.books import UsageRow, Use
from eunoe.store.contract import Row, Store, StreamRow
from eunoe.transfer import export as transfer

if TYPE_CHECKING:
    from eunoe.form.background import Background
    from eunoe.index.cache import Shelf
    from eunoe.model.context import Context
    from eunoe.model.graph import Neighbourhood, ReadReport
    from eunoe.recall.context import Search, Wanted
    from eunoe.recall.request import Request
    from eunoe.recall.reranking import Reader
    from eunoe.recall.static_context import Statics

_IMPORT_BATCH = 1000
_CURSOR_DIGITS = 19


class Core:
    """Store, vectors and indexes put together. Every method may block; threads may share it."""

    def __init__(
        self,
        store: Store,
        embedder: Any,
        cache_bytes: int | None,
        llm: Any = None,
        fast_llm: Any = None,
        extractor: Any = "builtin",
    ) -> None:
        self.store = store
        self.embedding = Embedding(store, embedder)
        self.uses = Uses(store)
        self.models = Models(llm, fast_llm)
        self._spent: builtins.list[UsageRow] = []
        self._settling = threading.Lock()
        self.background: Background | None = None
        self.faults: Counter[str] = Counter()
        """Faults that cost a context a part, by kind."""
        self._cache_bytes = cache_bytes
        self._extractor = extractor
        forgetting.scrub(store, patience=0)  # an earlier process may have been stopped before it could

    @cached_property
    def shelf(self) -> Shelf:
        from eunoe.index.cache import DEFAULT_BYTES, Shelf
        from eunoe.text.entities import load

        return Shelf(self.store, self._cache_bytes or DEFAULT_BYTES, load(self._extractor))

    @cached_property
    def statics(self) -> Statics:
        from eunoe.recall.static_context import Statics

        return Statics()

    @cached_property
    def reader(self) -> Reader:
        from eunoe.recall.reranking import Reader

        return Reader()

    def recall(self, scopes: Sequence[Scope], request: Request) -> builtins.list[Hit]:
        from eunoe.recall.search import find

        hits = find(self.store, self.shelf, self.embedding, scopes, request, reread=self.reader.reread)
        self.uses.note(hits)
        return hits

    def observe(self, scope: Scope, messages: Sequence[Message]) -> builtins.list[Receipt]:
        if not messages:
            return []
        store = self.store
        with store.reading():
            hidden = jobs.hidden_among(store, scope, messages)
            kept = [message for place, message in enumerate(messages) if place not in hidden]
            if not kept:
                return _receipts(messages, hidden, ())
            new = kept if self.embedding.puts_off(len(kept)) else log.new_among(store, store.stream(str(scope)), kept)
        vectors = self.embedding.soon([passage(message) for message in new])
        with store.writing():
            stream = store.make_stream(str(scope))
            reading = log.compare(store, stream, kept)
            receipts = log.append(store, stream, kept, reading, vectors, micros(now()))
            due = jobs.note(store, scope, stream, kept, receipts, micros(now()))
        self.embedding.wrote()
        if due and self.background:
            self.background.add(scope)
        return _receipts(messages, hidden, receipts)

    def remember(
        self, scope: Scope, items: Sequence[Atom], given: Mapping[str, Any], again: bool
    ) -> builtins.list[Receipt]:
        if not items:
            return []
        with self.store.reading():
            if jobs.is_hidden(self.store, scope):
                return [Receipt("ignored", atom.id) for atom in items]
        vectors = self._vectors([atom.text for atom in items], given)
        with self.store.writing():
            stream = self.store.make_stream(str(scope))
            receipts = atoms.keep(self.store, stream, items, vectors, micros(now()), again)
        self.embedding.wrote()
        return receipts

    def _vectors(self, texts: Sequence[str], given: Mapping[str, Any]) -> Vectors:
        if not given:
            return self.embedding.soon(texts)
        ready = self.embedding.given(given)
        rest = [text for text in texts if text not in given]
        made = self.embedding.soon(rest) if rest else ready
        return replace(ready, data={**made.data, **ready.data})

    def by_files(self, scope: Scope, paths: Sequence[str]) -> builtins.list[Atom]:
        with self.shelf.borrow([scope]) as found:
            seqs = [seq for _, index in found for seq in index.about(paths)]
            rows = self.store.by_seq(seqs)
        items = [item_of(row, scope) for row in sorted(rows, key=lambda row: -row.seq) if row.retired is None]
        return [item for item in items if isinstance(item, Atom)]

    def graph(self, scope: Scope, entity: str, depth: int, limit: int) -> Neighbourhood:
        from eunoe.recall.neighbourhood import around

        return around(self.store, self.shelf, scope, entity, depth, limit)

    def associate(self, scope: Scope, limit: int | None, ask: bool) -> ReadReport:
        from eunoe.form.graph_extraction import read

        return read(self, scope, limit, ask)

    def get(self, scope: Scope, id: str) -> Item:
        with self.store.reading():
            return item_of(atoms.found(self.store, self.store.stream(str(scope)), id), scope)

    def list(
        self, scope: Scope, kinds: Sequence[str], labels: set[str], limit: int, after: str, retired: bool
    ) -> Page[Item]:
        start = _cursor(after)
        rows: builtins.list[Row] = []
        with self.store.reading():
            stream = self.store.stream(str(scope))
            while stream and len(rows) <= limit:
                page = self.store.page(stream.id, start, limit + 1, kinds, retired)
                rows += [row for row in page if not labels or row.label in labels]
                if len(page) <= limit:
                    break
                start = page[-1].seq
        more = str(rows[limit - 1].seq) if len(rows) > limit else ""
        return Page(tuple(item_of(row, scope) for row in rows[:limit]), more)

    def scopes(self, keys: Mapping[str, str]) -> builtins.list[Scope]:
        with self.store.reading():
            written = self._written(keys)
            return [scope for scope, stream in written if streams.holds(self.store, stream, forgotten=True)]

    def _written(self, keys: Mapping[str, str]) -> Iterator[tuple[Scope, StreamRow]]:
        """Scopes that were ever written to; one that was only named as a source was not."""
        after = ""
        while page := self.store.streams(after):
            for stream in (stream for stream in page if stream.version):
                scope = Scope.parse(stream.scope)
                if all(scope.get(key) == str(value) for key, value in keys.items()):
                    yield scope, stream
            after = page[-1].scope

    def history(self, scope: Scope, id: str) -> builtins.list[Atom]:
        with self.store.reading():
            stream = self.store.stream(str(scope))
            row = atoms.found(self.store, stream, id)
            assert stream is not None
            chain = [item_of(version, scope) for version in versions.chain(self.store, stream, row)]
        return [version for version in chain if isinstance(version, Atom)]

    def update(self, scope: Scope, id: str, text: str | None, changes: Mapping[str, Any]) -> Receipt:
        store = self.store
        with store.reading():
            old, current = atoms.changeable(store, store.stream(str(scope)), id)
        new, vector = _changed(item_of(old, scope), text, changes)
        if atoms.says(item_of(current, scope), new):
            return Receipt("duplicate", current.id, embedded=not current.pending)
        atoms.check_open(old)
        vectors = self._vectors([new.text], {} if vector is None else {new.text: vector})
        with store.writing():
            stream = store.make_stream(str(scope))
            row = atoms.check_open(atoms.found(store, stream, id))
            receipt = atoms.supersede(store, stream, row, new, vectors, micros(now()))
        self.embedding.wrote()
        return receipt

    def pin(self, scope: Scope, id: str, pinned: bool) -> Receipt:
        with self.store.writing():
            stream = self.store.stream(str(scope))
            row = atoms.found(self.store, stream, id)
            if row.retired is not None:
                raise ConflictError(f"{id} was closed: pin the memory that took its place, {row.superseded_by}")
            if bool(row.pinned) == pinned:
                return Receipt("duplicate", id)
            version = self.store.advance(row.stream).version
            self.store.replace([row._replace(pinned=int(pinned), version=version)])
            return Receipt("stored", id)

    def forget(
        self,
        scopes: Sequence[Scope],
        selection: forgetting.Selection,
        everything: bool,
        person: str,
        may_return: bool,
        verify: bool,
    ) -> ForgetReport:
        try:
            removals = self._remove(scopes, selection, may_return=may_return, whole=everything, person=person)
        except NotFoundError:
            forgetting.scrub(self.store)
            raise
        self.shelf.forget([removal.stream.id for removal in removals if removal.rows])
        self.statics.clear()
        self.embedding.clear_error()
        rebuilt = self._rebuild([removal.scope for removal in removals if removal.rebuild])
        left = forgetting.scrub(self.store)
        return forgetting.report(removals, rebuilt, self._traces(removals) if verify else None, left)

    def _remove(
        self, scopes: Sequence[Scope], selection: forgetting.Selection, **how: Any
    ) -> builtins.list[forgetting.Removal]:
        chosen = []
        with self.store.writing():
            for scope in scopes:
                stream = self.store.stream(str(scope))
                rows = selection(self.store, stream)
                if stream:
                    chosen.append((stream, rows))
            return forgetting.remove(self.store, chosen, **how)

    def _rebuild(self, scopes: Sequence[Scope]) -> builtins.list[Scope]:
        """Writes summaries anew where that needs no model; where it does, that is left to the background."""
        if not scopes:
            return []
        from eunoe.form.consolidation import rebuild

        rebuilt = [scope for scope in scopes if rebuild(self, scope)]
        for scope in scopes:
            if self.background and scope not in rebuilt:
                self.background.add(scope)
        return rebuilt

    def _traces(self, removals: Sequence[forgetting.Removal]) -> builtins.list[str]:
        found = forgetting.traces(self.store, removals)
        if forgetting.in_error(removals, self.embedding.error):
            found.append("the embedder's last error in status")
        for removal in removals:
            if self.shelf.holds(removal.stream.id, [row.seq for row in removal.rows]):
                found.append(f"index of {removal.scope}")
        return found

    def export(
        self, scopes: Sequence[Scope], target: str | Path | TextIO, progress: Callable[[int], None] | None
    ) -> int:
        with self.store.reading():
            found = [(scope, self.store.stream(str(scope))) for scope in scopes]
        missing = [str(scope) for scope, stream in found if stream is None]
        if missing:
            raise ScopeError(f"the store holds nothing of {', '.join(missing)}; nothing was written")
        known = [(scope, stream) for scope, stream in found if stream is not None]
        return transfer.save(self.store, known, target, progress)

    def import_(self, source: str | Path | Iterable[str], progress: Callable[[int], None] | None) -> ImportReport:
        total = ImportReport()
        with transfer.opened(source) as texts:
            for batch in transfer.batches(transfer.read(texts), _IMPORT_BATCH):
                total += self._absorb(batch)
                if progress:
                    progress(total.lines)
        return total

    def _absorb(self, batch: Sequence[transfer.Read]) -> ImportReport:
        vectors = self.embedding.ahead(transfer.passages(batch))
        with self.store.writing():
            return transfer.absorb_all(self.store, batch, vectors)

    def status(self) -> Status:
        with suppress(StoreError):  # only counts of use and cost would be missing
            self.settle()
        with self.store.reading():
            counts = self.store.counts()
            health = self.store.books.health()
            spent = self.store.books.spent()
        shelf = self.shelf
        return Status(
            target=self.store.target,
            schema=self.store.schema,
            scopes=counts.streams,
            messages=counts.kinds.get("message", 0),
            facts=counts.kinds.get("fact", 0),
            observations=counts.kinds.get("observation", 0),
            retired=counts.retired,
            tombstones=counts.tombstones,
            embedder=self.embedding.name,
            unembedded=counts.pending,
            bytes=counts.bytes,
            cached_streams=shelf.streams,
            cached_bytes=shelf.nbytes,
            embedder_error=self.embedding.error,
            reranker_error=self.reader.error,
            vectors=counts.vectors,
            llm=self.models.names,
            due_messages=health.due_messages,
            work=health.work,
            failing=health.failing,
            error=health.error,
            revisions=health.revisions,
            usage=tuple(_usage(row) for row in spent),
            faults=dict(self.faults),
        )

    def form(self, scope: Scope, force: bool) -> FormReport:
        from eunoe.form.former import form

        return form(self, scope, force)

    def cold_sessions(self, idle: float, minimum: int, limit: int, concurrency: int) -> FormReport:
        from eunoe.form.idle_sessions import form_cold

        return form_cold(self, idle, minimum, limit, concurrency)

    def consolidate(self, scope: Scope, force: bool) -> Revision | None:
        from eunoe.form.consolidation import consolidate

        return consolidate(self, scope, force)

    def context(self, wanted: Wanted) -> Context:
        from eunoe.recall.context import assemble

        return assemble(self, wanted)

    def look_up(self, search: Search) -> builtins.list[Hit]:
        from eunoe.recall.context import look_up

        return look_up(self, search)

    def streams(self, keys: Mapping[str, str]) -> builtins.list[Stream]:
        with self.store.reading():
            held = [scope for scope, stream in self._written(keys) if streams.holds(self.store, stream)]
            return streams.described(self.store, held)

    def configure(self, scope: Scope, preset: str, changes: Mapping[str, Any]) -> Stream:
        with self.store.writing():
            jobs.check_shown(self.store, scope)
            streams.configure(self.store, scope, preset, changes)
            return streams.described(self.store, [scope])[0]

    def presets(self) -> dict[str, Settings]:
        with self.store.reading():
            return streams.presets(self.store)

    def preset(self, name: str, like: str, changes: Mapping[str, Any]) -> Settings:
        with self.store.writing():
            return streams.put_preset(self.store, name, like, changes)

    def revisions(self, scope: Scope) -> builtins.list[Revision]:
        with self.store.reading():
            return revisions.all_of(self.store, self.store.stream(str(scope)))

    def restore(self, scope: Scope, number: int) -> Revision:
        with self.store.writing():
            return revisions.restore(self.store, self.store.stream(str(scope)), number, micros(now()))

    def revise(self, scope: Scope, text: str, author: str, parent: int | None) -> Revision:
        with self.store.writing():
            jobs.check_shown(self.store, scope)
            stream = self.store.make_stream(str(scope))
            return revisions.revise(self.store, stream, text, author, parent, micros(now()))

    def tidy(self, scope: Scope, policy: Mapping[str, Any], dry_run: bool) -> TidyReport:
        from eunoe.form.retention import tidy

        return tidy(self, scope, policy, dry_run)

    def unarchive(self, scope: Scope, id: str) -> Receipt:
        with self.store.writing():
            return atoms.reopen(self.store, self.store.stream(str(scope)), id)

    def used(self, scope: Scope, ids: Sequence[str]) -> dict[str, Use]:
        self.uses.save()
        with self.store.reading():
            stream = self.store.stream(str(scope))
            rows = self.store.by_id(stream.id, ids) if stream else []
            uses = self.store.books.uses([row.seq for row in rows])
        return {row.id: uses.get(row.seq, Use(0, 0)) for row in rows}

    def incognito(self, scope: Scope, on: bool) -> None:
        with self.store.writing():
            jobs.hide(self.store, scope, on)

    def settle(self) -> None:
        """Writes down what was used and spent since the last time; what cannot be written waits for the next."""
        self.uses.save()
        with self._settling:
            self._spent += self.models.drain()
            if self._spent:
                with self.store.writing():
                    self.store.books.spend(self._spent)
                self._spent = []

    def reindex(self, scopes: Sequence[Scope]) -> int:
        with self.store.reading():
            streams = [stream for scope in scopes if (stream := self.store.stream(str(scope)))]
        for stream in streams:
            self.shelf.drop(stream.id)
        with self.shelf.borrow(scopes) as found:
            return len(found)

    def re_embed(self, model: Any, progress: Progress | None) -> int:
        return self.embedding.make_up(progress) if model is None else self.embedding.change(model, progress)


def _receipts(messages: Sequence[Message], hidden: Set[int], kept: Sequence[Receipt]) -> list[Receipt]:
    """Receipts for all messages, also for those of an incognito session."""
    rest = iter(kept)
    return [Receipt("ignored", one.id) if place in hidden else next(rest) for place, one in enumerate(messages)]


def _changed(old: Item, text: str | None, changes: Mapping[str, Any]) -> tuple[Atom, Any]:
    fields = {name: getattr(old, name) for name in atoms.CARRIED} | ({} if text is None else {"text": text})
    if fields["text"] != old.text:  # other words have another author
        fields["metadata"] = {name: value for name, value in old.metadata.items() if name != versions.AUTHOR}
    return atom_and_vector({**fields, **changes})


def _usage(row: UsageRow) -> Usage:
    return Usage(
        operation=row.operation,
        model=row.model,
        calls=row.calls,
        failures=row.failures,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        seconds=row.micros / 1e6,
        cost=row.cost,
    )


def _cursor(after: str) -> int:
    digits = isinstance(after, str) and after.isascii() and after.isdecimal() and len(after) < _CURSOR_DIGITS
    if after != "" and not digits:
        raise InputError(f"cannot read on after {after!r}: pass the `next` of the page before")
    return int(after or 0)
