"""A server that is killed or stopped while many write: what it acknowledged is there, once."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.server_load import Load, Write, stored_texts
from tests.support.server_process import ServerProcess, StartProcess, server_processes

_ROUNDS = int(os.environ.get("EUNOE_CRASH_ROUNDS", "2"))
_LEASE = {"EUNOE_LEASE": "1"}
"""A request that died with its server may be repeated so soon."""
_GRACE_SECONDS = 25
"""That of requests, and then that of jobs, with some room."""


@pytest.fixture
def start() -> Iterator[StartProcess]:
    with server_processes() as start:
        yield start


def test_what_was_acknowledged_outlives_a_kill(start: StartProcess, tmp_path: Path) -> None:
    moments, written = random.Random(13), list[Write]()
    server = start(tmp_path / "memory.db", **_LEASE)
    for round in range(_ROUNDS):
        load = Load(server, f"round {round}")
        load.start()
        load.wait(moments.randrange(1, 60))
        server.kill()
        load.join()
        assert not load.refused
        server = start(tmp_path / "memory.db", **_LEASE)
        _repeat(server, load)
        written += load.acknowledged + [write for write in load.uncertain if write.key]
        _check_stored(server, written)


def test_a_stop_under_load_loses_nothing(start: StartProcess, tmp_path: Path) -> None:
    server = start(tmp_path / "memory.db", **_LEASE)
    load = Load(server, "load", writers=8)
    load.start()
    load.wait(50)
    server.stop(_GRACE_SECONDS)
    load.join()
    assert {status for _, status in load.refused} <= {503}
    with closing(sqlite3.connect(tmp_path / "memory.server.db")) as records:
        assert records.execute("SELECT * FROM job WHERE state = 'running'").fetchall() == []
    _check_stored(start(tmp_path / "memory.db", **_LEASE), load.acknowledged)


def _repeat(server: ServerProcess, load: Load) -> None:
    """Send again what had no answer, and some of what had one; all had a key, and so are stored once."""
    again = [write for write in load.acknowledged if write.key][-10:]
    for write in again + [write for write in load.uncertain if write.key]:
        answer = server.call("POST", write.path, write.body, Idempotency_Key=write.key)
        assert answer.status == 200, (write, answer.content)


def _check_stored(server: ServerProcess, written: list[Write]) -> None:
    found = stored_texts(server, {write.scope for write in written})
    assert [write for write in written if found[write.scope, write.text] != 1] == []
