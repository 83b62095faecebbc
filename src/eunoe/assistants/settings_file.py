"""Settings files of assistants: JSON with comments and TOML, changed and put back byte for byte."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from eunoe.errors import InputError
from eunoe.files import write_file
from eunoe.memory import default_path

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MAX_DEPTH: Final = 100
"""Deeper than any settings, and well below what the interpreter can take."""


class Element(NamedTuple):
    """A member of an object or an item of an array, with its place in the text."""

    key: str
    start: int
    value: "Node"
    comma: int
    """Where the comma after it stands; -1 if there is none."""


@dataclass(slots=True)
class Node:
    """A value with its place in the text."""

    start: int
    end: int
    data: Any
    elements: list[Element] = field(default_factory=list)


class Document:
    """A text of JSON with comments and trailing commas. Every change gives a new text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root = _Reader(text).read()

    @property
    def data(self) -> Any:
        return {} if self.root is None else self.root.data

    def with_value(self, path: Sequence[str], value: object) -> str:
        """The text with a member at a path, in the place of one that is there; objects on the way are made."""
        node = self.root
        if node is None:
            return self._with_root(_nest(path, value))
        for place, key in enumerate(path):
            found = self._member(node, key, path[:place])
            if found is None:
                return self._with_element(node, key, _nest(path[place + 1 :], value))
            node = found.value
        start = self._line_indent(node.start)
        return self.text[: node.start] + self._dump(value, start) + self.text[node.end :]

    def with_item(self, path: Sequence[str], item: object) -> str:
        """The text with one more item in the list at a path."""
        node = self.find(path)
        if node is None:
            return self.with_value(path, [item])
        if not isinstance(node.data, list):
            raise InputError(f"{'.'.join(path)} is no list")
        return self._with_element(node, "", item)

    def without(self, path: Sequence[str], place: int | None = None) -> str:
        """The text without the member at a path, or without one item of the list there."""
        parent = self.find(path[:-1] if place is None else path)
        if parent is None:
            return self.text
        places = [at for at, each in enumerate(parent.elements) if each.key == path[-1]] if place is None else [place]
        return self._without_element(parent.elements, places[-1]) if places else self.text

    def find(self, path: Sequence[str]) -> Node | None:
        node = self.root
        for place, key in enumerate(path):
            found = self._member(node, key, path[:place]) if node else None
            node = found.value if found else None
        return node

    def _member(self, node: Node, key: str, path: Sequence[str]) -> Element | None:
        if not isinstance(node.data, dict):
            raise InputError(f"{'.'.join(path) or 'the whole file'} is no object")
        found = [each for each in node.elements if each.key == key]
        if len(found) > 1:
            raise InputError(f"{'.'.join((*path, key))} is there twice")
        return found[0] if found else None

    def _with_root(self, value: object) -> str:
        lead = self.text if not self.text.strip() else self.text.rstrip() + self.newline
        return f"{lead.lstrip(' ')}{self._dump(value, '')}{self.newline}"

    def _with_element(self, node: Node, key: str, value: object) -> str:
        last = node.elements[-1] if node.elements else None
        is_one_line = last is not None and "\n" not in self.text[node.start : node.end]
        close = self._line_indent(node.start)
        indent = self._line_indent(last.start) if last and self._starts_line(last.start) else close + self.indent
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(node.data, dict) else ""
        added = name + (json.dumps(value, ensure_ascii=False) if is_one_line else self._dump(value, indent))
        end = node.start + 1 if last is None else last.value.end if last.comma < 0 else last.comma + 1
        body = self.text[end : node.end - 1].rstrip(" \t\r\n")  # comments that stand before the bracket
        rest = self.text[end + len(body) : node.end - 1]
        if is_one_line:
            lead = " "
        else:
            lead = self.newline + indent
            rest = rest if "\n" in rest else self.newline + close
        comma = "," if last and last.comma < 0 else ""
        trail = "," if last and last.comma >= 0 else ""
        return self.text[:end] + comma + body + lead + added + trail + rest + self.text[node.end - 1 :]

    def _without_element(self, elements: list[Element], place: int) -> str:
        element, text = elements[place], self.text
        start, end = element.start, element.value.end
        if element.comma >= 0 and not text[end : element.comma].strip():
            end = element.comma + 1
        elif element.comma >= 0:
            text = text[: element.comma] + text[element.comma + 1 :]
        while start and text[start - 1] in " \t":
            start -= 1
        if start and text[start - 1] == "\n" and text[end:].lstrip(" \t")[:1] in ("", "\r", "\n"):
            start -= 2 if text[start - 2 : start] == "\r\n" else 1
        text = text[:start] + text[end:]
        if element.comma < 0 and place:
            comma = elements[place - 1].comma
            text = text[:comma] + text[comma + 1 :]
        return text

    @property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def indent(self) -> str:
        """One step of indentation, as the file has it."""
        found = re.search(r"\n([ \t]+)[^ \t\r\n]", self.text)
        return found[1] if found and self.root and self.root.elements else "  "

    def _starts_line(self, place: int) -> bool:
        line = self.text.rfind("\n", 0, place) + 1
        return line > 0 and not self.text[line:place].strip(" \t")

    def _line_indent(self, place: int) -> str:
        line = self.text[self.text.rfind("\n", 0, place) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _dump(self, value: object, indent: str) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=self.indent)
        return text.replace("\n", self.newline + indent)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def read(self) -> Node | None:
        """The one value of the text; None if there is nothing but comments."""
        self._skip()
        if self.place == len(self.text):
            return None
        node = self._value(0)
        self._skip()
        if self.place < len(self.text):
            self._refuse("something stands after the end")
        return node

    def _value(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            self._refuse("too deeply nested")
        sign = self.text[self.place : self.place + 1]
        if sign == "{":
            return self._container("}", {}, depth)
        if sign == "[":
            return self._container("]", [], depth)
        start = self.place
        found = (_STRING if sign == '"' else _SCALAR).match(self.text, start)
        if not found:
            self._refuse("a value is missing or cannot be read")
        self.place = found.end()
        return Node(start, self.place, self._loads(found[0]))

    def _container(self, close: str, data: Any, depth: int) -> Node:
        node = Node(self.place, 0, data)
        self.place += 1
        while not self._takes(close):
            if node.elements and node.elements[-1].comma < 0:
                self._refuse("a comma is missing")
            start, key = self.place, self._key() if close == "}" else ""
            value = self._value(depth + 1)
            self._skip()
            comma = self.place - 1 if self._takes(",") else -1
            node.elements.append(Element(key, start, value, comma))
            if isinstance(data, dict):
                data[key] = value.data
            else:
                data.append(value.data)
        node.end = self.place
        return node

    def _key(self) -> str:
        found = _STRING.match(self.text, self.place)
        if not found:
            self._refuse("a name in quotes is missing")
        self.place = found.end()
        if not self._takes(":"):
            self._refuse("a colon is missing")
        self._skip()
        return str(self._loads(found[0]))

    def _takes(self, sign: str) -> bool:
        self._skip()
        if not self.text.startswith(sign, self.place):
            return False
        self.place += 1
        return True

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.place)
        self.place = found.end() if found else self.place

    def _loads(self, token: str) -> Any:
        try:
            return json.loads(token)
        except ValueError:
            self._refuse("a value cannot be read")

    def _refuse(self, problem: str) -> NoReturn:
        line = self.text.count("\n", 0, self.place) + 1
        raise InputError(f"{problem} in line {line}")


def _nest(path: Sequence[str], value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(error)) from error


def with_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> str:
    """The text with a table, in the place of one that is there, else at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]", *(f"{name} = {_dump(value)}" for name, value in values.items())]
    return with_block(text, path, "".join(line + newline for line in lines))


def with_block(text: str, path: Sequence[str], block: str) -> str:
    """The text with a table as it is written elsewhere, in the place of one that is there, else at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if found := _find_table(text, path):
        return text[: found[0]] + block + text[found[1] :]
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + block


def table_text(text: str, path: Sequence[str]) -> str:
    """A table with its tables as they are written; empty if there is none."""
    found = _find_table(text, path)
    return text[found[0] : found[1]] if found else ""


def without_table(text: str, path: Sequence[str]) -> str:
    found = _find_table(text, path)
    if not found:
        return text
    start, end = found
    before = text[:start]
    if before.endswith(("\n\n", "\n\r\n")):  # the empty line that was put before it
        before = before[: -2 if before.endswith("\r\n") else -1]
    return before + text[end:]


def _find_table(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Where a table with its tables begins and ends, without the empty lines and comments before the next one."""
    name = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in path)
    found = re.search(rf"^[ \t]*\[[ \t]*{name}[ \t]*\][^\n]*(?:\n|\Z)", text, re.MULTILINE)
    if not found:
        return None
    end = found.end()
    for line in re.finditer(r"[^\n]*(?:\n|\Z)", text[end:]):
        stripped = line[0].strip()
        if stripped.startswith("[") and not re.match(rf"\[[ \t]*{name}[ \t]*\.", stripped):
            break
        if stripped and not stripped.startswith("#"):
            end = found.end() + line.end()
    return found.start(), end


def _dump(value: object) -> str:
    """Strings and lists of strings; JSON writes them as TOML reads them, but for the sign DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_BOM: Final = "\ufeff"
_MAX_BYTES: Final = 64 * 1024 * 1024


class ConfigText(NamedTuple):
    """The text of a settings file, and whether a byte order mark stands before it."""

    text: str
    has_bom: bool = False

    @classmethod
    def from_bytes(cls, content: bytes, path: Path) -> "ConfigText":
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not UTF-8: save it as UTF-8, then install again; it was not touched"
            ) from error
        return cls(text.removeprefix(_BOM), text.startswith(_BOM))

    def to_bytes(self) -> bytes:
        return (_BOM * self.has_bom + self.text).encode()


def read_file(path: Path) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is too large for a settings file; it was not touched")
        return path.read_bytes()
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Original:
    """One file as it was, and the fingerprint of what was written in its place."""

    path: str
    written: str
    before: bytes | None
    """None if there was no file."""
    folder: str = ""
    """The uppermost folder that was made for it."""

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is still as it was written."""
        try:
            return fingerprint(Path(self.path).read_bytes()) == self.written
        except OSError:
            return False


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Originals:
    """The files of one assistant as they were, in the user's data folder. Only the user may read them."""

    def __init__(self, assistant: str) -> None:
        self.path = default_path().parent / "assistants" / f"{assistant}.json"

    def load(self) -> dict[str, Original]:
        """By path. What cannot be read counts as not there: an uninstall then takes out our entries alone."""
        try:
            rows = json.loads(self.path.read_bytes())
            return {row["path"]: _from_row(row) for row in rows}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def save(self, originals: Mapping[str, Original]) -> None:
        if not originals:
            self.path.unlink(missing_ok=True)
            return
        rows = [_to_row(each) for each in originals.values()]
        write_file(self.path, json.dumps(rows, indent=1).encode())
        os.chmod(self.path, 0o600)


def _to_row(original: Original) -> dict[str, Any]:
    # Any byte has a letter in Latin-1, and so it comes back.
    return {**asdict(original), "before": None if original.before is None else original.before.decode("latin-1")}


def _from_row(row: dict[str, Any]) -> Original:
    before = row["before"]
    return Original(**{**row, "before": None if before is None else before.encode("latin-1")})
