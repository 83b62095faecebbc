"""Take in what hooks have left in the spool. One process does it at a time; nothing is lost if it is killed."""

import json
import os
import sys
import threading
import time
from contextlib import ExitStack, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from eunoe.assistants.capture import Session, capture, session_path
from eunoe.assistants.connection import open_memory
from eunoe.assistants.hook import hook_folder, spool_folder
from eunoe.errors import ConflictError, EunoeError
from eunoe.files import locked, write_file
from eunoe.memory import Memory
from eunoe.model.scope import Scope

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
        with open_memory(store, form="due") as opened:
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
