"""Import: discussions as other programs have them on disk become memories here. Read twice it changes nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from eunoe.apps.discussion.atoms import chunk_memories, chunk_memory_item, keyword_memory_item
from eunoe.apps.discussion.documents.facts import current_facts
from eunoe.apps.discussion.documents.state_document import StateDocument
from eunoe.apps.discussion.documents.summary import current_summary, new_since_summary, observation_ids
from eunoe.apps.discussion.files.content import DiscussionContent, read_discussion_files
from eunoe.apps.discussion.files.encryption import FileKey
from eunoe.apps.discussion.files.keyword_rows import read_row, row_content, row_number, write_row
from eunoe.apps.discussion.files.known import known_chunk_memories, known_keyword_memories
from eunoe.apps.discussion.files.layout import DiscussionFiles, files_at, find_discussions
from eunoe.apps.discussion.files.plan import Entry, Plan, make_plan
from eunoe.apps.discussion.files.record import IMPORT, digest, is_imported, read_record, record_item
from eunoe.apps.discussion.files.text_files import TextBlock
from eunoe.apps.discussion.log.discussion_log import prepare_discussion
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, ChunkMemory, KeywordMemory
from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_scope
from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.scope import Scope

M = TypeVar("M", ChunkMemory, KeywordMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionImport:
    """What the import of one discussion did."""

    id: str
    user: str
    stored: int = 0
    changed: int = 0
    """Memories that superseded others, because their file had changed."""
    ended: int = 0
    """Imported memories that are no longer in their file; they stay in the history."""
    unchanged: int = 0
    summary: bool = False
    """Whether a summary was taken in."""
    state_document: bool = False
    notes: tuple[str, ...] = ()
    """What was left out or looks odd."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A discussion of which nothing was imported, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class FolderImport:
    """What the import of a folder did."""

    discussions: tuple[DiscussionImport, ...]
    refused: tuple[Refusal, ...] = ()


def import_folder(
    memory: Memory,
    root: str | Path,
    *,
    users: Mapping[str, str] | None = None,
    keys: FileKey | Mapping[str, FileKey] | None = None,
    again: bool = False,
) -> FolderImport:
    """Import all discussions below a folder, of all users. One that cannot be read is refused; the others go on.

    Args:
        users: the names of users by the names of their folders; a folder that is not named here is the user's name.
        keys: the key of encrypted files, or one for each folder of a user.
        again: take in what was forgotten here before, too.
    """
    done, refused = [], []
    for files in find_discussions(Path(root)):
        try:
            key = keys.get(files.user) if isinstance(keys, Mapping) else keys
            user = (users or {}).get(files.user, files.user) or DEFAULT_USER
            done.append(import_files(memory, files, discussion_scope(files.id, user), key, again))
        except EunoeError as error:
            refused.append(Refusal(files.name, str(error)))
    return FolderImport(tuple(done), tuple(refused))


def import_discussion(
    memory: Memory, path: str | Path, *, id: str = "", user: str = "", key: FileKey | None = None, again: bool = False
) -> DiscussionImport:
    """Import one discussion. If one of its files is damaged or encrypted, nothing of it is taken in.

    Args:
        path: its folder, or one of its flat files.
        id: what it is called here; as its files say, if none is given.
        user: whose it is; as its folder says, if none is given.
        key: opens encrypted files.
        again: take in what was forgotten here before, too.
    """
    files = files_at(Path(path))
    scope = discussion_scope(id or files.id, user or files.user or DEFAULT_USER)
    return import_files(memory, files, scope, key, again)


def import_files(
    memory: Memory, files: DiscussionFiles, scope: Scope, key: FileKey | None, again: bool = False
) -> DiscussionImport:
    """Import the files of one discussion, all of them or none."""
    content = read_discussion_files(files, key)
    lease = memory.leases.acquire(scope, IMPORT, ignore_pause=True)
    if lease is None:
        raise ConflictError(f"{files.name} is being imported by another process: try again")
    try:
        return _take_in(memory, scope, content, files.user, again)
    except InputError as error:
        raise InputError(f"{files.name} cannot be imported: {error}") from None
    finally:
        memory.leases.release(scope, lease)


def _take_in(memory: Memory, scope: Scope, content: DiscussionContent, folder: str, again: bool) -> DiscussionImport:
    prepare_discussion(memory, scope)
    rows = [read_row(row) for row in content.database.rows] if content.database else []
    chunks = _plan_chunk_memories(memory, scope, content.memories)
    keywords = _plan_keyword_memories(memory, scope, [each for each, _ in rows if each], content.database is not None)
    items = [*map(chunk_memory_item, _written(chunks)), *map(keyword_memory_item, _written(keywords))]
    receipts = memory.remember_many(scope, items, replace=True, again=again)
    memory.expire(scope, [*chunks.ended, *keywords.ended], utc_now())
    memory.expire(scope, [*chunks.revived, *keywords.revived], None)
    summary_notes = _take_in_summary(memory, scope, content)
    has_document = _take_in_state_document(memory, scope, content)
    _keep_record(memory, scope, content, folder)
    forgotten = sum(receipt.outcome == "forgotten" for receipt in receipts)
    changed = len(chunks.changed) + len(keywords.changed)
    return DiscussionImport(
        id=scope["discussion"],
        user=scope["user"],
        stored=len(items) - forgotten - changed,
        changed=changed,
        ended=len(chunks.ended) + len(keywords.ended),
        unchanged=chunks.unchanged + keywords.unchanged,
        summary=summary_notes is not None,
        state_document=has_document,
        notes=(
            *content.notes,
            *(note for _, note in rows if note),
            *(summary_notes or ()),
            *[f"{forgotten} memories were forgotten here before: again=True takes them in"] * bool(forgotten),
        ),
    )


def _plan_chunk_memories(memory: Memory, scope: Scope, blocks: Sequence[TextBlock] | None) -> Plan[ChunkMemory]:
    if blocks is None:
        return Plan()
    memories = [ChunkMemory(text=text, hash=hash, author=IMPORT) for text, hash in blocks if text.strip()]
    entries = [Entry(each, (each.text, each.hash), each.hash) for each in memories]
    return make_plan(entries, known_chunk_memories(memory, scope))


def _plan_keyword_memories(
    memory: Memory, scope: Scope, memories: Sequence[KeywordMemory], has_database: bool
) -> Plan[KeywordMemory]:
    if not has_database:
        return Plan()
    named = [replace(each, author=IMPORT) for each in memories]
    entries = [Entry(each, row_content(write_row(each)), row_number(each)) for each in named]
    return make_plan(entries, known_keyword_memories(memory, scope))


def _written(plan: Plan[M]) -> list[M]:
    """The memories to write: a changed one keeps its id, its place and what it rests on."""
    written = [
        replace(new, id=old.id, place=old.place, chunk=old.memory.chunk, source=old.memory.source)
        for old, new in plan.changed
    ]
    ids = set(plan.ids)
    for each, place in plan.new:
        ids.add(id := _new_id(each, ids))
        written.append(replace(each, id=id, place=place))
    return written


def _new_id(memory: ChunkMemory | KeywordMemory, taken: Container[str]) -> str:
    """The same for the same memory, so that two who import it write it once, and what was forgotten is recognised."""
    if isinstance(memory, ChunkMemory):
        kind, said = CHUNK_MEMORY, repr((memory.text, memory.hash))
    else:
        kind, said = KEYWORD_MEMORY, repr(tuple(write_row(memory)))
    ids = (f"{IMPORT}:{kind}:{digest(f'{number} {said}')[:32]}" for number in count())
    return next(id for id in ids if id not in taken)


def _take_in_summary(memory: Memory, scope: Scope, content: DiscussionContent) -> list[str] | None:
    """Write the summary as a revision that has absorbed what it says; return notes, or None if it is known."""
    summary, record = content.summary, read_record(memory, scope)
    if not summary or not summary.text.strip():
        return None
    is_current = summary.text == current_summary(memory, scope)
    is_known = (summary.hash, digest(summary.text)) == (record.summary_hash, record.summary_digest)
    if is_known and not is_current:  # it was carried on here since
        return None
    memories = chunk_memories(memory, scope)
    ends = [each.place for each in memories if each.hash == summary.hash]
    held = [each for each in memories if not ends or each.place <= max(ends)]
    waiting = {each.id for each in new_since_summary(memory, scope)}
    if is_current and not (ends and waiting.intersection(each.id for each in held)):
        return None
    absorbed = [id for each in held for id in observation_ids(each)]
    memory.summaries.write(scope, summary.text, author=IMPORT, absorbed=absorbed, base=0)
    if memories and not ends:
        return ["the summary ends on a memory that is not there: all memories count as part of it"]
    return ["the summary ends on one of several memories: those up to the last count as part of it"] * (len(ends) > 1)


def _take_in_state_document(memory: Memory, scope: Scope, content: DiscussionContent) -> bool:
    """The other program made its document from its memories, so that it holds those that were imported."""
    document, written = StateDocument(memory, scope), read_record(memory, scope).state_digest
    held = [fact for fact in current_facts(memory, scope) if is_imported(fact.id)]
    if not document.history() and content.state_document.strip():
        document.take_in(content.state_backup)
    return document.take_in(content.state_document, written=written, held=held)


def _keep_record(memory: Memory, scope: Scope, content: DiscussionContent, folder: str) -> None:
    record = read_record(memory, scope)
    summary, database = content.summary, content.database
    changed = replace(
        record,
        hashes=database.hashes if database and database.hashes else record.hashes,
        summary_hash=summary.hash if summary else record.summary_hash,
        summary_digest=digest(summary.text) if summary else record.summary_digest,
        condensed=content.condensed or record.condensed,
        state_digest=digest(content.state_document) if content.state_document else record.state_digest,
        is_ascii=record.is_ascii if content.is_ascii is None else content.is_ascii,
        is_encrypted=content.is_encrypted or record.is_encrypted,
        folder=folder,
        read={**record.read, **content.digests},
    )
    if changed != record:
        memory.remember_many(scope, [record_item(changed)], replace=True, again=True)
