"""Take in what hooks have left in the spool. One process does it at a time; nothing is lost if it is killed."""

import hashlib
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import eunoe
from eunoe.assistants.hook import hook_folder, spool_folder, strip_private
from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.files import locked, write_file
from eunoe.memory import Memory
from eunoe.model.arguments import parse_optional_time
from eunoe.model.message import Message
from eunoe.model.scope import Scope
from eunoe.net.local_server import find_local_server

_BLOCK: Final = re.compile(r"<(MemoryContext|system-reminder)\b[^>]*>(?:.*?</\1\s*>|.*\Z)", re.DOTALL | re.IGNORECASE)
_MACHINE_TEXT: Final = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-[a-z]+|bash-(?:input|stdout|stderr)|task-notification)\b"
    r"|\[Request interrupted by user)"
)
_HIDDEN: Final = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_MARK_BYTES: Final = 256
"""Of the bytes before a place, by which it is found to be the same file still."""


class Saying(NamedTuple):
    """One thing that was said."""

    role: str
    text: str
    time: datetime | None = None


class Place(NamedTuple):
    """How far a transcript was read: the bytes, and a fingerprint of the last of them."""

    offset: int = 0
    mark: str = ""


def clean(text: str) -> str:
    """A text without what is private, what was recalled, and what programs put there."""
    text = _BLOCK.sub("", strip_private(text))
    return "" if _MACHINE_TEXT.match(text) else text.strip()


def read_transcript(path: Path, place: Place) -> tuple[list[Saying], Place, bool]:
    """What was said since a place, the place after it, and whether it was read from the beginning.

    A transcript that was cut or rewritten is read from the beginning; a line that is not yet whole waits. One that is
    gone says nothing.
    """
    try:
        if not path.is_file():  # to open a pipe would take for ever
            return [], place, False
        file = path.open("rb")
    except (OSError, ValueError):
        return [], place, False
    with file:
        start = place.offset if place.mark == _mark_before(file, place.offset) else 0
        file.seek(start)
        sayings: list[Saying] = []
        end = start
        while (line := file.readline(_MAX_LINE_BYTES)).endswith(b"\n") or len(line) == _MAX_LINE_BYTES:
            end += len(line)
            sayings += _read_line(line)
        return sayings, Place(end, _mark_before(file, end)), start == 0


def _mark_before(file: Any, offset: int) -> str:
    size = min(offset, _MARK_BYTES)
    file.seek(offset - size)
    return hashlib.sha256(file.read(size)).hexdigest()[:16] if size else ""


def _read_line(line: bytes) -> Iterator[Saying]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(row, dict) or row.get("type") not in ("user", "assistant") or any(map(row.get, _HIDDEN)):
        return
    message = row.get("message")
    text = clean(_text_of(message.get("content"))) if isinstance(message, dict) else ""
    if text:
        yield Saying(row["type"], text, _time_of(row.get("timestamp")))


def _text_of(content: object) -> str:
    """The words of a message: its text, or its parts that are text. They are joined, since a mark may span them."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _time_of(value: object) -> datetime | None:
    try:
        return parse_optional_time(value) if isinstance(value, str) else None
    except InputError:
        return None


_WITH_TRANSCRIPT: Final = ("claude-code",)
"""Whose transcripts are documented well enough to be read; of the others the events say everything."""

_MAX_CHARACTERS: Final = 500_000
"""Of a message; a server takes no more than twice as many. What is longer becomes several."""


@dataclass(slots=True)
class Session:
    """What is known of a session: how far its transcript was read, and how often each thing was said.

    The n-th time that a text is said has the same id whether an event or the transcript tells of it, and also when
    either is read again. No text is kept here.
    """

    path: Path
    taken: str = ""
    """The name of the event that was taken last."""
    place: Place = field(default_factory=Place)
    in_events: Counter[str] = field(default_factory=Counter)
    in_transcript: Counter[str] = field(default_factory=Counter)

    @classmethod
    def load(cls, path: Path) -> Self:
        """One that cannot be read starts anew: the ids keep anything from being stored twice."""
        try:
            row = json.loads(path.read_bytes())
            place = Place(*row["place"])
            return cls(path, row["taken"], place, Counter(row["in_events"]), Counter(row["in_transcript"]))
        except (OSError, ValueError, TypeError, KeyError):
            return cls(path)

    def save(self) -> None:
        row = {
            "taken": self.taken,
            "place": self.place,
            "in_events": self.in_events,
            "in_transcript": self.in_transcript,
        }
        write_file(self.path, json.dumps(row).encode())


def session_path(folder: Path, event: dict[str, Any]) -> Path:
    name = json.dumps([event["assistant"], event["scope"], event["session"]])
    return folder / "sessions" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def capture(event: dict[str, Any], session: Session) -> list[Message]:
    """What an event and the transcript it names say that is new. The session moves on."""
    messages = []
    has_transcript = event["assistant"] in _WITH_TRANSCRIPT and Path(event["transcript"]).is_file()
    if has_transcript:
        sayings, session.place, is_anew = read_transcript(Path(event["transcript"]), session.place)
        if is_anew:
            session.in_transcript.clear()
        messages += _messages(sayings, session.in_transcript, event)
    said = [Saying("user", clean(event["prompt"]), _time(event))]
    if not has_transcript:
        said.append(Saying("assistant", clean(event["answer"]), _time(event)))
    known = {message.id for message in messages}
    return messages + [each for each in _messages(said, session.in_events, event) if each.id not in known]


def _messages(sayings: Iterable[Saying], counts: Counter[str], event: dict[str, Any]) -> list[Message]:
    messages = []
    for role, text, said_at in sayings:
        if not text:
            continue
        words = hashlib.sha256(f"{role}\n{text}".encode(errors="surrogatepass")).hexdigest()[:24]
        counts[words] += 1
        id = f"{event['assistant']}-{words}-{counts[words]}"
        text = text.encode(errors="replace").decode()  # a half of a character cannot be stored
        for part, start in enumerate(range(0, len(text), _MAX_CHARACTERS)):
            piece = text[start : start + _MAX_CHARACTERS]
            name = f"{id}.{part}" if part else id
            messages.append(Message(text=piece, role=role, time=said_at or _time(event), id=name))
    return messages


def _time(event: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(event["time"], UTC)


_WALL_SECONDS: Final = 600
"""No process may stay for longer, whatever holds it up."""
_SESSION_DAYS: Final = 90
_BATCH_SIZE: Final = 20
"""Messages stored at once: even if each is as long as can be, a server takes them."""
_FIELDS: Final = ("event", "assistant", "scope", "session", "transcript", "prompt", "answer")


def waiting_events(store: str) -> list[Path]:
    """The events that wait, oldest first."""
    return sorted(Path(spool_folder(store)).glob("*.json"))


def take_in(store: str, memory: Memory | None = None) -> int:
    """Store what waits in the spool and say how many events there were.

    A server or an MCP process calls it when it starts, with its own memory. If another process is at it already, there
    is nothing to do. An event is removed when its messages are durable; one that cannot be read is set aside.
    """
    taken = 0
    while waiting_events(store):
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(Path(hook_folder(store)) / "intake.lock"))
            except ConflictError:
                break
            count = _take_all(store, memory)
        taken += count
        if not count:
            break
    if taken:
        _remove_old(Path(hook_folder(store)))
    return taken


def _take_all(store: str, memory: Memory | None) -> int:
    """Take events in until one fails, which waits for better times with those after it."""
    if memory is not None:
        return sum(takewhile(bool, (_take(store, path, memory) for path in waiting_events(store))))
    try:
        server = find_local_server(store)
        with eunoe.connect(server.url, server.token) if server else eunoe.open(store, form="due") as opened:
            return _take_all(store, opened)
    except (EunoeError, OSError) as error:
        _note(Path(hook_folder(store)), {}, error)
        return 0


def _remove_old(folder: Path) -> None:
    """Remove what is known of sessions that nobody has gone on with for long, and sockets that were left behind."""
    limit = time.time() - _SESSION_DAYS * 86_400
    for path in (*folder.glob("sessions/*.json"), *folder.glob("late-*")):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < limit:
                path.unlink()


def _take(store: str, path: Path, memory: Memory) -> bool:
    folder = Path(hook_folder(store))
    event: dict[str, Any] = {}
    try:
        event = _read(path)
        session = Session.load(session_path(folder, event))
        if session.taken != path.name:
            scope = Scope.of(event["scope"]).extended({"session": event["session"]} if event["session"] else {})
            messages = capture(event, session)
            for start in range(0, len(messages), _BATCH_SIZE):
                memory.observe(scope, messages[start : start + _BATCH_SIZE])
            session.taken = path.name
            session.save()
    except (ValueError, TypeError, KeyError) as error:  # of the event, not of the store: it would never go well
        path.rename(path.with_suffix(".refused"))
        _note(folder, event, error)
        return True
    except (EunoeError, OSError) as error:
        _note(folder, event, error)
        return False
    path.unlink()
    _note(folder, event, None)
    return True


def _read(path: Path) -> dict[str, Any]:
    event = json.loads(path.read_bytes())
    if not all(isinstance(event[name], str) for name in _FIELDS) or not isinstance(event["time"], float):
        raise ValueError("the event is not as hooks write them")
    return dict(event)


def _note(folder: Path, event: dict[str, Any], error: Exception | None) -> None:
    """Keep when a hook of each assistant was last taken in, and what went wrong; never what was said."""
    path = folder / "last.json"
    notes = read_notes(folder)
    note = notes.setdefault(str(event.get("assistant", "unknown")), {})
    note["time"], note["event"] = event.get("time", time.time()), event.get("event", "")
    note["error"] = type(error).__name__ if error else ""
    write_file(path, json.dumps(notes).encode())


def read_notes(folder: Path) -> dict[str, dict[str, Any]]:
    """When a hook of each assistant was last taken in: `time`, `event`, `error`."""
    try:
        notes = json.loads((folder / "last.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


if __name__ == "__main__":
    wall = threading.Timer(_WALL_SECONDS, os._exit, (1,))
    wall.daemon = True
    wall.start()
    take_in(sys.argv[1])
