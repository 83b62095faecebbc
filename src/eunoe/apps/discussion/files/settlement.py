"""Where a chat goes on after an import: the files hold no messages, only the hash of the one they end on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eunoe.apps.discussion.files.bounds import bounds_fields, end_overlapping, find_bounds
from eunoe.apps.discussion.files.known import known_chunk_memories, known_keyword_memories
from eunoe.apps.discussion.files.record import ImportRecord, read_record, record_item
from eunoe.apps.discussion.model import CHUNK_MEMORY, KEYWORD_MEMORY, Chunk, LogMessage, MemoryKind
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
    is_corrected = continue_at not in (None, "end")
    if messages and (covered is None or is_corrected):
        covered = _find(messages, hashes, continue_at, f"discussion {scope['discussion']}, {kind}")
        _keep(memory, scope, record, kind, hashes[-1], messages, covered)
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
        chunks = [each for each in known_chunk_memories(memory, scope) if each.is_imported]
        standing = [each for each in chunks if each.is_in_force or each.is_covered]
        return [each.memory.hash for each in standing], max((each.place for each in standing), default=0.0)
    keywords = [each for each in known_keyword_memories(memory, scope) if each.is_imported]
    hashes = [each.hash for each in record.hashes]
    return hashes or [""] * bool(keywords), max((each.place for each in keywords), default=0.0)


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
    bound = _earlier_end(messages, hashes)
    behind = [place for place in places if place > bound]
    if len(behind) == 1:
        return behind[0]
    if behind:
        shown = ", ".join(map(str, behind[:10]))
        raise ConflictError(
            f"{name}: the imported memories end on a message that is there {len(behind)} times "
            f"(messages {shown}): {_ADVICE}"
        )
    earlier = f"; an earlier one of them ends on message {bound}" if bound else ""
    raise ConflictError(
        f"{name}: the imported memories end on a message that is not in the chat{earlier}. It may have been edited, or "
        f"not all messages are shown: {_ADVICE}"
    )


def _earlier_end(messages: Sequence[LogMessage], hashes: Sequence[str]) -> int:
    """The message on which an earlier imported memory ends, if it is there once: the last one ends behind it."""
    for hash in reversed(hashes[:-1]):
        places = _places(messages, hash)
        if hash != hashes[-1] and len(places) == 1:
            return places[0]
    return 0


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


def _keep(
    memory: Memory,
    scope: Scope,
    record: ImportRecord,
    kind: MemoryKind,
    hash: str,
    messages: Sequence[LogMessage],
    covered: int,
) -> None:
    ids = [message.id for message in messages[:covered][-_IDS_KEPT:]]
    bounds = find_bounds(memory, scope, messages, covered) if kind == CHUNK_MEMORY else []
    end_overlapping(memory, scope, messages, bounds)
    fields = {"hash": hash, "messages": ids, "bounds": bounds_fields(messages, bounds)}
    changed = replace(record, settled={**record.settled, kind: fields})
    memory.remember_many(scope, [record_item(changed)], replace=True, again=True)
