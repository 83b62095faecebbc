"""What a model or a workflow answers when it is asked for keyword memories: read, checked, repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eunoe.discussion.creators.extractive import find_key_phrases, find_names
from eunoe.discussion.model import KeywordMemory
from eunoe.errors import LlmError
from eunoe.llm.answers import conform
from eunoe.llm.lenient_json import read_json_values
from eunoe.text.sentences import cut_to_words

_TEXTS: Final = {"type": "array", "items": {"type": ["string", "number"]}}
_PROPERTIES: Final = {
    "title": {"type": "string"},
    "summary": {"type": "string"},
    "entities": _TEXTS,
    "key_phrases": _TEXTS,
    "topics": _TEXTS,
    "sentiment": {"type": ["string", "number"]},
    "supersedes": _TEXTS,
}
_REQUIRED: Final = ("title", "summary", "entities", "key_phrases")
_OBJECT: Final[Mapping[str, Any]] = {"type": "object", "properties": _PROPERTIES}
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"memories": {"type": "array", "items": {**_OBJECT, "required": list(_REQUIRED)}}},
    "required": ["memories"],
}
"""What a model is held to: an object with a list, since many take no bare list."""
_LISTS: Final = ("memories", "objects", "items", "results")
"""Names under which models put the list."""
_TITLE_WORDS: Final = 9
_CUT: Final = "an answer broke off: what came after is in no memory; give its author more tokens"
_MAX_MEMORIES: Final = 50
"""More out of one chunk are no memories."""


class Answer(NamedTuple):
    """Keyword memories, and what was repaired or could not be used."""

    memories: list[KeywordMemory]
    notes: list[str]


def read_keyword_memories(answer: str) -> Answer:
    """Read objects and lists of objects: one or several, fenced or with words around them.

    An object that lacks something is repaired, and a note says so. Raise LlmError if the answer is empty, no JSON, or
    has a value of a wrong type. No error and no note repeats the answer's words.

    >>> read_keyword_memories('{"title": "Move", "summary": "Anna moved to Rome."}').memories[0].entities
    ('Anna', 'Rome')
    """
    found = read_json_values(answer)
    objects = [each for value in _telling(found.values) for each in _objects(value)]
    if not objects or len(objects) > _MAX_MEMORIES:
        raise LlmError(f"the answer holds {len(objects)} memories; from 1 to {_MAX_MEMORIES} are taken")
    notes = [_CUT] if found.is_cut else []
    memories = [memory for number, value in enumerate(_unique(objects), 1) if (memory := _read(value, number, notes))]
    if not memories:
        raise LlmError("no memory in the answer has a title or a summary")
    return Answer(memories, notes)


def _telling(values: Sequence[Any]) -> Sequence[Any]:
    """The values that hold objects, if there are any: other brackets may be part of the words around them."""
    return [value for value in values if any(isinstance(each, Mapping) for each in (value, *_items(value)))] or values


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unique(objects: Iterable[Any]) -> list[Any]:
    """Objects without those that come again, as some models write a draft first."""
    unique: list[Any] = []
    for each in objects:
        if each not in unique:
            unique.append(each)
    return unique


def _objects(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        lists = [value[name] for name in _LISTS if isinstance(value.get(name), list)]
        return list(lists[0]) if lists and not _REQUIRED_NAMES & value.keys() else [value]
    if isinstance(value, list):
        return value
    raise LlmError("the answer must be an object or a list of objects")


_REQUIRED_NAMES: Final = frozenset(_REQUIRED)


def _read(value: Any, number: int, notes: list[str]) -> KeywordMemory | None:
    fields = conform(value, _OBJECT, f"memory {number}")
    texts = {name: fields.get(name, "").strip() for name in ("title", "summary")}
    if not any(texts.values()):
        notes.append(f"memory {number} of an answer was left out: it has neither a title nor a summary")
        return None
    summary = texts["summary"] or texts["title"]
    lists = {name: _texts(fields.get(name, ())) for name in ("entities", "key_phrases", "topics", "supersedes")}
    if missing := [name for name in _REQUIRED if not (texts.get(name) or (name in fields and name in lists))]:
        notes.append(f"memory {number} of an answer had no {', '.join(missing)}: filled from its words")
    return KeywordMemory(
        title=texts["title"] or cut_to_words(summary, _TITLE_WORDS),
        summary=summary,
        entities=lists["entities"] if "entities" in fields else find_names(summary),
        key_phrases=lists["key_phrases"] if "key_phrases" in fields else find_key_phrases(summary),
        topics=lists["topics"],
        sentiment=str(fields.get("sentiment", "")).strip(),
        supersedes=lists["supersedes"],
        extra={name: value for name, value in fields.items() if name not in _PROPERTIES},
    )


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_stripped(values)))


def _stripped(values: Any) -> Iterator[str]:
    return (text for value in values if (text := str(value).strip()))
