"""From a token to a caller, and the token of the owner."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer

from eunoe.errors import AccessError, InputError
from eunoe.server.access import Attempt, load_owner_token
from eunoe.server.keys import OWNER


def test_the_owners_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.token"
    token = load_owner_token(path)
    assert len(token) >= 43
    assert load_owner_token(path) == token
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["memory.token"]


def test_processes_that_start_at_once_have_one_token(tmp_path: Path) -> None:
    path, tokens = tmp_path / "memory.token", []
    barrier = threading.Barrier(8)

    def load() -> None:
        barrier.wait()
        tokens.append(load_owner_token(path))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 8
    assert len(set(tokens)) == 1


def test_a_token_that_others_could_read_is_hidden_from_them(tmp_path: Path) -> None:
    path = tmp_path / "memory.token"
    load_owner_token(path)
    path.chmod(0o644)
    load_owner_token(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "\n", "short"])
def test_a_token_that_could_be_guessed_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "memory.token"
    path.write_text(content)
    with pytest.raises(InputError, match="delete it"):
        load_owner_token(path)


@pytest.mark.parametrize(
    ("address", "is_known"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("192.168.1.5", True)]
    + [(address, False) for address in ("192.168.1.6", "10.0.0.1", "2001:db8::1", "nonsense")],
)
def test_the_owners_token_is_good_on_the_servers_machine_alone(
    server: LiveServer, address: str, is_known: bool
) -> None:
    attempt = Attempt(address, server_address="192.168.1.5")
    caller = server.services.access.find_caller(server.owner, attempt)
    assert (caller is not None and caller.key == OWNER) is is_known


def test_a_key_is_good_from_everywhere(server: LiveServer) -> None:
    key, text = server.services.keys.create("laptop")
    caller = server.services.access.find_caller(text, Attempt("203.0.113.9"))
    assert caller is not None
    assert caller.key == key


def test_a_caller_has_a_memory_that_can_do_no_more_than_the_key(server: LiveServer) -> None:
    _, text = server.services.keys.create("reader", tenant="acme", rights=["read"])
    caller = server.services.access.find_caller(text)
    assert caller is not None
    assert caller.memory.guard.tenant == "acme"
    with pytest.raises(AccessError):
        caller.memory.remember("user=anna", "Anna likes tea.")
    with pytest.raises(AccessError):
        caller.memory.recall("tenant=other/user=anna", "tea")


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
def test_a_key_is_taken_from_either_header(server: LiveServer, header: str) -> None:
    value = f"bearer  {server.owner}" if header == "Authorization" else server.owner
    assert server.call("GET", "/v1/status", headers={header: value}).status == 200


@pytest.mark.parametrize("value", ["Basic eDp5", "Bearer", "Bearer ", "Token x", ""])
def test_other_ways_to_log_in_are_none(server: LiveServer, value: str) -> None:
    assert server.call("GET", "/v1/status", headers={"Authorization": value}).status == 401


def test_no_key_in_the_path_counts(server: LiveServer) -> None:
    for name in ("token", "key", "access_token", "api_key"):
        assert server.call("GET", f"/v1/status?{name}={server.owner}").status == 401


def test_every_path_asks_for_a_key_but_for_those_that_are_named(server: LiveServer) -> None:
    paths = server.call("GET", "/v1/openapi.json", key=server.owner).json["paths"]
    open_paths = {"/", "/healthz", "/readyz", "/v1/identity", "/session"}
    for path, operations in paths.items():
        for method in operations:
            if path not in open_paths:
                assert (path, server.call(method.upper(), path).status) == (path, 401)
