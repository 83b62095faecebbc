"""Files that are replaced or taken away while a store is open, or while it is closed and its log is left."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import EunoeError, NewerStoreError, ReplacedStoreError
from eunoe.store import sqlite_files
from eunoe.store.schema import SCHEMA

ANNA = "user=anna"


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def read_texts(path: Path) -> list[str]:
    with eunoe.open(path, embedder="none", form=False) as memory:
        return [item.text for item in memory.list(ANNA, limit=1000).items]


def fill(path: Path, *texts: str) -> None:
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, list(texts))


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rescued(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.iterdir() if ".rescued-" in file.name)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another store, larger than the one that is open."""
    fill(tmp_path / "other.db", *(f"other {number} " * 30 for number in range(200)))
    return tmp_path / "other.db"


def replace(path: Path, other: Path) -> None:
    os.replace(other, path)


def overwrite(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def overwrite_with_old_times(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)
    os.utime(path, (1_600_000_000, 1_600_000_000))


def empty(path: Path, other: Path) -> None:
    os.truncate(path, 0)


def cut_in_half(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_last_byte(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def delete(path: Path, other: Path) -> None:
    path.unlink()


def move_away(path: Path, other: Path) -> None:
    path.rename(path.with_name("aside.db"))


def write_noise(path: Path, other: Path) -> None:
    path.write_bytes(os.urandom(9000))


CHANGES = [
    replace,
    overwrite,
    overwrite_with_old_times,
    empty,
    cut_in_half,
    cut_last_byte,
    delete,
    move_away,
    write_noise,
]
VERBS: dict[str, Callable[[eunoe.Memory], object]] = {
    "write": lambda memory: memory.observe(ANNA, "three"),
    "read": lambda memory: memory.list(ANNA),
    "forget": lambda memory: memory.forget(ANNA, everything=True),
    "status": lambda memory: memory.status(),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_under_an_open_store(path, other, change, verb):
    wanted = content(other)
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        change(path, other)
        after = content(path) if path.exists() else ""
        with pytest.raises(ReplacedStoreError, match="while it was open"):
            VERBS[verb](memory)
        with pytest.raises(ReplacedStoreError, match="while it was open"):
            memory.observe(ANNA, "four")
    assert (content(path) if path.exists() else "") == after
    if change in (replace, overwrite, overwrite_with_old_times):
        assert content(path) == wanted
        assert len(read_texts(path)) == 200


@pytest.mark.parametrize("change", CHANGES)
def test_closing_does_no_harm_to_what_took_the_place_of_the_file(path, other, change):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        change(path, other)
        after = content(path) if path.exists() else ""
    assert (content(path) if path.exists() else "") == after
    assert not beside(path, "-wal").exists() or beside(path, "-wal").stat().st_size == 0


@pytest.mark.parametrize("change", [replace, delete])
def test_what_was_acknowledged_is_kept_when_the_file_is_gone(path, other, change):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        change(path, other)
        with pytest.raises(ReplacedStoreError) as caught:
            memory.observe(ANNA, "three")
    (kept,) = rescued(path)
    assert kept.name in str(caught.value)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert read_texts(kept) == ["one", "two"]


@pytest.mark.parametrize("change", [cut_in_half, cut_last_byte])
def test_what_was_read_before_is_kept_when_the_file_is_cut(path, other, change):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        assert len(memory.list(ANNA).items) == 2
        change(path, other)
        with pytest.raises(ReplacedStoreError, match="cut short") as caught:
            memory.observe(ANNA, "three")
    kept = [file for file in rescued(path) if "-wal" not in file.name]
    assert kept[0].name in str(caught.value)
    assert read_texts(kept[0]) == ["one", "two"]


def test_a_smaller_file_that_only_its_log_makes_whole_is_not_cut(path):
    """Another process has vacuumed it and written on, and a checkpoint of that is under way."""
    with (
        eunoe.open(path, embedder="none", form=False) as memory,
        closing(sqlite3.connect(path, isolation_level=None)) as process,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        fill_table(process, "large", 300)
        process.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        memory.observe(ANNA, "one")
        process.execute("DROP TABLE large")
        process.execute("VACUUM")
        process.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        fill_table(process, "small", 50)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM small").fetchone()
        process.execute("INSERT INTO small VALUES ('more')")
        process.execute("PRAGMA wal_checkpoint(PASSIVE)")
        os.truncate(path, path.stat().st_size - 20 * 4096)  # as if these were still to come
        memory.observe(ANNA, "two")
        assert [item.text for item in memory.list(ANNA).items] == ["one", "two"]


def fill_table(connection: sqlite3.Connection, name: str, pages: int) -> None:
    connection.execute(f"CREATE TABLE {name} (text)")
    with connection:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {name} VALUES (?)", [("x" * 4000,)] * pages)


def test_a_file_that_was_moved_has_everything(path, other):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        move_away(path, other)
        with pytest.raises(ReplacedStoreError):
            memory.list(ANNA)
    assert read_texts(path.with_name("aside.db")) == ["one", "two"]
    assert not rescued(path)
    shutil.copyfile(other, path)
    assert len(read_texts(path)) == 200


def test_a_file_that_was_moved_away_and_back_is_the_same(path, other):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "one")
        move_away(path, other)
        path.with_name("aside.db").rename(path)
        memory.observe(ANNA, "two")
    assert read_texts(path) == ["one", "two"]


def test_an_old_copy_of_the_same_store_put_in_its_place(path, tmp_path):
    """Its own content of an hour ago: the same store by every mark but the number of its writes."""
    fill(path, "one")
    copy = tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "two")
        memory.observe(ANNA, "three")
        shutil.copyfile(copy, path)
        with pytest.raises(ReplacedStoreError, match="overwritten"):
            memory.observe(ANNA, "four")
    assert content(path) == content(copy)
    assert read_texts(path) == ["one"]
    assert [file.name.partition(".rescued")[0] for file in rescued(path)] == ["memory.db-wal"]


@pytest.mark.parametrize("ends", [["-wal"], ["-shm"], ["-wal", "-shm"]])
@pytest.mark.parametrize("verb", VERBS)
def test_a_log_that_is_taken_away_loses_nothing(path, ends, verb):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        for end in ends:
            beside(path, end).unlink()
        with pytest.raises(ReplacedStoreError, match="nothing is missing"):
            VERBS[verb](memory)
        assert read_texts(path) == ["one", "two"]
        with pytest.raises(ReplacedStoreError):
            memory.observe(ANNA, "three")
    assert read_texts(path) == ["one", "two"]


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_log_that_is_replaced_loses_nothing(path, tmp_path, end):
    """By one of an hour ago, as a copy of a whole folder does it."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "one")
        shutil.copyfile(beside(path, end), tmp_path / "old")
        memory.observe(ANNA, "two")
        os.replace(tmp_path / "old", beside(path, end))
        with pytest.raises(ReplacedStoreError, match="kept as"):
            memory.observe(ANNA, "three")
    (kept,) = rescued(path)
    assert read_texts(kept) == ["one", "two"]


def test_a_log_that_another_process_makes_anew_takes_none_of_the_old_writes(path, start):
    """After the log is gone, another process begins its own: closing must not write the old one over its pages."""
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        for end in ("-wal", "-shm"):
            beside(path, end).unlink()
        child = start("create", path)
        assert child.read() == {"ready": True}
        child.tell()
        assert child.read()
        child.tell()
        assert child.end() == 0
        with pytest.raises(ReplacedStoreError):
            memory.observe(ANNA, "three")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert read_texts(path) == ["one", "two"]


def test_both_of_two_processes_notice(path, other, start):
    fill(path, "one")
    child = start("ping", path)
    assert child.read() == {"ready": True}
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "two")
        assert child.ask("two") == {"listed": True, "recalled": True}
        os.replace(other, path)
        with pytest.raises(ReplacedStoreError):
            memory.list(ANNA)
        child.tell("two")
        assert child.read() is None  # it ended with an error
    child.clear()
    assert len(read_texts(path)) == 200
    assert all(read_texts(kept) == ["one", "two"] for kept in rescued(path))


def killed_with_a_log(path: Path, start: Callable[..., object]) -> None:
    """A process that wrote into its log and was killed."""
    child = start("write_twice", path)
    assert child.read() == {"done": 2}  # type: ignore[attr-defined]
    child.kill()  # type: ignore[attr-defined]
    assert beside(path, "-wal").stat().st_size > 32


@pytest.mark.parametrize("put", [replace, overwrite])
def test_a_copy_restored_over_a_killed_store_is_not_mixed_with_its_log(path, tmp_path, start, put):
    fill(path, "before")
    shutil.copyfile(path, tmp_path / "copy.db")
    killed_with_a_log(path, start)
    put(path, tmp_path / "copy.db")
    before = {file.name: content(file) for file in tmp_path.iterdir()}
    with pytest.raises(ReplacedStoreError, match=r"move memory\.db-wal away"):
        eunoe.open(path)
    assert {file.name: content(file) for file in tmp_path.iterdir()} == before
    beside(path, "-wal").rename(tmp_path / "old-log")
    assert read_texts(path) == ["before"]


def test_another_store_restored_over_a_killed_one(path, other, start):
    killed_with_a_log(path, start)
    shutil.copyfile(other, path)
    with pytest.raises(ReplacedStoreError, match=r"move memory\.db-wal away"):
        eunoe.open(path)


def test_a_log_of_a_file_that_is_gone(path, start):
    """SQLite would delete it without a word."""
    killed_with_a_log(path, start)
    path.unlink()
    log = content(beside(path, "-wal"))
    with pytest.raises(ReplacedStoreError, match="put the file back"):
        eunoe.open(path)
    assert content(beside(path, "-wal")) == log
    assert not path.exists()


def test_a_stale_log_put_beside_a_file(path, tmp_path, start):
    killed_with_a_log(path, start)
    shutil.copyfile(beside(path, "-wal"), tmp_path / "old-log")
    fill(path, "three")
    (tmp_path / "old-log").rename(beside(path, "-wal"))
    with pytest.raises(ReplacedStoreError, match=r"move memory\.db-wal away"):
        eunoe.open(path)
    beside(path, "-wal").unlink()
    assert read_texts(path) == ["one", "two", "three"]


def test_a_killed_store_that_is_moved_with_its_log_has_everything(path, tmp_path, start):
    fill(path, "before")
    killed_with_a_log(path, start)
    place = tmp_path / "elsewhere"
    place.mkdir()
    for end in ("", "-wal"):
        shutil.copyfile(beside(path, end), beside(place / "memory.db", end))
    assert read_texts(place / "memory.db") == ["before", "one", "two"]


def test_text_that_looks_like_a_stamp_fools_nobody(path, tmp_path):
    fake = sqlite_files.FileStamp.first().next()
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, [f"{sqlite_files.STAMP_VALUE}{fake.text}", "two"])
        place = tmp_path / "elsewhere"
        place.mkdir()
        for end in ("", "-wal"):  # what a kill would leave
            shutil.copyfile(beside(path, end), beside(place / "memory.db", end))
    assert len(read_texts(place / "memory.db")) == 2


def test_an_open_store_stops_when_another_process_upgrades_the_file(path):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "one")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
        for verb in VERBS.values():
            with pytest.raises(NewerStoreError, match="upgrade"):
                verb(memory)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (1,)


def test_a_write_that_changes_nothing_leaves_the_stamp_alone(path):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, {"content": "one", "id": "1"})
        store = steps_of(memory)
        with store.reading():
            before = store.get_value(sqlite_files.STAMP_VALUE)
        with pytest.raises(EunoeError):
            memory.update(ANNA, "nothing", "words")
        with store.writing():
            pass
        with store.reading():
            assert store.get_value(sqlite_files.STAMP_VALUE) == before


@pytest.mark.parametrize("found", [None, sqlite3.DatabaseError("half of a checkpoint")])
def test_a_file_that_only_its_log_makes_whole_is_no_other_file(path, monkeypatch, found):
    """A checkpoint that others interrupt leaves it so, for as long as they read."""

    def read_half(_: Path) -> None:
        if found:
            raise found

    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, "one")
        monkeypatch.setattr(sqlite_files, "read_stamp", read_half)
        os.utime(path, (1, 1))
        memory.observe(ANNA, "two")
        monkeypatch.undo()
    assert read_texts(path) == ["one", "two"]
    assert not rescued(path)


def test_a_thread_that_looked_before_another_sees_no_other_file(path, monkeypatch):
    """One reads the stamp; before it compares, another has seen a later one."""
    has_read, has_compared, waits = threading.Event(), threading.Event(), [True]
    read_stamp = sqlite_files.read_stamp

    def read_slowly(file: Path) -> sqlite_files.FileStamp | None:
        stamp = read_stamp(file)
        if waits and waits.pop():
            has_read.set()
            has_compared.wait(0.5)  # in vain, if one looks after the other
        return stamp

    with eunoe.open(path, embedder="none", form=False) as memory, ThreadPoolExecutor(1) as pool:
        store = steps_of(memory)
        memory.observe(ANNA, "one")
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM meta").fetchall()
            memory.observe(ANNA, "two")
            store._checkpoint("PASSIVE")  # "two" stays in the log for the sake of the reader
        monkeypatch.setattr(sqlite_files, "read_stamp", read_slowly)
        slow = pool.submit(memory.list, ANNA)
        assert has_read.wait(30)
        store._checkpoint("PASSIVE")
        assert len(memory.list(ANNA).items) == 2
        has_compared.set()
        assert len(slow.result().items) == 2
