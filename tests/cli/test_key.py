"""`eunoe key`: keys by command line, with and without a server that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.live_server import LiveServer

from eunoe.server.config import ServerConfig


@pytest.fixture
def server(store: Path):
    server = LiveServer(ServerConfig(target=str(store), embedder="none", llm="none", port=0, worker=False))
    yield server
    server.stop()


def _create(cli, *options: str) -> tuple[dict, str]:
    made = cli("key", "create", "laptop", *options, "--json").json
    return made["key"], made["token"]


def test_a_key_is_made_and_shown_once(cli) -> None:
    result = cli("key", "create", "laptop", "--tenant", "acme", "--rights", "read, write", "--expires", "30d")
    assert (result.code, result.out.startswith("eun_")) == (0, True)
    assert "only showing" in result.err
    listed = cli("key", "list")
    assert "acme" in listed.out
    assert result.out.strip().rpartition("_")[2] not in listed.out
    (key,) = cli("key", "--json").json
    assert (key["rights"], key["tenant"], key["scopes"]) == (["read", "write"], "acme", [])


def test_keys_count_at_once_in_a_server_that_runs(cli, server: LiveServer) -> None:
    key, text = _create(cli, "--tenant", "acme", "--scope", "user=anna")
    assert server.call("GET", "/v1/status", key=text).status == 200
    new = cli("key", "rotate", key["id"], "--json").json["token"]
    assert [server.call("GET", "/v1/status", key=each).status for each in (text, new)] == [401, 200]
    assert cli("key", "revoke", key["id"]).code == 0
    assert server.call("GET", "/v1/status", key=new).status == 401


def test_rotation_may_overlap(cli, server: LiveServer) -> None:
    key, text = _create(cli)
    new = cli("key", "rotate", key["id"], "--overlap", "1h", "--json").json["token"]
    assert [server.call("GET", "/v1/status", key=each).status for each in (text, new)] == [200, 200]


def test_changes_of_keys_and_memories_are_in_the_audit_log(cli, server: LiveServer) -> None:
    assert "nothing was changed" in cli("key", "audit").err
    _, text = _create(cli, "--tenant", "acme")
    server.call("POST", "/v1/memories", {"scope": "user=anna", "items": ["Anna likes tea."]}, key=text)
    entries = cli("key", "audit", "--json").json
    assert [(entry["action"], entry["via"], entry["tenant"]) for entry in entries] == [
        ("remember", "http", "acme"),
        ("create_key", "cli", "acme"),
    ]
    assert "remember" in cli("key", "audit").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "x", "--rights", "root"), "rights"),
        (("create", "x", "--rights", ""), "rights"),
        (("create", "x", "--expires", "soon"), "--expires"),
        (("create", "x", "--scope", "tenant=acme"), "tenant"),
        (("create", "x", "--store", ":memory:"), "file"),
        (("rotate", "nobody"), "no such key"),
        (("revoke", "nobody"), "no such key"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(cli, arguments: tuple[str, ...], words: str) -> None:
    result = cli("key", *arguments)
    assert (result.code, words in result.err, result.err.count("\n")) == (1, True, 1)


def test_rights_and_scopes_are_not_broken_in_a_narrow_terminal(cli, monkeypatch, server: LiveServer) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    scope = "session=s1/user=anna"
    key, text = _create(cli, "--tenant", "acme", "--scope", scope, "--scope", "user=ben", "--expires", "30d")
    server.call("POST", "/v1/memories", {"scope": scope, "items": ["Anna likes tea."]}, key=text)
    listed, noted = cli("key", "list").out, cli("key", "audit").out
    assert {key["id"], "acme", f"{scope},", "user=ben", "read,", "forget,", "admin", "until"} <= {*listed.split()}
    assert {key["id"], "acme", "remember", "done,", "http", "session=s1/tenant=acme/user=anna"} <= {*noted.split()}
    assert max(map(len, (listed + noted).splitlines())) <= 80
