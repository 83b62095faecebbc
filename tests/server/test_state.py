"""What a server keeps of its own: one writer at a time, and writes that nobody waits for."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eunoe.server.state import ServerState

INSERT = "INSERT INTO session VALUES (?, 'k', 0, 0)"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[ServerState]:
    state = ServerState(tmp_path / "memory.server.db")
    yield state
    state.close()


def _count(state: ServerState) -> int:
    with state.read() as db:
        return int(db.execute("SELECT count(*) FROM session").fetchone()[0])


def test_a_write_that_raises_has_never_happened(state: ServerState) -> None:
    with state.write() as db:
        db.execute(INSERT, (b"1",))
    with pytest.raises(sqlite3.IntegrityError), state.write() as db:
        db.executemany(INSERT, [(b"2",), (b"1",)])
    assert _count(state) == 1


def test_threads_and_other_connections_write_at_once(state: ServerState) -> None:
    other = ServerState(state.path)

    def write(target: ServerState, thread: int) -> None:
        for number in range(20):
            with target.write(is_durable=bool(number % 2)) as db:
                db.execute(INSERT, (f"{thread}/{number}".encode(),))

    threads = [threading.Thread(target=write, args=((state, other)[each % 2], each)) for each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _count(state) == 120
    other.close()


def test_a_write_within_a_write_is_an_error_and_no_standstill(state: ServerState) -> None:
    with pytest.raises(sqlite3.OperationalError, match="inside a transaction"), state.write(), state.write():
        pass
    assert _count(state) == 0


def test_closing_waits_for_what_nobody_waited_for(state: ServerState) -> None:
    for number in range(20):
        state.write_later(INSERT, (str(number).encode(),))
    state.close()
    state.write_later(INSERT, (b"late",))
    again = ServerState(state.path)
    assert _count(again) == 20
    again.close()


def test_all_of_its_files_are_for_their_owner_alone(state: ServerState) -> None:
    with state.write() as db:
        db.execute(INSERT, (b"1",))
    modes = {path.name: path.stat().st_mode & 0o777 for path in state.path.parent.iterdir()}
    assert len(modes) > 1
    assert set(modes.values()) == {0o600}
