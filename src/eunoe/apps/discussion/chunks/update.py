"""All chunks of one kind brought up to date: planned, cleaned up, and made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from eunoe.apps.discussion.atoms import SETTINGS, own_source
from eunoe.apps.discussion.authors import Author, AuthorSources, choose_author
from eunoe.apps.discussion.chunks.content import chunk_text
from eunoe.apps.discussion.chunks.plan import ChunkPlan, Cutting, plan_chunks
from eunoe.apps.discussion.chunks.records import Records, holds, read_records, revivable
from eunoe.apps.discussion.chunks.run import ChunkRun
from eunoe.apps.discussion.creators import Creator, find_creator
from eunoe.apps.discussion.model import Chunk, LogMessage
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import Atom
from eunoe.model.result import LeaseStatus
from eunoe.model.scope import Scope
from eunoe.text.normalize import fingerprint

Progress = Callable[[str, int, int], None]
"""Is told the kind of memory, how many chunks are done, and how many there are."""
_MAX_PLANS: Final = 5
"""How often a plan is made anew in one run because another process was quicker."""
_MAX_FAILURES: Final = 3
"""After so many failures one after the other the author is taken to be out of order, and the rest waits."""


@dataclass(frozen=True, slots=True)
class ChunkTrial:
    """What one chunk would become with other settings."""

    kind: str
    number: int
    chunks: int
    """So many there are with these settings."""
    text: str
    """Its words, as authors are shown them."""
    now: tuple[Atom, ...]
    """The memories that rest on its messages now."""
    made: tuple[Mapping[str, Any], ...]
    """What it would become, each as `Memory.remember` takes it; none if there is nothing to remember."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ChunkUpdate:
    """A run over the chunks of one kind, and what it did so far."""

    memory: Memory
    scope: Scope
    kind: str
    settings: DiscussionSettings
    sources: AuthorSources
    force: bool = False
    progress: Progress | None = None
    rebuild: bool = False
    """Whether all chunks are to be cut and made anew."""
    made: int = 0
    redone: int = 0
    nothing: int = 0
    waiting: int = 0
    held: int = 0
    notes: list[str] = field(default_factory=list)

    def run(self, sequence: Sequence[LogMessage], imported: Chunk | None = None, stale: Sequence[Chunk] = ()) -> None:
        """Make what is due. `sequence` are all messages, retracted ones too; `stale` are chunks of stale imports."""
        for _ in range(_MAX_PLANS):
            records = read_records(self.memory, self.scope, self.kind)
            plan = self._plan(sequence, records, imported, stale)
            self._clean_up(plan, records)
            if self._make(plan, records):
                break
        self.waiting = plan.waiting
        if left := len(plan.former):
            self.notes.append(f"{self.kind}: {left} chunks keep their old memories: rebuild again to go on")
        self._expire(read_records(self.memory, self.scope, self.kind).leftovers)

    def try_one(self, sequence: Sequence[LogMessage], number: int) -> ChunkTrial:
        """See what one chunk would become in a rebuild; nothing is written. Raise LlmError if its author fails."""
        records = read_records(self.memory, self.scope, self.kind)
        edition = 1 + max((record.chunk.edition for record in records.made), default=-1)
        plan = plan_chunks(self.kind, sequence, records, [], self._cutting(edition, edition, force=True))
        if not 1 <= number <= len(plan.work):
            raise InputError(
                f"{self.kind}: there is no chunk {number}: the chat has {len(plan.work)} with these settings"
            )
        work, creator = plan.work[number - 1], find_creator(self.kind)
        run = ChunkRun(self.memory, self.scope, creator, self._author(creator, plan), notes=self.notes)
        made = tuple(run.create(work))
        ids = {message.id for message in work.messages}
        now = tuple(atom for record in records.made for atom in record.atoms if ids.intersection(own_source(atom)))
        held = tuple(atom for atom in now if holds(atom, utc_now()))
        return ChunkTrial(self.kind, number, len(plan.work), chunk_text(work.messages), held, made, tuple(self.notes))

    def _cutting(self, edition: int, least_edition: int, force: bool) -> Cutting:
        is_on, factor = self.kind in self.settings.memory_kinds, self.settings.token_factor
        return Cutting(self._chunk_settings(), factor, self.settings.lookback, force, is_on, edition, least_edition)

    def _plan(
        self, sequence: Sequence[LogMessage], records: Records, imported: Chunk | None, stale: Sequence[Chunk]
    ) -> ChunkPlan:
        leases = self.memory.leases.list(self.scope, f"{self.kind}:")
        edition = self._edition(records, leases)
        cutting = self._cutting(edition, edition if self.rebuild else 0, self.force)
        return plan_chunks(self.kind, sequence, records, leases, cutting, imported, stale)

    def _edition(self, records: Records, leases: Sequence[LeaseStatus]) -> int:
        """The edition of new chunks: the latest, or for a rebuild the next, unless one was begun and not finished."""
        made = {record.chunk.edition for record in records.made}
        latest = max([*made, *(lease.data.get("edition", 0) for lease in leases)], default=0)
        newest = [atom for record in records.made if record.chunk.edition == latest for atom in record.atoms]
        is_begun = made != {latest} and all(atom.metadata.get(SETTINGS) == self._digest() for atom in newest)
        return latest + 1 if self.rebuild and made and not is_begun else latest

    def _clean_up(self, plan: ChunkPlan, records: Records) -> None:
        """End what stands for messages that are gone. After a kill the next run finds again what is left to do."""
        for record in plan.empty:
            self._revive(revivable(record, records))
            self._expire([atom.id for atom in record.atoms])
        self._expire(records.leftovers)
        self._end_former(plan, ())
        for name in plan.orphan_leases:
            self.memory.leases.drop(self.scope, name)

    def _make(self, plan: ChunkPlan, records: Records) -> bool:
        """Make the chunks of a plan; False if it is no longer true."""
        creator, failures = find_creator(self.kind), 0
        author = self._author(creator, plan)
        run = ChunkRun(self.memory, self.scope, creator, author, self.force, self.notes, self._digest())
        for number, work in enumerate(plan.work, 1):
            if work.record:
                self._revive(revivable(work.record, records))
            outcome = run.make(work)
            if outcome == "moved":
                return False
            if outcome in ("made", "nothing"):
                self._end_former(plan, work.messages)
            self.held += outcome == "held"
            self.nothing += outcome == "nothing"
            self.made += outcome == "made" and work.record is None
            self.redone += outcome == "made" and work.record is not None
            failures = failures + 1 if outcome == "failed" else 0 if outcome in ("made", "nothing") else failures
            if self.progress:
                self.progress(self.kind, number, len(plan.work))
            if failures >= _MAX_FAILURES and number < len(plan.work):
                self.notes.append(f"{self.kind}: {failures} chunks failed in a row, so {len(plan.work) - number} wait")
                break
        return True

    def _end_former(self, plan: ChunkPlan, messages: Sequence[LogMessage]) -> None:
        """End the memories in whose place others stand, now that there are memories of these messages."""
        for former in plan.former:
            former.uncovered.difference_update(message.id for message in messages)
        self._expire([atom.id for former in plan.former if not former.uncovered for atom in former.record.atoms])
        plan.former[:] = [former for former in plan.former if former.uncovered]

    def _digest(self) -> str:
        return fingerprint(repr(self._chunk_settings())).hex()

    def _author(self, creator: Creator, plan: ChunkPlan) -> Author | None:
        if creator.prompts is None or not plan.work:
            return None
        return choose_author(self._chunk_settings().author, creator.prompts, self.sources, creator.schema)

    def _chunk_settings(self) -> ChunkSettings:
        """The settings of the kind; one of another package has the sizes of chunk memories."""
        settings = getattr(self.settings, self.kind, None)
        sizes = self.settings.chunk_memory
        return settings if isinstance(settings, ChunkSettings) else replace(sizes, author=AuthorSettings())

    def _revive(self, ids: Sequence[str]) -> None:
        if ids:
            self.memory.expire(self.scope, ids, None)

    def _expire(self, ids: Sequence[str]) -> None:
        if ids:
            self.memory.expire(self.scope, ids, utc_now())
