"""Messages and facts out of files and pipes: JSON Lines, a JSON array, or plain lines of text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

from eunoe.errors import InputError

T = TypeVar("T")
FORMATS = ("auto", "lines", "array", "text")
BATCH = 500

# A plain line may open with a bracket too, as in "[10:32] Anna: hello"; JSON goes on with one of these.
_OBJECT = re.compile(r'\s*\{\s*(["}]|$)')
_ARRAY = re.compile(r'\s*\[\s*([{"\]]|$)')


@contextmanager
def opened(name: str) -> Iterator[TextIO]:
    """A file, or standard input for `-`, as UTF-8; trouble with it is said in one line."""
    try:
        if name == "-":
            yield _standard_input()
            return
        # Only \n ends a line: a text may hold other characters that editors take for line ends.
        with Path(name).open(encoding="utf-8-sig", newline="\n") as file:
            yield file
    except IsADirectoryError:
        raise InputError(f"{name} is a folder: name a file, or - for standard input") from None
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{title(name)} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def title(name: str) -> str:
    return "standard input" if name == "-" else name


def values(name: str, file: TextIO, format: str) -> Iterator[tuple[str, Any]]:
    """What a file holds, one value after the other, each with its place in words."""
    if format not in FORMATS:
        raise InputError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    lines = chain([first], numbered)
    chosen = _format(first[1]) if format == "auto" else format
    if chosen == "array":
        yield from _array(name, lines)
        return
    for number, line in lines:
        place = f"{title(name)} line {number}"
        yield place, line.rstrip("\r\n") if chosen == "text" else _json(place, line.strip())


def export_lines(name: str, file: TextIO) -> Iterator[str]:
    """The lines of an export; messages, which `observe` reads, are known by the first one."""
    head: list[str] = []
    for line in file:
        head.append(line)
        if line.strip():
            break
    if head and _is_message(head[-1]):
        raise InputError(f"{title(name)} is not an export; if it holds messages, use `eunoe observe SCOPE {name}`")
    return chain(head, file)


def checked(found: Iterable[tuple[str, Any]], read: Callable[[Any], T]) -> Iterator[T]:
    """Reads each value; one that cannot be read is named by its place."""
    for place, value in found:
        try:
            yield read(value)
        except (InputError, TypeError) as error:
            raise InputError(f"{place}: {error}") from None


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def json_object(text: str, name: str) -> dict[str, Any]:
    """An option's value that must be a JSON object."""
    value = _json(name, text)
    if not isinstance(value, dict):
        raise InputError(f'{name} must be a JSON object such as {{"key": "value"}}')
    return value


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict", newline="\n")
    return sys.stdin


def _format(line: str) -> str:
    if _OBJECT.match(line):
        return "lines"
    return "array" if _ARRAY.match(line) else "text"


def _is_message(line: str) -> bool:
    if _ARRAY.match(line):
        return True
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not value.keys() & {"eunoe", "scope"}


def _array(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Any]]:
    array = _json(title(name), "".join(line for _, line in lines))
    if not isinstance(array, list):
        raise InputError(f"{title(name)} does not hold a JSON array")
    for number, value in enumerate(array, 1):
        yield f"{title(name)} item {number}", value


def _json(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InputError(f"{place}: not JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise InputError(f"{place}: not JSON that can be read: it is nested too deeply") from None
