"""Routes that are no verbs: sessions and transfer; and what only HTTP adds to a verb."""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.embed.folder_models import bert
from tests.support.live_server import LiveServer, StartServer


def _cookie_text(server: LiveServer, key: str) -> str:
    answer = server.call("POST", "/session", {"token": key}, headers={"Origin": server.origin})
    return answer.headers["set-cookie"]


def test_a_key_is_exchanged_for_a_cookie_that_no_script_can_read(server: LiveServer) -> None:
    cookie = _cookie_text(server, server.owner)
    assert cookie.startswith(f"eunoe_session_{server.port}=")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert server.owner not in cookie


def test_a_session_says_who_is_logged_in_and_not_the_key(server: LiveServer) -> None:
    key, text = server.services.keys.create("Anna's laptop", rights=["read"])
    answer = server.call("GET", "/session", headers=server.log_in(text))
    assert answer.json == {"key": key.id, "name": "Anna's laptop", "tenant": "", "scopes": [], "rights": ["read"]}
    assert text.rpartition("_")[2].encode() not in answer.content


def test_a_wrong_key_starts_no_session(server: LiveServer) -> None:
    answer = server.call("POST", "/session", {"token": "eun_aaaaaaaa_wrong"}, headers={"Origin": server.origin})
    assert (answer.status, "set-cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_only_a_page_of_the_server_starts_a_session(server: LiveServer, origin: str) -> None:
    headers = {"Origin": origin} if origin else {}
    assert server.call("POST", "/session", {"token": server.owner}, headers=headers).status == 403


def test_a_session_is_good_for_every_route(server: LiveServer) -> None:
    headers = server.log_in(server.owner)
    body = {"scope": "user=anna", "items": ["Anna likes tea."]}
    assert server.call("POST", "/v1/memories", body, headers=headers).status == 200
    assert server.call("GET", "/v1/status", headers=headers).status == 200


@pytest.mark.parametrize(
    "change",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # a page of another port of this machine
    ],
)
def test_a_foreign_page_cannot_use_the_cookie(server: LiveServer, change: dict[str, str]) -> None:
    headers = server.log_in(server.owner) | change
    headers = {name: value for name, value in headers.items() if value}
    body = {"scope": "user=anna", "items": ["Anna likes tea."]}
    assert server.call("POST", "/v1/memories", body, headers=headers).status == 403
    assert server.call("DELETE", "/session", headers=headers).status == 403


def test_a_forged_cookie_is_refused(server: LiveServer) -> None:
    good = server.log_in(server.owner)
    name, _, value = good["Cookie"].partition("=")
    for forged in ("", "owner", value[:-1], value.swapcase(), server.owner, "é" * 10):
        assert server.call("GET", "/v1/status", headers=good | {"Cookie": f"{name}={forged}".encode()}).status == 401
    for other in ("eunoe_session", "eunoe_session_1", "__Host-eunoe_session"):
        assert server.call("GET", "/v1/status", headers=good | {"Cookie": f"{other}={value}"}).status == 401


def test_logging_out_ends_the_session(server: LiveServer) -> None:
    headers = server.log_in(server.owner)
    answer = server.call("DELETE", "/session", headers=headers)
    assert (answer.status, "Max-Age=0" in answer.headers["set-cookie"]) == (204, True)
    assert server.call("GET", "/session", headers=headers).status == 401


@pytest.mark.parametrize("end", ["revoke", "rotate"])
def test_a_session_ends_with_its_key(server: LiveServer, end: str) -> None:
    key, text = server.services.keys.create("laptop")
    headers = server.log_in(text)
    assert server.call("GET", "/session", headers=headers).status == 200
    getattr(server.services.keys, end)(key.id)
    assert server.call("GET", "/session", headers=headers).status == 401


def test_a_rotation_with_an_overlap_leaves_the_session(server: LiveServer) -> None:
    key, text = server.services.keys.create("laptop")
    headers = server.log_in(text)
    server.services.keys.rotate(key.id, overlap=timedelta(hours=1))
    assert server.call("GET", "/session", headers=headers).status == 200


def test_two_servers_on_one_machine_do_not_share_sessions(start_server: StartServer, tmp_path) -> None:
    first, second = start_server(), start_server(target=str(tmp_path / "other.db"))
    both = {"Cookie": "; ".join(server.log_in(server.owner)["Cookie"] for server in (first, second))}
    for server in (first, second):
        assert server.call("GET", "/session", headers=both | {"Origin": server.origin}).status == 200
        alone = {"Cookie": both["Cookie"].split("; ")[server is first]}
        assert server.call("GET", "/session", headers=alone).status == 401


def test_behind_https_the_cookie_is_secure_and_bound_to_its_host(start_server: StartServer) -> None:
    server = start_server(public_url="https://memory.example.com")
    headers = {"Host": "memory.example.com", "Origin": "https://memory.example.com"}
    _, key = server.services.keys.create("laptop")
    answer = server.call("POST", "/session", {"token": key}, headers=headers)
    assert answer.headers["set-cookie"].startswith("__Host-eunoe_session=")
    assert "Secure" in answer.headers["set-cookie"].split("; ")
    plain = headers | {"Origin": "http://memory.example.com"}
    assert server.call("POST", "/session", {"token": key}, headers=plain).status == 403
    assert server.call("POST", "/session", {"token": server.owner}, headers=headers).status == 401


def test_an_export_comes_back_whole(fresh_server: LiveServer, start_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server
    _keep(server, "user=anna", 30)
    _keep(server, "user=ben", 3)
    lines = _export(server, "?scope=user%3Danna&scope=user%3Dben")
    assert len(_export(server, "")) == len(lines) == len(_export(server, "?scope=user%3Danna")) + 3
    other = start_server(target=str(tmp_path / "other.db"))
    body = "\n".join(lines) + "\n"
    report = other.call("POST", "/v1/import", body, key=other.owner).json
    assert report["stored"] == 33
    assert other.call("POST", "/v1/import", body, key=other.owner).json["duplicates"] == 33
    assert _export(other, "?scope=user%3Danna&scope=user%3Dben") == lines


def test_an_empty_store_exports_an_empty_file(fresh_server: LiveServer) -> None:
    server = fresh_server
    assert _export(server, "") == []


def test_bad_lines_are_refused(server: LiveServer) -> None:
    head = b'{"eunoe": 1}\n'
    for body in (b"x", b"\xff\xfe", head + b"[" * 50_000, head + b"{}", head + b'{"kind": 1}', b'{"eunoe": 999}'):
        answer = server.call("POST", "/v1/import", body, key=server.owner)
        assert answer.status == 422, (body[:30], answer.content)


def test_a_client_that_goes_away_leaves_nothing(server: LiveServer) -> None:
    _keep(server, "user=anna", 5)
    lines = "\n".join(line.replace("user=anna", "user=zoe") for line in _export(server, "?scope=user%3Danna"))
    files = _open_files()
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = (
            f"POST /v1/import HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.owner}\r\n"
            f"Content-Length: {len(lines) + 100}\r\n\r\n"
        )
        connection.sendall((head + lines).encode())
    while _open_files() > files:  # until the server has noticed
        time.sleep(0.01)
    assert server.call("GET", "/v1/scopes?user=zoe", key=server.owner).json["scopes"] == []


def test_a_tenant_imports_for_itself_alone(server: LiveServer) -> None:
    _keep(server, "user=anna", 2)
    body = "\n".join(_export(server, "?scope=user%3Danna")) + "\n"
    key = server.services.keys.create("other", tenant="acme")[1]
    server.call("POST", "/v1/import", body, key=key)
    scopes = server.call("GET", "/v1/scopes", key=server.owner).json["scopes"]
    assert set(scopes) <= {"user=anna", "tenant=acme/user=anna"}


def _keep(server: LiveServer, scope: str, count: int) -> None:
    items = [f"Fact {number} of {scope}." for number in range(count)]
    assert server.call("POST", "/v1/memories", {"scope": scope, "items": items}, key=server.owner).status == 200


def _export(server: LiveServer, query: str) -> list[str]:
    answer = server.call("GET", f"/v1/export{query}", key=server.owner)
    assert answer.headers["content-type"] == "application/jsonl"
    return answer.content.decode().splitlines()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


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


PATHS = {"/v1/recall": "query", "/v1/look-up": "query", "/v1/context": "message"}


def ask(server: LiveServer, path: str, recipe: Any) -> Any:
    body = {"scope": "user=anna", PATHS[path]: "Where is the kite?", "recipe": recipe}
    return server.call("POST", path, body, key=server.owner)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recipe", ["thorough", 1, 500, 60_000])
def test_a_name_or_a_time_is_taken(server: LiveServer, path: str, recipe: str | int) -> None:
    assert ask(server, path, recipe).status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("recipe", [0, -5, 60_001, 10**30, 1.5, True, "120", "best", None, [120], {"ms": 120}])
def test_anything_else_is_refused(server: LiveServer, path: str, recipe: Any) -> None:
    answer = ask(server, path, recipe)
    assert answer.status in (400, 422), answer.content
    assert "recipe: there is no recipe" in answer.json["detail"]
    assert "thorough" in answer.json["detail"]
    assert "milliseconds for reading, from 1 to 60,000" in answer.json["detail"]


@pytest.mark.parametrize(("path", "body"), [("/v1/reembed", {}), ("/v1/jobs", {"kind": "embed"})])
def test_not_even_the_owner_chooses_a_folder_of_the_server_from_afar(
    path: str, body: dict[str, str], server: LiveServer, tmp_path: Path
) -> None:
    good = bert(tmp_path / "model").spec
    for spec in (good, f" {good}", good.upper(), "folder:", "folder:/etc", f"openai:\n{good}"):
        answer = server.call("POST", path, {**body, "model": spec}, key=server.owner)
        assert (answer.status, answer.json["code"]) == (422, "input"), spec
    assert server.call("POST", path, {**body, "model": "none"}, key=server.owner).status in (200, 202)
