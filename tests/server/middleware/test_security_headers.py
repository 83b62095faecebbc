"""What browsers are told about every reply."""

from __future__ import annotations

import pytest
from tests.support.live_server import LiveServer, StartServer


@pytest.mark.parametrize("path", ["/healthz", "/v1/status", "/nowhere", "/v1/recall"])
@pytest.mark.parametrize("host", ["", "evil.example"])
def test_every_reply_has_them_also_a_refusal(server: LiveServer, path: str, host: str) -> None:
    answer = server.call("GET", path, headers={"Host": host} if host else {})
    policy = answer.headers["content-security-policy"]
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_behind_https_browsers_are_told_to_stay_there(start_server: StartServer) -> None:
    server = start_server(public_url="https://memory.example.com")
    answer = server.call("GET", "/healthz", headers={"Host": "memory.example.com"})
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert "strict-transport-security" not in server.call("GET", "/healthz").headers


def test_a_fault_of_ours_tells_nothing_and_has_them_too(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("Anna likes tea.")

    monkeypatch.setattr(server.services.keys, "list", fail)
    answer = server.call("GET", "/v1/keys", key=server.owner)
    assert (answer.status, answer.json["code"]) == (500, "fault")
    assert b"Anna" not in answer.content
    assert "content-security-policy" in answer.headers
    assert "GET /v1/keys failed: RuntimeError" in caplog.text


def test_every_request_has_an_id_of_ours(server: LiveServer) -> None:
    sent = {"X-Request-ID": "evil"}
    ids = {server.call("GET", "/healthz", headers=sent).headers["x-request-id"] for _ in range(3)}
    assert (len(ids), "evil" in ids) == (3, False)
