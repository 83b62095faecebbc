"""One discussion: its log, how it stands, and the verbs that change its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eunoe.apps.discussion.atoms import nothing_after
from eunoe.apps.discussion.authors import AuthorSources, FindModel, RunWorkflow
from eunoe.apps.discussion.chunks.update import ChunkTrial, ChunkUpdate
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.report import UpdateReport
from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_scope
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings
from eunoe.apps.discussion.status import DiscussionStatus, read_status
from eunoe.apps.discussion.update import update_discussion
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.result import ForgetReport


class Discussion:
    """The memory of a long chat.

    >>> with eunoe.open(":memory:", embedder="none", llm="none") as memory:
    ...     trip = Discussion(memory, "trip", "anna")
    ...     _ = trip.log.take_in([{"role": "user", "content": "We fly to Rome in May."}])
    ...     trip.status().messages
    1
    """

    def __init__(self, memory: Memory, id: str, user: str = DEFAULT_USER) -> None:
        self.memory = memory
        self.scope = discussion_scope(id, user)
        self.log = DiscussionLog(memory, self.scope)

    def status(self) -> DiscussionStatus:
        """Return how it stands: what it holds, what failed, what is being done."""
        return read_status(self.memory, self.scope)

    def update(
        self,
        messages: Sequence[Mapping[str, Any]] | None = None,
        settings: DiscussionSettings = DEFAULT_SETTINGS,
        **options: Any,
    ) -> UpdateReport:
        """Take messages in, and make the memories that are due. Options are those of `update_discussion`."""
        return update_discussion(self.memory, self.scope, settings, messages=messages, **options)

    def rebuild(self, settings: DiscussionSettings = DEFAULT_SETTINGS, **options: Any) -> UpdateReport:
        """Make all memories anew from the log, with these settings: of the kinds that these name, the rolling summary
        and the state document.

        Each memory holds until there is another one of its messages; then it stays in the history. So a rebuild may
        fail or be killed: call it again with the same settings, and it goes on. What was imported stays, since the
        messages it was made from are not known.
        """
        return self.update(None, settings, rebuild=True, **options)

    def try_chunk(
        self,
        number: int,
        settings: DiscussionSettings = DEFAULT_SETTINGS,
        *,
        find_model: FindModel | None = None,
        run_workflow: RunWorkflow | None = None,
    ) -> list[ChunkTrial]:
        """Return what a chunk would become if the discussion were rebuilt with these settings, for each kind of memory
        that they name. Nothing is written. `number` counts from 1."""
        sources = AuthorSources(find_model or (lambda endpoint, preset: self.memory.llm), run_workflow)
        updates = [ChunkUpdate(self.memory, self.scope, kind, settings, sources) for kind in settings.memory_kinds]
        sequence = self.log.sequence()
        return [update.try_one(sequence, number) for update in updates]

    def forget(self, ids: str | Iterable[str]) -> ForgetReport:
        """Remove memories or messages for good, with all that rests on them.

        The chunk of a memory counts as made from then on, so that no update makes the memory again; a rebuild does, and
        so does a change of its messages. To forget what was said, name the messages.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        found = self.memory.get_many(self.scope, wanted)
        if marks := [nothing_after(atom) for atom in found if isinstance(atom, Atom) and atom.metadata.get("chunk")]:
            self.memory.remember_many(self.scope, marks, replace=True, again=True)
        return self.memory.forget(self.scope, wanted)

    def delete(self) -> ForgetReport:
        """Remove the whole discussion for good, with its log. The same chat may be taken in again later."""
        return self.memory.forget(self.scope, everything=True, may_return=True, exact=True)
