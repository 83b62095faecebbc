"""A real server that misbehaves in every way: forming says so, keeps everything due, and the host is never held up."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import LlmError
from eunoe.memory import Memory
from eunoe.net import http as endpoints

TALK = "agent=cook/session=s1/user=anna"
ANNA = "agent=cook/user=anna"
SAID = ["I am allergic to peanuts.", "My sister Clara lives in Oslo.", "Please answer in short sentences.", "I row."]
QUESTION = "What about peanuts?"
Answer = Callable[[dict[str, Any]], tuple[int, bytes, dict[str, str]]]


def says(status: int, body: Any, **headers: str) -> Answer:
    answer = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda asked: (status, answer, {name.replace("_", "-"): value for name, value in headers.items()})


def speaks(text: str | None) -> Answer:
    """A whole answer in the form of the wire, whatever its words are worth."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return says(200, {"choices": [{"message": {"content": text}}], "usage": usage})


def good(asked: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
    name = asked.get("response_format", {}).get("json_schema", {}).get("name")
    text = asked["messages"][-1]["content"]
    turns = re.findall(r"<turn .*?>(.*?)</turn>", text)
    streams = len(re.findall(r"<stream ", text))
    memories = [
        {"stream": stream, "kind": "observation", "text": f"Anna said: {turn}", "turns": [place]}
        for stream in range(1, streams + 1)
        for place, turn in enumerate(turns, 1)
    ]
    answers = {"memories": json.dumps({"memories": memories}), "query": '{"query": "peanuts"}'}
    return speaks(answers[name] if name in answers else sum_up(json.loads(text)))(asked)


def sum_up(given: dict[str, Any]) -> str:
    return "\n".join([given["summary"], *(one["text"] for one in given["observations"])]).strip()


FAULTS: dict[str, Answer] = {
    "error of the server": says(500, {"error": {"message": "out of memory"}}),
    "too many calls": says(429, {"error": {"message": "slow down"}}, Retry_After="7"),
    "no JSON": says(200, b"<html>Welcome to the proxy</html>"),
    "half an answer": says(200, b'{"choices": [{"message": {"con', Content_Length="400"),
    "nothing said": speaks(None),
    "an empty text": speaks("  \n"),
    "words in place of JSON": speaks("Sure! Here are the memories you asked for."),
    "another schema": speaks('{"facts": "peanuts", "score": 0.9}'),
    "items of another schema": speaks('{"memories": ["peanuts", 3, null, {"stream": 1}]}'),
    "broken off": speaks('{"memories": [{"stream": 1, "kind": "fact", "te'),
    "hung up": says(0, b""),
    "no such model": says(404, {"error": {"message": "model 'gone' not found", "code": "model_not_found"}}),
    "wrong key": says(401, {"error": {"message": "invalid key"}}),
}


WORDS = ("words in place of JSON", "another schema", "items of another schema", "broken off")
"""Faults of form alone: to a summary, which has none, these are words like others."""


class Server(ThreadingHTTPServer):
    """Speaks the wire format of OpenAI, and answers as it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Answer = good
        self.requests: list[dict[str, Any]] = []
        self.llm = f"openai:gone@http://127.0.0.1:{self.server_address[1]}/v1?price=2/10"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A line that was cut is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(asked)
        status, answer, headers = self.server.answer(asked)
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {"Content-Length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are not waited for here."""
    taken: list[float] = []
    monkeypatch.setattr(endpoints, "_sleep", taken.append)
    monkeypatch.setenv("no_proxy", "*")
    return taken


@pytest.fixture
def memory(path: Path, server: Server) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm=server.llm, form=False) as memory:
        memory.streams.set_preset("user", consolidation_trigger=2)
        yield memory


def atoms(memory: Memory, scope: str) -> list[Any]:
    return list(memory.list(scope, kinds=["fact", "observation"], exact=True).items)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_server_is_loud_and_loses_nothing(memory: Memory, server: Server, fault: str) -> None:
    server.answer = FAULTS[fault]
    assert all(receipt.outcome == "stored" for receipt in memory.observe(TALK, SAID))
    assert server.requests == []  # the host does not wait for a model when it stores
    (failure,) = memory.form(TALK).failed
    status = memory.status()
    assert TALK in failure
    assert (status.due_messages, status.jobs, status.failing) == (len(SAID), 1, 1)
    assert status.error == failure
    assert "peanuts" not in failure
    assert atoms(memory, TALK) == atoms(memory, ANNA) == []
    assert all(usage.calls == usage.failures > 0 for usage in status.usage if not usage.output_tokens)

    server.answer = good
    report = memory.form(TALK)
    status = memory.status()
    assert (report.messages, report.failed) == (len(SAID), ())
    assert (status.due_messages, status.jobs, status.failing, status.error) == (0, 0, 0, "")
    assert len(atoms(memory, ANNA)) == len(SAID)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_host_gets_its_context_whatever_the_server_does(memory: Memory, server: Server, fault: str) -> None:
    memory.remember(ANNA, "Anna rows.")
    memory.observe(TALK, [*SAID, "Hello.", "Fine.", "Thanks."])
    server.answer = FAULTS[fault]
    context = memory.context(TALK, QUESTION)
    assert context.query.startswith(QUESTION)  # by rule
    assert context.hits[0].text == SAID[0]
    assert "Anna rows." in context.static
    assert context.faults in [("query: LlmError",), ("query: AnswerError",)]
    assert memory.status().faults == {"query": 1}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in WORDS])
def test_a_summary_stays_as_it_was_until_a_better_day(memory: Memory, server: Server, fault: str) -> None:
    memory.observe(TALK, SAID)
    memory.form(TALK)
    before = memory.summaries.revisions(ANNA)
    assert len(before) == 1
    memory.remember(ANNA, "Anna sings in a choir.", kind="observation")
    memory.remember(ANNA, "Anna has a boat.", kind="observation")
    server.answer = FAULTS[fault]
    with pytest.raises(LlmError):
        memory.summaries.consolidate(ANNA)
    status = memory.status()
    assert memory.summaries.revisions(ANNA) == before
    assert memory.streams.list(user="anna")[-1].observations == 2
    assert (status.failing, bool(status.error)) == (1, True)
    server.answer = good
    assert memory.form(TALK).consolidated
    assert memory.status().failing == 0
    assert memory.streams.list(user="anna")[-1].observations == 0


def test_a_model_that_is_gone_is_asked_a_few_times_only(memory: Memory, server: Server, waits: list[float]) -> None:
    """Nobody notices hundreds of dead calls: they are few, each is counted, and the status says what is wrong."""
    server.answer = FAULTS["no such model"]
    memory.observe(TALK, SAID)
    for _ in range(20):
        memory.form(TALK, force=False)
        memory.admin.process_cold_sessions(idle=0, minimum=1)
    status = memory.status()
    (usage,) = status.usage
    assert len(server.requests) <= 3  # the ways of asking for JSON, once: what failed waits
    assert waits == []
    assert (usage.operation, usage.calls, usage.failures, usage.cost) == ("extraction", 1, 1, 0)
    assert "404" in status.error
    assert "model 'gone' not found" in status.error
    assert (status.failing, status.due_messages) == (1, len(SAID))


def test_a_server_that_asks_for_patience_gets_it(memory: Memory, server: Server, waits: list[float]) -> None:
    server.answer = FAULTS["too many calls"]
    memory.observe(TALK, SAID)
    assert memory.form(TALK).failed
    assert waits == [7, 7, 7]
    assert len(server.requests) == 4


def test_what_is_spent_is_counted_for_each_operation(memory: Memory, server: Server) -> None:
    memory.observe(TALK, SAID)
    memory.form(TALK)
    memory.context(TALK, QUESTION)
    server.answer = FAULTS["an empty text"]
    memory.observe(TALK, "I am off to Turin.")
    memory.form(TALK)
    usage = {one.operation: one for one in memory.status().usage}
    assert usage.keys() == {"extraction", "consolidation", "query"}
    assert (usage["extraction"].failures, usage["consolidation"].failures, usage["query"].failures) == (
        usage["extraction"].calls - 1,
        0,
        0,
    )
    for one in usage.values():
        assert (one.model, one.input_tokens, one.output_tokens) == ("openai:gone", 100 * one.calls, 10 * one.calls)
        assert one.cost == pytest.approx(one.calls * (100 * 2 + 10 * 10) / 1e6)
        assert one.seconds > 0


def test_faults_behind_the_reply_are_told_and_the_messages_stay_due(path: Path, server: Server) -> None:
    server.answer = FAULTS["hung up"]
    with eunoe.open(path, embedder="none", llm=server.llm) as memory:
        memory.streams.set_preset("session", formation_messages=4)
        memory.observe(TALK, SAID)
        assert memory.flush(timeout=60)
        status = memory.status()
        assert (status.due_messages, status.failing) == (len(SAID), 1)
        assert "cannot be reached" in status.error
        assert memory.context(TALK, QUESTION, recall="off").faults == ()
    with eunoe.open(path, embedder="none", llm="none") as memory:
        assert memory.form(TALK).messages == len(SAID)
        assert memory.status().due_messages == memory.status().failing == 0
