"""How a discussion stands: what it holds, what failed, and what is being done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from eunoe.apps.discussion.atoms import NOTHING, chunk_memories, keyword_memories, open_atoms
from eunoe.apps.discussion.documents.state_document import StateDocument
from eunoe.apps.discussion.documents.summary import new_since_summary
from eunoe.apps.discussion.files.record import read_record
from eunoe.apps.discussion.files.settlement import find_import_conflict
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.model import LogMessage
from eunoe.apps.discussion.report import ChunkFailure, list_failures
from eunoe.memory import Memory
from eunoe.model.result import LeaseStatus
from eunoe.model.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionStatus:
    """How a discussion stands."""

    id: str
    user: str
    messages: int
    """Those of the chat as it stands now."""
    retracted: int
    """Messages that were edited, deleted or regenerated. They stay in the log."""
    waiting: int
    """Messages of the chat that are in no chunk that was made, and that come after what was imported."""
    last_message: datetime | None
    chunk_memories: int
    keyword_memories: int
    summary: int
    """The number of the current revision of the rolling summary; 0 if there is none."""
    new_since_summary: int
    """Chunk memories that the summary does not hold yet."""
    state_document: int
    """How many versions the state document has had."""
    failed: tuple[ChunkFailure, ...] = ()
    """Chunks of which no memory could be made so far."""
    other_failures: tuple[LeaseStatus, ...] = ()
    """What else failed: the summary, condensation, the state document, files that cannot be written."""
    in_progress: tuple[str, ...] = ()
    """What somebody works on at the moment."""
    import_conflict: str = ""
    """Why updates make nothing after an import, and what to do; empty if they go on."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of it."""
        parts = (self.messages, self.retracted, self.chunk_memories, self.keyword_memories, self.summary)
        return not any((*parts, self.state_document))


def read_status(memory: Memory, scope: Scope) -> DiscussionStatus:
    """Read how a discussion stands."""
    sequence = DiscussionLog(memory, scope).sequence()
    standing = [message for message in sequence if not message.is_retracted]
    chunks, keywords = chunk_memories(memory, scope), keyword_memories(memory, scope)
    used = {id for each in chunks for id in each.source} | {id for each in keywords for id in each.source}
    used |= {id for atom in open_atoms(memory, scope, NOTHING, ["fact"]) for id in atom.source}
    new = standing[_imported_end(memory, scope, standing) :]
    leases = memory.leases.list(scope)
    failed = list_failures(leases)
    return DiscussionStatus(
        id=scope.pairs["discussion"],
        user=scope.pairs["user"],
        messages=len(standing),
        retracted=len(sequence) - len(standing),
        waiting=sum(message.id not in used and bool(message.text.strip()) for message in new),
        last_message=standing[-1].time if standing else None,
        chunk_memories=len(chunks),
        keyword_memories=len(keywords),
        summary=next((each.number for each in memory.summaries.revisions(scope) if each.current), 0),
        new_since_summary=len(new_since_summary(memory, scope)),
        state_document=len(StateDocument(memory, scope).history()),
        failed=failed,
        other_failures=tuple(lease for lease in leases if lease.error and "first" not in lease.data),
        in_progress=tuple(lease.name for lease in leases if lease.is_held),
        import_conflict=find_import_conflict(memory, scope, standing),
    )


def _imported_end(memory: Memory, scope: Scope, standing: Sequence[LogMessage]) -> int:
    """How many messages come before the place where an imported chat goes on."""
    settled = read_record(memory, scope).settled.values()
    covered = {id for each in settled for id in each["messages"]}
    return max((place for place, message in enumerate(standing, 1) if message.id in covered), default=0)
