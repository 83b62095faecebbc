"""The chunks of one kind brought up to date: planned, cleaned up, and made one after the other.

Each is made under a lease: by one process, once, and so that a failure stays known.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from eunoe.apps.discussion.authors import Author, AuthorSources, NothingError, choose_author, says_nothing
from eunoe.apps.discussion.chunks import (
    ChunkPlan,
    ChunkWork,
    Cutting,
    Records,
    chunk_text,
    plan_chunks,
    read_records,
)
from eunoe.apps.discussion.creators import CreatorCall, find_creator
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    NOTHING,
    SETTINGS,
    Chunk,
    LogMessage,
    chunk_of,
    is_in_force,
    is_made,
    nothing_item,
    own_source,
)
from eunoe.apps.discussion.settings import AuthorSettings, ChunkSettings, DiscussionSettings
from eunoe.errors import ConflictError, EunoeError, InputError, StoreError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import AUTHOR, EXTRACTIVE, Atom
from eunoe.model.result import LeaseStatus
from eunoe.model.scope import Scope
from eunoe.text.normalize import fingerprint, one_line

Progress = Callable[[str, int, int], None]
"""Is told the kind of memory, how many chunks are done, and how many there are."""
ChunkOutcome = Literal["made", "nothing", "failed", "held", "paused", "moved"]
"""`nothing`: there was nothing to remember, which is kept. `held`: somebody else makes it. `paused`: it failed a moment
ago. `moved`: the chunk is not as it was planned any more."""
_MAX_PLANS: Final = 5
"""How often a plan is made anew in one run because another process was quicker."""
_MAX_FAILURES: Final = 3
"""After so many failures one after the other the author is taken to be out of order, and the rest waits."""
_MAX_ERROR_CHARACTERS: Final = 300


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

    def run(self, sequence: Sequence[LogMessage], imported: Chunk | None = None) -> None:
        """Make what is due. `sequence` are all messages, retracted ones too."""
        for _ in range(_MAX_PLANS):
            records = read_records(self.memory, self.scope, self.kind)
            leases = self.memory.leases.list(self.scope, f"{self.kind}:")
            edition = self._edition(records, leases)
            cutting = self._cutting(edition, edition if self.rebuild else 0, self.force)
            plan = plan_chunks(self.kind, sequence, records, leases, cutting, imported)
            # End what stands for messages that are gone. After a kill the next run finds again what is left to do.
            for record in plan.empty:
                self._expire(records.revivable(record), again=True)
                self._expire([atom.id for atom in record.atoms])
            self._expire(records.leftovers)
            self._end_former(plan, ())
            for name in plan.orphan_leases:
                self.memory.leases.drop(self.scope, name)
            if self._make_all(plan, records):
                break
        self.waiting = plan.waiting
        if left := len(plan.former):
            self.notes.append(f"{self.kind}: {left} chunks keep their old memories: rebuild again to go on")
        self._expire(read_records(self.memory, self.scope, self.kind).leftovers)

    def try_one(self, sequence: Sequence[LogMessage], number: int) -> ChunkTrial:
        """See what one chunk would become in a rebuild; nothing is written. Raise LlmError if its author fails."""
        records = read_records(self.memory, self.scope, self.kind)
        edition = 1 + max((record.chunk.edition for record in records.made), default=-1)
        work = plan_chunks(self.kind, sequence, records, [], self._cutting(edition, edition, force=True)).work
        if not 1 <= number <= len(work):
            raise InputError(f"{self.kind}: there is no chunk {number}: the chat has {len(work)} with these settings")
        chosen = work[number - 1]
        made = tuple(self._create(chosen, self._author()))
        ids, now = {message.id for message in chosen.messages}, utc_now()
        atoms = (atom for record in records.made for atom in record.atoms if is_in_force(atom, now))
        held = tuple(atom for atom in atoms if ids.intersection(own_source(atom)))
        return ChunkTrial(self.kind, number, len(work), chunk_text(chosen.messages), held, made, tuple(self.notes))

    def _cutting(self, edition: int, least_edition: int, force: bool) -> Cutting:
        is_on, factor = self.kind in self.settings.memory_kinds, self.settings.token_factor
        return Cutting(self._chunk_settings(), factor, self.settings.lookback, force, is_on, edition, least_edition)

    def _edition(self, records: Records, leases: Sequence[LeaseStatus]) -> int:
        """The edition of new chunks: the latest, or for a rebuild the next, unless one was begun and not finished."""
        made = {record.chunk.edition for record in records.made}
        latest = max([*made, *(lease.data.get("edition", 0) for lease in leases)], default=0)
        newest = [atom for record in records.made if record.chunk.edition == latest for atom in record.atoms]
        is_begun = made != {latest} and all(atom.metadata.get(SETTINGS) == self._digest() for atom in newest)
        return latest + 1 if self.rebuild and made and not is_begun else latest

    def _make_all(self, plan: ChunkPlan, records: Records) -> bool:
        """Make the chunks of a plan; False if it is no longer true."""
        author, failures = self._author() if plan.work else None, 0
        for number, work in enumerate(plan.work, 1):
            if work.record:
                self._expire(records.revivable(work.record), again=True)
            outcome = self._make(work, author)
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

    def _make(self, work: ChunkWork, author: Author | None) -> ChunkOutcome:
        """Make the memories of one chunk and write them, all or none."""
        leases, chunk = self.memory.leases, work.chunk
        lease = leases.acquire(self.scope, chunk.name, ignore_pause=self.force, data=asdict(chunk))
        if lease is None:
            others = [each for each in leases.list(self.scope, chunk.name) if each.name == chunk.name]
            if not others or others[0].data.get("last") != chunk.last:  # somebody works on one with other bounds
                return "moved"
            return "held" if others[0].is_held else "paused"
        try:
            # Somebody may have made the chunk since the plan: asked under the lease, so that the answer stays true.
            found = self.memory.get_many(self.scope, [memory_id(chunk, 1)], exact=True)
            now, known = utc_now(), {atom.id for atom in work.record.atoms} if work.record else set()
            made = [each for each in found if isinstance(each, Atom) and each.retired is None and is_made(each, now)]
            planned = work.record.chunk if work.record and made and made[0].id in known else None
            if made and chunk_of(made[0]) != planned:
                leases.release(self.scope, lease)
                return "moved"
            # What has no author where it could have one is made of the words of the chat, in no time.
            is_quick = author is None and find_creator(self.kind).prompts is not None
            with nullcontext() if is_quick else leases.renewing(self.scope, lease):
                items = self._create(work, author)
            written = items or [{**self._complete(nothing_item(), work, 1, author), "label": NOTHING}]
            self.memory.remember_many(self.scope, written, replace=True, again=True, lease=lease)
            return "made" if items else "nothing"
        except (ConflictError, StoreError) as error:
            leases.release(self.scope, lease)
            if isinstance(error, StoreError):
                raise
            return "held"
        except Exception as error:  # a creator of somebody else's making may raise anything
            # Of errors that are not ours only the kind, since they may repeat what was said.
            reason = str(error) if isinstance(error, EunoeError) else type(error).__name__
            leases.fail(self.scope, lease, one_line(reason, _MAX_ERROR_CHARACTERS))
            return "failed"
        except BaseException:
            leases.release(self.scope, lease)
            raise

    def _create(self, work: ChunkWork, author: Author | None) -> list[dict[str, Any]]:
        """What a chunk becomes; nothing is written."""
        call = CreatorCall(self.memory, self.scope, work.chunk, work.messages, author, self.notes)
        try:
            made = find_creator(self.kind).make(call) or ()
        except NothingError:
            made = ()
        items = (item for item in made if not says_nothing(str(item.get("text", ""))))
        return [self._complete(item, work, number, author) for number, item in enumerate(items, 1)]

    def _complete(self, item: Mapping[str, Any], work: ChunkWork, number: int, author: Author | None) -> dict[str, Any]:
        """A memory with its id, its label and its place; it rests on the whole chunk unless it says on what."""
        chunk, name = work.chunk, author.name if author else EXTRACTIVE
        where = {"chunk": asdict(chunk), "place": chunk.place, SETTINGS: self._digest()}
        metadata = {AUTHOR: name, **item.get("metadata", {}), **where}
        source: Sequence[str] = item.get("source") or [message.id for message in work.messages]
        identity = {"id": memory_id(chunk, number), "label": chunk.kind, "source": source, "metadata": metadata}
        return {**item, **identity}

    def _end_former(self, plan: ChunkPlan, messages: Sequence[LogMessage]) -> None:
        """End the memories in whose place others stand, now that there are memories of these messages."""
        for former in plan.former:
            former.uncovered.difference_update(message.id for message in messages)
        self._expire([atom.id for former in plan.former if not former.uncovered for atom in former.record.atoms])
        plan.former[:] = [former for former in plan.former if former.uncovered]

    def _digest(self) -> str:
        return fingerprint(repr(self._chunk_settings())).hex()

    def _author(self) -> Author | None:
        creator = find_creator(self.kind)
        if creator.prompts is None:
            return None
        return choose_author(self._chunk_settings().author, creator.prompts, self.sources, creator.schema)

    def _chunk_settings(self) -> ChunkSettings:
        """The settings of the kind; one of another package has the sizes of chunk memories."""
        settings = getattr(self.settings, self.kind, None)
        sizes = self.settings.chunk_memory
        return settings if isinstance(settings, ChunkSettings) else replace(sizes, author=AuthorSettings())

    def _expire(self, ids: Sequence[str], again: bool = False) -> None:
        """End memories, or let them hold again."""
        if ids:
            self.memory.expire(self.scope, ids, None if again else utc_now())


def memory_id(chunk: Chunk, number: int) -> str:
    """The id of one of the memories of a chunk. A chunk has one chunk memory, and of other kinds any number."""
    return chunk.name if chunk.kind == CHUNK_MEMORY else f"{chunk.name}:{number}"
