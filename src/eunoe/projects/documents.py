"""Documents as a project gives them, and the facts they are kept as: one, or several for a long one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.atom import Atom
from eunoe.model.time import TimeLike
from eunoe.model.validation import check_name, check_text

LONG = 8_000
"""A document with more characters than this is kept in parts: embedders read the beginning of a text only."""
PART = 4_000
"""The most characters of a part."""

_FIELDS = ("text", "id", "title", "ticket", "label", "time", "metadata")
_PLACE = "document"
_RESERVED = (_PLACE, "memory_key")
_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s"))  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Document:
    """One document, checked, with the id it has or gets from its words."""

    id: str
    text: str
    """Its words as they are kept, beginning with its title if it has one."""
    named: bool = False
    """It came with an id of its own."""
    title: str = ""
    ticket: str = ""
    label: str = ""
    time: TimeLike | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def items(self) -> list[dict[str, Any]]:
        """What to remember of it: a fact, or one for each part. The first has the document's id and metadata."""
        parts = parts_of(self.text)
        return [self._item(number, part, len(parts)) for number, part in enumerate(parts, 1)]

    def _item(self, number: int, part: str, count: int) -> dict[str, Any]:
        marks: dict[str, Any] = {"title": self.title} if self.title else {}
        marks |= {"ticket": self.ticket} if self.ticket else {}
        if count > 1:
            marks[_PLACE] = {"id": self.id, "part": number, "parts": count}
        metadata = {**self.metadata, **marks} if number == 1 else marks
        item = {"text": part, "id": part_id(self.id, number), "label": self.label}
        return {**item, "time": self.time, "metadata": metadata}


def document_of(value: str | Mapping[str, Any]) -> Document:
    """Reads a text, or a mapping with "text" and perhaps "id", "title", "ticket", "label", "time", "metadata".

    >>> document_of("Tea is hot.").id == document_of({"text": "Tea is hot."}).id
    True
    >>> document_of({"text": "It is hot.", "title": "Tea"}).text
    'Tea\\n\\nIt is hot.'
    """
    fields = _fields(value)
    words = check_text(fields["text"])
    if not words.strip():
        raise InputError("it is empty or only blanks")
    metadata = _metadata(fields.get("metadata"))
    title = _line(fields.get("title") or metadata.get("title"))
    ticket = _name(fields.get("ticket") or metadata.get("ticket"), "ticket")
    own = _name(fields.get("id"), "id")
    text = titled(title, words)
    label = _name(fields.get("label"), "label")
    return Document(own or _id(ticket, text), text, bool(own), title, ticket, label, fields.get("time"), metadata)


def titled(title: str, text: str) -> str:
    """The text with its title above it, unless it stands there already."""
    first = text.lstrip().split("\n", 1)[0].strip(" #\t\r")
    return text if not title or first == title else f"{title}\n\n{text}"


def parts_of(text: str) -> list[str]:
    """The text in one piece, or a long one in parts that joined are the text again; each has something to say."""
    if len(text) <= LONG:
        return [text]
    parts: list[str] = []
    for part in _cut(text):
        if parts and (not part.strip() or not parts[-1].strip()):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def part_id(id: str, number: int) -> str:
    return id if number == 1 else f"{id}#{number}"


def place_of(atom: Atom) -> tuple[str, int, int]:
    """Which document a fact belongs to, which part of it the fact is, and how many there are."""
    place = atom.metadata.get(_PLACE)
    if not isinstance(place, Mapping):
        return atom.id, 1, 1
    return str(place["id"]), int(place["part"]), int(place["parts"])


def says(atom: Atom, text: str, words: Set[str]) -> list[str]:
    """Which of these the whole text of a document is, with its title or without."""
    heading = f"{atom.metadata.get('title', '')}\n\n"
    bare = text.removeprefix(heading) if len(heading) > 2 else text
    return [said for said in dict.fromkeys((text, bare)) if said in words]


def _cut(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > PART:
        end = _break(text, start + PART // 2, start + PART)
        yield text[start:end]
        start = end
    yield text[start:]


def _break(text: str, start: int, end: int) -> int:
    """Where to cut: after the last paragraph in reach, else after a line, a sentence, a word, or anywhere."""
    for sign in _BREAKS:
        places = [match.end() for match in sign.finditer(text, start, end)]
        if places:
            return places[-1]
    return end


def _fields(value: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        raise InputError(f"it is a {type(value).__name__}, not a text or a dict")
    if unknown := sorted(map(str, set(value) - set(_FIELDS))):
        raise InputError(f"unknown field {', '.join(unknown)}: it may have {', '.join(_FIELDS)}")
    if "text" not in value:
        raise InputError("it has no 'text'")
    return dict(value)


def _metadata(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"metadata must be a dict, not {type(value).__name__}")
    if taken := [name for name in _RESERVED if name in value]:
        raise InputError(f"metadata may not have {' or '.join(taken)}: choose another name")
    return dict(value)


def _line(value: Any) -> str:
    return " ".join(check_text("" if value is None else value, "title").split())


def _name(value: Any, name: str) -> str:
    if value is None:
        return ""
    plain = isinstance(value, int | UUID) and not isinstance(value, bool)
    return check_name(str(value) if plain else value, name)


def _id(ticket: str, text: str) -> str:
    """The same for the same words, but another one for each ticket."""
    owner = blake2b(ticket.encode()).digest() if ticket else b""
    return f"doc-{blake2b(owner + text.encode(), digest_size=16).hexdigest()}"
