"""Hooks as an assistant runs them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import eunoe
from eunoe.assistants import hook
from eunoe.assistants.intake import take_in, waiting_events


class HookRunner:
    """Runs hooks as an assistant does: as processes of their own, with JSON on standard input."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store = store
        self.folder = folder

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
        process = self.start(event, assistant, **environment)
        out, errors = process.communicate(content, timeout=60)
        assert (process.returncode, errors) == (0, b"")
        return out

    def settle(self) -> None:
        """Wait until everything is taken in."""
        while waiting_events(str(self.store)):
            take_in(str(self.store))
            time.sleep(0.01)

    def messages(self, session: str = "s1") -> list[tuple[str, str]]:
        self.settle()
        with eunoe.open(self.store, embedder="none", form=False) as memory:
            items = memory.list(f"user=anna/session={session}", kinds=["message"]).items
        return [(item.role, item.text) for item in items if isinstance(item, eunoe.Message)]
