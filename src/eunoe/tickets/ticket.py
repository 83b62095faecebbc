"""A ticket: what is to be done, read from a Markdown, JSON or TOML file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunoe.errors import InputError
from eunoe.model.validation import check_text

_LONGEST_ID = 200
_LONGEST_TITLE = 1000
_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One thing to be done in a project. It is known by its id: two tickets may have the same words.

    >>> Ticket("login-7", "Fix the login", "It fails for names with blanks.").document("Names are trimmed")
    'Ticket: Fix the login. It fails for names with blanks. Names are trimmed'
    """

    id: str
    title: str
    description: str = ""
    project: str = ""
    file: str = ""
    """Where it was read from, if it was."""

    def __post_init__(self) -> None:
        _check_line(self.id, "id", _LONGEST_ID)
        _check_line(self.title, "title", _LONGEST_TITLE)
        check_text(self.description, "the description of a ticket")
        check_text(self.project, "the project of a ticket")

    @property
    def words(self) -> str:
        """Its title and description, as one text."""
        return " ".join(_sentence(part) for part in (self.title, self.description) if part.strip())

    def document(self, lesson: str) -> str:
        """What is remembered of it: its own words and what came of them."""
        return f"Ticket: {self.words} {lesson.strip()}"


def read(path: str | os.PathLike[str], project: str = "") -> Ticket:
    """The ticket in a file; a project that is given counts more than the one the file names.

    Markdown has its title in front matter or as its first heading, and the rest is the description. JSON and TOML have
    `title`, `description`, and perhaps `id` and `project`. Without an id the ticket is called as the file is.
    """
    place = Path(path)
    fields = _fields(place, _text(place))
    title = _field(fields, "title", place)
    if not title.strip():
        raise InputError(f"{place} has no title: begin it with a heading such as '# Fix the login', or a field title")
    return Ticket(
        id=" ".join(_field(fields, "id", place).split()) or place.stem,
        title=" ".join(title.split()),
        description=_field(fields, "description", place).strip(),
        project=(project or _field(fields, "project", place)).strip(),
        file=str(place.resolve()),
    )


def _text(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8-sig")
    except IsADirectoryError:
        raise InputError(f"{place} is a folder: name the file of a ticket") from None
    except OSError as error:
        raise InputError(f"cannot read {place}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{place} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _fields(place: Path, text: str) -> Mapping[str, Any]:
    kind = place.suffix.lower()
    if kind == ".json":
        return _json(place, text)
    if kind == ".toml":
        return _toml(place, text)
    return _markdown(place, text)


def _json(place: Path, text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{place} must hold a JSON object with a title and a description")
    return value


def _toml(place: Path, text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{place} is not TOML: {error}") from None


def _markdown(place: Path, text: str) -> Mapping[str, Any]:
    front = _FRONT.match(text)
    fields = dict(_front(place, front[1], front[2])) if front else {}
    body = text[front.end() :] if front else text
    if not fields.get("title"):
        fields["title"], body = _headed(body)
    return {"description": body, **fields}


def _front(place: Path, fence: str, text: str) -> Mapping[str, Any]:
    if fence == "+++":
        return _toml(place, text)
    return dict(_pairs(text))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """`name: value` lines; what else front matter may hold says nothing about a ticket."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name == name.strip():
            yield name.lower(), _unquoted(value.strip())


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _headed(text: str) -> tuple[str, str]:
    """The first heading outside code, and the text without it."""
    lines = text.splitlines(keepends=True)
    for start, end, title in _headings(lines):
        return title, "".join(lines[:start] + lines[end:])
    return "", text


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        mark = _FENCE.match(bare)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif (heading := _HEADING.fullmatch(bare)) and heading[1]:
            yield number, number + 1, heading[1]
        elif bare.strip() and number + 1 < len(lines) and _UNDERLINE.fullmatch(lines[number + 1].rstrip("\r\n")):
            yield number, number + 2, bare.strip()


def _field(fields: Mapping[str, Any], name: str, place: Path) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if name == "id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{name} in {place} must be text, not {type(value).__name__}")
    return value


def _check_line(text: str, name: str, longest: int) -> None:
    if not check_text(text, f"the {name} of a ticket").strip() or text != text.strip() or not text.isprintable():
        raise InputError(f"the {name} of a ticket must be one line of text, not {text[:40]!r}")
    if len(text) > longest:
        raise InputError(f"the {name} of a ticket has {len(text):,} characters; at most {longest:,} fit")


def _sentence(text: str) -> str:
    bare = text.strip()
    return bare if bare.endswith((".", "!", "?", "…", "。", ":")) else f"{bare}."
