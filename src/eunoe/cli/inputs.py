"""What commands take: options that several have, and messages and facts out of files and pipes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, TextIO, TypeVar

import typer

from eunoe.errors import InputError
from eunoe.model.arguments import RecipeName, check_path

T = TypeVar("T")
FORMATS: Final = ("auto", "lines", "array", "text")
BATCH_SIZE: Final = 500

# A plain line may open with a bracket too, as in "[10:32] Anna: hello"; JSON goes on with one of these.
_JSON_OBJECT = re.compile(r'\s*\{\s*(["}]|$)')
_JSON_ARRAY = re.compile(r'\s*\[\s*([{"\]]|$)')


@contextmanager
def open_text(name: str) -> Iterator[TextIO]:
    """Open a file, or standard input for `-`, as UTF-8."""
    try:
        if name == "-":
            if isinstance(sys.stdin, TextIOWrapper):
                sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict", newline="\n")
            yield sys.stdin
            return
        # Only \n ends a line: a text may hold other characters that editors take for line ends.
        with Path(check_path(name, "the file")).open(encoding="utf-8-sig", newline="\n") as file:
            yield file
    except IsADirectoryError:
        raise InputError(f"{name} is a folder: name a file, or - for standard input") from None
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{_title(name)} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # longer than a name may be, or with a NUL
        return False


def read_values(name: str, file: TextIO, format: str, parse: Callable[[Any], T]) -> Iterator[T]:
    """Parse what a file holds, one value after the other; one that cannot be parsed is named by its place."""
    for place, value in _values_and_places(_title(name), file, format):
        try:
            yield parse(value)
        except (InputError, TypeError) as error:
            raise InputError(f"{place}: {error}") from None


def _values_and_places(title: str, file: TextIO, format: str) -> Iterator[tuple[str, Any]]:
    if format not in FORMATS:
        raise InputError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        return
    lines = chain([first], numbered)
    kind = _detect_format(first[1]) if format == "auto" else format
    if kind == "array":
        array = _parse_json(title, "".join(line for _, line in lines))
        if not isinstance(array, list):
            raise InputError(f"{title} does not hold a JSON array")
        yield from ((f"{title} item {number}", value) for number, value in enumerate(array, 1))
    for number, line in lines:
        place = f"{title} line {number}"
        yield place, line.rstrip("\r\n") if kind == "text" else _parse_json(place, line.strip())


def export_lines(name: str, file: TextIO) -> Iterable[str]:
    """The lines of an export; a file of messages, which `observe` reads, is refused."""
    head: list[str] = []
    for line in file:
        head.append(line)
        if line.strip():
            break
    if head and _is_message(head[-1]):
        source = "-" if name == "-" else f"--file {name}"
        raise InputError(f"{_title(name)} is not an export; if it holds messages, use `eunoe observe SCOPE {source}`")
    return chain(head, file)


def parse_object(text: str, name: str) -> dict[str, Any]:
    """The value of an option that must be a JSON object."""
    value = _parse_json(name, text)
    if not isinstance(value, dict):
        raise InputError(f'{name} must be a JSON object such as {{"key": "value"}}')
    return value


def _title(name: str) -> str:
    return "standard input" if name == "-" else name


def _detect_format(line: str) -> str:
    if _JSON_OBJECT.match(line):
        return "lines"
    return "array" if _JSON_ARRAY.match(line) else "text"


def _is_message(line: str) -> bool:
    if _JSON_ARRAY.match(line):
        return True
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not value.keys() & {"eunoe", "scope"}


def _parse_json(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InputError(f"{place}: not JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise InputError(f"{place}: not JSON that can be read: it is nested too deeply") from None


SINGULARS: Final = {
    "kinds": "kind",
    "labels": "label",
    "files": "file",
    "pages": "page",
    "people": "person",
    "users": "user",
    "sessions": "session",
    "speakers": "speaker",
    "source_scopes": "source-scope",
    "memory_types": "type",
}
"""What the option is called of which each names one."""
METAVARS: Final = {"time": "TIME", "mapping": "JSON", "recipe": "RECIPE", "scope": "SCOPE", "scopes": "SCOPE"}
_RECIPE_HELP: Final = (
    "How to rank: default, thorough (slower, finds more), documents, associative, lexical, dense or rrf; or for how "
    "many milliseconds thorough may read."
)
ARGUMENTS_HELP: Final = {
    "scope": "Whose memory: key=value, several joined by /.",
    "id": "The id of a memory.",
    "ids": "Ids of memories or messages.",
    "text": "What it says.",
    "query": "The question.",
    "message": "What is to be replied to.",
    "paths": "Files or folders.",
    "number": "The number of a revision.",
    "kind": "fact or observation.",
    "kinds": "message, fact or observation.",
    "label": "What it states, such as preference.",
    "labels": "With this label.",
    "files": "A file it is about.",
    "pages": "A page it is about.",
    "people": "Somebody it is about.",
    "sessions": "Only from this session.",
    "speakers": "Only said by this one.",
    "source": "A message it rests on.",
    "source_scopes": "Another scope that --source names.",
    "since": "From this moment on (ISO 8601).",
    "until": "Before this moment, itself not included (ISO 8601).",
    "as_of": "What was true then (ISO 8601).",
    "known_at": "What the store knew then (ISO 8601).",
    "time": "When it happened (ISO 8601).",
    "valid_from": "Since when it is true (ISO 8601).",
    "valid_to": "Until when it is true (ISO 8601).",
    "pinned": "Never archive it.",
    "metadata": "To keep with it.",
    "after": "Read on from the page before.",
    "newest": "The newest first.",
    "recipe": _RECIPE_HELP,
    "format": "xml, markdown, json or messages.",
    "max_age_days": "What is older.",
    "max_idle_days": "What was not recalled since.",
    "keep_best": "What is beyond this number.",
    "dry_run": "Only say what would be done.",
    "may_return": "The same words may be stored again.",
    "everything": "All that the scope holds.",
    "author": "Who wrote it.",
    "exact": "Only the scope itself, not what lies within a user's.",
}
"""What is said of arguments on a command line where the documentation of a verb says nothing, or says it of Python."""


def argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def repeatable_option(name: str, metavar: str, help: str) -> object:
    return typer.Option(name, metavar=metavar, help=f"{help} May be repeated.")


def choice_option(name: str, help: str) -> object:
    """A closed choice that the memory checks, as it does for every caller."""
    return typer.Option(name, metavar=name.strip("-").upper(), parser=str, help=help)


def parse_recipe(value: str | int) -> str | int:
    """A number is a time; anything else the memory checks. (Typer knows no type that is either.)"""
    return int(value) if re.fullmatch("[0-9]{1,9}", str(value)) else value


ScopeArgument = Annotated[str, argument("SCOPE", ARGUMENTS_HELP["scope"])]
ExactOption = Annotated[bool, typer.Option("--exact", help=ARGUMENTS_HELP["exact"])]
FullOption = Annotated[bool, typer.Option("--full", help="Show every text whole.")]
OffOption = Annotated[bool, typer.Option("--off", help="Take the mark off again.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
RecipeOption = Annotated[RecipeName, typer.Option("--recipe", metavar="RECIPE", parser=parse_recipe, help=_RECIPE_HELP)]


_MAX_PROBLEMS_SHOWN: Final = 20
"""Lines of trouble that are worth reading one by one; all of them are in the JSON."""


def problem_lines(title: str, problems: tuple[str, ...]) -> list[str]:
    lines = [f"{title}: {problem}" for problem in problems[:_MAX_PROBLEMS_SHOWN]]
    more = len(problems) - len(lines)
    return [*lines, f"{title}: {more:,} more; --json names them all"] if more else lines
