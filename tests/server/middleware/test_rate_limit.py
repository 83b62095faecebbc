"""Limits over HTTP: for each key, and for wrong keys from one address."""

from __future__ import annotations

from tests.support.live_server import LiveServer, StartServer


def test_a_key_that_asks_too_often_is_told_when_to_come_back(start_server: StartServer) -> None:
    server = start_server(requests_per_minute=6)
    answers = [server.call("GET", "/v1/status", key=server.owner) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert answers[1].json["code"] == "rate_limit"
    assert 1 <= int(answers[1].headers["retry-after"]) <= 10
    assert answers[0].headers["ratelimit-limit"] == "1"
    _, other = server.services.keys.create("other")
    assert server.call("GET", "/v1/status", key=other).status == 200
    assert server.call("GET", "/healthz").status == 200


def test_an_address_with_wrong_keys_has_to_wait_and_known_keys_need_not(start_server: StartServer) -> None:
    server = start_server(failures_per_minute=3)
    assert server.call("GET", "/v1/status", key=server.owner).status == 200
    statuses = [server.call("GET", "/v1/status", key=f"eun_aaaaaaaa_{number}").status for number in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    _, new = server.services.keys.create("new")
    refused = server.call("GET", "/v1/status", key=new)
    assert (refused.status, int(refused.headers["retry-after"]) > 0) == (429, True)
    assert server.call("GET", "/v1/status", key=server.owner).status == 200


def test_wrong_cookies_and_logins_count_too(start_server: StartServer) -> None:
    server = start_server(failures_per_minute=2)
    cookie = {"Cookie": f"eunoe_session_{server.port}=forged"}
    assert server.call("GET", "/v1/status", headers=cookie).status == 401
    login = {"Origin": server.origin}
    assert server.call("POST", "/session", {"token": "wrong"}, headers=login).status == 401
    assert server.call("POST", "/session", {"token": server.owner}, headers=login).status == 429


def test_what_an_address_claims_to_be_does_not_count(start_server: StartServer) -> None:
    server: LiveServer = start_server(failures_per_minute=1)
    for number, status in enumerate((401, 429)):
        headers = {"X-Forwarded-For": f"10.0.0.{number}"}
        assert server.call("GET", "/v1/status", key="eun_wrong", headers=headers).status == status
