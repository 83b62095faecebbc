"""What a server keeps of its own does not repeat what was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_events import Receiver, make_webhook
from tests.support.live_server import LiveServer, StartServer
from tests.support.waiting import wait_until

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
