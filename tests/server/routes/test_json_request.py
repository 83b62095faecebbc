"""Bodies that are wrong in every way: a clear refusal, never a failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.live_server import LiveServer, StartServer

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


def test_pages_are_read_to_their_end(server: LiveServer) -> None:
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
