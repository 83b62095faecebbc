"""Requests: read strictly, and done once where that is asked for."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_server import Answer, LiveServer, StartServer

from eunoe.server import idempotency, requests

_TEXT = '{"scope": "user=anna", "items": [%s]}'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "not JSON"),
        (b"\xff", "UTF-8"),
        (b"null", "JSON object"),
        (b"[]", "JSON object"),
        (_TEXT % "NaN", "NaN"),
        (_TEXT % "-Infinity", "-Infinity"),
        (_TEXT % "1e999", "too large"),
        (_TEXT % ("9" * 5000), "too many digits"),
        (_TEXT % '"\\ud800"', "surrogate"),
        ('{"\\udfff": 1, "scope": "user=anna", "items": []}', "surrogate"),
        ('{"scope": "user=anna", "scope": "user=ben", "items": []}', "twice"),
        (_TEXT % ('{"text": "x", "metadata": {"a": 1, "a": 2}}'), "twice"),
        ("[" * 40_000, "nested"),
        (_TEXT % ('{"text": "x", "metadata": {"a": ' + "[" * 80 + "]" * 80 + "}}"), "nested"),
        ('{"scope": "user=anna", "items": [], "itmes": []}', "itmes"),
        ('{"scope": "user=anna", "items": [1]}', "items"),
        (json.dumps({f"key {number}": 1 for number in range(101)}), "101 fields"),
        ('{"scope": 7, "items": []}', "scope"),
        ('{"scope": "user=a\\u0000b", "items": []}', "unprintable"),
    ],
)
def test_bad_json_is_refused(server: LiveServer, body: str | bytes, words: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = server.call("POST", "/v1/memories", body, key=server.owner, headers=headers)
    assert answer.status in (400, 422), answer.content
    assert words in answer.json["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_odd_but_good_text_comes_back_as_it_was(server: LiveServer) -> None:
    texts = ["a\0b", "\U0001f993", "line\u2028end", "\ufeffbom", "e\u0301"]
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": texts}, key=server.owner)
    listed = server.call("GET", "/v1/memories?scope=user%3Danna", key=server.owner).json["items"]
    assert [item["text"] for item in listed] == texts


def test_limits_are_told(start_server: StartServer) -> None:
    server = start_server(max_text_characters=10, max_batch=2, max_page=5)
    for path, body, words in (
        ("/v1/memories", {"scope": "user=anna", "items": ["x" * 11]}, "at most 10"),
        ("/v1/memories", {"scope": "user=anna", "items": [{"text": "x" * 11}]}, "at most 10"),
        ("/v1/messages", {"scope": "user=anna", "messages": [{"content": "x" * 11}]}, "at most 10"),
        ("/v1/recall", {"scope": "user=anna", "query": "x" * 11}, "at most 10"),
        ("/v1/messages", {"scope": "user=anna", "messages": ["a", "b", "c"]}, "at most 2"),
        ("/v1/forget", {"scope": "user=anna", "ids": ["a", "b", "c"]}, "at most 2"),
        ("/v1/recall", {"scope": "user=anna", "query": "x", "limit": 6}, "at most 5"),
    ):
        answer = server.call("POST", path, body, key=server.owner)
        assert (answer.status, words in answer.json["detail"]) == (422, True), answer.content
    page = server.call("GET", "/v1/memories?scope=user%3Danna&limit=6", key=server.owner)
    assert (page.status, "5" in page.json["detail"]) == (422, True)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "scope=",
        "scope=x",
        "scop=1",
        "scope=user%3D%00",
        "scope=user%3Danna&limit=0",
        "scope=user%3Danna&limit=x",
        "scope=user%3Danna&limit=99999999999999999999999",
        "scope=user%3Danna&after=x",
        "scope=user%3Danna&kinds=x",
    ],
)
def test_bad_queries_are_refused(server: LiveServer, query: str) -> None:
    answer = server.call("GET", f"/v1/memories?{query}", key=server.owner)
    assert answer.status == 422, answer.content
    assert answer.json["detail"]


def test_what_is_not_text_is_no_query(server: LiveServer) -> None:
    for path in ("/v1/memories?scope=user%3D%ff%fe", "/v1/memories/%ff?scope=user%3Danna"):
        assert server.call("GET", path, key=server.owner).status == 400


def test_pages_are_read_to_their_end(fresh_server: LiveServer) -> None:
    server = fresh_server
    items = [f"Fact {number}." for number in range(7)]
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": items}, key=server.owner)
    for user in "bcdefg":
        server.call("POST", "/v1/memories", {"scope": f"user={user}", "items": ["x"]}, key=server.owner)
    assert len(_read(server, "/v1/memories?scope=user%3Danna", "items")) == 7
    assert len(_read(server, "/v1/scopes?", "scopes")) == 7
    assert len(_read(server, "/v1/streams?", "streams")) == 7
    assert server.call("GET", "/v1/scopes?after=nowhere", key=server.owner).status == 422


def _read(server: LiveServer, path: str, name: str) -> list[Any]:
    found: list[Any] = []
    after = ""
    while True:
        page = server.call("GET", f"{path}&limit=3&after={after}", key=server.owner).json
        assert len(page[name]) <= 3
        found += [json.dumps(each) for each in page[name]]
        if not (after := page["next"]):
            assert len(set(found)) == len(found)
            return found


_BODY = {"scope": "user=anna", "items": ["Anna keeps a heron called Jacob."]}


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
        assert b"heron" not in content
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
