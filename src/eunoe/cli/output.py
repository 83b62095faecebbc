"""What goes to standard output as JSON, and what is said on standard error."""

from __future__ import annotations

import errno
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Protocol

from eunoe.model.hit import Hit
from eunoe.model.message import Message
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    pass


class Advance(Protocol):
    """Tells a progress bar where the work stands, and how much there is if that is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


def document(value: object) -> None:
    """One JSON document."""
    utf8_output().write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def line(value: object) -> None:
    """One JSON document on one line, at once: for output that goes on."""
    file = utf8_output()
    file.write(json.dumps(plain(value), ensure_ascii=False) + "\n")
    file.flush()


def page(items: Iterable[object], next: str) -> None:
    """One JSON document of items and where to read on; each item is written as it comes, on a line of its own."""
    file = utf8_output()
    file.write('{"items": [')
    for place, item in enumerate(items):
        file.write((",\n" if place else "\n") + json.dumps(plain(item), ensure_ascii=False))
    file.write(f'\n], "next": {json.dumps(next)}}}\n')


def plain(value: Any) -> Any:
    """A noun as JSON can carry it: its fields by name, times as ISO 8601, scopes in their canonical form."""
    if isinstance(value, Scope):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Hit):
        return {
            **plain(value.item),
            "score": value.score,
            "reasons": plain(value.reasons),
            "source": list(value.source),
        }
    if is_dataclass(value):
        kind = {"kind": "message"} if isinstance(value, Message) else {}
        return kind | {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def counted(number: int, noun: str) -> str:
    """A number and what it counts, as people say it."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def one_line(said: object) -> str:
    """What somebody said, as one line."""
    return " ".join(str(said).split())


def say(text: str) -> None:
    """A message beside the result."""
    print(text, file=sys.stderr)


def say_notes(notes: Iterable[str]) -> None:
    """Say what there is to know about a result."""
    for note in notes:
        say(one_line(note))


def utf8_output() -> Any:
    """Standard output in UTF-8, which JSON asks for, whatever the terminal speaks."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """A progress bar on standard error; nothing where that is not a terminal.

    The work runs in a thread that Ctrl-C does not reach: it is stopped the next time it says how far it is.
    """
    stopped = threading.Event()
    with _bar(title) as show:

        def advance(done: int, total: int | None = None, /) -> None:
            if stopped.is_set():
                raise InterruptedError(errno.EINTR, "interrupted")
            show(done, total)

        try:
            yield advance
        except KeyboardInterrupt:
            stopped.set()
            raise


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
