"""Results as people read them: texts and tables as plain data, which `terminal.py` draws."""

import errno
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import TextIOWrapper
from typing import NamedTuple, Protocol, TextIO

from eunoe.model.atom import WORTH, Atom, Item
from eunoe.model.json import json_value
from eunoe.model.message import Message
from eunoe.model.result import Hit, Mention
from eunoe.model.scope import Scope

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


def agrees(question: str) -> bool:
    """Ask whoever sits at the terminal; no is meant by anything but yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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


_REASONS = {
    "lexical": "shares words with the question",
    "exact": "holds an identifier of the question as a whole",
    "dense": "is close to it in meaning",
    "neighbour": "stands beside turns that fit",
    "session": "comes from a session that fits",
    "speaker": "was said by, or is about, somebody the question names",
    "date": "falls on a date the question names",
    "time": "tells a time, as the question asks",
    "number": "tells an amount, as the question asks",
    "role": "was said by the user",
    "feedback": "shares words with the best other hits",
    "later": "says anew what another hit said earlier",
    "graph": "is reached by names",
    "rerank": "answers it, as the reranker reads it",
}


class Pairs(NamedTuple):
    """Names and values side by side."""

    values: Mapping[str, str]


class Grid(NamedTuple):
    """Rows of short cells under their names; the first cell says whose row it is."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    has_equal_columns: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows)


class Entry(NamedTuple):
    """A text with cells before it, and lines below it."""

    cells: tuple[str, ...]
    text: str
    note: str
    reasons: Sequence[str] = ()


class Entries(NamedTuple):
    """Texts one below the other, each over a few lines at most unless they are shown in full."""

    names: tuple[str, ...]
    rows: Sequence[Entry]
    is_full: bool = False

    def __bool__(self) -> bool:
        return bool(self.rows)


View = str | Pairs | Grid | Entries


def hit_entries(
    hits: Iterable[Hit], *, full: bool = False, why: bool = False, most: int | None = None, asked: str = ""
) -> Entries:
    """Hits, best first; with `why` at most so many reasons of each. What is not of the scope asked names its own."""
    rows = [
        Entry(
            (f"{hit.score:.3f}", _who_and_when(hit.item)),
            hit.text,
            " · ".join([hit.id, *_place(hit.item, asked)]),
            [*reason_lines(hit, most), *filter(None, [kept_as(hit.item)])] if why else (),
        )
        for hit in hits
    ]
    return Entries(("score", "who, when"), rows, full)


def item_entries(items: Iterable[Item], *, full: bool = False, asked: str = "") -> Entries:
    rows = [
        Entry((_who_and_when(item),), item.text, " · ".join([item.id, *_place(item, asked), *_item_notes(item)]))
        for item in items
    ]
    return Entries(("who, when",), rows, full)


def _place(item: Item, asked: str) -> list[str]:
    """The scope of a memory that is not of the one asked itself."""
    return [item.scope.text] if asked and item.scope and item.scope != Scope.parse(asked).alone else []


def mention_entries(mentions: Iterable[Mention], *, full: bool = False) -> Entries:
    rows = [Entry((each.kind,), each.text, f"{each.id} · is about it" if each.about else each.id) for each in mentions]
    return Entries(("kind",), rows, full)


def reason_lines(hit: Hit, most: int | None = None) -> list[str]:
    """Why a hit is there, in words, the weightiest reason first."""
    ranked = sorted(hit.reasons, key=lambda reason: -reason.share)[:most]
    details = (f": {reason.detail}" if reason.detail else "" for reason in ranked)
    return [
        f"{reason.share:.0%} {_REASONS.get(reason.name, reason.name)}{detail}"
        for reason, detail in zip(ranked, details, strict=True)
    ]


def who(item: Item) -> str:
    """Who said it, or what kind of memory it is."""
    if isinstance(item, Message):
        return item.speaker or item.role
    return f"{item.kind}: {item.label}" if item.label else item.kind


def kept_as(item: Item) -> str:
    """What kind of thing an atom holds and how sure that was, in words; empty if it was not formed."""
    if isinstance(item, Message) or not item.label:
        return ""
    sure = how_sure(item)
    return f"kept as {item.label}, {sure} sure" if sure else f"kept as {item.label}"


def how_sure(atom: Atom) -> str:
    """How likely an atom was worth keeping when it was formed; empty if nobody judged that."""
    worth = atom.metadata.get(WORTH)
    return f"{worth:.0%}" if isinstance(worth, int | float) else ""


def when(moment: datetime | None) -> str:
    """A moment to the minute, in UTC; to the day where that is all it says."""
    if moment is None:
        return ""
    is_midnight = not (moment.hour or moment.minute or moment.second)
    return f"{moment:%Y-%m-%d}" if is_midnight else f"{moment:%Y-%m-%d %H:%M}"


def _who_and_when(item: Item) -> str:
    return f"{who(item)}\n{when(item.time or item.recorded)}"


def _item_notes(item: Item) -> list[str]:
    if isinstance(item, Message):
        return [f"session {item.session}"] if item.session else []
    details = {
        "files": ", ".join(item.files),
        "people": ", ".join(item.people),
        "true from": when(item.valid_from),
        "true until": when(item.valid_to),
        "retired": when(item.retired),
    }
    marks = ["in review"] * item.in_review + ["pinned"] * item.pinned
    return marks + [f"{name} {value}" for name, value in details.items() if value]
