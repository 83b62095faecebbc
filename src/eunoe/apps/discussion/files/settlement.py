"""Where a chat goes on after an import: the files hold no messages, only the hash of the one they end on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eunoe.apps.discussion.files.importing import ImportRecord, is_imported, read_record
from eunoe.apps.discussion.model import (
    CHUNK_MEMORY,
    KEYWORD_MEMORY,
    Chunk,
    LogMessage,
    MemoryKind,
    all_atoms,
    chunk_memories,
)
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

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
    if continue_at is not None:
        return _parse_continue_at(continue_at, len(messages))
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


def _parse_continue_at(value: int | str, count: int) -> int:
    if value in ("start", "end"):
        return 0 if value == "start" else count
    number = int(value) if isinstance(value, int) or (isinstance(value, str) and _NUMBER.fullmatch(value)) else 0
    if isinstance(value, bool) or not 1 <= number <= count + 1:
        raise InputError(
            f"continue_at is {show(value)}: give the number of a message, from 1 to {count + 1}, 'start' or 'end'"
        )
    return number - 1
