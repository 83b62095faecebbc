"""Import: discussions as other programs have them on disk become memories here. Read twice it changes nothing.

An entry of a file has an id that follows from what it says. One that is known changes nothing. A memory that was
imported and is no longer in its file ends to hold; one that was made here never does.
"""

import re
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from eunoe.apps.discussion.documents import StateDocument, current_facts, current_summary, new_since_summary
from eunoe.apps.discussion.files.database import Database, LoggedHash, read_database, read_row, write_row
from eunoe.apps.discussion.files.layout import (
    DiscussionFiles,
    FileKey,
    Part,
    TextBlock,
    decode,
    digest,
    files_at,
    find_discussions,
    is_encrypted_file,
    parse_blocks,
    read_content,
)
from eunoe.apps.discussion.log import prepare_discussion
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    DEFAULT_USER,
    KEYWORD_MEMORY,
    LABELS,
    NEVER,
    Chunk,
    ChunkMemory,
    KeywordMemory,
    LogMessage,
    MemoryKind,
    all_atoms,
    chunk_memories,
    discussion_scope,
    is_in_force,
    memory_item,
    read_memory,
)
from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import show, utc_now
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

M = TypeVar("M", ChunkMemory, KeywordMemory)
IMPORT: Final = "import"
"""The author of what was imported, and the beginning of its ids."""
_RECORD: Final = "import_record"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionImport:
    """What the import of one discussion did."""

    id: str
    user: str
    stored: int = 0
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscussionContent:
    """What the files of one discussion say. None: there is no such file."""

    memories: tuple[TextBlock, ...] | None = None
    summary: TextBlock | None = None
    database: Database | None = None
    state_document: str = ""
    is_encrypted: bool = False
    digests: Mapping[Part, str] = field(default_factory=dict)
    """By which each file is recognised as it was read."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """What an import leaves behind that is no memory: how far the other program had come, where the chat goes on."""

    hashes: tuple[LoggedHash, ...] = ()
    """The messages up to which keyword memories had been made, the newest last."""
    summary_hash: str = ""
    summary_digest: str = ""
    """By which the summary is recognised when it is read again."""
    state_digest: str = ""
    """By which the state document is recognised when it is read again."""
    is_encrypted: bool = False
    folder: str | None = None
    """The folder of the user in which the files stood; None if nothing was imported."""
    read: Mapping[Part, str] = field(default_factory=dict)
    """A digest of each file as it was read last: what stands in it is known here, or was forgotten."""
    settled: Mapping[MemoryKind, Mapping[str, Any]] = field(default_factory=dict)
    """For each kind of memory where the chat goes on, once that is known."""

    def keep(self, memory: Memory, scope: Scope) -> None:
        """Write it."""
        fields = {**asdict(self), "hashes": [list(each) for each in self.hashes]}
        item = {"text": "How far the imported memories go.", "id": _RECORD, "label": _RECORD, "valid_to": NEVER}
        memory.remember_many(scope, [{**item, "metadata": fields}], replace=True, again=True)


def read_record(memory: Memory, scope: Scope) -> ImportRecord:
    """The record of a discussion; an empty one if nothing was imported."""
    for item in memory.get_many(scope, [_RECORD], exact=True):
        if isinstance(item, Atom):
            hashes = tuple(LoggedHash(*each) for each in item.metadata.get("hashes", ()))
            return ImportRecord(**{**item.metadata, "hashes": hashes})
    return ImportRecord()


def is_imported(id: str) -> bool:
    """Whether a memory of this id was imported."""
    return id.startswith(f"{IMPORT}:")


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
            done.append(_import_files(memory, files, discussion_scope(files.id, user), key, again))
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
    return _import_files(memory, files, scope, key, again)


def _import_files(
    memory: Memory, files: DiscussionFiles, scope: Scope, key: FileKey | None, again: bool
) -> DiscussionImport:
    """Import the files of one discussion, all of them or none."""
    content = read_files(files, key)
    lease = memory.leases.acquire(scope, IMPORT, ignore_pause=True)
    if lease is None:
        raise ConflictError(f"{files.name} is being imported by another process: try again")
    try:
        return _take_in(memory, scope, content, files.user, again)
    except InputError as error:
        raise InputError(f"{files.name} cannot be imported: {error}") from None
    finally:
        memory.leases.release(scope, lease)


def read_files(files: DiscussionFiles, key: FileKey | None = None) -> DiscussionContent:
    """Read all files of a discussion. Raise InputError with the name of the one that cannot be read."""
    notes = [f"{path} is not read" for path in files.others]
    contents: dict[Part, bytes] = {
        part: read_content(path, key) for part, path in files.parts.items() if part != "database"
    }
    blocks: dict[Part, list[TextBlock]] = {}
    for part in ("memories", "summary"):
        if part in contents:
            blocks[part], faults = parse_blocks(contents[part], files.parts[part])
            notes += faults
    if len(summaries := blocks.get("summary", [])) > 1:
        notes.append(f"{files.parts['summary']} has {len(summaries)} summaries: the last one counts")
    document = contents.get("state_document", b"")
    digests: dict[Part, str] = {part: digest(content) for part, content in contents.items()}
    database = None
    if path := files.parts.get("database"):
        database = read_database(path, files.id)
        digests["database"] = database.digest
        if database.foreign:
            notes.append(f"{path} holds {database.foreign} memories of other discussions: they are left out")
    return DiscussionContent(
        memories=tuple(blocks["memories"]) if "memories" in blocks else None,
        summary=summaries[-1] if summaries else None,
        database=database,
        state_document=decode(document, files.parts["state_document"]) if document else "",
        is_encrypted=any(map(is_encrypted_file, files.parts.values())),
        digests=digests,
        notes=tuple(notes),
    )


def _take_in(memory: Memory, scope: Scope, content: DiscussionContent, folder: str, again: bool) -> DiscussionImport:
    prepare_discussion(memory, scope)
    record, rows = read_record(memory, scope), [read_row(row) for row in (content.database or Database()).rows]
    blocks = [ChunkMemory(text=text, hash=hash) for text, hash in content.memories or () if text.strip()]
    chunks, keywords = _Plan[ChunkMemory](), _Plan[KeywordMemory]()
    if content.memories is not None:
        chunks = _make_plan(memory, scope, ChunkMemory, blocks)
    if content.database is not None:
        keywords = _make_plan(memory, scope, KeywordMemory, [each for each, _ in rows if each])
    items = [*map(memory_item, chunks.new), *map(memory_item, keywords.new)]
    receipts = memory.remember_many(scope, items, replace=True, again=again)
    memory.expire(scope, [*chunks.ended, *keywords.ended], utc_now())
    memory.expire(scope, [*chunks.revived, *keywords.revived], None)
    summary_notes = _take_in_summary(memory, scope, content.summary, record)
    has_document = _take_in_state_document(memory, scope, content, record)
    summary, database = content.summary, content.database
    changed = replace(
        record,
        hashes=database.hashes if database and database.hashes else record.hashes,
        summary_hash=summary.hash if summary else record.summary_hash,
        summary_digest=digest(summary.text) if summary else record.summary_digest,
        state_digest=digest(content.state_document) if content.state_document else record.state_digest,
        is_encrypted=content.is_encrypted or record.is_encrypted,
        folder=folder,
        read={**record.read, **content.digests},
    )
    if changed != record:
        changed.keep(memory, scope)
    forgotten = sum(receipt.outcome == "forgotten" for receipt in receipts)
    return DiscussionImport(
        id=scope["discussion"],
        user=scope["user"],
        stored=len(receipts) - forgotten,
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


class _Plan(NamedTuple, Generic[M]):
    """What is to be done for one kind of memory."""

    new: Sequence[M] = ()
    ended: Sequence[str] = ()
    revived: Sequence[str] = ()
    """Those that had ended, and are in the file again."""
    unchanged: int = 0


def _make_plan(memory: Memory, scope: Scope, noun: type[M], entries: Sequence[M]) -> _Plan[M]:
    """Compare the entries of a file with what is known."""
    now, kind = utc_now(), LABELS[noun]
    atoms = list(all_atoms(memory, scope, kind, retired=True))
    known = {atom.id: atom for atom in sorted(atoms, key=lambda each: each.retired is None)}
    superseded = {id for atom in known.values() for id in atom.metadata.get("supersedes", ())}
    # Of what was made here former versions count, too: where a file still has one, that is nothing new.
    own = Counter(_said(read_memory(noun, atom)) for atom in atoms if not is_imported(atom.id))
    places = sorted(atom.metadata.get("place", 0.0) for atom in known.values())
    met, seen, revived = set[str](), Counter[Hashable](), list[str]()
    new, waiting, last = list[M](), list[M](), 0.0

    def settle() -> None:
        """Give those that wait their places, behind the entry before them."""
        after = bisect_right(places, last)
        step = (places[after] - last) / (len(waiting) + 1) if after < len(places) else 1.0
        for number, each in enumerate(waiting, 1):
            new.append(replace(each, place=last + step * number))
            insort(places, new[-1].place)
        waiting.clear()

    for entry in entries:
        words = _said(entry)
        seen[words] += 1
        id = f"{IMPORT}:{kind}:{digest(f'{seen[words]} {words!r}')[:32]}"
        if id in known:
            settle()
            last = known[id].metadata.get("place", 0.0)
            met.add(id)
            if not known[id].retired and not is_in_force(known[id], now) and id not in superseded:
                revived.append(id)
        elif own[words]:
            own[words] -= 1
        else:
            waiting.append(replace(entry, id=id, author=IMPORT))
    settle()
    held = (id for id, atom in known.items() if is_imported(id) and not atom.retired and is_in_force(atom, now))
    return _Plan(new, [id for id in held if id not in met], revived, len(entries) - len(new))


def _said(memory: ChunkMemory | KeywordMemory) -> tuple[str, ...]:
    """The same for two memories that say the same."""
    return (memory.text, memory.hash) if isinstance(memory, ChunkMemory) else write_row(memory)[1:]


def _take_in_summary(memory: Memory, scope: Scope, summary: TextBlock | None, record: ImportRecord) -> list[str] | None:
    """Write the summary as a revision that has absorbed what it says; return notes, or None if it is known."""
    if not summary or not summary.text.strip():
        return None
    is_current = summary.text == current_summary(memory, scope)
    is_known = (summary.hash, digest(summary.text)) == (record.summary_hash, record.summary_digest)
    if is_known and not is_current:  # it was carried on here since
        return None
    memories = chunk_memories(memory, scope)
    ends = [each.place for each in memories if each.hash == summary.hash]
    held = [each.id for each in memories if not ends or each.place <= max(ends)]
    if is_current and not (ends and {each.id for each in new_since_summary(memory, scope)}.intersection(held)):
        return None
    memory.summaries.write(scope, summary.text, author=IMPORT, absorbed=held, base=0)
    if memories and not ends:
        return ["the summary ends on a memory that is not there: all memories count as part of it"]
    return ["the summary ends on one of several memories: those up to the last count as part of it"] * (len(ends) > 1)


def _take_in_state_document(memory: Memory, scope: Scope, content: DiscussionContent, record: ImportRecord) -> bool:
    """The other program made its document from its memories, so that it holds those that were imported."""
    document, text = StateDocument(memory, scope), content.state_document
    known = [version.text.strip() for version in document.history()]
    is_known = digest(text) == record.state_digest or (not record.state_digest and text.strip() in known)
    if not text.strip() or is_known or text.strip() == document.read().strip():
        return False
    held = [fact for fact in current_facts(memory, scope) if is_imported(fact.id)]
    return document.write(text, held=held, again=bool(known))


_IDS_KEPT: Final = 50
"""So many of the last messages are noted: if some of them are edited later, one of the others still says where."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_ADVICE: Final = (
    "say where to go on with continue_at (--continue-at): the number of the first message to make memories from, "
    "'start' for all messages (right if all of them were said after the import), or 'end' for none of those that are "
    "there; nothing was made"
)


def settle_import(
    memory: Memory,
    scope: Scope,
    messages: Sequence[LogMessage],
    kind: MemoryKind,
    *,
    continue_at: int | str | None = None,
) -> Chunk | None:
    """The part of the chat for which memories of a kind were imported: new chunks begin behind its last message.

    None means that none of the kind were imported. What was found or given once is kept, until another number (or
    "start") is given; "end" counts once, since it would move with the chat.

    Args:
        messages: the chat as it stands.
        continue_at: the number of the first message to make memories from, "start" or "end"; needed only if the
            message on which the imported memories end is not there, or is there more than once. ConflictError says so.
    """
    record = read_record(memory, scope)
    hashes, place = _imported(memory, scope, kind, record)
    if not hashes:
        return None
    covered = _settled(record.settled.get(kind), hashes[-1], messages)
    if messages and (covered is None or continue_at not in (None, "end")):
        covered = _find(messages, hashes, continue_at, f"discussion {scope['discussion']}, {kind}")
        ids = [message.id for message in messages[:covered][-_IDS_KEPT:]]
        settled = {**record.settled, kind: {"hash": hashes[-1], "messages": ids}}
        replace(record, settled=settled).keep(memory, scope)
    return Chunk(kind, place, first="", last=messages[covered - 1].id if covered else "")


def find_import_conflict(memory: Memory, scope: Scope, messages: Sequence[LogMessage]) -> str:
    """Why an update would not know where the chat goes on after an import, and what to do; empty if it would."""
    record = read_record(memory, scope)
    for kind in (CHUNK_MEMORY, KEYWORD_MEMORY):
        hashes, _ = _imported(memory, scope, kind, record)
        if hashes and messages and _settled(record.settled.get(kind), hashes[-1], messages) is None:
            try:
                _find(messages, hashes, None, f"discussion {scope['discussion']}, {kind}")
            except ConflictError as error:
                return str(error)
    return ""


def _imported(memory: Memory, scope: Scope, kind: MemoryKind, record: ImportRecord) -> tuple[list[str], float]:
    """The hashes on which imported memories end, the newest last, and the place of the last memory."""
    if kind == CHUNK_MEMORY:
        chunks = [each for each in chunk_memories(memory, scope) if is_imported(each.id)]
        return [each.hash for each in chunks], max((each.place for each in chunks), default=0.0)
    if kind != KEYWORD_MEMORY:
        return [], 0.0
    places = [atom.metadata.get("place", 0.0) for atom in all_atoms(memory, scope, kind) if is_imported(atom.id)]
    return [each.hash for each in record.hashes] or [""] * bool(places), max(places, default=0.0)


def _settled(kept: Mapping[str, Any] | None, hash: str, messages: Sequence[LogMessage]) -> int | None:
    """How many messages are covered, as noted before; None if that is not known, or none of them is there now."""
    if not kept or kept["hash"] != hash:
        return None
    if not kept["messages"]:
        return 0
    places = {message.id: place for place, message in enumerate(messages, 1)}
    return max((places[id] for id in kept["messages"] if id in places), default=None)


def _find(messages: Sequence[LogMessage], hashes: Sequence[str], continue_at: int | str | None, name: str) -> int:
    """How many messages are covered by what was imported."""
    if continue_at in ("start", "end"):
        return 0 if continue_at == "start" else len(messages)
    if continue_at is not None:
        number = int(continue_at) if _NUMBER.fullmatch(str(continue_at)) else 0
        if not 1 <= number <= len(messages) + 1:
            last = len(messages) + 1
            raise InputError(
                f"continue_at is {show(continue_at)}: give the number of a message, from 1 to {last}, 'start' or 'end'"
            )
        return number - 1
    places = _places(messages, hashes[-1])
    # An earlier memory that ends on a message which is there once: the last one ends behind it.
    earlier = (_places(messages, hash) for hash in reversed(hashes[:-1]) if hash != hashes[-1])
    bound = next((found[0] for found in earlier if len(found) == 1), 0)
    behind = [place for place in places if place > bound]
    if len(behind) == 1:
        return behind[0]
    if behind:
        raise ConflictError(
            f"{name}: the imported memories end on a message that is there {len(behind)} times "
            f"(messages {', '.join(map(str, behind[:10]))}): {_ADVICE}"
        )
    end = f"; an earlier one of them ends on message {bound}" if bound else ""
    raise ConflictError(
        f"{name}: the imported memories end on a message that is not in the chat{end}. It may have been edited, or "
        f"not all messages are shown: {_ADVICE}"
    )


def _places(messages: Sequence[LogMessage], hash: str) -> list[int]:
    return [place for place, message in enumerate(messages, 1) if hash and message.hash == hash]
