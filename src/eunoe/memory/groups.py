"""The verbs that are not needed every day, in groups: streams, summaries, corrections, the entity graph,
administration.

Those that need `form` or `recall` import it when they are called, so that opening a memory is quick.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from eunoe.embed.store_embedder import Progress
from eunoe.errors import InputError, LlmError
from eunoe.llm import check_model_spec
from eunoe.memory.face import Face
from eunoe.memory.guard import OPEN
from eunoe.memory.verb import verb
from eunoe.model.arguments import (
    VERDICTS,
    Verdict,
    as_list,
    check_callback,
    check_choice,
    check_count,
    check_flag,
    check_id,
    check_metadata,
    check_name,
    check_names,
    check_path,
    check_seconds,
    check_text,
    show,
)
from eunoe.model.atom import Correction
from eunoe.model.result import (
    BackupReport,
    CheckReport,
    FormReport,
    GraphReport,
    GraphSize,
    ImportReport,
    Lease,
    LeaseStatus,
    LlmReport,
    ModelCall,
    Neighbourhood,
    Page,
    Receipt,
    RetentionReport,
    check_lease,
    check_optional_lease,
)
from eunoe.model.scope import ScopeLike, Scopes
from eunoe.model.stream import MODEL_SETTINGS, Revision, Settings, Stream
from eunoe.records.revisions import NewSummary
from eunoe.work.leases import renewing

_MAX_CALLS = 1000
"""On one page."""
MAX_LEASE_SECONDS = 7 * 24 * 3600.0
"""Whoever needs longer renews it: until then nobody goes on with the work of a killed process."""
SettingValue = str | int | float | bool | Sequence[str]


@dataclass(frozen=True, slots=True)
class Access:
    """How often a memory was recalled, and when last."""

    times: int = 0
    last: datetime | None = None


class Streams(Face):
    """Streams: their settings and presets, the clean-up of old atoms, incognito sessions."""

    @verb("read", "GET /v1/streams", answer="streams", paged=True)
    def list(self, /, **keys: str) -> builtins.list[Stream]:
        """Return the streams of all scopes, or of those that have these keys: settings, summary, what waits."""
        return self._run(self._engine.streams_list, self._guard.keys(keys), self._guard.bounds)

    @verb("write", "PATCH /v1/streams", settings=True)
    def configure(self, /, scope: ScopeLike, preset: str = "", **changes: SettingValue) -> Stream:
        """Change the settings of one stream, and make it if it is new: so an agent gets a shard.

        >>> with eunoe.open(":memory:") as memory:
        ...     stream = memory.streams.configure("agent=cook/shard=recipes", extraction_prompt="Recipes and tricks.")
        >>> stream.preset, stream.settings.consolidation_trigger
        ('agent', 16)
        """
        owner = self._guard.scope(scope)
        self._guard.allow_settings(changes)
        _check_models(changes)
        return self._run(self._engine.streams_configure, owner, check_name(preset, "preset"), changes)

    @verb("read", "GET /v1/presets", answer="presets")
    def presets(self) -> dict[str, Settings]:
        """Return the kinds of streams there are, and the settings each starts with."""
        return self._run(self._engine.streams_presets)

    @verb("admin", "PUT /v1/presets/{name}", settings=True, whole=True)
    def set_preset(self, /, name: str, like: str = "", **changes: SettingValue) -> Settings:
        """Change a kind of stream, or make a new one, like another one if that is named.

        >>> with eunoe.open(":memory:") as memory:
        ...     settings = memory.streams.set_preset("team", like="user", owner=["team"], consolidated_max_words=200)
        >>> settings.owner, settings.consolidation_trigger
        (('team',), 5)
        """
        _check_models(changes)
        checked = check_name(name, "name"), check_name(like, "like")
        return self._run(self._engine.streams_set_preset, *checked, changes)

    @verb("forget", "POST /v1/retention")
    def apply_retention(
        self,
        scope: ScopeLike,
        *,
        max_age_days: float | None = None,
        max_idle_days: float | None = None,
        keep_best: int | None = None,
        dry_run: bool = False,
        exact: bool = False,
    ) -> RetentionReport:
        """Archive atoms that are too old, unused for too long or beyond the number to keep; never pinned ones.

        What is not given is taken from the stream's own settings. A user's scope means everything within, stream by
        stream, unless `exact` is set.
        """
        given = {"max_age_days": max_age_days, "max_idle_days": max_idle_days, "keep_best": keep_best}
        policy = {name: value for name, value in given.items() if value is not None}
        owner, is_dry = self._guard.reach(scope, exact), check_flag(dry_run, "dry_run")
        return self._run(self._engine.streams_apply_retention, owner, policy, is_dry)

    @verb("write", "POST /v1/memories/{id}/unarchive")
    def unarchive(self, scope: ScopeLike, id: str) -> Receipt:
        """Bring an archived atom back."""
        return self._run(self._engine.streams_unarchive, self._guard.scope(scope), check_id(id))

    @verb("write", "POST /v1/incognito")
    def set_incognito(self, scope: ScopeLike, on: bool = True) -> None:
        """Mark a session as one of which nothing is kept, or take the mark off.

        The mark itself is a fingerprint that says nothing. A session that already has messages is refused: forget
        them first.
        """
        owner, bounds = self._guard.scope(scope), self._guard.bounds
        self._run(self._engine.streams_set_incognito, owner, check_flag(on, "on"), bounds)


class Summaries(Face):
    """Summaries of streams, and all their revisions."""

    @verb("write", "POST /v1/consolidate", answer="revision", slow=True)
    def consolidate(self, scope: ScopeLike, *, force: bool = True) -> Revision | None:
        """Write a stream's waiting observations into its summary now; without `force` only if enough wait.

        Return the new revision, or None if there was nothing to do.
        """
        return self._run(self._engine.summaries_consolidate, self._guard.scope(scope), check_flag(force, "force"))

    @verb("read", "GET /v1/revisions", answer="revisions", paged=True)
    def revisions(self, scope: ScopeLike) -> builtins.list[Revision]:
        """Return every revision of a stream's summary, oldest first."""
        return self._run(self._engine.summaries_revisions, self._guard.scope(scope))

    @verb("write", "POST /v1/revisions/{number}/restore")
    def restore(self, scope: ScopeLike, number: int) -> Revision:
        """Make an earlier revision of the summary the current one, as a new revision.

        What later revisions had absorbed waits again to be consolidated.
        """
        return self._run(self._engine.summaries_restore, self._guard.scope(scope), check_count(number, "number"))

    @verb("write", "POST /v1/revisions")
    def write(
        self,
        scope: ScopeLike,
        text: str,
        *,
        author: str = "hand",
        parent: int | None = None,
        absorbed: Iterable[str] = (),
        base: int | None = None,
        lease: Lease | None = None,
    ) -> Revision:
        """Write a summary yourself, as a new revision.

        Args:
            parent: write only if this is still the current revision; 0 if there must be none.
            absorbed: ids of open observations and facts that it says. If one is forgotten, this revision goes too;
                observations wait no more to be consolidated.
            base: the revision it was written from, if that is not the current one; 0 for none. What the revisions
                after it had absorbed waits again.
            lease: from `leases.acquire`: write only while it is yours, and end it in the same step.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna moved to Rome.", kind="observation")
        ...     revision = memory.summaries.write("user=anna", "Anna lives in Rome.", absorbed=[kept.id])
        ...     revision.absorbed == (kept.id,), memory.streams.list(user="anna")[0].observations
        (True, 0)
        """
        summary = NewSummary(
            check_text(text),
            check_id(author, "author"),
            None if parent is None else check_count(parent, "parent", least=0),
            check_names(as_list(absorbed, "absorbed"), "absorbed"),
            None if base is None else check_count(base, "base", least=0),
        )
        held = check_optional_lease(lease)
        return self._run(self._engine.summaries_write, self._guard.scope(scope), summary, held)


class Corrections(Face):
    """Corrections by hand: they count for what is like the corrected sentence, and for nothing else."""

    @verb("write", "POST /v1/corrections")
    def add(self, scope: ScopeLike, id: str, verdict: Verdict, *, sentence: str = "") -> Correction:
        """Say that a memory or message is worth keeping, is not, or is of another kind.

        It acts at once: `drop` archives what was learned from it, `keep` learns it, a kind changes the label. From then
        on sentences that are like it are read so without a language model, in all conversations of the same user.

        Args:
            id: of a memory or a message in this scope.
            verdict: `keep`, `drop`, or a kind: `instruction`, `preference`, `fact`, `plan`, `decision` or `change`.
            sentence: the part of the message that is meant, word for word. Without it, what says something.

        >>> with eunoe.open(":memory:", form=False) as memory:
        ...     lunch = memory.observe("user=anna", "I had pasta for lunch.")[0]
        ...     _ = memory.corrections.add("user=anna", lunch.id, "drop")
        ...     page = memory.preview("user=anna", ["I had soup for dinner."])
        >>> page.passed_over[0].reason
        "by your correction of 'I had pasta for lunch.'"
        """
        from eunoe.memory.corrections import corrections_add

        owner, bounds = self._guard.scope(scope), self._guard.bounds
        checked = check_id(id), check_choice(verdict, "verdict", VERDICTS)
        part = " ".join(check_text(sentence, "sentence").split())
        return self._run(corrections_add, self._engine, owner, *checked, part, bounds)

    @verb("read", "GET /v1/corrections", answer="corrections")
    def list(self, scope: ScopeLike) -> builtins.list[Correction]:
        """Return the corrections that are kept in a scope, latest first. Those of a user's messages are the user's."""
        return self._run(self._engine.corrections_list, self._guard.scope(scope))

    @verb("write", "POST /v1/corrections/{id}/remove")
    def remove(self, scope: ScopeLike, id: str) -> None:
        """Let a correction count no more. What it changed at once stays as it is."""
        self._run(self._engine.corrections_remove, self._guard.scope(scope), check_id(id))


class Graph(Face):
    """The entity graph: which names stand in the same memories."""

    @verb("read", "GET /v1/graph")
    def neighbours(
        self, scope: ScopeLike, entity: str = "", *, depth: int = 1, limit: int = 50, exact: bool = False
    ) -> Neighbourhood:
        """Return what stands around an entity: the entities in the same passages, and the passages.

        Without an entity those that are tied to most, and last those that are tied to none. Raise NotFoundError if
        the scope has no passage with that name.

        Args:
            depth: how many steps from passage to passage to go.
            limit: at most so many other entities, and so many passages.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("project=atlas", "Anna Berg met Felix Cole. They went to Rome.")
        ...     near = memory.graph.neighbours("project=atlas", "anna berg")
        >>> [entity.name for entity in near.entities]
        ['Anna Berg', 'Felix Cole', 'Rome']
        """
        from eunoe.recall.neighbourhood import MAX_DEPTH, MAX_ENTITIES

        owner = self._guard.reach(scope, exact)
        check_text(entity, "entity")
        steps, most = check_count(depth, "depth", most=MAX_DEPTH), check_count(limit, "limit", most=MAX_ENTITIES)
        return self._run(self._engine.graph_neighbours, owner, entity, steps, most)

    @verb("read", "GET /v1/graph/size")
    def size(self, scope: ScopeLike, *, exact: bool = False) -> GraphSize:
        """Return how many passages, entities and triples there are.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("project=atlas", "Anna Berg met Felix Cole.")
        ...     memory.graph.size("project=atlas")
        GraphSize(passages=1, entities=2, mentions=2, triples=0)
        """
        return self._run(self._engine.graph_size, self._guard.reach(scope, exact))

    @verb("write", "POST /v1/graph/extract", slow=True)
    def extract(self, scope: ScopeLike, *, limit: int | None = None, ask: bool = True) -> GraphReport:
        """Have the language model read the passages that it has not read yet, at most so many, for entities and
        triples; the graph takes both in. Without this it finds names by itself.

        A passage whose metadata holds `entities` (names) or `triples` (lists of three) is not asked about; without
        `ask` only these are taken in. One whose answer cannot be used stays due. Raise LlmError if there is nothing in
        metadata and no language model.
        """
        most = None if limit is None else check_count(limit, "limit")
        return self._run(self._engine.graph_extract, self._guard.scope(scope), most, check_flag(ask, "ask"))


class Admin(Face):
    """Moving, re-embedding and looking after a store."""

    @verb("read", slow=True)
    def export(
        self,
        scope: Scopes,
        target: str | Path | TextIO,
        *,
        progress: Callable[[int], None] | None = None,
        skip_damaged: bool = False,
        exact: bool = False,
    ) -> int:
        """Write scopes as JSON Lines, without loss; return the number of lines. For all: `memory.scopes()`.

        A user's scope means everything within, unless `exact` is set.

        What is damaged raises DamagedStoreError; with `skip_damaged` it is left out, and the log names it.
        """
        scopes = self._guard.reaches(scope, exact)
        if not isinstance(target, str | Path) and not hasattr(target, "write"):
            raise InputError(f"target must be a path or an open file, not {type(target).__name__}")
        if isinstance(target, str | Path):
            check_path(target, "target")
        checked = check_callback(progress, "progress"), check_flag(skip_damaged, "skip_damaged")
        return self._run(self._engine.admin_export, scopes, target, *checked, self._guard.bounds)

    @verb("write", slow=True)
    def import_(
        self, source: str | Path | Iterable[str], *, progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Read an export. Read twice it changes nothing; what was forgotten here stays forgotten.

        A restricted memory refuses all of it if a line is out of its reach; lines without a tenant get its own.
        """
        if not isinstance(source, Path | Iterable) or isinstance(source, bytes | type):
            raise InputError(f"source must be a path or lines, not {type(source).__name__}")
        if isinstance(source, str | Path):
            check_path(source, "source")
        check = None if self._guard is OPEN else self._guard.line
        return self._run(self._engine.admin_import, source, check_callback(progress, "progress"), check)

    @verb("admin", slow=True, whole=True)
    def backup(self, target: str | Path, *, progress: Callable[[int, int], None] | None = None) -> BackupReport:
        """Copy the whole store to a file, in place of an earlier backup, while it is in use; then read the copy.

        The file appears when it is complete. `eunoe.restore` brings it back.
        """
        if not isinstance(target, str | Path):
            raise InputError(f"target must be a path, not {type(target).__name__}")
        path = Path(check_path(target, "target"))
        return self._run(self._engine.admin_backup, path, check_callback(progress, "progress"))

    @verb("admin", "POST /v1/reembed", answer="count", slow=True, whole=True)
    def reembed(self, model: Any = None, *, progress: Progress | None = None) -> int:
        """Make vectors with another model, or those still missing if none is named; return how many were made.

        Can be stopped and called again: it goes on where it was. Recall uses the old vectors until the new are there.
        """
        return self._run(self._engine.admin_reembed, model, check_callback(progress, "progress"))

    @verb("admin", "POST /v1/check", slow=True, whole=True, changes=False)
    def check(self, *, progress: Callable[[int], None] | None = None) -> CheckReport:
        """Read the whole store and say what is damaged or lost; the report is true if nothing is.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna lives in Rome.")
        ...     report = memory.admin.check()
        >>> bool(report), report.damage
        (True, ())
        """
        return self._run(self._engine.admin_check, check_callback(progress, "progress"))

    @verb("admin", "POST /v1/reindex", answer="count", slow=True)
    def reindex(self, scope: Scopes) -> int:
        """Drop the indexes of these scopes and build them anew from the records; return how many.

        A user's scope has one of everything within: a scope within it counts no further one.
        """
        return self._run(self._engine.admin_reindex, self._guard.reaches(scope))

    @verb("admin", "POST /v1/cold-sessions", slow=True, whole=True)
    def process_cold_sessions(
        self, *, idle: float = 600, minimum: int = 4, limit: int = 100, concurrency: int = 3
    ) -> FormReport:
        """Form conversations that have been quiet for `idle` seconds and have at least `minimum` new messages.

        One that fails is reported and stays due; the others go on. At most `limit` are taken, `concurrency` at a time.
        """
        counts = {"minimum": minimum, "limit": limit, "concurrency": concurrency}
        checked = [check_count(value, name) for name, value in counts.items()]
        return self._run(self._engine.admin_process_cold_sessions, check_seconds(idle, "idle"), *checked)

    @verb("admin", "GET /v1/calls", whole=True, changes=False)
    def calls(self, *, limit: int = 50, after: str = "") -> Page[ModelCall]:
        """Return the calls of language models, the latest first, a page at a time; the last 10,000 are kept.

        Each says what it was for, how long it took and what it cost; what was asked and answered is not kept.
        """
        return self._run(self._engine.admin_calls, check_count(limit, "limit", most=_MAX_CALLS), after)

    @verb("admin", "POST /v1/models/test", slow=True, changes=False)
    def test_llm(self) -> LlmReport:
        """Ask the language model for one word; say whether it answers, what that took, or what is wrong.

        Raise LlmError if there is no language model.

        >>> with eunoe.open(":memory:", llm=lambda text: "Yes.") as memory:
        ...     bool(memory.admin.test_llm()), memory.admin.calls().items[0].operation
        (True, 'test')
        """
        return self._run(self._engine.admin_test_llm)

    @verb("read", "POST /v1/access-counts", answer="counts")
    def access_counts(self, scope: ScopeLike, ids: Iterable[str], *, exact: bool = False) -> dict[str, Access]:
        """Return how often memories were recalled, and when last."""
        owner, wanted = self._guard.reach(scope, exact), check_names(as_list(ids, "ids"), "ids")
        counts = self._run(self._engine.admin_access_counts, owner, wanted)
        return {id: Access(count.times, count.last) if count else Access() for id, count in counts.items()}


class Leases(Face):
    """Who works on what in a scope. A lease that nobody renews runs out, so that a killed worker holds up nobody."""

    @verb("write", changes=False)
    def acquire(
        self,
        scope: ScopeLike,
        name: str,
        *,
        seconds: float | None = None,
        ignore_pause: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> Lease | None:
        """Take the lease of this name; None if somebody holds it, or if it failed and its pause is not over.

        Write what the work gives with `lease=`: it is written only while the lease is still yours, and ends it.

        Args:
            seconds: how long it lasts without being renewed; 20, or what EUNOE_LEASE says.
            ignore_pause: take it even if it failed a moment ago.
            data: what is kept with it, such as ids; no words, since forgetting looks for whole texts only.

        >>> with eunoe.open(":memory:") as memory:
        ...     lease = memory.leases.acquire("user=anna", "diary")
        ...     second = memory.leases.acquire("user=anna", "diary")
        ...     _ = memory.remember_many("user=anna", ["Anna rests on Sundays."], lease=lease)
        ...     second, memory.leases.list("user=anna")
        (None, [])
        """
        kept = None if data is None else dict(check_metadata(data, "data"))
        wanted = None if seconds is None else _check_lease_seconds(seconds)
        checked = check_id(name, "name"), wanted, check_flag(ignore_pause, "ignore_pause"), kept
        return self._run(self._engine.leases_acquire, self._guard.scope(scope), *checked)

    @verb("write", changes=False)
    def renew(self, scope: ScopeLike, lease: Lease) -> bool:
        """Hold on to a lease for its seconds from now on; False if it is no longer yours."""
        return self._run(self._engine.leases_renew, self._guard.scope(scope), check_lease(lease))

    @verb("write", changes=False)
    def release(self, scope: ScopeLike, lease: Lease) -> bool:
        """Give a lease back undone, so that anybody can take it at once; False if it is no longer yours."""
        return self._run(self._engine.leases_release, self._guard.scope(scope), check_lease(lease))

    @verb("write", changes=False)
    def fail(self, scope: ScopeLike, lease: Lease, error: str) -> bool:
        """Say that the work failed: it may be tried again after a pause that grows with every attempt.

        Return False if the lease is no longer yours. `list` and `status` show it until the work is done.
        """
        owner, said = self._guard.scope(scope), check_text(error, "error")
        return self._run(self._engine.leases_fail, owner, check_lease(lease), said)

    @verb("read")
    def list(self, scope: ScopeLike, prefix: str = "") -> builtins.list[LeaseStatus]:
        """Return what is held or has failed, of names that begin so, in the order of the names."""
        return self._run(self._engine.leases_list, self._guard.scope(scope), check_name(prefix, "prefix"))

    @verb("write", changes=False)
    def drop(self, scope: ScopeLike, name: str) -> bool:
        """End a lease, whoever holds it, and forget that it failed; False if there was none."""
        return self._run(self._engine.leases_drop, self._guard.scope(scope), check_id(name, "name"))

    def renewing(self, scope: ScopeLike, lease: Lease) -> AbstractContextManager[None]:
        """Renew a lease in a thread of its own while the block lasts, or until it is lost."""
        self._guard.allow("write")
        owner, held = self._guard.scope(scope), check_lease(lease)
        return renewing(lambda: self.renew(owner, held), held.seconds)


def _check_models(changes: dict[str, Any]) -> None:
    """Refuse a model that can be none when it is named, not when it is asked."""
    for name in MODEL_SETTINGS:
        if isinstance(spec := changes.get(name, ""), str):
            try:
                check_model_spec(spec)
            except LlmError as error:
                raise InputError(f"{name}: {error}") from error


def _check_lease_seconds(seconds: object) -> float:
    checked = check_seconds(seconds, "seconds")
    if not 0 < checked <= MAX_LEASE_SECONDS:
        raise InputError(f"seconds is {show(seconds)}: give a number above 0, up to {MAX_LEASE_SECONDS:,.0f}")
    return checked
