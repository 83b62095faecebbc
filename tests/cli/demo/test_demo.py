"""The guided tour: it runs through by itself, waits for somebody who watches, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

import eunoe
from eunoe.cli import demo
from eunoe.cli.app import run

PROMPT = b"press Enter"
DEADLINE = 60.0


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that a tour leaves when it is told to."""
    path = tmp_path_factory.mktemp("demo") / "tour.db"
    command = [sys.executable, "-m", "eunoe", "demo", "--keep", str(path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert f"eunoe recall --store {path}" in done.stdout
    return path


def test_the_sample_is_a_conversation_over_months() -> None:
    messages = demo.CONVERSATION
    assert 60 <= len(messages) <= 90
    assert len({message["id"] for message in messages}) == len(messages)
    assert {message["speaker"] for message in messages} == {"Mira", "Jonas", "Pilot"}
    times = [message["time"] for message in messages]
    assert times == sorted(times)
    assert len({message["session"] for message in messages}) == 8


def test_every_fact_rests_on_messages_that_are_there() -> None:
    ids = {message["id"] for message in demo.CONVERSATION}
    for fact in demo.FACTS:
        assert fact["source"]
        assert ids.issuperset(fact["source"])


@pytest.mark.parametrize("question", demo.QUESTIONS, ids=lambda question: question.text)
def test_the_first_hit_answers(question: demo.Question, tmp_path: Path) -> None:
    with eunoe.open(tmp_path / "memory.db") as memory:
        memory.observe(demo.SCOPE, demo.CONVERSATION)
        memory.remember_many(demo.SCOPE, demo.FACTS)
        best = memory.recall(demo.SCOPE, question.text, limit=1, now=question.now or None)[0]
    assert question.answer in best.text


def test_runs_through_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(["demo"]) == 0
    shown, said = capsys.readouterr()
    assert said == ""
    assert max(map(len, (line for line in shown.splitlines() if not line.startswith("$ ")))) <= 80
    for question in demo.QUESTIONS:
        assert question.text in shown
    for words in ("cashews", "ERR_BP17", "true until 2025-03-08", "no table, file, index or cache holds a trace"):
        assert words in " ".join(shown.split())
    assert "81 messages known already, 1 refused" in shown
    assert "press Enter" not in shown
    assert list(tmp_path.iterdir()) == []


def test_the_kept_store_holds_what_was_shown(sample: Path) -> None:
    with eunoe.open(sample) as memory:
        status = memory.status()
        history = memory.history(demo.SCOPE, demo.PLAN)
        context = memory.context(demo.LATER, demo.ASKED)
        with pytest.raises(eunoe.errors.NotFoundError):
            memory.get(demo.SCOPE, demo.SECRET)
    assert (status.messages, status.retired) == (81 + len(demo.TALK_MESSAGES), 1)
    assert "allergic to wasp stings" in context.static
    assert "Tomás" in context.text
    assert [version.text for version in history][-1] == demo.NEW_PLAN


def test_an_existing_file_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "precious.txt"
    file.write_text("mine")
    assert run(["demo", "--keep", str(file)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert file.read_text() == "mine"


class Terminal:
    """A tour in a terminal of 80 columns."""

    def __init__(self) -> None:
        self.controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eunoe", "demo"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment,
            preexec_fn=_own_terminal,
        )
        os.close(terminal)

    def read(self, until: bytes = b"", seconds: float = DEADLINE) -> bytes:
        """What is shown up to some words, or up to the end; a failure if neither comes in time."""
        shown = b""
        end = monotonic() + seconds
        while not until or until not in shown:
            if not select.select([self.controller], [], [], max(0, end - monotonic()))[0]:
                pytest.fail(f"nothing more in {seconds} seconds after {shown[-200:]!r}")
            try:
                part = os.read(self.controller, 4096)
            except OSError:  # the other side is closed
                part = b""
            if not part:
                return shown
            shown += part
        return shown

    def code(self) -> int:
        return self.process.wait(DEADLINE)

    def close(self) -> None:
        os.close(self.controller)
        self.process.kill()
        self.process.wait()


def _own_terminal() -> None:
    """Ctrl-C reaches the tour even where whoever started the tests ignores it, as a script does for its jobs."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


def test_waits_for_enter_on_a_terminal(terminal: Terminal) -> None:
    pauses = 0
    while PROMPT in terminal.read(PROMPT):
        pauses += 1
        os.write(terminal.controller, b"\n")
    assert terminal.code() == 0
    assert pauses == len(demo.QUESTIONS) + 4


@pytest.fixture
def ignored_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(terminal: Terminal) -> bytes:
    """What is shown after Ctrl-C, pressed again if need be: one that comes in the moment between a prompt and the wait
    for keys is not seen before the next key."""
    for _ in range(12):
        os.write(terminal.controller, b"\x03")
        with suppress(pytest.fail.Exception):
            return terminal.read(seconds=5)
    return terminal.read()


def test_ctrl_c_ends_the_tour_quietly(ignored_ctrl_c: None, terminal: Terminal) -> None:
    assert PROMPT in terminal.read(PROMPT)
    rest = interrupted(terminal)
    assert terminal.code() == 130
    assert b"Traceback" not in rest


def test_words_that_never_come_are_a_failure_and_no_wait_for_ever(terminal: Terminal) -> None:
    assert PROMPT in terminal.read(PROMPT)
    with pytest.raises(pytest.fail.Exception, match="nothing more in"):
        terminal.read(b"never shown", seconds=0.1)
