"""What the files of a discussion say, all of them read before anything is taken in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eunoe.apps.discussion.files.database import Database, read_database
from eunoe.apps.discussion.files.encryption import FileKey
from eunoe.apps.discussion.files.layout import DiscussionFiles, Part
from eunoe.apps.discussion.files.text_files import (
    TextBlock,
    content_digest,
    decode,
    is_encrypted_file,
    parse_blocks,
    parse_json,
    read_content,
)
from eunoe.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionContent:
    """What the files of one discussion say. None: there is no such file."""

    memories: tuple[TextBlock, ...] | None = None
    summary: TextBlock | None = None
    database: Database | None = None
    state_document: str = ""
    state_backup: str = ""
    """The version of the state document before."""
    condensed: str = ""
    """The hash of the last memory that was condensed."""
    is_ascii: bool | None = None
    """Whether the files write other letters as escapes; None if there are none."""
    is_encrypted: bool = False
    digests: Mapping[Part, str] = field(default_factory=dict)
    """By which each file is recognised as it was read."""
    notes: tuple[str, ...] = ()


def read_discussion_files(files: DiscussionFiles, key: FileKey | None = None) -> DiscussionContent:
    """Read all files of a discussion. Raise InputError with the name of the one that cannot be read."""
    notes = [f"{path} is not read" for path in files.others]
    contents = {part: read_content(path, key) for part, path in files.parts.items() if part != "database"}
    blocks = {}
    for part in ("memories", "summary"):
        if part in contents:
            blocks[part], faults = parse_blocks(contents[part], files.parts[part])
            notes += faults
    if len(summaries := blocks.get("summary", [])) > 1:
        notes.append(f"{files.parts['summary']} has {len(summaries)} summaries: the last one counts")
    texts = {part: decode(contents[part], files.parts[part]) for part in contents.keys() & {"state_document", "backup"}}
    digests = {part: content_digest(content) for part, content in contents.items()}
    database = read_database(files.parts["database"], files.id) if "database" in files.parts else None
    return DiscussionContent(
        memories=tuple(blocks["memories"]) if "memories" in blocks else None,
        summary=summaries[-1] if summaries else None,
        database=database,
        state_document=texts.get("state_document", ""),
        state_backup=texts.get("backup", ""),
        condensed=_condensed(contents["condensation"], files.parts["condensation"])
        if "condensation" in contents
        else "",
        is_ascii=all(contents[part].isascii() for part in blocks) if blocks else None,
        is_encrypted=any(map(is_encrypted_file, files.parts.values())),
        digests=digests | ({"database": database.digest} if database else {}),
        notes=(*notes, *_database_notes(database, files)),
    )


def _condensed(content: bytes, path: Path) -> str:
    value = parse_json(decode(content, path), str(path))
    hash = value.get("lastCondensationHash") if isinstance(value, dict) else value
    if not isinstance(hash, str | None) or not isinstance(value, dict):
        raise InputError(f"{path} is damaged: it has no lastCondensationHash")
    return hash or ""


def _database_notes(database: Database | None, files: DiscussionFiles) -> list[str]:
    if not database:
        return []
    path = files.parts["database"]
    foreign = f"{path} holds {database.foreign} memories of other discussions: they are left out"
    vectors = f"{path} holds {database.embeddings} vectors of other models: they are not taken in"
    return [foreign] * bool(database.foreign) + [vectors] * bool(database.embeddings)
