"""`eunoe ticket` as people use it: real processes, a real model server on this machine, kills and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.checkouts import git, make_checkout
from tests.support.coding_agents import CodingAgents, agents
from tests.support.live_server import LiveServer
from tests.support.secret_samples import SECRETS

from eunoe.apps.projects import ProjectMemory
from eunoe.cli.app import run
from eunoe.server.config import ServerConfig

__all__ = ["agents"]

TICKET = "# Slow search\n\nThe search for orders takes minutes.\n"
PLAN = {"complete": False, "summary": "Find the query.", "next_prompt": "Find the slow query."}
DONE = {
    "complete": True,
    "summary": "The orders table got an index",
    "next_prompt": "",
    "nothing_to_change": True,
}
VARIABLES = ("EUNOE_LLM", "EUNOE_STORE", "MEMORY_SAVE_DIR", "OPENAI_API_KEY", "OPENAI_BASE_URL")

# Says that it has begun, waits until it may go on, and answers.
WORKER = """
import os, pathlib, sys, time
place = pathlib.Path(sys.argv[1])
(place / "prompt").write_text(sys.stdin.read())
(place / "draft").write_text(str(os.getpid()))
(place / "draft").rename(place / "begun")
while not (place / "go").exists():
    time.sleep(0.01)
print("worker has answered")
"""


class DirectorServer(ThreadingHTTPServer):
    """A server of a model that decides by a function."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.decide: Callable[[str], Any] = lambda text: PLAN if "Plan the work" in text else DONE
        self.spec = f"http://127.0.0.1:{self.server_address[1]}/v1?model=boss&price=1/2"


class Handler(BaseHTTPRequestHandler):
    server: DirectorServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        decision = json.dumps(self.server.decide(body["messages"][-1]["content"]))
        usage = {"prompt_tokens": 1000, "completion_tokens": 100}
        answer = json.dumps({"choices": [{"message": {"content": decision}}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Workspace(NamedTuple):
    """A folder with a ticket, a worker, and what a command line needs to bring them together."""

    folder: Path
    director: DirectorServer
    capsys: pytest.CaptureFixture[str]

    @property
    def logs(self) -> list[str]:
        return ["--log", str(self.folder / "logs")]

    @property
    def memory(self) -> list[str]:
        return ["--memory", str(self.folder / "memory")]

    def command(self, *more: str, worker: str = "", file: str = "search.md") -> list[str]:
        work = worker or f"command:'{sys.executable}' -c \"print('worker has answered')\""
        given = ["--project", "shop", "--worker", work, "--model", self.director.spec, "-C", str(self.folder / "code")]
        return ["ticket", "run", str(self.folder / file), *given, *self.logs, "--embedder", "none", *more]

    def __call__(self, *args: str) -> Result:
        code = run(args)
        return Result(code, *self.capsys.readouterr())

    def slow_worker(self) -> str:
        (self.folder / "worker.py").write_text(WORKER)
        return f"command:'{sys.executable}' '{self.folder / 'worker.py'}' '{self.folder}'"

    def start(self, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "eunoe", *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_worker(self, process: subprocess.Popen[str]) -> int:
        """Wait until the worker is at work; return its process id."""
        while not (self.folder / "begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        return int((self.folder / "begun").read_text())

    def outcomes(self) -> list[str]:
        return [ticket["outcome"] for ticket in json.loads(self("ticket", "list", *self.logs, "--json").out)]

    def stored_texts(self) -> list[str]:
        with ProjectMemory.open(self.folder / "memory", embedder="none") as memory:
            return [item.text for item in memory.memory.list({"project": "shop"}).items]


@pytest.fixture
def workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Workspace]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "search.md").write_text(TICKET)
    (tmp_path / "code").mkdir()
    with DirectorServer() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield Workspace(tmp_path, server, capsys)
        server.shutdown()


def test_a_ticket_is_run_listed_shown_and_reverted(workspace: Workspace) -> None:
    done = workspace(*workspace.command(*workspace.memory))
    assert done.code == 0
    assert done.out.startswith(
        "completed in 1 turn: The orders table got an index. "
        "Nothing was changed: the director says that there was nothing to change.\nlog: "
    )
    assert "turn 1: worker has answered" in done.err
    assert workspace.stored_texts() == [
        "Ticket: Slow search. The search for orders takes minutes. The orders table got an index. "
        "Nothing was changed: the director says that there was nothing to change."
    ]
    listed = json.loads(workspace("ticket", "list", *workspace.logs, "--json").out)
    assert [(ticket["ticket"], ticket["outcome"], ticket["turns"]) for ticket in listed] == [("search", "completed", 1)]
    assert listed[0]["usage"]["input_tokens"] == 2000
    assert listed[0]["usage"]["cost"] == pytest.approx(0.0024)
    assert "completed" in workspace("ticket", *workspace.logs).out
    page = workspace("ticket", "show", "search", "--project", "shop", *workspace.logs).out
    assert "worker has answered" in page
    assert page == Path(listed[0]["log"]).read_text()
    reverted = workspace("ticket", "revert", "search", "--project", "shop", *workspace.memory, *workspace.logs)
    assert (reverted.code, reverted.out) == (0, "search is reverted, 1 memory removed\n")
    assert workspace.stored_texts() == []
    again = workspace("ticket", "revert", "search", "--project", "shop", *workspace.memory, *workspace.logs)
    assert (again.code, again.out) == (0, "search was reverted already, nothing is left to remove\n")
    assert Path(listed[0]["log"]).read_text().count("reverted, ") == 1


def test_no_secret_of_a_failing_worker_is_kept_logged_shown_or_sent(workspace: Workspace) -> None:
    """All kinds at once, on standard output and standard error, in the ticket, and in what the director says."""
    said = "\n\n".join(sample.text for sample in SECRETS)
    (workspace.folder / "said.txt").write_text(said)
    code = "import sys; text = open(sys.argv[1]).read(); print(text); print(text, file=sys.stderr); sys.exit(1)"
    worker = f"command:'{sys.executable}' -c '{code}' '{workspace.folder / 'said.txt'}'"
    (workspace.folder / "search.md").write_text(f"{TICKET}\nConnect with postgres://shop:T0psecretT0psecret@db/x\n")
    workspace.director.decide = lambda text: {**PLAN, "summary": said, "next_prompt": f"Go on. {said}"}
    done = workspace(*workspace.command(*workspace.memory, worker=worker))
    assert (done.code, "the ticket holds a secret" in done.err) == (1, True)
    assert "the worker failed 3 times in a row" in workspace.stored_texts()[0]
    files = [path.read_bytes() for place in ("logs", "memory") for path in (workspace.folder / place).rglob("*.*")]
    everything = b"".join(
        [*files, done.out.encode(), done.err.encode(), json.dumps(workspace.director.requests).encode()]
    )
    assert b"[redacted]" in everything
    secrets = {secret for sample in SECRETS for secret in sample.secrets if len(secret) >= 8} | {"T0psecretT0psecret"}
    assert [secret for secret in secrets if json.dumps(secret)[1:-1].encode() in everything] == []
    assert [secret for secret in secrets if secret.encode() in everything] == []


def test_a_check_decides_with_the_director(workspace: Workspace) -> None:
    shop = make_checkout(workspace.folder / "shop", {"forms.py": "name = raw\n"})
    worker = f"command:'{sys.executable}' -c \"open('forms.py', 'a').write('strip')\""
    workspace.director.decide = lambda text: (
        PLAN if "Plan the work" in text or "has failed" in text else {**DONE, "nothing_to_change": False}
    )
    check = f"'{sys.executable}' -c \"assert open('forms.py').read().count('strip') > 1\""
    done = workspace(*workspace.command("-C", str(shop), "--check", check, *workspace.memory, worker=worker))
    assert (done.code, done.out.startswith("completed in 2 turns: ")) == (0, True)
    assert "check: failed\n" in done.err
    assert "check: passed\n" in done.err
    assert " Changed: forms.py. The check `" in workspace.stored_texts()[0]


@pytest.mark.parametrize(
    ("name", "worker"),
    [("claude", "claude:--permission-mode acceptEdits"), ("codex", "codex:--sandbox workspace-write")],
)
def test_a_ticket_from_end_to_end_with_each_agent(
    name: str, worker: str, workspace: Workspace, agents: CodingAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(variable, "anna@example.org")
    shop = make_checkout(workspace.folder / "shop", {"forms.py": "name = raw\n"})
    prompts = iter(["write forms.py name = raw.strip()\nsay Names are trimmed.", "commit Trim names\nsay Committed."])

    def decide(text: str) -> dict[str, Any]:
        prompt = next(prompts, None)
        return {**PLAN, "next_prompt": prompt} if prompt else {**DONE, "nothing_to_change": False}

    workspace.director.decide = decide
    done = workspace(
        *workspace.command("-C", str(shop), "--check", "git diff --quiet", *workspace.memory, worker=worker)
    )
    assert (done.code, [len(agents.calls("claude")), len(agents.calls("codex"))].count(2)) == (0, 1)
    commit = git(shop, "rev-parse", "--short", "HEAD")
    assert f"Changed: forms.py; commits: {commit}. The check `git diff --quiet` passed" in workspace.stored_texts()[0]
    assert "forms.py +1 -1" in workspace.director.requests[1]["messages"][-1]["content"]


def test_lessons_are_listed_and_cleaned_by_hand(workspace: Workspace) -> None:
    workspace(*workspace.command(*workspace.memory))
    with ProjectMemory.open(workspace.folder / "memory", embedder="none") as memory:
        old = {"text": "Ticket: Old. password=hunter2", "id": "ticket/old/0123456789ab", "ticket": "old"}
        memory.index("shop", [{**old, "label": "lesson"}])
    place = ["--project", "shop", *workspace.memory]
    listed = json.loads(workspace("ticket", "lessons", *place, "--json").out)
    assert [(lesson["ticket"], lesson["outcome"]) for lesson in listed] == [("search", "completed"), ("old", "failed")]
    assert "password=hunter2" in workspace("ticket", "lessons", *place, "--ticket", "old").out
    assert "nothing found" in workspace("ticket", "lessons", *place, "--ticket", "none").err
    dry = workspace("ticket", "redact", *place, *workspace.logs, "--dry-run")
    assert (dry.code, "would be redacted" in dry.out, "hunter2" in dry.out) == (0, True, False)
    assert "password=hunter2" in workspace("ticket", "lessons", *place).out
    cleaned = json.loads(workspace("ticket", "redact", *place, *workspace.logs, "--json").out)
    assert cleaned == [{"what": "lesson ticket/old/0123456789ab", "secrets": 1, "trouble": ""}]
    assert "password=[redacted]" in workspace("ticket", "lessons", *place).out
    assert "no secrets found" in workspace("ticket", "redact", *place, *workspace.logs).err
    assert b"hunter2" not in b"".join(path.read_bytes() for path in (workspace.folder / "memory").iterdir())


def test_the_wire_carries_rules_apart_from_data(workspace: Workspace) -> None:
    workspace(*workspace.command(*workspace.memory))
    (workspace.folder / "again.md").write_text("# Search for orders is slow\n\nAgain it takes minutes.\n")
    done = workspace(*workspace.command(*workspace.memory, "--json", file="again.md"))
    assert json.loads(done.out)["outcome"] == "completed"
    system, user = (message["content"] for message in workspace.director.requests[2]["messages"])
    assert "Memories invoked:\n<memories-" in user
    assert "The orders table got an index." in user
    assert "orders" not in system
    assert workspace.director.requests[2]["response_format"]["json_schema"]["schema"]["required"] == [
        "complete",
        "summary",
        "next_prompt",
        "nothing_to_change",
    ]


def test_without_a_memory_directory_it_runs_and_says_so_once(workspace: Workspace) -> None:
    done = workspace(*workspace.command())
    assert done.code == 0
    assert done.err.count("no memory") == 1
    assert not (workspace.folder / "home").exists()


def test_the_environment_names_the_memory(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SAVE_DIR", str(workspace.folder / "memory"))
    assert workspace(*workspace.command("--no-memory")).err.count("no memory") == 1
    assert workspace(*workspace.command("--again")).code == 0
    assert len(workspace.stored_texts()) == 1


def test_the_memory_of_a_server_serves_as_well(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    target = str(workspace.folder / "server.db")
    server = LiveServer(ServerConfig(target=target, embedder="none", llm="none", port=0, worker=False))
    try:
        monkeypatch.setenv("EUNOE_KEY", server.owner)
        place = ["--memory", server.origin]
        done = json.loads(workspace(*workspace.command(*place, "--json")).out)
        assert (len(done["memories"]), done["memory_failures"]) == (1, 0)
        assert workspace(*workspace.command("--store", server.origin, "--again")).code == 0
        assert "Memories invoked:" in str(workspace.director.requests[-1])
        reverted = workspace("ticket", "revert", "search", "--project", "shop", *place, *workspace.logs)
        assert reverted.out == "search is reverted, 2 memories removed\n"
        monkeypatch.setenv("EUNOE_KEY", "wrong")
        assert "memory could not recall: " in workspace(*workspace.command(*place)).err
    finally:
        server.stop()


def test_what_lies_where_the_worker_works_is_warned_of(workspace: Workspace) -> None:
    inside = workspace.folder / "code" / "memory"
    command = workspace.command("--memory", str(inside), "--log", str(workspace.folder / "code" / "logs"))
    assert "can be read by the worker" not in workspace(*command).err
    with ProjectMemory.open(inside, embedder="none") as memory:
        memory.index("shop", ["The search for orders was slow before."])
    warned = workspace(*command, "--again").err
    assert warned.count("can be read by the worker") == 1
    assert f"the logs in {workspace.folder / 'code' / 'logs'} and the memory in {inside} can be read" in warned


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        (["--worker", "gpt"], 1, "'gpt' is not a worker"),
        (["--worker", "command:no-such-program"], 1, "there is no program 'no-such-program'"),
        (["--model", "none"], 1, "a director needs a language model"),
        (["--turns", "0"], 2, "--turns"),
        (["--memory", "x", "--no-memory"], 2, "give either --memory or --no-memory"),
        (["--project", ""], 2, "name the project"),
        (["--timeout", "nan"], 1, "must be a number of seconds"),
        (["-C", "nowhere"], 1, "there is no such folder"),
    ],
)
def test_misuse_is_said_in_one_line(more: list[str], code: int, why: str, workspace: Workspace) -> None:
    done = workspace(*workspace.command(*more))
    assert done.code == code
    assert why in done.err
    assert len(done.err.splitlines()) == 1
    assert workspace.director.requests == []


def test_a_file_that_is_no_ticket_and_a_ticket_that_is_none(workspace: Workspace) -> None:
    (workspace.folder / "empty.md").write_text("nothing")
    assert "has no title" in workspace(*workspace.command(file="empty.md")).err
    done = workspace("ticket", "revert", "nothing", "--project", "shop", *workspace.memory, *workspace.logs)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert workspace("ticket", "revert", "nothing", "--project", "shop", *workspace.logs).code == 2
    assert workspace("ticket", "show", "nothing", "--project", "shop", *workspace.logs).code == 1
    assert workspace("ticket", "revert", "nothing").code == 2
    for command in (["lessons"], ["redact", *workspace.logs], ["revert", "nothing", *workspace.logs]):
        done = workspace("ticket", *command, "--project", "shop", *workspace.memory)
        assert (done.code, "there is no project memory in" in done.err) == (1, True)
    assert not (workspace.folder / "memory").exists()


def test_a_killed_run_is_taken_up_and_kept_once(workspace: Workspace) -> None:
    command = workspace.command(*workspace.memory, worker=workspace.slow_worker())
    process = workspace.start(*command)
    worker = workspace.wait_for_worker(process)
    assert workspace.outcomes() == ["running"]
    process.kill()
    process.communicate()
    assert workspace.outcomes() == ["interrupted"]
    os.kill(worker, signal.SIGKILL)
    (workspace.folder / "go").touch()
    done = workspace(*command)
    assert (done.code, "taken up again after 0 turns" in done.err) == (0, True)
    assert (workspace.folder / "prompt").read_text() == PLAN["next_prompt"]
    assert sum("Plan the work" in request["messages"][-1]["content"] for request in workspace.director.requests) == 1
    assert workspace(*command).code == 0
    assert len(workspace.stored_texts()) == 1


def test_ctrl_c_finishes_the_turn_and_leaves_the_lesson(workspace: Workspace) -> None:
    process = workspace.start(*workspace.command(*workspace.memory, worker=workspace.slow_worker()))
    workspace.wait_for_worker(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr
    while "Ctrl-C again" not in process.stderr.readline():
        assert process.poll() is None
    (workspace.folder / "go").touch()
    out, _ = process.communicate()
    assert process.returncode == 130
    assert out.startswith("cancelled in 1 turn: cancelled")
    assert "This ticket was cancelled after 1 turn." in workspace.stored_texts()[0]


def test_a_polite_kill_stops_the_worker_and_leaves_the_ticket_to_be_taken_up(workspace: Workspace) -> None:
    command = workspace.command(*workspace.memory, worker=workspace.slow_worker())
    process = workspace.start(*command)
    worker = workspace.wait_for_worker(process)
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 143
    assert "the ticket is stopped; `eunoe ticket run` takes it up again" in err
    assert workspace.outcomes() == ["interrupted"]
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    (workspace.folder / "go").touch()
    assert workspace(*command).code == 0
