"""`eunoe serve` as a process of its own, to be killed, stopped and measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.live_server import Answer, call
from tests.support.waiting import wait_until


class ServerProcess:
    """A server that listens on a free port."""

    def __init__(self, target: Path, *arguments: str, **variables: str) -> None:
        command = [sys.executable, "-m", "eunoe", "--store", str(target), "--embedder", "none"]
        command += ["serve", "--port", "0", "--log-level", "warning", *arguments]
        environment = {**os.environ, "EUNOE_LLM": "none", "no_proxy": "*", **variables}
        self.process = subprocess.Popen(command, env=environment)
        self._address = target.with_suffix(".server.json")
        self.port = 0
        wait_until(self._is_ready)
        self.token = target.with_suffix(".token").read_text().strip()

    def _is_ready(self) -> bool:
        assert self.process.poll() is None
        with suppress(OSError, ValueError):
            said = json.loads(self._address.read_text())
            self.port = int(said["url"].rpartition(":")[2])
            return said["pid"] == self.process.pid and call(self.port, "GET", "/readyz").status == 200
        return False

    def call(self, method: str, path: str, body: Any = None, *, key: str = "", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return call(self.port, method, path, body, key=key or self.token, headers=named)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = 30.0) -> None:
        """Ask it to stop, and wait until it has, in order and within so many seconds."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(seconds) in (0, -signal.SIGTERM)
        assert not self._address.exists()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()

    def resident_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def threads(self) -> int:
        return self._status("Threads")

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


StartProcess = Callable[..., ServerProcess]


@contextmanager
def server_processes() -> Iterator[StartProcess]:
    """Starts servers, and ends those that still run."""
    started: list[ServerProcess] = []

    def begin(*arguments: Any, **variables: str) -> ServerProcess:
        started.append(ServerProcess(*arguments, **variables))
        return started[-1]

    try:
        yield begin
    finally:
        for process in started:
            process.close()
