"""Standard output as JSON or text, and what is said beside it on standard error."""

import errno
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import NamedTuple, Protocol, TextIO

from eunoe.model.json import json_value

_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")
"""Those of the terminal, and those that change the order in which a line is read."""


class Advance(Protocol):
    """Tells a progress bar how much is done, and how much there is if that is known."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


class JsonPage(NamedTuple):
    """Items that are written as they come, each on a line of its own, and where to read on."""

    items: Iterable[object]
    next: str
    notes: tuple[str, ...] = ()


def write_json(value: object, indent: int | None = 2) -> None:
    """Write one JSON document."""
    file = utf8_output()
    if isinstance(value, JsonPage):
        file.write('{"items": [')
        for place, item in enumerate(value.items):
            file.write((",\n" if place else "\n") + json.dumps(json_value(item), ensure_ascii=False))
        notes = f', "notes": {json.dumps(value.notes, ensure_ascii=False)}' if value.notes else ""
        file.write(f'\n], "next": {json.dumps(value.next)}{notes}}}\n')
    else:
        file.write(json.dumps(json_value(value), ensure_ascii=False, indent=indent) + "\n")
    file.flush()


def write_text(text: str) -> None:
    """Write a text as it is; on a terminal its control characters are made visible."""
    file = utf8_output()
    text = escape_controls(text) if file.isatty() else text
    file.write(text if text.endswith("\n") else f"{text}\n")


def escape_controls(text: str) -> str:
    """Make control characters visible. Stored text is data: an escape sequence in it must not drive the terminal."""
    return _CONTROL_CHARACTER.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def quantity(number: int, noun: str) -> str:
    """A number and what it counts.

    >>> quantity(1, "memory"), quantity(2, "memory"), quantity(0, "index")
    ('1 memory', '2 memories', '0 indexes')
    """
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return f"{number:,} {plural}"


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def shorten(text: str, characters: int) -> str:
    """One line of at most so many characters; what is cut is marked."""
    line = one_line(text)
    return line if len(line) <= characters else f"{line[: characters - 1].rstrip()}…"


def say(text: str) -> None:
    """Say something beside the result."""
    print(escape_controls(text), file=sys.stderr)


def say_notes(notes: Iterable[str]) -> None:
    """Say what there is to know about a result, a line each."""
    for note in notes:
        say(one_line(note))


def utf8_output() -> TextIO:
    """Standard output in UTF-8, which JSON asks for, whatever the terminal speaks."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """A progress bar on standard error, if that is a terminal.

    Ctrl-C does not reach work in another thread: it is stopped the next time it says how far it is.
    """
    interrupted = threading.Event()
    with _progress_bar(title) as update:

        def advance(done: int, total: int | None = None, /) -> None:
            if interrupted.is_set():
                raise InterruptedError(errno.EINTR, "interrupted")
            update(done, total)

        try:
            yield advance
        except KeyboardInterrupt:
            interrupted.set()
            raise


@contextmanager
def _progress_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
