"""Claude Code and Codex CLI as workers, by stand-ins that behave as their documentation says."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.checkouts import make_checkout
from tests.support.coding_agents import CodingAgents, agents

from eunoe.apps.tickets import (
    ClaudeCodeWorker,
    CodexWorker,
    Director,
    Run,
    RunFolder,
    Ticket,
    Worker,
    WorkerError,
    load_worker,
)
from eunoe.errors import LlmError
from eunoe.llm.contract import ScriptedLlm as Model

__all__ = ["agents"]

TICKET = Ticket("t", "Title", "", "shop")
PLAN = {"complete": False, "summary": "", "next_prompt": "say begun"}
COMPLETE = {"complete": True, "summary": "Done.", "next_prompt": "", "nothing_to_change": True}
SPECS = {"claude": "claude:--permission-mode acceptEdits", "codex": "codex:--sandbox workspace-write"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "shop", {"forms.py": "name = raw\n"})


def session_of(worker: Worker) -> str:
    return str(worker.session)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["claude", "codex"])
class TestBoth:
    def test_it_works_in_its_folder_and_keeps_its_session(self, name: str, agents: CodingAgents, shop: Path) -> None:
        worker = load_worker(SPECS[name], directory=shop)
        assert worker.send("write forms.py name = raw.strip()\nsay trimmed").splitlines()[0] == "trimmed"
        assert (shop / "forms.py").read_text() == "name = raw.strip()"
        first = session_of(worker)
        assert worker.send('-say "$HOME"\nsay again') == "again"
        assert session_of(worker) == first
        one, two = agents.calls(name)
        assert one["cwd"] == two["cwd"] == str(shop)
        assert two["stdin"] == '-say "$HOME"\nsay again'
        assert (first in one["argv"], first in two["argv"]) == (False, True)

    def test_a_failure_says_what_it_said(self, name: str, agents: CodingAgents, shop: Path) -> None:
        worker = load_worker(name, directory=shop)
        with pytest.raises(WorkerError, match="usage limit reached") as caught:
            worker.send("fail usage limit reached")
        assert str(caught.value).endswith(f"[{name} ended with exit code 1]")

    def test_a_lost_session_is_said_and_a_new_one_begun(self, name: str, agents: CodingAgents, shop: Path) -> None:
        worker = load_worker(name, directory=shop)
        worker.send("say one")
        first = session_of(worker)
        agents.lose_sessions()
        with pytest.raises(WorkerError, match="the session is lost") as caught:
            worker.send("say two")
        assert first in str(caught.value)
        assert worker.send("say three") == "three"
        assert session_of(worker) != first
        assert first not in agents.calls(name)[-1]["argv"]

    def test_a_ticket_that_is_taken_up_goes_on_in_its_session(
        self, name: str, agents: CodingAgents, shop: Path, folder: RunFolder
    ) -> None:
        more = {"complete": False, "summary": "", "next_prompt": "say went on"}
        with pytest.raises(LlmError):
            Run(TICKET, Director(Model([PLAN])), load_worker(name, directory=shop), folder).finish()
        state = Run(TICKET, Director(Model([more, COMPLETE])), load_worker(name, directory=shop), folder).finish()
        assert [step.answer for step in state.turns] == ["begun", "went on"]
        assert state.session in agents.calls(name)[1]["argv"]

    def test_what_it_is_not_allowed_is_said(self, name: str, agents: CodingAgents, shop: Path) -> None:
        answer = load_worker(name, directory=shop).send("write forms.py x\nsay I could not.")
        assert answer.startswith("I could not.\n[the worker was not allowed to ")
        assert (shop / "forms.py").read_text() == "name = raw\n"


class TestClaudeCode:
    def test_it_is_called_as_documented(self, agents: CodingAgents, tmp_path: Path) -> None:
        worker = ClaudeCodeWorker(["--model", "sonnet"], directory=tmp_path)
        worker.send("say one")
        worker.send("say two")
        fixed = ["-p", "--output-format", "json"]
        assert [call["argv"] for call in agents.calls("claude")] == [
            [*fixed, "--model", "sonnet"],
            [*fixed, "--resume", worker.session, "--model", "sonnet"],
        ]
        assert worker.cost == 0.5

    def test_after_too_many_turns_of_its_own_it_goes_on_in_its_session(self, agents: CodingAgents) -> None:
        worker = ClaudeCodeWorker(["--max-turns", "30"])
        with pytest.raises(WorkerError, match="error_max_turns"):
            worker.send("fail max turns")
        session = worker.session
        assert session
        assert worker.send("say done now") == "done now"
        assert session in agents.calls("claude")[1]["argv"]


class TestCodex:
    def test_it_is_called_as_documented(self, agents: CodingAgents, shop: Path) -> None:
        worker = CodexWorker(["--sandbox", "workspace-write"], directory=shop)
        worker.send("say one")
        worker.send("say two")
        fixed = ["exec", "--json", "--sandbox", "workspace-write"]
        assert [call["argv"] for call in agents.calls("codex")] == [
            [*fixed, "-"],
            [*fixed, "resume", worker.session, "-"],
        ]

    def test_outside_a_repository_it_says_what_it_wants(self, agents: CodingAgents, tmp_path: Path) -> None:
        with pytest.raises(WorkerError, match="--skip-git-repo-check was not specified"):
            CodexWorker(directory=tmp_path).send("say hello")
        assert CodexWorker(["--skip-git-repo-check"], directory=tmp_path).send("say hello") == "hello"


MESSAGE = {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}}


class TestOddAnswers:
    """What no documentation speaks of: output that is cut off, empty, or not what it should be."""

    def program(self, tmp_path: Path, output: str, code: int = 0) -> str:
        path = tmp_path / "odd"
        code = f"sys.stdout.write({output!r})\nsys.stderr.write('no disk')\nsys.exit({code})"
        path.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @pytest.mark.parametrize(
        ("output", "code", "why"),
        [
            ("oops", 0, "oops\nthis is not an answer"),
            ('{"type": "result", "result": "half', 0, "this is not an answer"),
            (
                json.dumps({"type": "result", "subtype": "success", "result": ""}),
                0,
                "claude gave an empty answer\nno disk",
            ),
            (json.dumps({"type": "result", "result": "x", "session_id": "--evil"}), 0, "a session that cannot be one"),
            (
                json.dumps({"type": "result", "subtype": "error_x", "errors": "odd"}),
                0,
                "error_x\nno disk\n[claude failed]",
            ),
        ],
    )
    def test_claude(self, output: str, code: int, why: str, tmp_path: Path) -> None:
        with pytest.raises(WorkerError) as caught:
            ClaudeCodeWorker(program=self.program(tmp_path, output, code)).send("go")
        assert why in str(caught.value)

    @pytest.mark.parametrize(
        ("events", "code", "why"),
        [
            ([], 0, "[codex failed]"),
            ([{"type": "thread.started", "thread_id": "--last"}], 0, "a session that cannot be one"),
            ([{"type": "turn.completed"}], 0, "codex gave an empty answer"),
            ([{"type": "turn.failed", "error": "odd"}], 0, "the turn failed"),
            ([{"type": "turn.started"}, MESSAGE], 0, "done\nthe events break off before the turn was completed"),
            ([{"type": "item.completed", "item": 3}, {"type": "error", "message": "broken pipe"}], 1, "broken pipe"),
        ],
    )
    def test_codex(self, events: list[Any], code: int, why: str, tmp_path: Path) -> None:
        output = "\n".join(map(json.dumps, events))
        with pytest.raises(WorkerError) as caught:
            CodexWorker(program=self.program(tmp_path, output, code)).send("go")
        assert why in str(caught.value)
