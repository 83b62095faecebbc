"""A ticket: what is to be done, read from a Markdown, JSON or TOML file."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.apps.tickets.redaction import REDACTED, redact
from eunoe.errors import InputError
from eunoe.model.arguments import check_path, check_text

_MAX_ID_CHARACTERS: Final = 200
_MAX_TITLE_CHARACTERS: Final = 1000
_FRONT_MATTER: Final = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_CODE_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


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

    def __post_init__(self) -> None:
        _check_line(self.id, "id", _MAX_ID_CHARACTERS)
        _check_line(self.title, "title", _MAX_TITLE_CHARACTERS)
        check_text(self.description, "the description of a ticket")
        check_text(self.project, "the project of a ticket")
        check_text(self.file, "the file of a ticket")

    @property
    def words(self) -> str:
        """Its title and description, as one text."""
        return " ".join(filter(None, map(as_sentence, (self.title, self.description))))

    def document(self, lesson: str) -> str:
        """Return what is remembered of it: its own words and what came of them."""
        return f"Ticket: {self.words} {check_text(lesson, 'lesson').strip()}"


def as_sentence(text: str) -> str:
    """The text with a full stop, if it ends with none.

    >>> as_sentence("Fix the login"), as_sentence("Why? "), as_sentence("")
    ('Fix the login.', 'Why?', '')
    """
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?", "…", "。", ":")) else f"{text}."


def read_ticket(path: str | os.PathLike[str], project: str = "") -> Ticket:
    """Read a ticket from a file; a project that is given counts more than the one the file names.

    Markdown has its title in front matter or as its first heading, and the rest is the description. JSON and TOML have
    `title`, `description`, and perhaps `id` and `project`. Without an id the ticket is called as the file is.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be a path, not {type(path).__name__}")
    file = Path(check_path(path, "path"))
    check_text(project, "project")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except IsADirectoryError:
        raise InputError(f"{file} is a folder: name the file of a ticket") from None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    fields = {".json": _parse_json, ".toml": _parse_toml}.get(file.suffix.lower(), _parse_markdown)(file, text)
    title = _text_field(fields, "title", file)
    if not title.strip():
        raise InputError(f"{file} has no title: begin it with a heading such as '# Fix the login', or a field title")
    return Ticket(
        id=_id(fields, file),
        title=" ".join(title.split()),
        description=_text_field(fields, "description", file).strip(),
        project=(project or _text_field(fields, "project", file)).strip(),
        file=str(file.resolve()),
    )


def _parse_json(file: Path, text: str) -> Mapping[str, Any]:
    value = _parse(file, "JSON", json.loads, text)
    if not isinstance(value, dict):
        raise InputError(f"{file} must hold a JSON object with a title and a description")
    return value


def _parse_toml(file: Path, text: str) -> Mapping[str, Any]:
    return dict(_parse(file, "TOML", tomllib.loads, text))


def _parse(file: Path, format: str, loads: Callable[[str], Any], text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not {format}: {error}") from None


def _parse_markdown(file: Path, text: str) -> Mapping[str, Any]:
    fields: dict[str, Any] = {}
    if front_matter := _FRONT_MATTER.match(text):
        is_toml = front_matter[1] == "+++"
        fields.update(_parse_toml(file, front_matter[2]) if is_toml else _parse_pairs(front_matter[2]))
        text = text[front_matter.end() :]
    if not fields.get("title"):
        fields["title"], text = _split_heading(text)
    return {"description": text, **fields}


def _parse_pairs(text: str) -> dict[str, str]:
    """Lines `name: value`. Whatever else YAML may hold says nothing about a ticket."""
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name == name.strip():
            value = value.strip()
            is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
            fields[name.lower()] = value[1:-1] if is_quoted else value
    return fields


def _split_heading(text: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    bare = [line.rstrip("\r\n") for line in lines]
    for number, (line, is_code) in enumerate(zip(bare, _mark_code(bare), strict=True)):
        heading = _HEADING.fullmatch(line)
        if not is_code and heading and heading[1]:
            return heading[1], "".join(lines[:number] + lines[number + 1 :])
        if not is_code and line.strip() and _UNDERLINE.fullmatch("".join(bare[number + 1 : number + 2])):
            return line.strip(), "".join(lines[:number] + lines[number + 2 :])
    return "", text


def _mark_code(lines: Iterable[str]) -> Iterator[bool]:
    open_fence = ""
    for line in lines:
        fence = _CODE_FENCE.match(line)
        yield bool(fence or open_fence)
        if fence and (not open_fence or fence[1].startswith(open_fence)):
            open_fence = "" if open_fence else fence[1]


def _id(fields: Mapping[str, Any], file: Path) -> str:
    id = " ".join(_text_field(fields, "id", file).split()) or file.stem
    if redact(id).count(REDACTED) > id.count(REDACTED):  # it would stand in the names of folders, and in every lesson
        raise InputError(f"the id of {redact(str(file))} holds a secret: give it another, as 'id' in its front matter")
    return id


def _text_field(fields: Mapping[str, Any], name: str, file: Path) -> str:
    value = fields.get(name)
    if name == "id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} in {file} must be text, not {type(value).__name__}")
    return value or ""


def _check_line(text: str, name: str, max_characters: int) -> None:
    if not check_text(text, f"the {name} of a ticket").strip() or text != text.strip() or not text.isprintable():
        raise InputError(f"the {name} of a ticket must be one line of text, not {text[:40]!r}")
    if len(text) > max_characters:
        raise InputError(f"the {name} of a ticket has {len(text):,} characters; at most {max_characters:,} fit")
