"""Keyword memories as rows of a database, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from eunoe.apps.discussion.files.database import Row
from eunoe.apps.discussion.files.text_files import parse_json
from eunoe.apps.discussion.model import KeywordMemory
from eunoe.errors import InputError
from eunoe.model.arguments import check_metadata, parse_time

_REQUIRED: Final = ("title", "summary", "entities", "key_phrases")
_LISTS: Final = ("entities", "key_phrases", "topics")
_TEXTS: Final = ("title", "sentiment")
_OWN: Final = {*_REQUIRED, *_LISTS, *_TEXTS}
RowContent = tuple[str, str, str]
"""What two rows have in common that say the same: text, date and metadata, however these are written."""
_ROW: Final = "file_row"
"""The field of `extra` with what only the row says: its id, and whatever the memory's own fields cannot hold."""


def read_row(row: Row) -> tuple[KeywordMemory | None, str]:
    """The memory that a row holds, and what is odd about it. None: it has no words."""
    fields, fault = _parse_metadata(row)
    words = [row.text, _as_words(fields.get("summary")), _as_words(fields.get("title"))]
    if not (text := next(filter(str.strip, words), "")):
        return None, f"row {row.id} holds no words: it is left out"
    time = _parse_date(row.date)
    odd, own = _odd_fields(fields, text), _row_fields(row, text, time)
    memory = KeywordMemory(
        title=_as_words(fields.get("title")),
        summary=text,
        entities=_as_list(fields.get("entities")),
        key_phrases=_as_list(fields.get("key_phrases")),
        topics=_as_list(fields.get("topics")),
        sentiment=_as_words(fields.get("sentiment")),
        extra={**odd, _ROW: own},
        time=time,
    )
    if write_row(memory).metadata != row.metadata:
        memory = replace(memory, extra={**odd, _ROW: {**own, "metadata": row.metadata}})
    faults = [fault] if fault else [f"has no {name}" for name in _REQUIRED if name not in fields]
    faults += [f"has an odd {name}" for name in odd if name in _OWN] + ["has no date"] * (time is None)
    return memory, f"row {row.id} {', '.join(faults)}: it is kept as it is" if faults else ""


def write_row(memory: KeywordMemory) -> Row:
    """The row that a memory becomes. Its id is 0 if it has none yet."""
    own: Mapping[str, Any] = memory.extra.get(_ROW, {})
    time = memory.time or memory.recorded
    date = own.get("date", time.isoformat() if time else "")
    metadata = own["metadata"] if "metadata" in own else json.dumps(_metadata(memory))
    return Row(own.get("id", 0), own.get("text", memory.summary), date, metadata)


def row_content(row: Row) -> RowContent:
    """What two rows have in common if they say the same, whatever their ids."""
    try:
        metadata = json.dumps(json.loads(row.metadata), sort_keys=True)
    except ValueError:
        metadata = row.metadata
    time = _parse_date(row.date)
    return row.text, time.isoformat() if time else row.date, metadata


def row_number(memory: KeywordMemory) -> int:
    """The id of the row that a memory was read from; 0 if it was made here."""
    return int(memory.extra.get(_ROW, {}).get("id", 0))


def _metadata(memory: KeywordMemory) -> dict[str, Any]:
    """The fields in the order in which the application writes them."""
    fields: dict[str, Any] = {name: getattr(memory, name) for name in (*_REQUIRED, "sentiment", "topics")}
    named = {name: value for name, value in fields.items() if value or name in _REQUIRED}
    return named | {name: value for name, value in memory.extra.items() if name != _ROW}


def _row_fields(row: Row, text: str, time: datetime | None) -> dict[str, Any]:
    """What has to be kept so that the row can be written as it was."""
    kept = {
        "id": row.id,
        "text": row.text if row.text != text else None,
        "date": row.date if time is None or time.isoformat() != row.date else None,
    }
    return {name: value for name, value in kept.items() if value is not None}


def _odd_fields(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What the memory's own fields cannot hold as it is: other names, other types, and what is there but empty."""
    return {name: value for name, value in fields.items() if not _is_regular(name, value, text)}


def _is_regular(name: str, value: Any, text: str) -> bool:
    if name == "summary":
        return bool(value == text)
    if name in _TEXTS:
        return isinstance(value, str) and (bool(value) or name in _REQUIRED)
    is_list = name in _LISTS and isinstance(value, list) and all(isinstance(each, str) for each in value)
    return is_list and (bool(value) or name in _REQUIRED)


def _parse_metadata(row: Row) -> tuple[dict[str, Any], str]:
    try:
        fields = parse_json(row.metadata, "metadata_json") if row.metadata else None
        return (dict(check_metadata(fields)), "") if isinstance(fields, dict) else ({}, "has no metadata")
    except InputError:
        return {}, "has metadata that is no JSON"


def _parse_date(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except InputError:
        return None


def _as_words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _as_list(value: Any) -> tuple[str, ...]:
    return tuple(map(_as_words, value if isinstance(value, list) else [] if value is None else [value]))
