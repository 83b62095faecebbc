"""Backups are complete, made while the store is in use, and put in place in one step; so are restored stores."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import (
    DamagedStoreError,
    InputError,
    NewerStoreError,
    NotAStoreError,
    ReplacedStoreError,
    StoreBusyError,
    StoreError,
)
from eunoe.store.schema import SCHEMA

ANNA = "user=anna"
ROUNDS = 6


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


def open_store(path: Path) -> eunoe.Memory:
    return eunoe.open(path, embedder="none", form=False)


def fill(path: Path, *texts: str) -> None:
    with open_store(path) as memory:
        memory.observe(ANNA, list(texts))


def read_texts(path: Path) -> list[str]:
    with open_store(path) as memory:
        return [item.text for item in memory.list(ANNA, limit=1000).items]


def read_copy(path: Path) -> list[str]:
    """What a file holds, read without touching it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [text for (text,) in connection.execute("SELECT text FROM items ORDER BY seq")]


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_backup_holds_everything_and_is_one_private_file(path, backup, tmp_path):
    with open_store(path) as memory:
        memory.observe(ANNA, ["one", "two"])
        memory.remember(ANNA, "Anna plays the cello.")
        report = memory.admin.backup(backup)
        memory.observe(ANNA, "three")
        assert (report.path, report.scopes, report.messages, report.facts) == (str(backup), 1, 2, 1)
        assert report.bytes == backup.stat().st_size
        assert backup.stat().st_mode & 0o777 == 0o600
        assert names(tmp_path) == {"memory.db", "memory.db-wal", "memory.db-shm", "backup.db"}
    assert read_texts(backup) == ["one", "two", "Anna plays the cello."]


def test_both_faces_back_up(path, backup):
    async def work() -> int:
        async with eunoe.open_async(path, embedder="none") as memory:
            await memory.observe(ANNA, "one")
            return (await memory.admin.backup(backup)).messages

    assert asyncio.run(work()) == 1
    assert read_texts(backup) == ["one"]


def test_a_memory_that_is_in_no_file_can_be_backed_up(backup):
    with eunoe.open(":memory:", embedder="none", form=False) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
    assert read_texts(backup) == ["one"]


def test_writers_go_on_while_a_backup_is_made(path, backup):
    """Another thread writes in the middle of the copying; the backup holds what was there when it began."""
    with open_store(path) as memory:
        memory.observe(ANNA, [f"message {number} " * 200 for number in range(2500)])
        slices = []

        def write_between(done: int, total: int) -> None:
            slices.append((done, total))
            if len(slices) <= 3:
                thread = threading.Thread(target=memory.observe, args=(ANNA, f"meanwhile {len(slices)}"))
                thread.start()
                thread.join()

        report = memory.admin.backup(backup, progress=write_between)
        assert report.messages == 2500
        assert memory.status().messages == 2503
        assert slices[-1][0] == slices[-1][1]
    assert len(slices) >= 3
    assert len(read_copy(backup)) == 2500


def test_an_earlier_backup_is_replaced_and_keeps_its_mode(path, backup):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        backup.chmod(0o640)
        memory.observe(ANNA, "two")
        memory.admin.backup(backup)
    assert read_copy(backup) == ["one", "two"]
    assert backup.stat().st_mode & 0o777 == 0o640


def test_a_backup_through_a_link_leaves_the_link(path, backup, tmp_path):
    (tmp_path / "latest.db").symlink_to(backup.name)
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(tmp_path / "latest.db")
    assert (tmp_path / "latest.db").is_symlink()
    assert read_copy(backup) == ["one"]


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "memory.db-shm", "memory.db-journal", "link", "hard"])
def test_a_backup_never_replaces_the_store(path, tmp_path, name):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        (tmp_path / "link").symlink_to(path)
        os.link(path, tmp_path / "hard")
        with pytest.raises(StoreError, match="name a"):
            memory.admin.backup(tmp_path / name)
        memory.observe(ANNA, "two")
    assert read_texts(path) == ["one", "two"]


def test_a_backup_replaces_nothing_but_a_backup(path, tmp_path):
    fill(tmp_path / "other.db", "mine")
    (tmp_path / "letter").write_text("Dear Anna")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        for name in ("other.db", "letter", "folder", "pipe", "nowhere/backup.db"):
            with pytest.raises(StoreError):
                memory.admin.backup(tmp_path / name)
        with pytest.raises(InputError):
            memory.admin.backup("")
    assert (tmp_path / "letter").read_text() == "Dear Anna"
    assert read_texts(tmp_path / "other.db") == ["mine"]


def test_a_backup_that_was_opened_and_written_to_is_a_store_and_not_replaced(path, backup):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        fill(backup, "its own")
        with pytest.raises(StoreError, match="no backup"):
            memory.admin.backup(backup)
    assert read_texts(backup) == ["one", "its own"]


def test_a_damaged_store_makes_no_backup(path, backup):
    fill(path, *(f"message {number} " * 20 for number in range(100)))
    content = bytearray(path.read_bytes())
    page = content.index(b"message 50 ") // 4096 * 4096
    content[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    with open_store(path) as memory, pytest.raises(DamagedStoreError):
        memory.admin.backup(backup)
    assert not backup.exists()
    assert names(path.parent) == {"memory.db"}


def test_what_was_forgotten_is_not_in_a_backup_even_if_it_is_not_scrubbed(path, backup, monkeypatch):
    with open_store(path) as memory:
        kept = memory.observe(ANNA, [f"the secret of {number} is {number * 7919}" for number in range(400)])
        monkeypatch.setattr("eunoe.store.sqlite.SqliteStore.scrub", lambda *_: None)
        memory.forget(ANNA, [receipt.id for receipt in kept[::2]])
        memory.admin.backup(backup)
    content = backup.read_bytes()
    for number in range(0, 400, 2):
        assert f"the secret of {number} is {number * 7919}".encode() not in content


def test_a_restored_store_holds_what_the_backup_held_and_the_other_is_kept(path, backup):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        memory.observe(ANNA, "two")
    report = eunoe.restore(backup, path)
    assert (report.path, report.messages) == (str(path), 1)
    assert ".replaced-" in report.kept
    assert read_texts(path) == ["one"]
    assert read_texts(Path(report.kept)) == ["one", "two"]
    fill(path, "three")
    assert read_texts(path) == ["one", "three"]


def test_a_store_is_discarded_if_that_is_wanted(path, backup, tmp_path):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        memory.observe(ANNA, "two")
    assert eunoe.restore(backup, path, keep=False).kept == ""
    assert names(tmp_path) == {"memory.db", "backup.db"}
    assert read_texts(path) == ["one"]


def test_restored_where_there_was_nothing(path, backup, tmp_path):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
    eunoe.restore(backup, tmp_path / "new.db")
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600
    assert read_texts(tmp_path / "new.db") == ["one"]
    with pytest.raises(StoreError, match="does not exist"):
        eunoe.restore(backup, tmp_path / "nowhere" / "new.db")


def test_a_store_that_is_open_is_not_replaced(path, backup, start):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        with pytest.raises(StoreBusyError, match="open in this process"):
            eunoe.restore(backup, path)
    child = start("ping", path)
    assert child.read() == {"ready": True}
    with pytest.raises(StoreBusyError, match="open in another process"):
        eunoe.restore(backup, path)
    assert child.ask("one") == {"listed": True, "recalled": True}
    child.kill()
    assert eunoe.restore(backup, path).messages == 1


def test_the_log_of_a_killed_process_stays_with_the_store_that_is_kept(path, backup, start):
    fill(path, "before")
    with open_store(path) as memory:
        memory.admin.backup(backup)
    child = start("write_twice", path)
    child.read()
    child.kill()
    assert path.with_name("memory.db-wal").stat().st_size
    report = eunoe.restore(backup, path)
    assert read_texts(path) == ["before"]
    assert read_texts(Path(report.kept)) == ["before", "one", "two"]


def test_a_damaged_store_is_replaced_and_kept_with_its_log(path, backup, tmp_path):
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
    path.write_bytes(os.urandom(9000))
    (tmp_path / "memory.db-wal").write_bytes(os.urandom(5000))
    noise = path.read_bytes()
    report = eunoe.restore(backup, path)
    assert read_texts(path) == ["one"]
    assert Path(report.kept).read_bytes() == noise
    assert Path(f"{report.kept}-wal").stat().st_size == 5000


def test_a_backup_put_in_place_by_hand_is_not_mixed_with_the_log_of_a_killed_process(path, backup, start):
    """Made by the very process that is killed later: the copy is younger than the log's beginning."""
    child = start("back_up", path, backup)
    assert child.read() == {"messages": 1}
    child.kill()
    assert path.with_name("memory.db-wal").stat().st_size
    shutil.copyfile(backup, path)
    with pytest.raises(ReplacedStoreError, match="move"):
        eunoe.open(path)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda file: file.write_bytes(b"hello, I am a letter"), NotAStoreError),
        (lambda file: file.write_bytes(b""), NotAStoreError),
        (lambda file: file.unlink(), NotAStoreError),
        (lambda file: os.truncate(file, file.stat().st_size // 2 // 4096 * 4096), DamagedStoreError),
        (lambda file: run(file, "DELETE FROM meta", "PRAGMA application_id = 77"), NotAStoreError),
        (lambda file: run(file, f"PRAGMA user_version = {SCHEMA + 1}"), NewerStoreError),
        (lambda file: flip(file, b"message 50 "), DamagedStoreError),
    ],
    ids=["letter", "empty", "missing", "cut", "another program's", "newer", "damaged"],
)
def test_what_is_no_sound_backup_is_refused_and_the_store_stays(path, backup, damage, error):
    with open_store(path) as memory:
        memory.observe(ANNA, [f"message {number} " * 20 for number in range(100)])
        memory.admin.backup(backup)
    damage(backup)
    before = path.read_bytes()
    with pytest.raises(error):
        eunoe.restore(backup, path)
    assert path.read_bytes() == before
    assert names(path.parent) <= {"memory.db", "backup.db"}


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def flip(path: Path, text: bytes) -> None:
    content = bytearray(path.read_bytes())
    page = content.index(text) // 4096 * 4096
    content[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(content)


def test_a_store_is_not_restored_over_itself(path, tmp_path):
    fill(path, "one")
    (tmp_path / "link.db").symlink_to(path)
    for source in (path, tmp_path / "link.db"):
        with pytest.raises(StoreError, match="itself"):
            eunoe.restore(source, path)
    with pytest.raises(StoreError, match="name a file"):
        eunoe.restore(path, ":memory:")
    assert read_texts(path) == ["one"]


def test_a_process_that_waits_to_open_gets_the_restored_store(path, backup, monkeypatch):
    """It has the old file in its hands when the new one takes its place."""
    with open_store(path) as memory:
        memory.observe(ANNA, "one")
        memory.admin.backup(backup)
        memory.observe(ANNA, "two")
    connect, made = sqlite3.connect, iter([lambda: eunoe.restore(backup, path)])

    def connect_and_replace(name: object, *args: object, **options: object) -> sqlite3.Connection:
        connection = connect(name, *args, **options)  # type: ignore[call-overload]
        if name == path and (replace := next(made, None)):
            replace()
        return connection

    # In another process the file would not be known as open here.
    monkeypatch.setattr("eunoe.store.sqlite_bytes.is_held", lambda key: False)
    monkeypatch.setattr("eunoe.store.sqlite.sqlite3.connect", connect_and_replace)
    with pytest.raises(ReplacedStoreError):
        open_store(path)
    assert read_texts(path) == ["one"]


def test_killed_while_making_a_backup(path, backup, start):
    """The backup is the earlier one or the new one, and what was left half-written goes with the next."""
    fill(path, *(f"message {number} " * 50 for number in range(500)))
    chance = random.Random("killed while making a backup")
    sizes = [500]
    for _ in range(ROUNDS):
        child = start("back_up_again", path, backup)
        sizes.append(child.read()["messages"])
        time.sleep(chance.random() * 0.1)  # any moment will do; this only makes sure that they differ
        sizes += [line["messages"] for line in child.kill()]
        if backup.exists():
            assert len(read_copy(backup)) in {*sizes, sizes[-1] + 1}
    with open_store(path) as memory:
        memory.admin.backup(backup)
    assert not [name for name in names(path.parent) if name.endswith(".part")]


def test_killed_while_restoring(path, tmp_path, start):
    """The store is one of the two, whole, at every moment."""
    for name, count in (("few.db", 100), ("many.db", 400)):
        fill(tmp_path / name, *(f"message {number} " * 50 for number in range(count)))
    chance = random.Random("killed while restoring")
    found = set()
    for _ in range(ROUNDS):
        child = start("restore_again", path, tmp_path / "few.db", tmp_path / "many.db")
        assert child.read()
        time.sleep(chance.random() * 0.1)
        child.kill()
        found.add(len(read_texts(path)))
        for kept in tmp_path.glob("memory.db.replaced-*"):
            kept.unlink()
    assert found <= {100, 400}
