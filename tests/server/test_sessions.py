"""Sessions: kept as hashes, and ended by time, by number and by a new token of the owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eunoe.server import access
from eunoe.server.access import Sessions
from eunoe.server.state import ServerState

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
