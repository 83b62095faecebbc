"""A server on a store whose model the package has replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.live_server import StartServer
from tests.support.waiting import wait_until

import eunoe
from eunoe.embed.encoder import Encoder
from eunoe.engine import Engine

SCOPES = [f"user=u{number}" for number in range(20)]
OLD, NEW = "eunoe-1", "eunoe-1000"


@pytest.fixture(autouse=True)
def old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "name", OLD)
        with eunoe.open(tmp_path / "memory.db", embedder="eunoe", form=False) as memory:
            for scope in SCOPES:
                memory.remember_many(scope, [f"{number} apples" for number in range(4)])
            assert memory.flush()
    monkeypatch.setattr(Encoder, "name", NEW)


def test_status_and_metrics_say_how_far_it_is(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
    server = start_server(embedder="auto")
    progress = {"old_model": OLD, "new_model": NEW, "done": 0, "total": 80}
    assert server.call("GET", "/v1/status", key=server.owner).json["reembedding"] == progress
    assert "eunoe_outdated 80.0" in server.call("GET", "/metrics", key=server.owner).content.decode()
    with eunoe.connect(server.origin, key=server.owner) as memory:
        assert memory.status().reembedding == eunoe.Reembedding(**progress)
        assert memory.admin.reembed() == 80
        assert memory.status().reembedding is None


def test_all_scopes_are_done_behind_replies(start_server: StartServer) -> None:
    server = start_server(embedder="auto")

    def status() -> dict[str, object]:
        answer: dict[str, object] = server.call("GET", "/v1/status", key=server.owner).json
        return answer

    status()
    for scope in SCOPES:
        body = {"scope": scope, "query": "3 apples"}
        found = server.call("POST", "/v1/recall", body, key=server.owner).json["hits"]
        assert found[0]["text"] == "3 apples"
    wait_until(lambda: status()["reembedding"] is None)
    assert status()["vectors"] == {NEW: 80}


def test_a_server_that_nobody_asks_does_it_as_a_job(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "_work_after_reply", lambda self: None)
    server = start_server(embedder="auto", worker=True)
    server.call("POST", "/v1/jobs", {"kind": "embed"}, key=server.owner)
    wait_until(lambda: server.call("GET", "/v1/status", key=server.owner).json["vectors"] == {NEW: 80})
