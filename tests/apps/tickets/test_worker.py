"""Workers are real processes: what they are given, what they answer, and what becomes of their failures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eunoe.apps.tickets import (
    CommandWorker,
    Ticket,
    WorkerError,
    load_worker,
)
from eunoe.errors import InputError

TICKET = Ticket("t", "Title", "", "shop")
PLAN = {"complete": False, "summary": "", "next_prompt": "Begin."}
COMPLETE = {"complete": True, "summary": "Done.", "next_prompt": "", "nothing_to_change": True}


def python(code: str, **options: Any) -> CommandWorker:
    return CommandWorker([sys.executable, "-c", code], **options)


class TestCommand:
    def test_it_reads_the_prompt_and_its_output_is_the_answer(self) -> None:
        prompt = '-p; rm -rf $HOME `id` "quoted" 東京\n' + "long " * 50_000
        worker = python("import sys; text = sys.stdin.read(); print(len(text), text[:40])")
        assert worker.send(prompt) == f"{len(prompt)} {prompt[:40]}".strip()

    def test_no_shell_reads_its_arguments(self, tmp_path: Path) -> None:
        code = "import sys; print(sys.argv[1:])"
        worker = load_worker(f"command:'{sys.executable}' -c '{code}' $HOME '; touch x' *", directory=tmp_path)
        assert worker.send("go") == "['$HOME', '; touch x', '*']"
        assert list(tmp_path.iterdir()) == []

    def test_it_is_not_told_where_the_memory_rests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("MEMORY_SAVE_DIR", "EUNOE_STORE", "MY_OWN"):
            monkeypatch.setenv(name, "somewhere")
        code = "import os; print([name for name in os.environ if os.environ[name] == 'somewhere'])"
        assert python(code).send("go") == "['MY_OWN']"

    def test_a_failure_shows_the_code_and_what_was_said(self) -> None:
        worker = python("import sys; print('half done'); print('no disk', file=sys.stderr); sys.exit(3)")
        with pytest.raises(WorkerError) as caught:
            worker.send("go")
        assert str(caught.value).startswith("half done\n[standard error]\nno disk\n[")
        assert str(caught.value).endswith("ended with exit code 3]")

    def test_one_that_takes_too_long_is_stopped_with_its_children(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = (
            "import pathlib, subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            "print(child.pid, flush=True)\n"
            "pathlib.Path('begun').touch(); time.sleep(600)"
        )
        end = subprocess.Popen.wait

        def wait(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
            """Time is up as soon as the child has begun."""
            while timeout and process.poll() is None and not (tmp_path / "begun").exists():
                time.sleep(0.01)
            return end(process, timeout and 0.01)

        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        with pytest.raises(WorkerError, match=r"stopped: no answer within 600 seconds") as caught:
            python(code, timeout=600, directory=tmp_path).send("go")
        child = int(str(caught.value).split()[0])
        deadline = time.monotonic() + 30
        while not _is_dead(child):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def test_a_child_that_lives_on_does_not_hold_the_answer_back(self) -> None:
        code = (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\nprint(child.pid)"
        )
        child = int(python(code, timeout=50).send("go"))
        os.kill(child, 9)

    def test_of_a_flood_the_end_is_kept(self) -> None:
        answer = python("print('start'); print('x' * 3_000_000); print('AssertionError')").send("go")
        assert answer.startswith("start")
        assert answer.endswith("AssertionError")

    @pytest.mark.parametrize(
        ("spec", "why"),
        [
            ("command:", "is not a worker"),
            ("command:   ", "is not a worker"),
            ("gpt", "is not a worker"),
            ("command:no-such-program-here", "there is no program 'no-such-program-here'"),
            ("command:echo 'open", "cannot read"),
            ("claude:--resume other", "the option --resume of claude"),
            ("claude:--output-format=text", "the option --output-format=text of claude"),
            ("codex:--json", "the option --json of codex"),
            ("codex:--cd /", "the option --cd of codex"),
            ("codex:resume --last", "the option resume of codex"),
        ],
    )
    def test_a_bad_one_is_refused_before_anything_is_done(self, spec: str, why: str) -> None:
        with pytest.raises(InputError, match=why):
            load_worker(spec)

    def test_bad_limits_and_folders_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="there is no such folder"):
            python("pass", directory=tmp_path / "nowhere")
        for timeout in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(InputError, match="a number of seconds"):
                python("pass", timeout=timeout)
        with pytest.raises(InputError, match="is not a command"):
            CommandWorker(["echo", "a\0b"])


def _is_dead(pid: int) -> bool:
    """Gone, or killed and not yet taken note of by its parent."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return not shown.strip() or shown.strip()[0] in "ZX"
