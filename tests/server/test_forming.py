"""What is formed behind the replies, and what a forget takes along."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.llm.model_server import HttpReply, ModelServer, hangs, says, serve
from tests.server.test_webhooks import Receiver, make_webhook
from tests.support.live_server import LiveServer, StartServer
from tests.support.server_process import StartProcess, server_processes
from tests.support.waiting import PATIENCE_SECONDS, wait_until

from eunoe.net import http as endpoints

_SCOPE = "session=s1/user=anna"
_TEXT = "I am allergic to peanuts."
_FACT = "Anna is allergic to peanuts."
_DUE = [f"{_TEXT} Day {number} of our long talk about food." for number in range(50)]
"""Enough of them to be formed at once."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(endpoints, "_sleep", lambda seconds: None)
    with serve(_answer) as server:
        yield server


@pytest.fixture
def start_process() -> Iterator[StartProcess]:
    with server_processes() as start:
        yield start


def test_messages_become_facts_and_news(start_server: StartServer, endpoint: ModelServer) -> None:
    server = start_server(llm=_llm(endpoint), worker=True)
    news = _News(server)
    endpoint.script.append(hangs)
    _observe(server)
    wait_until(lambda: [job["state"] for job in _form_jobs(server)] == ["running"])
    assert _form_jobs(server)[0]["scope"] == _SCOPE
    endpoint.release.set()
    wait_until(lambda: _form_jobs(server)[0]["state"] == "succeeded")
    assert _form_jobs(server)[0]["result"]["learned"] >= 1
    assert _FACT in _texts(server)
    assert _FACT in news.first()["text"]


def test_what_fails_five_times_is_dead_until_it_is_retried(start_server: StartServer, endpoint: ModelServer) -> None:
    endpoint.good = says(503)
    server = start_server(llm=_llm(endpoint), worker=True, retry_seconds=0.001)
    _observe(server)
    wait_until(lambda: [job["state"] for job in _form_jobs(server)] == ["dead"])
    (job,) = _form_jobs(server)
    assert job["attempts"] == 5
    assert "could not be formed" in job["error"]
    assert server.call("GET", "/v1/jobs?state=dead", key=server.owner).json["items"] == [job]
    endpoint.good = _answer
    assert server.call("POST", f"/v1/jobs/{job['id']}/retry", {}, key=server.owner).status == 200
    wait_until(lambda: _form_jobs(server)[0]["state"] == "succeeded")
    assert _FACT in _texts(server)


def test_the_job_of_a_killed_server_is_taken_over(
    start_process: StartProcess, endpoint: ModelServer, tmp_path: Path
) -> None:
    variables = {"EUNOE_LLM": _llm(endpoint), "EUNOE_LEASE": "1"}
    first = start_process(tmp_path / "memory.db", **variables)
    endpoint.script.append(hangs)
    assert first.call("POST", "/v1/messages", {"scope": _SCOPE, "messages": _DUE}).status == 200
    wait_until(lambda: endpoint.requests)
    second = start_process(tmp_path / "memory.db", **variables)
    first.kill()
    wait_until(lambda: _FACT in [item["text"] for item in second.call("GET", "/v1/recent").json["items"]])
    jobs = second.call("GET", "/v1/jobs").json["items"]
    assert [(job["state"], job["attempts"]) for job in jobs if job["kind"] == "form"] == [("succeeded", 2)]


class _News:
    """The stream of events, read in a thread."""

    def __init__(self, server: LiveServer) -> None:
        self._events: list[dict[str, Any]] = []
        self._connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
        self._connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {server.owner}"})
        self._reply = self._connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()

    def first(self) -> dict[str, Any]:
        wait_until(lambda: self._events)
        return self._events[0]

    def _read(self) -> None:
        while not self._events:
            line = self._reply.readline().decode()
            if line.startswith("data:"):
                self._events.append(json.loads(line.removeprefix("data:")))
        self._connection.close()


def _answer(server: ModelServer, body: dict[str, Any]) -> HttpReply:
    """The same fact for each stream that is shown, from the first turn."""
    shown = body["messages"][-1]["content"].count("<stream number=")
    facts = [{"stream": number, "kind": "fact", "text": _FACT, "turns": [1]} for number in range(1, shown + 1)]
    text = json.dumps({"memories": facts}) if facts else "{}"
    return 200, json.dumps({"choices": [{"message": {"content": text}}]}).encode(), {}


def _llm(endpoint: ModelServer) -> str:
    return f"openai:test@{endpoint.url}"


def _observe(server: LiveServer) -> None:
    answer = server.call("POST", "/v1/messages", {"scope": _SCOPE, "messages": _DUE}, key=server.owner)
    assert answer.status == 200, answer.content


def _form_jobs(server: LiveServer) -> list[dict[str, Any]]:
    jobs = server.call("GET", "/v1/jobs", key=server.owner).json["items"]
    return [job for job in jobs if job["kind"] == "form"]


def _texts(server: LiveServer) -> list[str]:
    return [item["text"] for item in server.call("GET", "/v1/recent", key=server.owner).json["items"]]


SECRET = "C4X9ZZQ17"
TEXT = f"My passport has the number {SECRET}."
GONE: dict[str, dict[str, Any]] = {
    "by id": {"scope": "user=anna", "ids": [SECRET]},
    "everything": {"scope": "user=anna", "everything": True},
}


@pytest.fixture
def server(start_server: StartServer) -> LiveServer:
    return start_server(worker=True)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def post(server: LiveServer, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = server.call("POST", path, body, key=server.owner, headers=headers)
    assert answer.status < 300, answer.content
    value: dict[str, Any] = answer.json
    return value


def observe(server: LiveServer) -> dict[str, Any]:
    message = {"content": TEXT, "id": SECRET}
    body = {"scope": "session=s1/user=anna", "messages": [message]}
    return post(server, "/v1/messages", body, **{"Idempotency-Key": "k1"})


@pytest.mark.parametrize("body", GONE.values(), ids=GONE)
def test_no_file_of_the_server_holds_it(server: LiveServer, tmp_path: Path, body: dict[str, Any]) -> None:
    assert observe(server)["receipts"][0]["outcome"] == "stored"
    post(server, "/v1/memories", {"scope": "user=ben", "items": ["Ben likes tea."]})
    job = post(server, "/v1/jobs", {"kind": "export", "scope": "user=anna"})["id"]
    wait_until(lambda: server.services.jobs.get(job).state == "succeeded")
    other = post(server, "/v1/jobs", {"kind": "export", "scope": "user=ben"})["id"]
    wait_until(lambda: server.services.jobs.get(other).state == "succeeded")
    assert post(server, "/v1/forget", {**body, "verify": True})["verified"]
    left = [file.name for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert left == []
    assert server.call("GET", f"/v1/jobs/{job}/result", key=server.owner).status == 404
    assert server.call("GET", f"/v1/jobs/{other}/result", key=server.owner).status == 200
    assert observe(server)["receipts"][0]["outcome"] == "forgotten"


def test_the_report_names_the_message_that_stays(server: LiveServer) -> None:
    observe(server)
    source = {"source": [f"@session=s1/user=anna#{SECRET}"], "text": f"Anna's passport: {SECRET}.", "id": "f"}
    post(server, "/v1/memories", {"scope": "user=anna", "items": [source], "source_scopes": ["session=s1/user=anna"]})
    report = post(server, "/v1/forget", {"scope": "user=anna", "ids": ["f"], "verify": True})
    assert report["held_by"] == {"session=s1/user=anna": [SECRET]}
    assert (report["removed"], report["verified"]) == ({"user=anna": ["f"]}, False)
    assert "exports, backups" in report["unsearched"][0]


def test_a_webhook_that_waits_is_not_told(server: LiveServer, receiver: Receiver) -> None:
    receiver.status = 503
    make_webhook(server, receiver.url, with_text=True)
    items = [{"text": TEXT, "id": SECRET}]
    post(server, "/v1/memories", {"scope": "user=anna", "items": items})
    wait_until(lambda: receiver.requests)
    post(server, "/v1/forget", GONE["everything"])
    seen, receiver.status = len(receiver.requests), 200
    post(server, "/v1/memories", {"scope": "user=anna", "items": ["Anna likes tea."]})
    for job in server.services.jobs.of_kind("webhook"):
        if job.state == "queued":
            server.services.worker.retry(job.id)
    wait_until(lambda: any(b"Anna likes tea." in body for _, body in receiver.requests[seen:]))
    assert not any(SECRET.encode() in body for _, body in receiver.requests[seen:])
