"""Further processes of a server: they answer, and they end with the first."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

import eunoe

_TOGETHER = 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    options = ["--store", str(tmp_path / "memory.db"), "--port", "0", "--embedder", "none", "--llm", "none"]
    command = [sys.executable, "-m", "eunoe", "serve", "--print-link", "--processes", str(_TOGETHER), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def link(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The address and the token that a server prints."""
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    url, _, token = next(line for line in lines if "#token=" in line).split()[-1].partition("/#token=")
    return url, token


def helpers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a server has started to answer requests."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    numbers = children.read_text().split() if children.exists() else []
    commands = ((number, Path(f"/proc/{number}/cmdline").read_bytes()) for number in numbers)
    return [int(number) for number, command in commands if b"spawn_main" in command]


def is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    try:
        return "\nState:\tZ" in status.read_text()
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc, which is Linux' own")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_they_answer_for_one_store_and_end_with_the_first(
    server: subprocess.Popen[str], number: signal.Signals
) -> None:
    url, token = link(server)
    wait_until(lambda: len(helpers(server)) == _TOGETHER - 1)
    started = helpers(server)
    with eunoe.connect(url, token) as memory:
        for fact in range(30):
            assert memory.remember("user=anna", f"Fact {fact}.")
        assert len(memory.list("user=anna", limit=100).items) == 30
    server.send_signal(number)
    server.wait()
    wait_until(lambda: all(map(is_gone, started)))
