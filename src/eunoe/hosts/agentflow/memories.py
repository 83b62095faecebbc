"""How a memory of Agentflow is kept as an atom, and how it comes back."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid5

from eunoe.errors import InputError
from eunoe.hosts.agentflow.framework import MemoryRecord, MemorySearchResult, MemoryType, Message
from eunoe.model.record import Item

MEMORY_KEY: Final = "memory_key"
DEFAULT_CATEGORY: Final = "general"

_STORED_KEY: Final = "agentflow_key"
"""Where a memory key is kept. The engine has memory keys of its own, which do not look at the memory type."""
_OWN_FIELDS: Final = frozenset({"content", "user_id", "thread_id", "memory_type", "category", "timestamp"})
"""What is no caller's metadata, as in Agentflow's own stores."""
_JUNCTIONS: Final = ("AND", "OR")
_KEYED_IDS: Final = UUID("0b0f3a52-3c52-5b57-9d0a-6f0a5c1d7e11")

Fields = dict[str, Any]
MemoryTypes = MemoryType | str | Iterable[MemoryType | str] | None


def fields_of(
    content: str | Message,
    memory_type: MemoryType | str,
    category: str,
    metadata: Mapping[str, Any] | None,
    thread_id: object = None,
) -> Fields:
    """Return what `remember` takes for a new memory, but for its id."""
    given = dict(metadata or {})
    time = None
    if isinstance(content, Message):
        given = MemoryRecord.from_message(content, additional_metadata=given).metadata
        time = None if content.timestamp is None else datetime.fromtimestamp(content.timestamp, UTC)
    own = {"memory_type": parse_type(memory_type).value, "category": category or DEFAULT_CATEGORY}
    if thread_id is not None:
        own["thread_id"] = str(thread_id)
    return {"text": text_of(content), "metadata": own | stored_metadata(given), "time": time}


def text_of(content: str | Message) -> str:
    return content.text() if isinstance(content, Message) else content


def parse_type(value: MemoryType | str) -> MemoryType:
    try:
        return MemoryType(value)
    except ValueError:
        raise InputError(f"memory_type {value!r:.40} is not one of {', '.join(MemoryType)}") from None


def stored_metadata(metadata: Mapping[str, Any]) -> Fields:
    """Return the caller's part of the metadata as it is kept."""
    return {_stored_name(name): value for name, value in metadata.items() if name not in _OWN_FIELDS}


def key_where(fields: Fields) -> Fields | None:
    """Return the condition for memories of the same key and type; None if there is no key."""
    names = ("memory_type", _STORED_KEY)
    return {name: fields["metadata"][name] for name in names} if fields["metadata"].get(_STORED_KEY) else None


def key_id(where: Fields) -> str:
    """Return the id of a new memory with this key and type: the same each time, so that all who store it at once write
    to one memory."""
    return str(uuid5(_KEYED_IDS, f"{where['memory_type']}:{where[_STORED_KEY]}"))


def where_of(memory_types: MemoryTypes, category: str | None, filters: Mapping[str, Any] | None) -> Fields | None:
    """Return the conditions on metadata that the arguments of a search come to; None if there are none."""
    where: Fields = {}
    if memory_types is not None:
        several = [memory_types] if isinstance(memory_types, str) else memory_types
        types = [parse_type(each).value for each in several]
        where["memory_type"] = types[0] if len(types) == 1 else {"in": types}
    if category is not None:
        where["category"] = category
    if filters:
        where["AND"] = [_parse_filters(filters)]
    return where or None


def _parse_filters(filters: Mapping[str, Any]) -> Fields:
    where: Fields = {}
    for name, value in filters.items():
        if name in _JUNCTIONS:
            where[name] = [_parse_filters(each) for each in value]
        elif name == "NOT":
            where[name] = _parse_filters(value)
        else:
            where[_stored_name(name)] = {"in": list(value)} if isinstance(value, list | tuple | set) else value
    return where


def _stored_name(name: str) -> str:
    return _STORED_KEY if name == MEMORY_KEY else name


def result_of(item: Item, score: float = 1.0) -> MemorySearchResult:
    """Return a memory as Agentflow has it. One that Agentflow did not write counts as a fact."""
    stored = dict(item.metadata)
    memory_type = stored.pop("memory_type", MemoryType.SEMANTIC)
    thread_id = stored.pop("thread_id", None)
    category = stored.pop("category", DEFAULT_CATEGORY)
    given = {MEMORY_KEY if name == _STORED_KEY else name: value for name, value in stored.items()}
    return MemorySearchResult(
        id=item.id,
        content=item.text,
        score=max(score, 0.0),
        memory_type=memory_type if memory_type in MemoryType else MemoryType.CUSTOM,
        metadata={**given, "category": category},
        user_id=item.scope.get("user") if item.scope else None,
        thread_id=thread_id if isinstance(thread_id, str) else None,
        timestamp=item.time or item.recorded,
    )
