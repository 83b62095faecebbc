"""Documents as callers give them, and the facts they are kept as: one, or several for a long document."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from uuid import UUID

from eunoe.errors import InputError
from eunoe.model.arguments import check_name, check_text
from eunoe.model.atom import MEMORY_KEY, Item, Record

MAX_UNSPLIT_CHARACTERS: Final = 8_000
"""A longer document is kept in parts: words and names that stand pages apart do not belong together."""
MAX_PART_CHARACTERS: Final = 4_000
_MAX_PARTS: Final = 10_000
"""More than the longest text has."""

_FIELDS: Final = ("text", "id", "title", "ticket", "label", "time", "metadata")
_PART: Final = "document"
"""The field of a fact's metadata that says which part of a document it is."""
_BREAKS: Final = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?。！？]\s*"), re.compile(r"\s"))  # noqa: RUF001
"""Ends of paragraphs, lines, sentences and words: where a text is split, best first."""


class DocumentPart(NamedTuple):
    """Which part of which document a fact is."""

    document: str
    number: int = 1
    parts: int = 1

    @property
    def ids(self) -> list[str]:
        """The ids of all parts of the document. The first one's is that of the document."""
        return [self.document, *(f"{self.document}#{number}" for number in range(2, self.parts + 1))]


def part_of(fact: Item | Record) -> DocumentPart:
    """Say which part a fact is. One that anybody else wrote, and that does not say so, is a document of its own."""
    try:
        values = fact.metadata[_PART]
        part = DocumentPart(str(values["id"]), int(values["part"]), int(values["parts"]))
    except (KeyError, TypeError, ValueError):
        return DocumentPart(fact.id)
    return part if 0 < part.number <= part.parts <= _MAX_PARTS else DocumentPart(fact.id)


class Document(NamedTuple):
    """A checked document, with its own id or one made from its words."""

    id: str
    text: str
    """Its words as they are kept, beginning with its title if it has one."""
    has_own_id: bool
    items: list[dict[str, Any]]
    """What to remember: a fact, or one for each part. The first has the document's id and metadata."""


def parse_document(value: str | Mapping[str, Any]) -> Document:
    """Read a text, or a mapping with "text" and perhaps "id", "title", "ticket", "label", "time", "metadata".

    >>> parse_document("Tea is hot.").id == parse_document({"text": "Tea is hot."}).id
    True
    >>> parse_document({"text": "It is hot.", "title": "Tea"}).text
    'Tea\\n\\nIt is hot.'
    """
    fields = _read_fields(value)
    if not check_text(fields["text"]).strip():
        raise InputError("its text is empty or only blanks")
    metadata = _read_metadata(fields.get("metadata"))
    title = fields.get("title") or metadata.get("title")
    title = " ".join(check_text("" if title is None else title, "title").split())
    ticket = _read_name(fields.get("ticket") or metadata.get("ticket"), "ticket")
    own_id = _read_name(fields.get("id"), "id")
    text = add_title(title, fields["text"])
    owner = blake2b(ticket.encode()).digest() if ticket else b""  # the same words of two tickets have two ids
    id = own_id or f"doc-{blake2b(owner + text.encode(), digest_size=16).hexdigest()}"
    fact = {"label": _read_name(fields.get("label"), "label"), "time": fields.get("time")}
    shared = {name: value for name, value in (("title", title), ("ticket", ticket)) if value}
    items = [fact | item for item in part_items(id, split_text(text), metadata, shared)]
    return Document(id, text, bool(own_id), items)


def part_items(
    id: str, texts: Sequence[str], metadata: Mapping[str, Any], shared: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """What `remember_many` is to be given for the parts of a document. Only the first has its own metadata."""
    for number, (part_id, text) in enumerate(zip(DocumentPart(id, parts=len(texts)).ids, texts, strict=True), 1):
        own = metadata if number == 1 else {}
        part = {_PART: {"id": id, "part": number, "parts": len(texts)}} if len(texts) > 1 else {}
        yield {"text": text, "id": part_id, "metadata": {**own, **shared, **part}}


def add_title(title: str, text: str) -> str:
    """Put the title above the text, unless it stands there already."""
    first_line = text.lstrip().split("\n", 1)[0].strip(" #\t\r")
    return text if not title or first_line == title else f"{title}\n\n{text}"


def split_text(text: str, longest: int = MAX_UNSPLIT_CHARACTERS) -> list[str]:
    """Split a text that is longer than this into parts that joined are the text again. No part is blank."""
    if len(text) <= longest:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = _part_end(text, start)
        part = text[start:end]
        if parts and not (part.strip() and parts[-1].strip()):
            parts[-1] += part
        else:
            parts.append(part)
        start = end
    return parts


def _part_end(text: str, start: int) -> int:
    if len(text) - start <= MAX_PART_CHARACTERS:
        return len(text)
    middle, end = start + MAX_PART_CHARACTERS // 2, start + MAX_PART_CHARACTERS
    breaks = ([match.end() for match in pattern.finditer(text, middle, end)] for pattern in _BREAKS)
    return next((positions[-1] for positions in breaks if positions), end)


def matching_texts(fact: Item, text: str, wanted: Set[str]) -> list[str]:
    """Return those of the wanted texts that a document's whole text is, with its title or without."""
    heading = f"{fact.metadata.get('title', '')}\n\n"
    untitled = text.removeprefix(heading) if len(heading) > 2 else text
    return [match for match in dict.fromkeys((text, untitled)) if match in wanted]


def _read_fields(value: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        raise InputError(f"it is a {type(value).__name__}, not a text or a dict")
    if unknown := sorted(map(str, set(value) - set(_FIELDS))):
        raise InputError(f"unknown field {', '.join(unknown)}: it may have {', '.join(_FIELDS)}")
    if "text" not in value:
        raise InputError("it has no 'text'")
    return value


def _read_metadata(value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"metadata must be a dict, not {type(value).__name__}")
    metadata = dict(value or {})
    if reserved := [name for name in (_PART, MEMORY_KEY) if name in metadata]:
        raise InputError(f"metadata may not have {' or '.join(reserved)}: choose another name")
    return metadata


def _read_name(value: Any, name: str) -> str:
    if isinstance(value, int | UUID) and not isinstance(value, bool):
        value = str(value)
    return check_name("" if value is None else value, name)
