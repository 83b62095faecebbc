"""All chunks of one kind brought up to date: planned, cleaned up, and made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from eunoe.discussion.authors import Author, AuthorSources, choose_author
from eunoe.discussion.chunks.plan import ChunkPlan, Cutting, plan_chunks
from eunoe.discussion.chunks.records import Records, read_records, revivable
from eunoe.discussion.chunks.run import ChunkRun
from eunoe.discussion.creators import Creator, find_creator
from eunoe.discussion.model import Chunk, LogMessage
from eunoe.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.model.time import utc_now

Progress = Callable[[str, int, int], None]
"""Is told the kind of memory, how many chunks are done, and how many there are."""
_MAX_PLANS: Final = 5
"""How often a plan is made anew in one run because another process was quicker."""
_MAX_FAILURES: Final = 3
"""After so many failures one after the other the author is taken to be out of order, and the rest waits."""


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
    made: int = 0
    redone: int = 0
    waiting: int = 0
    notes: list[str] = field(default_factory=list)

    def run(self, sequence: Sequence[LogMessage], imported: Chunk | None = None) -> None:
        """Make what is due. `sequence` are all messages, retracted ones too."""
        for _ in range(_MAX_PLANS):
            records = read_records(self.memory, self.scope, self.kind)
            plan = self._plan(sequence, records, imported)
            self._clean_up(plan, records)
            if self._make(plan, records):
                break
        self.waiting = plan.waiting
        self._expire(read_records(self.memory, self.scope, self.kind).leftovers)

    def _plan(self, sequence: Sequence[LogMessage], records: Records, imported: Chunk | None) -> ChunkPlan:
        is_on = self.kind in self.settings.memory_kinds
        factor, lookback = self.settings.token_factor, self.settings.lookback
        cutting = Cutting(self._chunk_settings(), factor, lookback, self.force, is_on)
        leases = self.memory.leases.list(self.scope, f"{self.kind}:")
        return plan_chunks(self.kind, sequence, records, leases, cutting, imported)

    def _clean_up(self, plan: ChunkPlan, records: Records) -> None:
        """End what stands for messages that are gone. After a kill the next run finds again what is left to do."""
        for record in plan.empty:
            self._revive(revivable(record, records))
            self._expire([atom.id for atom in record.atoms])
        self._expire(records.leftovers)
        for name in plan.orphan_leases:
            self.memory.leases.drop(self.scope, name)

    def _make(self, plan: ChunkPlan, records: Records) -> bool:
        """Make the chunks of a plan; False if it is no longer true."""
        creator, failures = find_creator(self.kind), 0
        run = ChunkRun(self.memory, self.scope, creator, self._author(creator, plan), self.force, self.notes)
        for number, work in enumerate(plan.work, 1):
            if work.record:
                self._revive(revivable(work.record, records))
            outcome = run.make(work)
            if outcome == "moved":
                return False
            self.made += outcome == "made" and work.record is None
            self.redone += outcome == "made" and work.record is not None
            failures = failures + 1 if outcome == "failed" else 0 if outcome == "made" else failures
            if self.progress:
                self.progress(self.kind, number, len(plan.work))
            if failures >= _MAX_FAILURES and number < len(plan.work):
                self.notes.append(f"{self.kind}: {failures} chunks failed in a row, so {len(plan.work) - number} wait")
                break
        return True

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
