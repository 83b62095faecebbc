"""TOML, changed in place: one table is added or taken out, the rest stays byte for byte."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from eunoe.errors import InputError


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
