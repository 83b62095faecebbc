"""Transcripts of Claude Code: what was said since they were last read.

Only what people and the assistant said is taken: no tool calls or their results, no summaries, no sub-agents, no
reminders, and nothing that Eunoe itself had put there.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.assistants.hook import strip_private
from eunoe.errors import InputError
from eunoe.model.arguments import parse_optional_time

_BLOCK: Final = re.compile(r"<(MemoryContext|system-reminder)\b[^>]*>(?:.*?</\1\s*>|.*\Z)", re.DOTALL | re.IGNORECASE)
_MACHINE_TEXT: Final = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-[a-z]+|bash-(?:input|stdout|stderr)|task-notification)\b"
    r"|\[Request interrupted by user)"
)
_HIDDEN: Final = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_MARK_BYTES: Final = 256
"""Of the bytes before a place, by which it is found to be the same file still."""


class Saying(NamedTuple):
    """One thing that was said."""

    role: str
    text: str
    time: datetime | None = None


class Place(NamedTuple):
    """How far a transcript was read: the bytes, and a fingerprint of the last of them."""

    offset: int = 0
    mark: str = ""


def clean(text: str) -> str:
    """A text without what is private, what was recalled, and what programs put there."""
    text = _BLOCK.sub("", strip_private(text))
    return "" if _MACHINE_TEXT.match(text) else text.strip()


def read_transcript(path: Path, place: Place) -> tuple[list[Saying], Place, bool]:
    """What was said since a place, the place after it, and whether it was read from the beginning.

    A transcript that was cut or rewritten is read from the beginning; a line that is not yet whole waits. One that is
    gone says nothing.
    """
    try:
        if not path.is_file():  # to open a pipe would take for ever
            return [], place, False
        file = path.open("rb")
    except (OSError, ValueError):
        return [], place, False
    with file:
        start = place.offset if place.mark == _mark_before(file, place.offset) else 0
        file.seek(start)
        sayings: list[Saying] = []
        end = start
        while (line := file.readline(_MAX_LINE_BYTES)).endswith(b"\n") or len(line) == _MAX_LINE_BYTES:
            end += len(line)
            sayings += _read_line(line)
        return sayings, Place(end, _mark_before(file, end)), start == 0


def _mark_before(file: Any, offset: int) -> str:
    size = min(offset, _MARK_BYTES)
    file.seek(offset - size)
    return hashlib.sha256(file.read(size)).hexdigest()[:16] if size else ""


def _read_line(line: bytes) -> Iterator[Saying]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(row, dict) or row.get("type") not in ("user", "assistant") or any(map(row.get, _HIDDEN)):
        return
    message = row.get("message")
    text = clean(_text_of(message.get("content"))) if isinstance(message, dict) else ""
    if text:
        yield Saying(row["type"], text, _time_of(row.get("timestamp")))


def _text_of(content: object) -> str:
    """The words of a message: its text, or its parts that are text. They are joined, since a mark may span them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _time_of(value: object) -> datetime | None:
    try:
        return parse_optional_time(value) if isinstance(value, str) else None
    except InputError:
        return None
