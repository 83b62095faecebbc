"""Export: the files of a discussion, written so that other programs read them as their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from eunoe.discussion.atoms import chunk_memories, keyword_memories
from eunoe.discussion.documents.state_document import StateDocument
from eunoe.discussion.documents.summary import current_summary, new_since_summary
from eunoe.discussion.files.content import DiscussionContent
from eunoe.discussion.files.database import Database, LoggedHash
from eunoe.discussion.files.encryption import FileKey
from eunoe.discussion.files.keyword_rows import write_row
from eunoe.discussion.files.layout import LAYOUTS, Layout, Part, part_paths
from eunoe.discussion.files.output import Output
from eunoe.discussion.files.record import digest, read_record
from eunoe.discussion.files.text_files import TextBlock, decode, read_content
from eunoe.discussion.log.discussion_log import DiscussionLog
from eunoe.discussion.model import ChunkMemory
from eunoe.discussion.scope import DEFAULT_USER, discussion_scope
from eunoe.errors import NotFoundError
from eunoe.memory import Memory
from eunoe.model.scope import Scope
from eunoe.model.validation import check_choice


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
    take_in_hand_edits(memory, scope, files_dir, layout, key)
    return _write(memory, scope, current_content(memory, scope), Path(files_dir), layout, key)


def take_in_hand_edits(
    memory: Memory, scope: Scope, files_dir: str | Path, layout: Layout = "folders", key: FileKey | None = None
) -> bool:
    """Take in what was changed by hand in the file of the state document, as a new version of it."""
    output = _output(memory, scope, Path(files_dir), layout, key)
    path = output.paths["state_document"]
    if not path.exists():
        return False
    text = decode(read_content(path, key), path)
    is_new = StateDocument(memory, scope).take_in(text, written=output.written.get("state_document", ""))
    if is_new:
        output.written["state_document"] = digest(text)
        output.finish()
    return is_new


def current_content(memory: Memory, scope: Scope) -> DiscussionContent:
    """What the files of a discussion are to say."""
    record = read_record(memory, scope)
    memories = chunk_memories(memory, scope)
    keywords = tuple(map(write_row, keyword_memories(memory, scope)))
    document = StateDocument(memory, scope)
    versions = [version.text for version in document.history()]
    condensed = [each.hash for each in memories if each.condenses]
    return DiscussionContent(
        memories=tuple(TextBlock(each.text, each.hash) for each in memories),
        summary=_summary(memory, scope, memories),
        database=Database(keywords, (*record.hashes, *_own_hashes(memory, scope))),
        state_document=document.read(),
        state_backup=versions[-2] if len(versions) > 1 else "",
        condensed=condensed[-1] if condensed else record.condensed,
        is_ascii=record.is_ascii,
    )


def _write(
    memory: Memory, scope: Scope, content: DiscussionContent, root: Path, layout: Layout, key: FileKey | None
) -> list[Path]:
    output = _output(memory, scope, root, layout, key)
    blocks: dict[Part, Sequence[TextBlock]] = {
        "memories": content.memories or (),
        "summary": [content.summary] if content.summary else [],
    }
    output.check_foreign(blocks)
    for part, entries in blocks.items():
        output.write_blocks(part, entries)
    output.write_database(content.database or Database())
    tracker = json.dumps({"lastCondensationHash": content.condensed}, indent=4) if content.condensed else ""
    output.write_text("condensation", tracker)
    output.write_state_document(content.state_document, content.state_backup)
    return output.finish()


def _output(memory: Memory, scope: Scope, root: Path, layout: Layout, key: FileKey | None) -> Output:
    check_choice(layout, "layout", LAYOUTS)
    paths = part_paths(root, scope["discussion"], scope["user"], layout)
    return Output(memory, scope, paths, layout, key, read_record(memory, scope).is_ascii)


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
