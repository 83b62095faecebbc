"""Export: the files of a discussion, written so that other programs read them as their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eunoe.apps.discussion.atoms import chunk_memories, keyword_memories
from eunoe.apps.discussion.documents.state_document import StateDocument
from eunoe.apps.discussion.documents.summary import current_summary, new_since_summary
from eunoe.apps.discussion.files.content import DiscussionContent
from eunoe.apps.discussion.files.database import Database, LoggedHash
from eunoe.apps.discussion.files.encryption import FileKey
from eunoe.apps.discussion.files.importing import DiscussionImport, import_files
from eunoe.apps.discussion.files.keyword_rows import write_row
from eunoe.apps.discussion.files.layout import LAYOUTS, DiscussionFiles, Layout, Part, part_paths, user_folder
from eunoe.apps.discussion.files.output import Output
from eunoe.apps.discussion.files.record import digest, read_record
from eunoe.apps.discussion.files.text_files import TextBlock, decode, read_content
from eunoe.apps.discussion.log.discussion_log import DiscussionLog
from eunoe.apps.discussion.model import ChunkMemory
from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_ids, discussion_scope
from eunoe.errors import InputError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.arguments import check_choice
from eunoe.model.scope import Scope


def export_discussion(
    memory: Memory,
    id: str,
    root: str | Path,
    *,
    user: str = DEFAULT_USER,
    layout: Layout = "folders",
    key: FileKey | None = None,
) -> list[Path]:
    """Write the files of a discussion; return those that changed.

    A file that holds memories which are not known here is not overwritten: ConflictError names it.

    Args:
        root: the folder that holds all discussions.
        layout: "folders" or "flat".
        key: encrypts the text files.
    """
    scope = discussion_scope(id, user)
    content = current_content(memory, scope)
    if content == DiscussionContent(memories=(), database=Database()):
        raise NotFoundError(f"discussion {id} of {user} holds no memories to export")
    return _write(memory, scope, content, Path(root), layout, key)


def write_files(
    memory: Memory, scope: Scope, files_dir: str | Path, layout: Layout = "folders", key: FileKey | None = None
) -> list[Path]:
    """Bring the files of a discussion up to date; return those that changed.

    What was changed by hand in the state document is taken in before.
    """
    _check_key(memory, scope, key)
    _take_in_hand_edits(memory, scope, files_dir, layout, key)
    return _write(memory, scope, current_content(memory, scope), Path(files_dir), layout, key)


def take_in_files(
    memory: Memory, scope: Scope, files_dir: str | Path, layout: Layout = "folders", key: FileKey | None = None
) -> list[str]:
    """Take in what others changed in the files of a discussion since they were last read or written; return notes.

    A state document that was changed by hand becomes a new version. Memories of another program are imported. Raise
    InputError or ConflictError if that cannot be done.
    """
    _check_key(memory, scope, key)
    output = _output(memory, scope, Path(files_dir), layout, key)
    parts = output.foreign_parts(_blocks(current_content(memory, scope)))
    notes = []
    if parts:
        files = DiscussionFiles(scope["discussion"], _folder(memory, scope), parts)
        notes = _import_notes(import_files(memory, files, scope, key), parts)
    _take_in_hand_edits(memory, scope, files_dir, layout, key)
    return notes


def _import_notes(done: DiscussionImport, parts: Mapping[Part, Path]) -> list[str]:
    counts = f"{done.stored} new, {done.changed} changed, {done.ended} no longer there"
    names = ", ".join(str(path) for path in parts.values())
    is_new = done.stored or done.changed or done.ended or done.summary
    return [f"{names}: what another program wrote was imported: {counts}"] * bool(is_new) + list(done.notes)


def _take_in_hand_edits(
    memory: Memory, scope: Scope, files_dir: str | Path, layout: Layout, key: FileKey | None
) -> None:
    output = _output(memory, scope, Path(files_dir), layout, key)
    path = output.paths["state_document"]
    if output.is_known("state_document"):
        return
    text = decode(read_content(path, key), path)
    if StateDocument(memory, scope).take_in(text, written=output.written.get("state_document", "")):
        output.written["state_document"] = digest(text)
        output.finish()


def current_content(memory: Memory, scope: Scope) -> DiscussionContent:
    """What the files of a discussion are to say."""
    record = read_record(memory, scope)
    memories = chunk_memories(memory, scope)
    keywords = tuple(map(write_row, keyword_memories(memory, scope)))
    document = StateDocument(memory, scope)
    versions = [version.text for version in document.history()]
    condensed = [each.hash for each in memories if each.condenses]
    known = {each.hash for each in record.hashes}
    own = [each for each in _own_hashes(memory, scope) if each.hash not in known]
    return DiscussionContent(
        memories=tuple(TextBlock(each.text, each.hash) for each in memories),
        summary=_summary(memory, scope, memories),
        database=Database(keywords, (*record.hashes, *own)),
        state_document=document.read(),
        state_backup=versions[-2] if len(versions) > 1 else "",
        condensed=condensed[-1] if condensed else record.condensed,
    )


def _write(
    memory: Memory, scope: Scope, content: DiscussionContent, root: Path, layout: Layout, key: FileKey | None
) -> list[Path]:
    output = _output(memory, scope, root, layout, key)
    blocks = _blocks(content)
    output.check_foreign(blocks)
    for part, entries in blocks.items():
        output.write_blocks(part, entries)
    output.write_database(content.database or Database())
    tracker = json.dumps({"lastCondensationHash": content.condensed}, indent=4) if content.condensed else ""
    output.write_text("condensation", tracker)
    output.write_state_document(content.state_document, content.state_backup)
    return output.finish()


def _blocks(content: DiscussionContent) -> dict[Part, Sequence[TextBlock]]:
    return {"memories": content.memories or (), "summary": [content.summary] if content.summary else []}


def _output(memory: Memory, scope: Scope, root: Path, layout: Layout, key: FileKey | None) -> Output:
    check_choice(layout, "layout", LAYOUTS)
    if file := next((each for each in (root, *root.parents) if each.is_file()), None):
        raise InputError(f"{file} is a file: name the folder that holds the files of discussions")
    paths = part_paths(root, scope["discussion"], _folder(memory, scope), layout)
    return Output(memory, scope, paths, layout, key, read_record(memory, scope))


def _folder(memory: Memory, scope: Scope) -> str:
    """The folder of the user: the one that this or another discussion of the user was imported from, if any was."""
    id, user = scope["discussion"], scope["user"]
    if (folder := read_record(memory, scope).folder) is not None:
        return folder
    if user == DEFAULT_USER:
        return ""
    others = (discussion_scope(other, user) for other in discussion_ids(memory, user) if other != id)
    folders = (read_record(memory, other).folder for other in others)
    return next((each for each in folders if each is not None), user_folder(user))


def _check_key(memory: Memory, scope: Scope, key: FileKey | None) -> None:
    """What came from encrypted files is kept current in encrypted ones."""
    if key is None and read_record(memory, scope).is_encrypted:
        raise InputError(
            f"discussion {scope['discussion']} of {scope['user']} was imported from encrypted files, so its files need "
            "the key: give the API key of the user with the salt, or the Fernet key"
        )


def _summary(memory: Memory, scope: Scope, memories: list[ChunkMemory]) -> TextBlock | None:
    """The summary with the hash of the last memory that it holds."""
    if not (text := current_summary(memory, scope)):
        return None
    record = read_record(memory, scope)
    if record.summary_digest == digest(text):
        return TextBlock(text, record.summary_hash)
    new = {each.id for each in new_since_summary(memory, scope)}
    held = [each.hash for each in memories if each.id not in new]
    return TextBlock(text, held[-1] if held else "")


def _own_hashes(memory: Memory, scope: Scope) -> Iterator[LoggedHash]:
    """The messages on which chunks with keyword memories end, in the order of the chunks."""
    hashes = {message.id: message.hash for message in DiscussionLog(memory, scope).messages()}
    ends: dict[str, str] = {}
    for each in keyword_memories(memory, scope):
        if each.chunk and each.recorded and each.chunk.last in hashes:
            ends[each.chunk.last] = each.recorded.isoformat()
    yield from (LoggedHash(hashes[id], time) for id, time in ends.items())
