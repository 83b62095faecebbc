"""What a model or a workflow answers when it is asked for keyword memories: read, checked, repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from eunoe.apps.discussion.authors import NothingError, says_nothing
from eunoe.apps.discussion.extracts import find_key_phrases, find_names
from eunoe.apps.discussion.model import KeywordMemory
from eunoe.errors import LlmError
from eunoe.llm.structured import read_json_values
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
_WORDS: Final = ("title", "summary", "sentiment")
"""Fields of one text each; all others are lists."""
_LIST_SIGNS: Final = re.compile(r"[,;\n]")
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

    A field that is missing or odd is mended, and a note says so. Raise NothingError if the answer has no words in its
    JSON, and LlmError if it is no JSON, or if no object has a title or a summary. No error and no note repeats the
    answer's words.

    >>> read_keyword_memories('{"title": "Move", "summary": "Anna moved to Rome."}').memories[0].entities
    ('Anna', 'Rome')
    """
    found = read_json_values(answer)
    # The values that hold objects, if there are any: other brackets may be part of the words around them.
    telling = [each for each in found.values if any(isinstance(part, Mapping) for part in (each, *_items(each)))]
    objects = [each for value in telling or found.values for each in _objects(value)]
    if not any(_flat(objects)) and not found.is_cut:
        raise NothingError("the answer says that there is nothing to remember")
    if len(objects) > _MAX_MEMORIES:
        raise LlmError(f"the answer holds {len(objects)} memories; at most {_MAX_MEMORIES} are taken")
    notes = [_CUT] if found.is_cut else []
    unique: list[Any] = []  # some models write a draft first
    for each in objects:
        unique += [each] if each not in unique else []
    memories = [memory for number, value in enumerate(unique, 1) if (memory := _read(value, number, notes))]
    if not memories:
        raise LlmError("no memory in the answer has a title or a summary")
    return Answer(memories, notes)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Any]:
    if isinstance(value, Mapping) and not value.keys() & set(_REQUIRED):
        named = [value[name] for name in _LISTS if name in value]
        return _objects(named[0]) if named else [value]
    if isinstance(value, list):
        return value
    return [] if value is None or (isinstance(value, str) and says_nothing(value)) else [value]


def _read(value: Any, number: int, notes: list[str]) -> KeywordMemory | None:
    given = value if isinstance(value, Mapping) else {}
    fields = {name: each for name, each in given.items() if _is_regular(name, each) or any(_flat(each))}
    texts = {name: " ".join(_flat(fields.get(name))) for name in _WORDS}
    lists = {name: tuple(dict.fromkeys(_flat(_listed(fields.get(name))))) for name in _PROPERTIES if name not in _WORDS}
    if not (summary := texts["summary"] or texts["title"]):
        notes.append(f"memory {number} of an answer was left out: it has neither a title nor a summary")
        return None
    if missing := [name for name in _REQUIRED if not (texts.get(name) or (name in fields and name in lists))]:
        notes.append(f"memory {number} of an answer had no {', '.join(missing)}: filled from its words")
    if odd := [name for name in fields if name in _PROPERTIES and not _is_regular(name, fields[name])]:
        notes.append(f"memory {number} of an answer had an odd {', '.join(odd)}: read as well as it could be")
    return KeywordMemory(
        title=texts["title"] or cut_to_words(summary, _TITLE_WORDS),
        summary=summary,
        entities=lists["entities"] if "entities" in fields else find_names(summary),
        key_phrases=lists["key_phrases"] if "key_phrases" in fields else find_key_phrases(summary),
        topics=lists["topics"],
        sentiment=texts["sentiment"],
        supersedes=lists["supersedes"],
        extra={name: each for name, each in given.items() if name not in _PROPERTIES},
    )


def _is_regular(name: str, value: Any) -> bool:
    """Whether a field has the type that was asked for."""
    if name in _WORDS:
        return isinstance(value, str | int | float)
    return isinstance(value, list) and all(isinstance(each, str | int | float) for each in value)


def _listed(value: Any) -> Any:
    """A field that is to be a list; one text may list its items."""
    return _LIST_SIGNS.split(value) if isinstance(value, str) else value


def _flat(value: Any) -> Iterator[str]:
    """All texts in a value, however deep they stand; of an object with a name, that."""
    if isinstance(value, Mapping):
        value = value["name"] if value.get("name") and isinstance(value["name"], str) else list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _flat(each)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and (text := str(value).strip()):
        yield text
