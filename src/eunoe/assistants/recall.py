"""The child of a hook: says what an assistant should know when a session starts.

Where that takes longer than the hook may, the child waits for the hook of the first prompt. It reads the store anew
then, and keeps it closed meanwhile.
"""

import gc

gc.disable()  # it does little, and starts quicker without

import json  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402
from typing import Any, Final  # noqa: E402

from eunoe.assistants.connection import open_memory  # noqa: E402
from eunoe.assistants.hook import hook_folder, socket_name  # noqa: E402
from eunoe.model.scope import Scope  # noqa: E402

_MAX_TOKENS: Final = 2000
_PATIENCE_SECONDS: Final = 300
"""So long somebody may think about a first prompt."""


def start_context(store: str, event: dict[str, Any]) -> str:
    """What always stands before an agent: no model has to be loaded for it."""
    scope = Scope.of(event["scope"]).extended({"session": event["session"]} if event["session"] else {})
    with open_memory(store, create=False, form=False, embedder="none", llm="none") as memory:
        return memory.context(scope, recall="off", tokens=_MAX_TOKENS).text


def main(store: str) -> None:
    event = json.load(sys.stdin)
    text = start_context(store, event)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the hook has left
        if text and hasattr(socket, "AF_UNIX"):
            _wait_for_prompt(store, event)


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
