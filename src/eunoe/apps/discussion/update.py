"""One discussion: its log, how it stands, and the one entry that brings its memory up to date."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from eunoe.apps.discussion.authors import AuthorSources, FindModel, RunWorkflow, choose_author
from eunoe.apps.discussion.chunks import ChunkTrial, ChunkUpdate, Progress, read_records
from eunoe.apps.discussion.creators import creator_kinds, find_creator
from eunoe.apps.discussion.documents import (
    DOCUMENT_PROMPTS,
    SUMMARY_PROMPTS,
    StateDocument,
    new_since_summary,
    update_summary,
)
from eunoe.apps.discussion.files import FileKey, Layout, settle_import, write_files
from eunoe.apps.discussion.files.importing import find_import_conflict, read_record
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    DEFAULT_USER,
    NOTHING,
    SETTINGS,
    all_atoms,
    chunk_memories,
    chunk_of,
    discussion_scope,
    keyword_memories,
    nothing_item,
    own_source,
)
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings
from eunoe.errors import ConflictError, InputError, LlmError, StoreBusyError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.result import ForgetReport, LeaseStatus
from eunoe.model.scope import Scope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk of which no memory could be made so far. It is tried again."""

    kind: str
    first: str
    """The id of its first message."""
    last: str
    attempts: int
    error: str
    retry: datetime | None = None
    """Not before then, unless an update is forced."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update did, and what is still to be done."""

    made: int = 0
    """Chunks that became memories."""
    redone: int = 0
    """Chunks whose memories were made again, because their messages had changed."""
    failed: tuple[ChunkFailure, ...] = ()
    """All chunks that failed, now or earlier, and have not been made since."""
    nothing: int = 0
    """Chunks with nothing to remember. They are looked at again only if their messages change."""
    waiting: int = 0
    """Messages that are in no chunk yet, those that are left out at the end not counted."""
    held: int = 0
    """Chunks that somebody else was making, or began and did not finish a moment ago."""
    summary: int | None = None
    """The number of the new revision of the rolling summary, if there is one."""
    state_document: str = ""
    """What became of the state document."""
    notes: tuple[str, ...] = ()
    """What a person should know: what was repaired, left out or put off, and why."""


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
    """What else failed: the summary, the state document."""
    in_progress: tuple[str, ...] = ()
    """What somebody works on at the moment."""
    import_conflict: str = ""
    """Why updates make nothing after an import, and what to do; empty if they go on."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing of it."""
        parts = (self.messages, self.retracted, self.chunk_memories, self.keyword_memories, self.summary)
        return not any((*parts, self.state_document))


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
        memory, scope, sequence = self.memory, self.scope, self.log.sequence()
        standing = [message for message in sequence if not message.is_retracted]
        chunks, keywords = chunk_memories(memory, scope), keyword_memories(memory, scope)
        sources = [*(each.source for each in chunks), *(each.source for each in keywords)]
        used = {id for ids in (*sources, *(atom.source for atom in all_atoms(memory, scope, NOTHING))) for id in ids}
        covered = {id for each in read_record(memory, scope).settled.values() for id in each["messages"]}
        end = max((place for place, message in enumerate(standing, 1) if message.id in covered), default=0)
        leases = memory.leases.list(scope)
        return DiscussionStatus(
            id=scope.pairs["discussion"],
            user=scope.pairs["user"],
            messages=len(standing),
            retracted=len(sequence) - len(standing),
            waiting=sum(message.id not in used and bool(message.text.strip()) for message in standing[end:]),
            last_message=standing[-1].time if standing else None,
            chunk_memories=len(chunks),
            keyword_memories=len(keywords),
            summary=next((each.number for each in memory.summaries.revisions(scope) if each.current), 0),
            new_since_summary=len(new_since_summary(memory, scope)),
            state_document=len(StateDocument(memory, scope).history()),
            failed=_failures(leases),
            other_failures=tuple(lease for lease in leases if lease.error and "first" not in lease.data),
            in_progress=tuple(lease.name for lease in leases if lease.is_held),
            import_conflict=find_import_conflict(memory, scope, standing),
        )

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
        sources, sequence = AuthorSources.of(self.memory, find_model, run_workflow), self.log.sequence()
        updates = [ChunkUpdate(self.memory, self.scope, kind, settings, sources) for kind in settings.memory_kinds]
        return [update.try_one(sequence, number) for update in updates]

    def forget(self, ids: str | Iterable[str]) -> ForgetReport:
        """Remove memories or messages for good, with all that rests on them.

        The chunk of a memory counts as made from then on, so that no update makes the memory again; a rebuild does, and
        so does a change of its messages. To forget what was said, name the messages.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        found = self.memory.get_many(self.scope, wanted)
        marks = []
        for atom in found:
            if isinstance(atom, Atom) and (chunk := chunk_of(atom)):
                kept = {name: atom.metadata[name] for name in ("chunk", "place", SETTINGS) if name in atom.metadata}
                mark = {"id": f"{chunk.name}:none", "source": own_source(atom), "metadata": kept}
                marks.append({**nothing_item(), **mark})
        if marks:
            self.memory.remember_many(self.scope, marks, replace=True, again=True)
        return self.memory.forget(self.scope, wanted)

    def delete(self) -> ForgetReport:
        """Remove the whole discussion for good, with its log. The same chat may be taken in again later."""
        return self.memory.forget(self.scope, everything=True, may_return=True, exact=True)


def update_discussion(
    memory: Memory,
    scope: Scope,
    settings: DiscussionSettings = DEFAULT_SETTINGS,
    *,
    messages: Sequence[Mapping[str, Any]] | None = None,
    is_whole: bool = False,
    force: bool = False,
    find_model: FindModel | None = None,
    run_workflow: RunWorkflow | None = None,
    progress: Progress | None = None,
    files_dir: Path | None = None,
    layout: Layout = "folders",
    key: FileKey | None = None,
    continue_at: int | str | None = None,
    rebuild: bool = False,
) -> UpdateReport:
    """Bring the memory of a discussion up to date: take messages in, and make what is due.

    It may be called at any time, by several processes at once, and again after it was killed: what is done is not done
    twice, and what failed is tried again after a pause.

    Args:
        messages: the chat as it stands now, as chat APIs take it; None: only what was taken in before.
        is_whole: whether these are the whole chat, so that what they do not show was deleted.
        force: also chunks below their sizes, and what failed a moment ago. The last messages are left out all the same.
        find_model: finds the language model for an endpoint and a preset; without it the memory's own is asked.
        run_workflow: runs the workflows that the settings name.
        progress: is told the kind of memory, how many chunks are done, and how many there are.
        files_dir: where the files of the discussion are written in the end, as an export does it.
        layout: how these files are laid out: "folders" or "flat".
        key: encrypts these files.
        continue_at: where an imported discussion goes on, if that cannot be found.
        rebuild: make also anew what is there. Each memory holds until there is another one of its messages.
    """
    for kind in settings.memory_kinds:
        find_creator(kind)
    sources, notes = AuthorSources.of(memory, find_model, run_workflow), list(settings.notes)
    for author in settings.authors if rebuild else ():  # who cannot be found is told before anything is changed
        choose_author(author, SUMMARY_PROMPTS, sources)
    log = DiscussionLog(memory, scope)
    if messages is not None:
        notes += log.take_in(messages, is_whole=is_whole).notes
    # Chunks of kinds that the settings do not name are kept true to their messages.
    sequence, wanted = log.sequence(), settings.memory_kinds
    standing = [message for message in sequence if not message.is_retracted]
    kinds = [kind for kind in creator_kinds() if kind in wanted or read_records(memory, scope, kind).made]
    imported = {kind: settle_import(memory, scope, standing, kind, continue_at=continue_at) for kind in kinds}
    updates = [
        ChunkUpdate(memory, scope, kind, settings, sources, force, progress, rebuild and kind in wanted)
        for kind in kinds
    ]
    for update in updates:
        update.run(sequence, imported[update.kind])
        notes += update.notes

    def attempt(name: str, step: Callable[[], T]) -> T | None:
        """Take a step. If it fails, the rest goes on: the step is due again at the next run."""
        try:
            return step()
        except (LlmError, WorkflowError, ConflictError, InputError, StoreBusyError) as error:
            notes.append(f"{name} failed and is tried again later: {error}")
            return None

    def fold_in() -> int | None:
        author = choose_author(settings.summary.author, SUMMARY_PROMPTS, sources)
        return update_summary(memory, scope, settings.summary, author, force)

    def update_document() -> str:
        author = choose_author(settings.state_document.author, DOCUMENT_PROMPTS, sources)
        return StateDocument(memory, scope).update(settings.state_document, author, force)

    revision = attempt("the rolling summary", fold_in) if settings.summary.is_on else None
    outcome = attempt("the state document", update_document) if settings.state_document.is_on else ""
    if files_dir is not None:
        attempt("writing files", lambda: write_files(memory, scope, files_dir, layout, key))
    return UpdateReport(
        made=sum(each.made for each in updates),
        redone=sum(each.redone for each in updates),
        failed=_failures(memory.leases.list(scope)),
        nothing=sum(each.nothing for each in updates),
        waiting=sum(each.waiting for each in updates),
        held=sum(each.held for each in updates),
        summary=revision,
        state_document=outcome or "",
        notes=tuple(dict.fromkeys(notes)),
    )


def _failures(leases: Iterable[LeaseStatus]) -> tuple[ChunkFailure, ...]:
    """The chunks that failed, out of the leases of a discussion."""
    failed = [lease for lease in leases if lease.error and "first" in lease.data]
    bounds = ([lease.data[name] for name in ("kind", "first", "last")] for lease in failed)
    return tuple(
        ChunkFailure(kind, first, last, lease.attempts, lease.error, lease.retry)
        for lease, (kind, first, last) in zip(failed, bounds, strict=True)
    )
