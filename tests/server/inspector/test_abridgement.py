"""Replies are cut to what a page can take, and say so."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.live_server import LiveServer

from eunoe.server.inspector import MAX_REPLY_BYTES, abridge


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        ({"text": "short"}, {"text": "short"}),
        ({"text": "x" * 20}, {"text": {"cut": "x" * 10, "length": 20}}),
        ([1, None, True, 2.5], [1, None, True, 2.5]),
        ({"a": {"b": ["y" * 11]}}, {"a": {"b": [{"cut": "y" * 10, "length": 11}]}}),
        (list(range(600)), {"cut": list(range(500)), "length": 600}),
        ("é日🚀" * 5, {"cut": ("é日🚀" * 5)[:10], "length": 15}),
    ],
)
def test_what_is_long_is_cut_and_counted(value: Any, cut: Any) -> None:
    assert json.loads(abridge(json.dumps(value).encode(), 10)) == cut


@pytest.mark.parametrize(
    "value",
    [
        [{"text": "🚀" * 5000}] * 400,
        {str(number): "x" * 500 for number in range(3000)},
        [[["deep" * 100] * 100] * 100],
        ["x" * 100_000] * 50,
    ],
)
def test_no_reply_is_larger_than_the_limit(value: Any) -> None:
    assert len(abridge(json.dumps(value).encode(), 800)) <= MAX_REPLY_BYTES


def test_only_those_who_ask_get_less(live: LiveServer) -> None:
    text = "A long story. " * 200
    live.call("POST", "/v1/memories", {"scope": "user=cut", "items": [text]}, key=live.owner)
    path = f"/v1/memories?{urlencode({'scope': 'user=cut'})}"
    (whole,) = live.call("GET", path, key=live.owner).json["items"]
    assert whole["text"] == text
    answer = live.call("GET", path, key=live.owner, headers={"Eunoe-Text-Limit": "100"})
    (cut,) = answer.json["items"]
    assert cut["text"] == {"cut": text[:100], "length": len(text)}
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("limit", ["-1", "x", "1e3", "99999999999999999999", "²"])
def test_a_limit_that_is_none_changes_nothing(live: LiveServer, limit: str) -> None:
    headers = {"Eunoe-Text-Limit": limit.encode().decode("latin-1")}
    assert live.call("GET", "/v1/status", key=live.owner, headers=headers).status == 200
