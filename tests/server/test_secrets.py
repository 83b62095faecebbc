"""No key, token, code or session id is in a log, in a reply to others, or in an address that is kept."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.server.oauth.conftest import App, Person, answer_of, free_port, hidden_request
from tests.support.live_server import StartServer


def test_no_secret_reaches_a_log_or_a_file(
    start_server: StartServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with caplog.at_level(logging.DEBUG):
        server = start_server(port=port, public_url=f"http://127.0.0.1:{port}", log_level="debug")
        key, text = server.services.keys.create("laptop", tenant="acme")
        wrong = f"eun_{key.id}_wrong-secret-of-somebody"
        headers = server.log_in(text)
        app, person = App(server).register(), Person(server, text)
        page = person.show_key(person.open(app.query))
        code = answer_of(person.decide(page))["code"]
        tokens = app.redeem(code).json
        body = {"scope": "user=anna", "items": ["Anna has a secret garden."]}
        for token in (server.owner, text, wrong, tokens["access_token"]):
            server.call("POST", "/v1/memories", body, key=token)
            server.call("GET", f"/v1/nowhere?token={token}", key=token)
        server.call("POST", "/v1/memories", body, headers=headers)
        app.refresh(tokens["refresh_token"])
        app.redeem(code)
    session = headers["Cookie"].partition("=")[2]
    sealed = hidden_request(page)
    secrets = [server.owner, text, wrong, session, code, tokens["access_token"], tokens["refresh_token"], sealed]
    assert "POST" in caplog.text or "request" in caplog.text
    for secret in [*secrets, text.rpartition("_")[2], "secret garden"]:
        assert secret not in caplog.text
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".token"]
    for path in kept:
        content = path.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in content], path
