"""Secrets that were kept before anybody looked for them are taken out: of lessons, states and logs."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets.lessons import LESSON_ID, Lesson, find_lessons
from eunoe.apps.tickets.redaction import REDACTED, redact
from eunoe.apps.tickets.run_folder import RunFolder
from eunoe.errors import ConflictError

_NAMES: Final = frozenset(["id", "token", "session", "memories", "file", "log", "folder", "commit"])
"""Fields of a state by which something is found again."""
_OWN_TOKEN: Final = re.compile(r'(^ {0,9}"token": "[0-9a-f]{12}",?$)', re.MULTILINE)
"""That of a state which is damaged."""


class Cleaning(NamedTuple):
    """A lesson or file that held secrets: how many, and what is still to be done about it."""

    what: str
    secrets: int
    trouble: str = ""


def redact_lessons(memory: ProjectMemory, project: str, *, dry_run: bool = False) -> list[Cleaning]:
    """Take the secrets out of all lessons of a project. The old words are forgotten, and searched for.

    The clean copies are kept before the old ones are forgotten: a process that is killed in between loses nothing, and
    the next one goes on.
    """
    texts = [(lesson, redact(lesson.text)) for lesson in find_lessons(memory, project)]
    unclean = [(lesson, text) for lesson, text in texts if text != lesson.text]
    trouble = ""
    if unclean and not dry_run:
        memory.index(project, [_clean_copy(lesson, text) for lesson, text in unclean])
        parts = [id for lesson, _ in unclean for id in lesson.parts]
        report = memory.memory.forget({"project": project}, parts, verify=True)
        if not report.verified:
            held = (f"{id} in {scope}" for scope, ids in report.held_by.items() for id in ids)
            trouble = f"not all of the old words are gone yet: {', '.join([*report.traces, *held])}"
    return [Cleaning(f"lesson {lesson.id}", _count(lesson.text, text), trouble) for lesson, text in unclean]


def redact_runs(folder: RunFolder, project: str = "", *, dry_run: bool = False) -> Iterator[Cleaning]:
    """Take the secrets out of the states and logs of a project, or of all. A draft that holds one is removed."""
    for _, paths in groupby(folder.files(project), lambda path: path.parent):
        for path, text in _read_all(paths):  # before the first is written: then the drafts are removed
            clean = _redact_state(text) if "state" in path.name else redact(text)
            if clean != text:
                trouble = "" if dry_run else _replace(folder, path, clean)
                yield Cleaning(f"file {path}", _count(text, clean), trouble)


def _read_all(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    texts = []
    for path in paths:
        with suppress(FileNotFoundError):  # a draft that has become a state
            texts.append((path, path.read_text(encoding="utf-8", errors="replace")))
    return texts


def _replace(folder: RunFolder, path: Path, text: str) -> str:
    """Write a file anew, or remove it if it is a draft. Return why that is not possible now."""
    try:
        if path.name.startswith("."):
            folder.remove_drafts(path)
        else:
            folder.rewrite(path, text)
    except ConflictError as error:
        return str(error)
    return ""


def _clean_copy(lesson: Lesson, text: str) -> dict[str, Any]:
    return {
        "text": text,
        "id": _next_copy(lesson.id),
        "ticket": lesson.ticket,
        "label": "" if lesson.outcome == "completed" else "lesson",
        "time": lesson.time or None,
        "metadata": {"outcome": lesson.outcome},
    }


def _next_copy(id: str) -> str:
    """The id of a clean copy.

    >>> _next_copy("ticket/login/0123456789ab"), _next_copy("ticket/login/0123456789ab-1")
    ('ticket/login/0123456789ab-1', 'ticket/login/0123456789ab-2')
    """
    match = LESSON_ID.fullmatch(id)
    base, number = (match[1], int(match[2] or 0)) if match else (id, 0)
    return f"{base}-{number + 1}"


def _redact_state(text: str) -> str:
    """A state without secrets, in the same form; one that is damaged is taken as a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "".join(part if _OWN_TOKEN.fullmatch(part) else redact(part) for part in _OWN_TOKEN.split(text))
    clean = _redact_value(value)
    return text if clean == value else json.dumps(clean, indent=1)


def _redact_value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return value if name in _NAMES else redact(value)
    if isinstance(value, list):
        return [_redact_value(item, name) for item in value]
    return {key: _redact_value(item, key) for key, item in value.items()} if isinstance(value, dict) else value


def _count(text: str, clean: str) -> int:
    return max(1, clean.count(REDACTED) - text.count(REDACTED))
