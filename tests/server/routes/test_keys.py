"""Keys over HTTP."""

from __future__ import annotations

import pytest
from tests.support.live_server import LiveServer


def test_a_key_is_made_listed_rotated_and_revoked(server: LiveServer) -> None:
    body = {"name": "laptop", "tenant": "acme", "scopes": ["user=anna"], "rights": ["read", "write"], "expires": "30d"}
    made = server.call("POST", "/v1/keys", body, key=server.owner)
    assert made.status == 201
    text, id = made.json["token"], made.json["key"]["id"]
    assert server.call("GET", "/v1/status", key=text).status == 200
    listed = server.call("GET", "/v1/keys", key=server.owner)
    assert [each["id"] for each in listed.json["items"]] == [id]
    assert text.rpartition("_")[2].encode() not in listed.content
    rotated = server.call("POST", f"/v1/keys/{id}/rotate", {}, key=server.owner).json["token"]
    assert server.call("GET", "/v1/status", key=text).status == 401
    assert server.call("GET", "/v1/status", key=rotated).status == 200
    assert server.call("DELETE", f"/v1/keys/{id}", key=server.owner).status == 204
    assert server.call("GET", "/v1/status", key=rotated).status == 401
    assert server.call("DELETE", f"/v1/keys/{id}", key=server.owner).status == 404


def test_a_tenant_keeps_to_itself(server: LiveServer) -> None:
    _, admin = server.services.keys.create("admin", tenant="acme")
    other, _ = server.services.keys.create("other", tenant="other")
    assert server.call("POST", "/v1/keys", {"name": "own"}, key=admin).json["key"]["tenant"] == "acme"
    assert server.call("POST", "/v1/keys", {"name": "x", "tenant": "other"}, key=admin).status == 403
    assert server.call("POST", "/v1/keys", {"name": "x", "tenant": ""}, key=admin).status == 403
    assert server.call("DELETE", f"/v1/keys/{other.id}", key=admin).status == 404
    assert b"other" not in server.call("GET", "/v1/keys", key=admin).content


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_keys_need_the_right_admin(server: LiveServer, method: str) -> None:
    _, text = server.services.keys.create("reader", rights=["read", "write", "forget"])
    assert server.call(method, "/v1/keys", {"name": "x"} if method == "POST" else None, key=text).status == 403


@pytest.mark.parametrize("change", [{"rights": ["root"]}, {"rights": []}, {"expires": "soon"}, {"expires": "999999w"}])
def test_what_makes_no_sense_is_told(server: LiveServer, change: dict[str, object]) -> None:
    answer = server.call("POST", "/v1/keys", {"name": "x"} | change, key=server.owner)
    assert (answer.status, answer.json["code"]) == (422, "input")
