"""Which messages imported chunk memories were made from, where that can be told.

A memory begins behind the message on which the one before it ends. So its bounds are known if both hashes are in the
chat. If a message between them is edited later, the imported memory is stale, and another one is made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from eunoe.apps.discussion.atoms import chunk_memories
from eunoe.apps.discussion.chunks.content import digest, has_words
from eunoe.apps.discussion.files.record import is_imported, read_record, record_item
from eunoe.apps.discussion.model import Chunk, ChunkMemory, LogMessage, MemoryKind
from eunoe.memory import Memory
from eunoe.model.arguments import utc_now
from eunoe.model.scope import Scope

_EDITED: Final = "edited"
"""Under which it is noted how many messages of the imported part had been edited."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The messages of an imported memory: from `start` on, before `end`."""

    memory: ChunkMemory
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StaleImport:
    """An imported memory that is no longer true to its messages."""

    id: str
    chunk: Chunk
    is_empty: bool
    """Whether none of its messages is left."""


def find_bounds(memory: Memory, scope: Scope, messages: Sequence[LogMessage], covered: int) -> list[Bounds]:
    """The imported chunk memories whose bounds are known, among the first `covered` messages of the chat."""
    ends = {message.id: place for place, message in enumerate(messages, 1)}
    found, start = [], None
    for each in chunk_memories(memory, scope):
        if each.chunk:
            start = ends.get(each.chunk.last)
            continue
        places = range((start or 0) + 1, covered + 1)
        same = [place for place in places if each.hash and messages[place - 1].hash == each.hash]
        end = same[0] if len(same) == 1 else None
        if start is not None and end is not None and is_imported(each.id):
            found.append(Bounds(each, start, end))
        start = end
    return found


def end_overlapping(memory: Memory, scope: Scope, messages: Sequence[LogMessage], bounds: Sequence[Bounds]) -> None:
    """End chunk memories that were made here from messages of which others were imported since."""
    taken = {message.id for each in bounds for message in messages[each.start : each.end]}
    own = [each for each in chunk_memories(memory, scope) if each.chunk]
    if ended := [each.id for each in own if not taken.isdisjoint(each.source)]:
        memory.expire(scope, ended, utc_now())


def bounds_fields(messages: Sequence[LogMessage], bounds: Sequence[Bounds]) -> dict[str, list[Any]]:
    """What the import record keeps: the first message, the one behind the last, the place, and a digest."""
    known = [each for each in bounds if each.end < len(messages)]
    return {
        each.memory.id: [
            messages[each.start].id,
            messages[each.end].id,
            each.memory.place,
            digest(filter(_is_read, messages[each.start : each.end])),
        ]
        for each in known
    }


def find_stale_imports(
    memory: Memory, scope: Scope, sequence: Sequence[LogMessage], kind: MemoryKind
) -> tuple[list[StaleImport], list[str]]:
    """Imported memories that are no longer true to their messages, and notes on edits that cannot be followed.

    `sequence` are all messages, retracted ones too.
    """
    record = read_record(memory, scope)
    settled = record.settled.get(kind)
    if not settled or not settled["messages"]:
        return [], []
    places = {message.id: place for place, message in enumerate(sequence)}
    stale, known = list[StaleImport](), set[int]()
    for id, (first, behind, place, before) in settled.get("bounds", {}).items():
        if first in places and behind in places:
            part = sequence[places[first] : places[behind]]
            known.update(range(places[first], places[behind]))
            standing = list(filter(_is_read, part))
            if digest(standing) != before:
                stale.append(StaleImport(id, Chunk(kind, place, first, part[-1].id), not standing))
    end = max((places[id] for id in settled["messages"] if id in places), default=-1)
    edited = sum(sequence[place].is_retracted for place in range(end + 1) if place not in known)
    if edited != settled.get(_EDITED):
        changed = {**record.settled, kind: {**settled, _EDITED: edited}}
        memory.remember_many(scope, [record_item(replace(record, settled=changed))], replace=True, again=True)
    return stale, _notes(kind, edited - settled.get(_EDITED, edited))


def end_stale_imports(memory: Memory, scope: Scope, stale: Sequence[StaleImport]) -> None:
    """End stale memories in whose place others were made, and those of which no message is left."""
    memories = chunk_memories(memory, scope) if stale else []
    made, held = {each.chunk.first for each in memories if each.chunk}, {each.id for each in memories}
    ended = [each.id for each in stale if each.id in held and (each.is_empty or each.chunk.first in made)]
    if ended:
        record = read_record(memory, scope)
        changed = replace(record, replaced=tuple(dict.fromkeys([*record.replaced, *ended])))
        memory.remember_many(scope, [record_item(changed)], replace=True, again=True)
        memory.expire(scope, ended, utc_now())


def _notes(kind: MemoryKind, count: int) -> list[str]:
    note = (
        f"{kind}: {count} messages were edited or deleted of which memories had been imported; these memories stay as "
        "they are, since it is not known which messages each of them was made from"
    )
    return [note] * (count > 0)


def _is_read(message: LogMessage) -> bool:
    return has_words(message) and not message.is_retracted
