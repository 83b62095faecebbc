"""The one entry that brings the memory of a discussion up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from eunoe.apps.discussion.authors import AuthorSources, FindModel, RunWorkflow, choose_author
from eunoe.apps.discussion.chunks.records import read_records
from eunoe.apps.discussion.chunks.update import ChunkUpdate, Progress
from eunoe.apps.discussion.creators import creator_kinds, find_creator
from eunoe.apps.discussion.documents import condensation, state_document, summary
from eunoe.apps.discussion.files import FileKey, settle_import, take_in_files, write_files
from eunoe.apps.discussion.files.bounds import end_stale_imports, find_stale_imports
from eunoe.apps.discussion.files.layout import Layout
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.report import UpdateReport, list_failures
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, DiscussionSettings
from eunoe.errors import ConflictError, InputError, LlmError, StoreBusyError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.scope import Scope

T = TypeVar("T")
_FILES_LEASE: Final = "files"


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
        files_dir: where files of the discussion are kept current.
        layout: how these files are laid out: "folders" or "flat".
        key: encrypts these files.
        continue_at: where an imported discussion goes on, if that cannot be found.
        rebuild: make also anew what is there. Each memory holds until there is another one of its messages.
    """
    for kind in settings.memory_kinds:
        find_creator(kind)
    sources = AuthorSources(find_model or (lambda endpoint, preset: memory.llm), run_workflow)
    run = _Update(memory, scope, settings, sources, force, rebuild, list(settings.notes))
    if rebuild:
        run.check_authors()
    if messages is not None:
        run.notes += DiscussionLog(memory, scope).take_in(messages, is_whole=is_whole).notes
    if files_dir is not None:  # before anything is made: what another program made is not made twice
        run.notes += take_in_files(memory, scope, files_dir, layout, key)
    run.settle_condensation()
    chunks = run.make_memories(progress, continue_at)
    run.settle_condensation()
    revision = run.attempt("the rolling summary", run.update_summary)
    condensed = run.attempt("condensation", run.condense)
    outcome = run.attempt("the state document", run.update_state_document)
    if files_dir is not None:
        run.attempt("writing files", lambda: run.write_files(files_dir, layout, key))
    return UpdateReport(
        made=sum(each.made for each in chunks),
        redone=sum(each.redone for each in chunks),
        failed=list_failures(memory.leases.list(scope)),
        nothing=sum(each.nothing for each in chunks),
        waiting=sum(each.waiting for each in chunks),
        held=sum(each.held for each in chunks),
        summary=revision,
        condensed=condensed or 0,
        state_document=outcome or "",
        notes=tuple(dict.fromkeys(run.notes)),
    )


@dataclass(slots=True)
class _Update:
    """The steps of one run."""

    memory: Memory
    scope: Scope
    settings: DiscussionSettings
    sources: AuthorSources
    force: bool
    rebuild: bool
    notes: list[str] = field(default_factory=list)

    def check_authors(self) -> None:
        """Raise WorkflowError if somebody who is to write cannot be found, before anything is changed."""
        for author in self.settings.authors:
            choose_author(author, summary.PROMPTS, self.sources)

    def make_memories(self, progress: Progress | None, continue_at: int | str | None) -> list[ChunkUpdate]:
        """Make the chunks of all kinds that the settings name; those of other kinds are kept true to their messages."""
        sequence = DiscussionLog(self.memory, self.scope).sequence()
        standing = [message for message in sequence if not message.is_retracted]
        kinds = [kind for kind in creator_kinds() if self._concerns(kind)]
        imported = {
            kind: settle_import(self.memory, self.scope, standing, kind, continue_at=continue_at) for kind in kinds
        }
        updates = []
        for kind in kinds:
            rebuild = self.rebuild and kind in self.settings.memory_kinds
            update = ChunkUpdate(
                self.memory, self.scope, kind, self.settings, self.sources, self.force, progress, rebuild
            )
            stale, notes = find_stale_imports(self.memory, self.scope, sequence, kind)
            update.run(sequence, imported[kind], [each.chunk for each in stale])
            end_stale_imports(self.memory, self.scope, stale)
            self.notes += [*notes, *update.notes]
            updates.append(update)
        return updates

    def _concerns(self, kind: str) -> bool:
        return kind in self.settings.memory_kinds or bool(read_records(self.memory, self.scope, kind).made)

    def settle_condensation(self) -> None:
        """Let condensed memories that rest on something that changed expire, and their members hold again."""
        standing = [message.id for message in DiscussionLog(self.memory, self.scope).messages()]
        condensation.settle_condensation(self.memory, self.scope, standing)

    def update_summary(self) -> int | None:
        settings = self.settings.summary
        author = choose_author(settings.author, summary.PROMPTS, self.sources) if settings.is_on else None
        return summary.update_summary(self.memory, self.scope, settings, author, self.force)

    def condense(self) -> int:
        settings = self.settings.condensation
        author = choose_author(settings.author, condensation.PROMPTS, self.sources) if settings.is_on else None
        return condensation.condense(self.memory, self.scope, settings, author)

    def update_state_document(self) -> str:
        settings = self.settings.state_document
        if not settings.is_on:
            return ""
        author = choose_author(settings.author, state_document.PROMPTS, self.sources)
        return state_document.StateDocument(self.memory, self.scope).update(settings, author, self.force)

    def write_files(self, files_dir: Path, layout: Layout, key: FileKey | None) -> None:
        """Write the files. What cannot be written stands in the status, as the failure of a lease, until it is."""
        leases = self.memory.leases
        try:
            write_files(self.memory, self.scope, files_dir, layout, key)
        except (ConflictError, InputError, StoreBusyError) as error:
            if lease := leases.acquire(self.scope, _FILES_LEASE, ignore_pause=True):
                leases.fail(self.scope, lease, str(error))
            raise
        if leases.list(self.scope, _FILES_LEASE):
            leases.drop(self.scope, _FILES_LEASE)

    def attempt(self, name: str, step: Callable[[], T]) -> T | None:
        """Take a step. If it fails, the rest goes on: the step is due again at the next run."""
        try:
            return step()
        except (LlmError, WorkflowError, ConflictError, InputError, StoreBusyError) as error:
            self.notes.append(f"{name} failed and is tried again later: {error}")
            return None
