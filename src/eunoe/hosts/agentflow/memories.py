"""How a memory of Agentflow is kept as an atom, and how it comes back."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid5

from eunoe.errors import InputError
from eunoe.hosts.agentflow.framework import MemoryRecord, MemorySearchResult, MemoryType, Message
from eunoe.model.arguments import show
from eunoe.model.atom import Atom, Item

MEMORY_KEY: Final = "memory_key"
DEFAULT_CATEGORY: Final = "general"

_STORED_KEY: Final = "agentflow_key"
"""Where a memory key is kept. The engine has memory keys of its own, which do not look at the memory type."""
_CHANGES: Final = "agentflow_changes"
"""Which fields of the metadata an update has changed; None for a version that brings the changes of others together.
What has no such field was written anew, as a whole."""
_OWN_FIELDS: Final = frozenset({"content", "user_id", "thread_id", "memory_type", "category", "timestamp"})
"""What is no caller's metadata, as in Agentflow's own stores."""
_JUNCTIONS: Final = ("AND", "OR")
_USER: Final = "user_id"
"""A filter on the owner, who is not part of the metadata."""
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


def merge_metadata(old: Mapping[str, Any], given: Mapping[str, Any], replace: bool) -> Fields:
    """Return stored metadata after an update: added to, or replaced but for what the store knows."""
    own = {name: old[name] for name in ("memory_type", "category", "thread_id") if name in old}
    if "category" in given:
        own["category"] = given["category"]
    new = stored_metadata(given)
    if replace:
        return {**new, **own}
    names = [*new, *(["category"] if "category" in given else [])]
    return {**old, **new, **own, _CHANGES: names}


def repeat_updates(versions: Sequence[Atom]) -> Fields:
    """Return text and metadata as they are if every version changes no more than it was meant to change.

    Who writes at the same time as somebody else puts an older value back, without knowing.
    """
    text, metadata = versions[0].text, dict(versions[0].metadata)
    for version in versions:
        names = version.metadata.get(_CHANGES, version.metadata)
        if names is None:
            continue
        if _CHANGES not in version.metadata:
            metadata = {}
        text, metadata = version.text, {**metadata, **{name: version.metadata[name] for name in names}}
    return {"text": text, "metadata": {**metadata, _CHANGES: None}}


def is_same(one: Atom, text: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a version says this, whoever wrote it."""
    return one.text == text and {**one.metadata, _CHANGES: None} == {**metadata, _CHANGES: None}


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
    if conditions := {name: value for name, value in _check_filters(filters or {}).items() if name != _USER}:
        where["AND"] = [_parse_filters(conditions)]
    return where or None


def users_of(filters: Mapping[str, Any] | None) -> set[str] | None:
    """Return the users that filters name, of whom one must own a memory; None if they name none."""
    if _USER not in _check_filters(filters or {}):
        return None
    value = (filters or {})[_USER]
    users = list(value) if isinstance(value, list | tuple | set) else [value]
    if any(not isinstance(user, str | int) for user in users):
        raise InputError(f"filters: {_USER} must be a user's id, or a list of ids")
    return set(map(str, users))


def _parse_filters(filters: Mapping[str, Any]) -> Fields:
    where: Fields = {}
    for name, value in _check_filters(filters).items():
        if name == _USER:
            raise InputError(f"filters: {_USER} must stand beside other conditions, not inside of AND, OR or NOT")
        if name in _JUNCTIONS:
            where[name] = [_parse_filters(each) for each in _check_list(name, value)]
        elif name == "NOT":
            where[name] = _parse_filters(value)
        else:
            where[_stored_name(name)] = {"in": list(value)} if isinstance(value, list | tuple | set) else value
    return where


def _check_filters(filters: Any) -> Mapping[str, Any]:
    if not isinstance(filters, Mapping):
        raise InputError(f"filters must be conditions such as {{'size': 3}}, not {show(filters)}")
    return filters


def _check_list(name: str, value: Any) -> Iterable[Any]:
    if not isinstance(value, list | tuple):
        raise InputError(f"filters: {name} must be a list of conditions such as [{{'size': 3}}], not {show(value)}")
    return value


def _stored_name(name: str) -> str:
    return _STORED_KEY if name == MEMORY_KEY else name


def result_of(item: Item, score: float = 1.0) -> MemorySearchResult:
    """Return a memory as Agentflow has it. One that Agentflow did not write counts as a fact."""
    stored = {name: value for name, value in item.metadata.items() if name != _CHANGES}
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
