"""The inspector's session: who may start one, what its cookie is good for, and when it ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
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


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_foreign_page_cannot_read_with_the_cookie(server: LiveServer, site: str) -> None:
    headers = server.log_in(server.owner) | {"Sec-Fetch-Site": site}
    assert server.call("GET", "/v1/status", headers=headers).status == 403


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
