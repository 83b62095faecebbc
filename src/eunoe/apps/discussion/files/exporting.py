"""Export: the files of a discussion, written so that other programs read them as their own.

Only what changed is written, each file at once. Beside them stands a small file with digests of what was written, by
which a file that somebody else changed is noticed, and with the name of their user.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from eunoe.apps.discussion.documents import StateDocument, current_summary, new_since_summary
from eunoe.apps.discussion.files.database import Database, LoggedHash, read_database, write_database, write_row
from eunoe.apps.discussion.files.importing import ImportRecord, read_record
from eunoe.apps.discussion.files.layout import (
    LAYOUTS,
    FileKey,
    Layout,
    Part,
    TextBlock,
    decode,
    digest,
    files_of_user,
    format_blocks,
    is_encrypted_file,
    parse_json,
    part_paths,
    read_content,
    user_folder,
)
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import (
    DEFAULT_USER,
    chunk_memories,
    discussion_ids,
    discussion_scope,
    keyword_memories,
)
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.files import write_file
from eunoe.memory import Memory
from eunoe.model.arguments import check_choice
from eunoe.model.scope import Scope

_USER: Final = "user"
"""The key under which the small file names whose they are."""


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

    A file that somebody else wrote or changed, and that was not imported since, is not overwritten: ConflictError
    names it, and nothing is written.

    Args:
        root: the folder that holds all discussions.
        layout: "folders" or "flat".
        key: encrypts the text files.
    """
    scope = discussion_scope(id, user)
    memories = (*chunk_memories(memory, scope), *keyword_memories(memory, scope), *read_record(memory, scope).hashes)
    if not (memories or current_summary(memory, scope) or StateDocument(memory, scope).read()):
        raise NotFoundError(f"discussion {id} of {user} holds no memories to export")
    return _write(memory, scope, Path(root), layout, key)


def write_files(
    memory: Memory, scope: Scope, files_dir: str | Path, layout: Layout = "folders", key: FileKey | None = None
) -> list[Path]:
    """The same for a scope, as an update does it: what came from encrypted files goes into encrypted ones alone."""
    if key is None and read_record(memory, scope).is_encrypted:
        raise InputError(
            f"discussion {scope['discussion']} of {scope['user']} was imported from encrypted files, so its files need "
            "the key: give the API key of the user with the salt, or the Fernet key"
        )
    return _write(memory, scope, Path(files_dir), layout, key)


def _write(memory: Memory, scope: Scope, root: Path, layout: Layout, key: FileKey | None) -> list[Path]:
    """What is forgotten leaves the files; of a discussion without memories none is made."""
    check_choice(layout, "layout", LAYOUTS)
    record = read_record(memory, scope)
    if file := next((each for each in (root, *root.parents) if each.is_file()), None):
        raise InputError(f"{file} is a file: name the folder that holds the files of discussions")
    paths = part_paths(root, scope["discussion"], _folder(memory, scope, record), layout)
    known: dict[str, Any] = {}  # without it every file counts as somebody else's
    if paths["written"].exists():
        with suppress(InputError):
            known = parse_json(decode(paths["written"].read_bytes(), paths["written"]), "")
    if (owner := known.get(_USER, scope["user"])) != scope["user"]:
        raise ConflictError(
            f"{paths['written'].parent} holds files of the user {owner}, not of {scope['user']}: name another folder"
        )
    if key is None:  # nothing is written in plain text beside what is encrypted
        own = (path for part, path in paths.items() if part not in ("database", "written"))
        if locked := next(filter(is_encrypted_file, (*own, *files_of_user(paths["memories"], layout))), None):
            raise InputError(
                f"the files of the user {scope['user']} are encrypted, such as {locked}: give the API key of the user "
                "with the salt, or the Fernet key"
            )
    texts, database = _texts(memory, scope, layout, record), _database(memory, scope, record)
    present: dict[Part, str] = {}
    for part, path in paths.items():
        if part != "written" and path.exists():
            is_database = part == "database"
            present[part] = (
                read_database(path, scope["discussion"]).digest if is_database else digest(read_content(path, key))
            )
    wanted: dict[Part, str] = {part: digest(content) for part, content in texts.items()}
    wanted |= {"database": database.digest} if database.rows or database.hashes or "database" in present else {}
    for part, found in present.items():
        if found not in (*known.get(part, ()), record.read.get(part), wanted.get(part)):
            raise ConflictError(
                f"{paths[part]} is not as it was last read or written here, and no file was touched: import it first, "
                "or name another folder"
            )
    changed = [part for part, each in wanted.items() if present.get(part) != each]
    gone = [part for part in present if part not in wanted]
    if changed or gone:
        # Noted before and after, so that after a kill what was written halfway is no file of somebody else's.
        _write_known(paths["written"], scope, {part: [*known.get(part, ()), each] for part, each in wanted.items()})
    for part in (each for each in changed if each != "database"):
        write_file(paths[part], key.encrypt(texts[part]) if key else texts[part])
    for part in gone:
        paths[part].unlink(missing_ok=True)
    if "database" in wanted:
        write_database(paths["database"], scope["discussion"], database, layout)
    if wanted or known:
        _write_known(paths["written"], scope, {part: [each] for part, each in wanted.items()})
    return [paths[part] for part in paths if part in (*changed, *gone)]


def _folder(memory: Memory, scope: Scope, record: ImportRecord) -> str:
    """The folder of the user: the one that this or another discussion of the user was imported from, if any was."""
    id, user = scope["discussion"], scope["user"]
    if record.folder is not None or user == DEFAULT_USER:
        return record.folder or ""
    others = (discussion_scope(other, user) for other in discussion_ids(memory, user) if other != id)
    folders = (read_record(memory, other).folder for other in others)
    return next((each for each in folders if each is not None), user_folder(user))


def _texts(memory: Memory, scope: Scope, layout: Layout, record: ImportRecord) -> dict[Part, bytes]:
    """What the text files are to say; those without a word are left out."""
    memories, document = chunk_memories(memory, scope), StateDocument(memory, scope)
    summary = current_summary(memory, scope)
    texts: dict[Part, bytes] = {}
    if memories:
        blocks = [TextBlock(each.text, each.hash) for each in memories]
        texts["memories"] = format_blocks(blocks, layout)
    if summary:  # with the hash of the last memory that it holds
        new = {each.id for each in new_since_summary(memory, scope)}
        held = [each.hash for each in memories if each.id not in new] or [""]
        hash = record.summary_hash if record.summary_digest == digest(summary) else held[-1]
        texts["summary"] = format_blocks([TextBlock(summary, hash)], layout)
    if text := document.read():
        texts["state_document"] = text.encode()
    return texts


def _database(memory: Memory, scope: Scope, record: ImportRecord) -> Database:
    """The keyword memories, and the messages on which their chunks end, in the order of the chunks."""
    keywords, known = keyword_memories(memory, scope), {each.hash for each in record.hashes}
    hashes = {message.id: message.hash for message in DiscussionLog(memory, scope).messages()}
    ends: dict[str, str] = {}
    for each in keywords:
        if each.chunk and each.recorded and each.chunk.last in hashes:
            ends[each.chunk.last] = each.recorded.isoformat()
    own = (LoggedHash(hashes[id], time) for id, time in ends.items() if hashes[id] not in known)
    return Database(tuple(map(write_row, keywords)), (*record.hashes, *own))


def _write_known(path: Path, scope: Scope, digests: Mapping[Part, list[str]]) -> None:
    content = json.dumps({**digests, _USER: scope["user"]}, indent=4, sort_keys=True).encode()
    if not path.exists() or path.read_bytes() != content:
        write_file(path, content)
