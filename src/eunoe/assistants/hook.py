"""What an assistant's hook runs: it notes the event for later, hands over what is remembered, and leaves in time.

It is run by its path and needs the standard library alone, since to import the package takes a third of the time there
is. The event is written to the spool first, so that nothing is lost however it ends; another process takes it in. What
is remembered comes from a child (`recall.py`). If that is late, it waits for the hook of the first prompt.
A hook always leaves with 0 and never prints an error: an assistant must not notice that its memory is slow or gone.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from typing import IO, Any, Final

WALL_SECONDS: Final = 0.2
"""From here on. Python has taken some milliseconds already: altogether it is less than 300."""
WALL_VARIABLE: Final = "EUNOE_HOOK_SECONDS"
EVENTS: Final = ("start", "prompt", "answer", "compaction", "end")
_MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_PRIVATE: Final = re.compile(r"<\s*(/?)\s*private\b[^>]*(?:>|\Z)", re.IGNORECASE)
_TAKES_CONTEXT_LATE: Final = ("claude-code", "codex", "gemini")
_DETACHED: Final = 0x00000208
"""On Windows: without a console, in a process group of its own."""


def strip_private(text: str) -> str:
    """Leave out what stands in `<private>`. One that is not closed reaches to the end, one that is only closed from the
    beginning.

    >>> strip_private("I live <private>in Rome</private> alone.")
    'I live  alone.'
    """
    kept, place, depth = "", 0, 0
    for mark in _PRIVATE.finditer(text):
        is_closing = bool(mark[1])
        if is_closing and depth == 0:
            kept = ""
        elif not is_closing and depth == 0:
            kept += text[place : mark.start()]
        depth = max(depth + (-1 if is_closing else 1), 0)
        place = mark.end()
    return kept if depth else kept + text[place:]


def spool_folder(store: str) -> str:
    return os.path.join(hook_folder(store), "spool")


def hook_folder(store: str) -> str:
    """The folder beside a store where events wait."""
    return os.path.splitext(store)[0] + ".hooks"


def socket_name(event: dict[str, Any]) -> str:
    """Where the child that was late waits, in the hook folder."""
    words = json.dumps([event["assistant"], event["scope"], event["session"]])
    return f"late-{hashlib.sha256(words.encode()).hexdigest()[:16]}"


def read_event(raw: bytes, options: dict[str, str]) -> dict[str, Any]:
    """What is kept of an event: who said what, and where the transcript lies. Every assistant has its own names."""
    data = json.loads(raw)
    inner = data.get("tool_info")
    fields = {**(inner if isinstance(inner, dict) else {}), **data}

    def first(*names: str) -> str:
        found = (fields.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), "")

    return {
        "event": options["event"],
        "assistant": options["assistant"],
        "scope": options["scope"],
        "time": time.time(),
        "name": first("hook_event_name", "agent_action_name"),
        "session": first("session_id", "conversation_id", "trajectory_id"),
        "transcript": first("transcript_path"),
        "prompt": strip_private(first("prompt", "user_prompt")) if options["event"] == "prompt" else "",
        "answer": strip_private(first("last_assistant_message", "prompt_response", "response", "text"))
        if options["event"] == "answer"
        else "",
    }


def write_to_spool(store: str, event: dict[str, Any]) -> None:
    """Put an event where the next process finds it, whole or not at all."""
    folder = spool_folder(store)
    os.makedirs(hook_folder(store), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}")
    with os.fdopen(os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(json.dumps(event).encode())
    os.rename(f"{path}.part", f"{path}.json")


def answer_document(event: dict[str, Any], context: str) -> dict[str, Any]:
    """What is remembered, in the form that the assistant takes."""
    if event["assistant"] == "cursor":
        return {"additional_context": context}
    return {"hookSpecificOutput": {"hookEventName": event["name"] or "SessionStart", "additionalContext": context}}


def main(args: list[str]) -> None:
    """Run one hook. Whatever goes wrong costs this hook and nothing else."""
    try:
        _run(_parse(args))
    except BaseException:  # an assistant shows whatever a hook says
        os._exit(0)


class _Wall:
    """Ends this process when time is up."""

    def __init__(self) -> None:
        self.end = time.monotonic() + float(os.environ.get(WALL_VARIABLE, WALL_SECONDS))
        self.gate = threading.Lock()
        """Held by whoever must not be interrupted."""
        timer = threading.Timer(self.left(), self._leave)
        timer.daemon = True
        timer.start()
        self.cancel = timer.cancel

    def _leave(self) -> None:
        with self.gate:
            os._exit(0)

    def left(self) -> float:
        return max(self.end - time.monotonic(), 0)


def _run(options: dict[str, str]) -> None:
    wall = _Wall()
    child = _start("recall", options["store"], pipe=subprocess.PIPE) if options["event"] == "start" else None
    event = read_event(sys.stdin.buffer.read(_MAX_EVENT_BYTES), options)
    if child:
        context = _ask(child, event, wall.left())
        start_intake(options["store"])
    else:
        with wall.gate:  # a millisecond, and worth it on the busiest machine
            write_to_spool(options["store"], event)
        start_intake(options["store"])
        context = _ask_late(options["store"], event, wall.left())
    wall.cancel()
    if context.strip():
        sys.stdout.buffer.write(json.dumps(answer_document(event, context)).encode())
        sys.stdout.buffer.flush()
    os._exit(0)


def start_intake(store: str) -> None:
    """Start the process that takes in what waits, if anything does. It does nothing if one is at it already."""
    try:
        names = os.listdir(spool_folder(store))
    except OSError:
        return
    if any(name.endswith(".json") for name in names):
        _start("intake", store)


def _ask(child: "subprocess.Popen[bytes]", event: dict[str, Any], seconds: float) -> str:
    """What the child remembers, or nothing if that takes too long."""
    try:
        out, _ = child.communicate(json.dumps(event).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        return ""
    return out.decode() if child.returncode == 0 else ""


def _ask_late(store: str, event: dict[str, Any], seconds: float) -> str:
    """Ask the child that was late when the session started. At the end of the session nobody needs its answer, but it
    need not wait any longer."""
    name = socket_name(event)
    if event["event"] not in ("prompt", "end") or event["assistant"] not in _TAKES_CONTEXT_LATE:
        return ""
    if not os.path.exists(os.path.join(hook_folder(store), name)):
        return ""
    import socket  # rarely needed, and slow to load

    os.chdir(hook_folder(store))  # the path of a socket must be short
    parts = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(name)
            while part := connection.recv(65536):
                parts.append(part)
        except OSError:
            return ""
    return b"".join(parts).decode() if event["event"] == "prompt" else ""


def _start(module: str, store: str, pipe: int | IO[bytes] = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    """Start a process that outlives this one. It never looks for modules in the folder it is started in."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"eunoe.assistants.{module}", store],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=_DETACHED if sys.platform == "win32" else 0,
    )


def _parse(args: list[str]) -> dict[str, str]:
    event, *rest = args
    options = dict(zip((name.removeprefix("--") for name in rest[::2]), rest[1::2], strict=True))
    if event not in EVENTS:
        raise ValueError(event)
    return {"event": event, **{name: options[name] for name in ("assistant", "store", "scope")}}


if __name__ == "__main__":
    main(sys.argv[1:])
