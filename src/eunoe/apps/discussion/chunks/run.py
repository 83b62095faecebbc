"""One chunk made into memories, under a lease: by one process, once, and so that a failure stays known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from eunoe.apps.discussion.atoms import NOTHING, SETTINGS, nothing_item
from eunoe.apps.discussion.authors import Author, NothingError, says_nothing
from eunoe.apps.discussion.chunks.plan import ChunkWork
from eunoe.apps.discussion.chunks.records import is_made, read_chunk
from eunoe.apps.discussion.creators import Creator, CreatorCall
from eunoe.apps.discussion.model import CHUNK_MEMORY, Chunk
from eunoe.errors import ConflictError, EunoeError, StoreError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.atom import AUTHOR, EXTRACTIVE, Atom
from eunoe.model.scope import Scope
from eunoe.text.normalize import one_line

ChunkOutcome = Literal["made", "nothing", "failed", "held", "paused", "moved"]
"""`nothing`: there was nothing to remember, which is kept. `held`: somebody else makes it. `paused`: it failed a moment
ago. `moved`: the chunk is not as it was planned any more."""
_MAX_ERROR_CHARACTERS: Final = 300


@dataclass(slots=True)
class ChunkRun:
    """Makes the chunks of one kind, one after the other."""

    memory: Memory
    scope: Scope
    creator: Creator
    author: Author | None
    force: bool = False
    notes: list[str] = field(default_factory=list)
    settings: str = ""
    """The digest of the settings, noted with what is made."""

    def make(self, work: ChunkWork) -> ChunkOutcome:
        """Make the memories of one chunk and write them, all or none."""
        leases, chunk = self.memory.leases, work.chunk
        lease = leases.acquire(self.scope, chunk.name, ignore_pause=self.force, data=asdict(chunk))
        if lease is None:
            return self._why_not(chunk)
        try:
            if not self._is_as_planned(work):
                leases.release(self.scope, lease)
                return "moved"
            # What has no author where it could have one is made of the words of the chat, in no time.
            is_quick = self.author is None and self.creator.prompts is not None
            with nullcontext() if is_quick else leases.renewing(self.scope, lease):
                items = self.create(work)
            written = items or [{**self._complete(nothing_item(), work, 1), "label": NOTHING}]
            self.memory.remember_many(self.scope, written, replace=True, again=True, lease=lease)
            return "made" if items else "nothing"
        except (ConflictError, StoreError) as error:
            leases.release(self.scope, lease)
            if isinstance(error, StoreError):
                raise
            return "held"
        except Exception as error:  # a creator of somebody else's making may raise anything
            leases.fail(self.scope, lease, _describe(error))
            return "failed"
        except BaseException:
            leases.release(self.scope, lease)
            raise

    def _why_not(self, chunk: Chunk) -> ChunkOutcome:
        """Whether somebody works on this very chunk, or on one with other bounds."""
        found = [each for each in self.memory.leases.list(self.scope, chunk.name) if each.name == chunk.name]
        if not found or found[0].data.get("last") != chunk.last:
            return "moved"
        return "held" if found[0].is_held else "paused"

    def _is_as_planned(self, work: ChunkWork) -> bool:
        """Whether nobody has made the chunk since the plan: asked under the lease, so that the answer stays true."""
        found = self.memory.get_many(self.scope, [memory_id(work.chunk, 1)], exact=True)
        made = [each for each in found if isinstance(each, Atom) and each.retired is None and is_made(each, utc_now())]
        known = [atom.id for atom in work.record.atoms] if work.record else []
        if not made:
            return True
        planned = work.record.chunk if work.record and made[0].id in known else None
        return read_chunk(made[0].metadata) == planned

    def create(self, work: ChunkWork) -> list[dict[str, Any]]:
        """What a chunk becomes; nothing is written."""
        call = CreatorCall(self.memory, self.scope, work.chunk, work.messages, self.author, self.notes)
        try:
            made = self.creator.make(call) or ()
        except NothingError:
            made = ()
        items = (item for item in made if not says_nothing(str(item.get("text", ""))))
        return [self._complete(item, work, number) for number, item in enumerate(items, 1)]

    def _complete(self, item: Mapping[str, Any], work: ChunkWork, number: int) -> dict[str, Any]:
        """A memory with its id, its label and its place; it rests on the whole chunk unless it says on what."""
        chunk, author = work.chunk, self.author.name if self.author else EXTRACTIVE
        where = {"chunk": asdict(chunk), "place": chunk.place, SETTINGS: self.settings}
        metadata = {AUTHOR: author, **item.get("metadata", {}), **where}
        source: Sequence[str] = item.get("source") or [message.id for message in work.messages]
        identity = {"id": memory_id(chunk, number), "label": chunk.kind, "source": source, "metadata": metadata}
        return {**item, **identity}


def memory_id(chunk: Chunk, number: int) -> str:
    """The id of one of the memories of a chunk. A chunk has one chunk memory, and of other kinds any number."""
    return chunk.name if chunk.kind == CHUNK_MEMORY else f"{chunk.name}:{number}"


def _describe(error: Exception) -> str:
    """What went wrong; of errors that are not ours only the kind, since they may repeat what was said."""
    return one_line(str(error) if isinstance(error, EunoeError) else type(error).__name__, _MAX_ERROR_CHARACTERS)
