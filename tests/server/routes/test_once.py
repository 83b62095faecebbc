"""Idempotency-Key: a write happens once, whoever dies in between."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_server import Answer, LiveServer, StartServer

from eunoe.server import idempotency, requests

_BODY = {"scope": "user=anna", "items": ["Anna keeps a zebra called Quagga."]}


def test_the_same_request_has_the_same_reply(server: LiveServer) -> None:
    first, second = _send(server, "k1"), _send(server, "k1")
    assert first.json["receipts"][0]["outcome"] == "stored"
    assert (second.status, second.content) == (200, first.content)
    assert second.headers["idempotency-replayed"] == "true"
    assert _send(server, "").json["receipts"][0]["outcome"] == "duplicate"


def test_another_request_under_the_same_key_is_refused(server: LiveServer) -> None:
    _send(server, "k1")
    other = _send(server, "k1", {**_BODY, "items": ["Anna keeps a dog."]})
    assert (other.status, other.json["code"]) == (422, "idempotency_mismatch")
    elsewhere = server.call("POST", "/v1/messages", _BODY, key=server.owner, headers={"Idempotency-Key": "k1"})
    assert elsewhere.status == 422
    assert len(_list(server)) == 1


def test_each_caller_has_keys_of_their_own(server: LiveServer) -> None:
    _send(server, "k1")
    key = server.services.keys.create("other", tenant="acme")[1]
    assert _send(server, "k1", key=key).json["receipts"][0]["outcome"] == "stored"


def test_what_failed_may_be_sent_again(server: LiveServer) -> None:
    bad = {"scope": "user=anna", "items": [{"text": "x", "kind": "no such kind"}]}
    assert _send(server, "k1", bad).status == 422
    assert _send(server, "k1", bad).json["code"] == "input"
    assert _send(server, "k1").status == 200


def test_it_outlives_the_server_and_reaches_the_next(start_server: StartServer) -> None:
    first = start_server()
    kept = _send(first, "k1")
    second = start_server()  # on the same store, beside it
    assert _send(second, "k1").content == kept.content
    first.stop()
    assert _send(start_server(), "k1").content == kept.content


def test_a_request_that_died_is_taken_over(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    _send(server, "k1")
    _edit(server, "UPDATE idempotency SET reply = NULL, lease = lease + 3600")  # as kill -9 leaves it
    monkeypatch.setattr(requests, "_PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(server.services.idempotency, "lease_seconds", 0.1)
    waiting = _send(server, "k1")
    assert (waiting.status, waiting.json["code"]) == (409, "in_progress")
    _edit(server, "UPDATE idempotency SET lease = 0")
    assert _send(server, "k1").json["receipts"][0]["outcome"] == "duplicate"
    assert len(_list(server)) == 1


def test_messages_of_a_request_that_died_are_not_stored_twice(server: LiveServer) -> None:
    """Others have written since, so that the log no longer ends with them."""

    def send(messages: list[str], name: str) -> Answer:
        body = {"scope": "user=anna", "messages": messages}
        headers = {"Idempotency-Key": name}
        return server.call("POST", "/v1/messages", body, key=server.owner, headers=headers)

    send(["Hello."], "k1")
    first = send(["Hello.", "Tea, please.", "And a scone."], "k2")
    assert [receipt["outcome"] for receipt in first.json["receipts"]] == ["duplicate", "stored", "stored"]
    send(["Coffee for me."], "k3")
    _edit(server, "UPDATE idempotency SET reply = NULL, lease = 0")
    again = send(["Hello.", "Tea, please.", "And a scone."], "k2")
    assert [receipt["outcome"] for receipt in again.json["receipts"]] == ["duplicate"] * 3
    assert [receipt["id"] for receipt in again.json["receipts"]][1:] == [each["id"] for each in first.json["receipts"]][
        1:
    ]
    assert len(_list(server)) == 4
    assert send(["Tea, please."], "k4").json["receipts"][0]["outcome"] == "stored"


def test_twins_do_the_work_once(server: LiveServer) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _send(server, "k1"), range(8)))
    assert {answer.content for answer in answers} == {answers[0].content}
    assert [answer.status for answer in answers] == [200] * 8
    assert answers[0].json["receipts"][0]["outcome"] == "stored"


def test_a_day_later_it_is_a_new_request(server: LiveServer) -> None:
    _send(server, "k1")
    _edit(server, f"UPDATE idempotency SET created = created - {idempotency.KEEP_SECONDS + 1}")
    assert _send(server, "k1").json["receipts"][0]["outcome"] == "duplicate"


def test_nothing_that_was_sent_is_kept(server: LiveServer) -> None:
    _send(server, "quagga-key")
    folder = Path(server.services.files.state).parent
    files = [path for path in folder.iterdir() if path.name.startswith("memory.server.db")]
    assert files
    for path in files:
        content = path.read_bytes()
        assert b"zebra" not in content
        assert b"quagga-key" not in content


def _send(server: LiveServer, name: str, body: Any = _BODY, key: str = "") -> Answer:
    headers = {"Idempotency-Key": name} if name else {}
    return server.call("POST", "/v1/memories", body, key=key or server.owner, headers=headers)


def _list(server: LiveServer) -> list[Any]:
    return list(server.call("GET", "/v1/memories?scope=user%3Danna", key=server.owner).json["items"])


def _edit(server: LiveServer, statement: str) -> None:
    connection = sqlite3.connect(server.services.files.state)
    with connection:
        connection.execute(statement)
    connection.close()
