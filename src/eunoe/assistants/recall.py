"""The child of a hook: says what an assistant should know when a session starts.

Where that takes longer than the hook may, the child waits for the hook of the first prompt. It reads the store anew
then, and keeps it closed meanwhile.
"""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import eunoe
from eunoe.assistants.hook import hook_folder, socket_name
from eunoe.model.scope import Scope
from eunoe.net.http import Address
from eunoe.net.local_server import LocalServer, find_local_server
from eunoe.net.transport import Transport

_MAX_TOKENS: Final = 2000
_MAX_WAITING: Final = 8
_ANSWER_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 300
"""So long somebody may think about a first prompt."""


def start_context(store: str, event: dict[str, Any]) -> str:
    """What always stands before an agent: no model has to be loaded for it."""
    scope = Scope.of(event["scope"]).extended({"session": event["session"]} if event["session"] else {})
    if server := find_local_server(store):
        return _ask_server(server, scope)
    with eunoe.open(store, create=False, form=False, embedder="none", llm="none") as memory:
        return memory.context(scope, recall="off", tokens=_MAX_TOKENS).text


def _ask_server(server: LocalServer, scope: Scope) -> str:
    """Ask without the verbs of a memory, which take longer to import than there is time."""
    transport = Transport(Address.parse(server.url), server.token, _ANSWER_SECONDS)
    request = {"scope": scope.text, "recall": "off", "tokens": _MAX_TOKENS}
    return str(transport.call("POST", "/v1/context", body=request, is_repeatable=True)["text"])


def main(store: str) -> None:
    event = json.load(sys.stdin)
    text = start_context(store, event)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the hook has left
        if text and hasattr(socket, "AF_UNIX") and is_worth_waiting(store, event):
            _wait_for_prompt(store, event)


def is_worth_waiting(store: str, event: dict[str, Any]) -> bool:
    """Not if the first prompt was quicker, nor if many wait already: sessions may start by the hundred."""
    from eunoe.assistants.intake import session_path  # only now there is time to import it

    folder = Path(hook_folder(store))
    waiting = [path for path in folder.glob("late-*") if path.stat().st_mtime > event["time"] - _PATIENCE_SECONDS]
    if len(waiting) >= _MAX_WAITING:
        return False
    said = [json.loads(path.read_bytes()) for path in folder.glob("spool/*.json")]
    known = session_path(folder, event)
    is_known = known.exists() and known.stat().st_mtime > event["time"]
    return not is_known and all(each["session"] != event["session"] for each in said)


def _wait_for_prompt(store: str, event: dict[str, Any]) -> None:
    """Answer one hook, if it comes in time."""
    os.makedirs(hook_folder(store), mode=0o700, exist_ok=True)
    os.chdir(hook_folder(store))  # the path of a socket must be short
    name = socket_name(event)
    with suppress(FileNotFoundError):
        os.unlink(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.settimeout(_PATIENCE_SECONDS)
        listener.bind(name)
        try:
            os.chmod(name, 0o600)
            listener.listen(1)
            connection, _ = listener.accept()
            with connection:
                connection.sendall(start_context(store, event).encode())
        finally:
            os.unlink(name)


if __name__ == "__main__":
    with suppress(Exception):  # nobody listens
        main(sys.argv[1])
    os._exit(0)
