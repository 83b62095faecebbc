"""Memories over HTTP, with ids of every kind."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from tests.support.live_server import LiveServer

_IDS = (
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "x/history",
    "history",
    "x/pin",
    ".",
    "..",
    "../..",
    "é",
    "a?b#c",
    "%",
    "a b",
    "a\u2028b",
    "+",
)


@pytest.mark.parametrize("id", _IDS)
def test_any_text_is_an_id(server: LiveServer, id: str) -> None:
    kept = server.call("POST", "/v1/memories", _items({"text": f"Text of {id!r}.", "id": id}), key=server.owner)
    assert kept.json["receipts"][0]["id"] == id
    path = f"/v1/memories/{quote(id, safe='')}"
    assert _get(server, path).json["id"] == id
    assert [each["id"] for each in _get(server, f"{path}/history").json["versions"]] == [id]
    pinned = server.call("POST", f"{path}/pin", {"scope": "user=anna"}, key=server.owner)
    assert pinned.status == 200
    assert _get(server, path).json["pinned"] is True


def test_an_encoded_slash_is_no_step_in_the_path(server: LiveServer) -> None:
    server.call("POST", "/v1/memories", _items({"text": "A.", "id": "a"}), key=server.owner)
    assert _get(server, "/v1/memories/a/history").status == 200
    assert _get(server, "/v1/memories/a%2Fhistory").json["code"] == "not_found"
    assert _get(server, "/v1%2Fmemories").json["code"] == "no_such_path"
    assert _get(server, "/v1/memories/%ff").status == 400
    assert _get(server, "/v1/memories/").json["code"] == "no_such_path"


def _items(*items: object) -> dict[str, object]:
    return {"scope": "user=anna", "items": list(items)}


def _get(server: LiveServer, path: str, **query: str):
    return server.call("GET", f"{path}?{urlencode({'scope': 'user=anna', **query})}", key=server.owner)
