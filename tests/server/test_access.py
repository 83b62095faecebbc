"""Who gets in: tokens, sessions, limits, and the token of the owner."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.live_server import LiveServer, StartServer

from eunoe.errors import AccessError, InputError
from eunoe.server import access
from eunoe.server.access import Attempt, RateLimit, Sessions, load_owner_token
from eunoe.server.keys import OWNER
from eunoe.server.state import ServerState


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


def test_a_bucket_fills_up_again() -> None:
    now = [0.0]
    limit = RateLimit(60, burst=2, clock=lambda: now[0])
    assert [bool(limit.take("a").wait) for _ in range(3)] == [False, False, True]
    assert limit.take("a").wait == 1.0
    now[0] = 1.0
    assert [bool(limit.take("a").wait) for _ in range(2)] == [False, True]
    now[0] = 1000.0
    assert [bool(limit.take("a").wait) for _ in range(3)] == [False, False, True]


HOUR = 3600 * 1_000_000


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServerState]:
    state = ServerState(tmp_path / "memory.server.db")
    yield state
    state.close()


def _age(state: ServerState, column: str, hours: float) -> None:
    with state.write() as db:
        db.execute(f"UPDATE session SET {column} = {column} - ?", (int(hours * HOUR),))


def test_a_session_belongs_to_its_key_and_is_not_kept(state: ServerState) -> None:
    all_sessions = Sessions(state, "owner")
    id = all_sessions.start("k1")
    assert all_sessions.find_key(id) == "k1"
    assert all_sessions.find_key(id + "x") is None
    assert id.encode() not in b"".join(path.read_bytes() for path in state.path.parent.iterdir())


@pytest.mark.parametrize(("column", "hours", "is_there"), [("used", 11, True), ("used", 13, False)])
def test_an_idle_session_ends(state: ServerState, column: str, hours: float, is_there: bool) -> None:
    all_sessions = Sessions(state, "owner")
    id = all_sessions.start("k1")
    _age(state, column, hours)
    assert (all_sessions.find_key(id) is not None) is is_there


def test_a_session_in_use_ends_after_a_week(state: ServerState) -> None:
    all_sessions = Sessions(state, "owner")
    id = all_sessions.start("k1")
    _age(state, "started", 7 * 24 + 1)
    assert all_sessions.find_key(id) is None


def test_use_keeps_a_session_alive(state: ServerState) -> None:
    all_sessions = Sessions(state, "owner")
    id = all_sessions.start("k1")
    for _ in range(3):
        _age(state, "used", 11)
        assert all_sessions.find_key(id) == "k1"
        state._later.submit(lambda: None).result()


def test_a_new_token_of_the_owner_ends_all_sessions(state: ServerState) -> None:
    id = Sessions(state, "old token").start("k1")
    assert Sessions(state, "new token").find_key(id) is None


def test_a_key_has_only_so_many_sessions(state: ServerState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_MAX_PER_KEY", 2)
    all_sessions = Sessions(state, "owner")
    other = all_sessions.start("k2")
    ids = [all_sessions.start("k1") for _ in range(3)]
    assert [all_sessions.find_key(id) for id in (other, *ids)] == ["k2", None, "k1", "k1"]


def test_sessions_that_have_ended_are_removed(state: ServerState) -> None:
    all_sessions = Sessions(state, "owner")
    all_sessions.start("k1")
    _age(state, "used", 13)
    all_sessions.start("k1")
    with state.read() as db:
        assert db.execute("SELECT count(*) FROM session").fetchone()[0] == 1


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
