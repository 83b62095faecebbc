"""Hooks as an assistant runs them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import eunoe
from eunoe.assistants import hook
from eunoe.assistants.intake import take_in, waiting_events


def wait_until(is_done: Callable[[], object]) -> None:
    """Wait for something that another process does; a minute is more than it can take."""
    end = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.01)


class HookRunner:
    """Runs hooks as an assistant does: as processes of their own, with JSON on standard input."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store = store
        self.folder = folder
        self.late_children: list[subprocess.Popen[bytes]] = []

    def start(self, event: str, assistant: str = "claude-code", **environment: str) -> subprocess.Popen[bytes]:
        words = [event, "--assistant", assistant, "--store", str(self.store), "--scope", "user=anna"]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-P", hook.__file__, *words],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.folder,
            env=os.environ | environment,
        )

    def __call__(self, event: str, data: object, assistant: str = "claude-code", **environment: str) -> bytes:
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        # Patient, since a busy machine may take its time to start a process; tests of the limit start their own.
        process = self.start(event, assistant, **{"EUNOE_HOOK_SECONDS": "60", **environment})
        out, errors = process.communicate(content, timeout=60)
        assert (process.returncode, errors) == (0, b"")
        return out

    def settle(self) -> None:
        """Wait until everything is taken in."""

        def is_settled() -> bool:
            take_in(str(self.store))
            return not waiting_events(str(self.store))

        wait_until(is_settled)

    def start_late_child(self, session: str) -> Path:
        """A child that says what is remembered when its hook has left, and the socket where it waits."""
        event = {"assistant": "claude-code", "scope": "user=anna", "session": session, "time": time.time()}
        words = [sys.executable, "-P", "-m", "eunoe.assistants.recall", str(self.store)]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert child.stdin
        assert child.stdout
        child.stdout.close()
        child.stdin.write(json.dumps(event).encode())
        child.stdin.close()
        self.late_children.append(child)
        socket = Path(hook.hook_folder(str(self.store))) / hook.socket_name(event)
        wait_until(socket.exists)
        return socket

    def messages(self, session: str = "s1") -> list[tuple[str, str]]:
        self.settle()
        with eunoe.open(self.store, embedder="none", form=False) as memory:
            items = memory.list(f"user=anna/session={session}", kinds=["message"]).items
        return [(item.role, item.text) for item in items if isinstance(item, eunoe.Message)]
