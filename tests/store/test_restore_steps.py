"""A restore that is killed at any system call, and processes that open the store at any of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.test_backup import fill, open_store, read_texts
from tests.support.system_calls import stops

import eunoe
from eunoe.errors import ReplacedStoreError
from eunoe.store.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux leads a process from call to call so")

OLD, NEW, NOTHING = ["old", "one", "two"], ["new"], list[str]()


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    fill(tmp_path / "backup.db", *NEW)
    return tmp_path / "backup.db"


def make_unfinished(path: Path, start) -> None:
    """A store whose last writes are in a log that a killed process left."""
    fill(path, "old")
    child = start("write_twice", path)
    child.read()
    child.kill()
    assert path.with_name(f"{path.name}-wal").stat().st_size


def make_finished(path: Path, start) -> None:
    fill(path, *OLD)


def make_nothing(path: Path, start) -> None:
    pass


def changes(path: Path, pid: int) -> Iterator[None]:
    """Stop a process wherever it has changed a store's files."""
    before = state = print_of(path)
    for _ in stops(pid):
        state = print_of(path)
        if state != before:
            yield
            before = print_of(path)


def print_of(path: Path) -> list[tuple[str, str]]:
    files = sorted(path.parent.glob(f"{path.name}*"))
    return [(file.name, hashlib.blake2b(file.read_bytes()).hexdigest()) for file in files]


@pytest.mark.parametrize("keep", ["keep", "drop"])
@pytest.mark.parametrize("make", [make_unfinished, make_finished, make_nothing])
def test_killed_at_any_call_it_leaves_the_one_or_the_other(path, backup, tmp_path, start, make, keep):
    make(path, start)
    left = [set_aside(path, tmp_path / "0")]
    for _ in changes(path, start("restore_in_steps", path, backup, keep).process.pid):
        left.append(set_aside(path, tmp_path / f"{len(left)}"))
    old = NOTHING if make is make_nothing else OLD
    assert [texts for place in left for texts in [read_texts(place)] if texts not in (old, NEW)] == []
    assert (read_texts(left[0]), read_texts(left[-1])) == (old, NEW)
    copies = [copy for place in left for copy in place.parent.glob("*.replaced-*") if copy.name[-1] == "Z"]
    assert bool(copies) == (keep == "keep" and bool(old))
    assert all(read_texts(copy) == old for copy in copies)


def set_aside(path: Path, folder: Path) -> Path:
    """What a kill at this moment would leave."""
    folder.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, folder)
    return folder / path.name


@pytest.mark.parametrize("make", [make_unfinished, make_finished, make_nothing])
def test_opened_at_any_call_it_is_the_one_or_the_other_and_keeps_what_is_written(path, backup, tmp_path, start, make):
    """Whoever gets in writes. Who finds the new store stays in it, and then it is as if all processes were killed."""
    make(path, start)
    visitor, texts, is_new = start("visit", path), {False: NOTHING if make is make_nothing else OLD, True: NEW}, False
    refusals = set()
    for number, _ in enumerate(changes(path, start("restore_in_steps", path, backup, "keep").process.pid)):
        if is_new:
            continue
        answer = visitor.ask(f"visit {number}")
        if "error" in answer:
            refusals.add(answer["error"])
            continue
        is_new = answer["texts"] == NEW
        assert answer["texts"] == texts[is_new]
        texts[is_new] = [*texts[is_new], f"visit {number}"]
        if not is_new:
            assert visitor.ask("") == {"closed": True}
    assert is_new
    assert refusals == {"StoreBusyError"}
    place = set_aside(path, tmp_path / "end")
    visitor.kill()
    assert read_texts(place) == read_texts(path) == texts[True]
    (kept,) = [copy for copy in tmp_path.glob("*.replaced-*") if copy.name[-1] == "Z"] or [None]
    assert (read_texts(kept) if kept else NOTHING) == texts[False]


def test_a_store_is_not_replaced_while_it_is_opened(path, backup, monkeypatch):
    """The connection has found the file in its place; its log, which SQLite finds by name, comes next."""
    fill(path, *OLD)
    check, said = SqliteStore._check_file_in_place, []

    def check_and_restore(store: SqliteStore) -> None:
        check(store)
        if store.path == path and not said:
            command = [sys.executable, "-m", "eunoe", "restore", str(backup), "--store", str(path)]
            said.append(subprocess.run(command, capture_output=True, text=True, check=False).stderr)

    monkeypatch.setattr(SqliteStore, "_check_file_in_place", check_and_restore)
    assert read_texts(path) == OLD
    assert "by another process" in said[0]
    eunoe.restore(backup, path)
    assert read_texts(path) == NEW


def test_the_log_of_a_file_that_was_put_in_place_while_a_store_was_opened_is_left_alone(
    path, tmp_path, start, monkeypatch
):
    """Moved by hand, past every lock."""
    fill(path, "mine")
    other = tmp_path / "other.db"
    make_unfinished(other, start)
    open_log, logs = SqliteStore._open_log, []

    def open_and_replace(store: SqliteStore, connection: sqlite3.Connection) -> None:
        open_log(store, connection)
        if not logs:
            for end in ("", "-wal"):
                os.replace(f"{other}{end}", f"{path}{end}")
            path.with_name("memory.db-shm").unlink()
            logs.append(path.with_name("memory.db-wal").read_bytes())

    monkeypatch.setattr(SqliteStore, "_open_log", open_and_replace)
    with pytest.raises(ReplacedStoreError):
        open_store(path)
    assert path.with_name("memory.db-wal").read_bytes() == logs[0]
    assert read_texts(path) == OLD
