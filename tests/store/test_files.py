"""Files that are not what they should be are refused and left as they are."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import (
    DamagedStoreError,
    NewerStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreError,
    StoreFullError,
)
from eunoe.store.schema import SCHEMA

ANNA = "user=anna"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOBODY = 65534


def folder_hashes(path):
    """Every file beside and including this one, with a hash of its content."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir() if file.is_file()
    }


def assert_refused(path, error, match):
    before = folder_hashes(path)
    with pytest.raises(error, match=match) as caught:
        eunoe.open(path)
    assert folder_hashes(path) == before
    assert "\n" not in str(caught.value)


def make_database(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def fill_store(path, *texts):
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, list(texts) or ["one", "two"])


def read_texts(path, scope=ANNA):
    with eunoe.open(path, embedder="none") as memory:
        return [item.text for item in memory.list(scope, limit=1000).items]


@pytest.mark.parametrize(
    "content",
    [b"hello, I am a letter", b"\0" * 5000, b"SQLite format 3", b"SQLite format 3\0" + b"\0" * 40, os.urandom(9000)],
    ids=["text", "zeros", "short", "half a header", "noise"],
)
def test_not_a_database(path, content):
    path.write_bytes(content)
    assert_refused(path, NotAStoreError, "not a Eunoe store")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_programs_database(path, mode):
    make_database(
        path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')"
    )
    assert_refused(path, NotAStoreError, "another program's")


def test_another_programs_database_that_is_still_empty(path):
    make_database(path, "PRAGMA application_id = 77", "CREATE TABLE notes (text)", "DROP TABLE notes")
    assert_refused(path, NotAStoreError, "another program's")


def test_another_programs_database_in_use(path):
    """Its tables are only in its log so far, and its process goes on writing."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE notes (text)")
        with pytest.raises(NotAStoreError, match="another program's"):
            eunoe.open(path)
        connection.execute("INSERT INTO notes VALUES ('mine')")
        assert connection.execute("SELECT * FROM notes").fetchall() == [("mine",)]
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (1,)


def test_a_file_that_another_process_is_just_making(path, monkeypatch):
    """It has no mark when the look at it begins, and all of them when it ends."""
    made = iter([lambda: fill_store(path)])

    class Slow(sqlite3.Connection):
        def execute(self, sql, *rest):
            cursor = super().execute(sql, *rest)
            if sql == "PRAGMA application_id" and (make := next(made, None)):
                with monkeypatch.context() as patch:
                    patch.setattr(sqlite3, "connect", connect)
                    make()
            return cursor

    connect = sqlite3.connect

    def slowly(name, **options):
        return connect(name, **options, factory=Slow if "mode=ro" in str(name) else sqlite3.Connection)

    with closing(connect(path, isolation_level=None)) as other:
        for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)", "DROP TABLE notes"):
            other.execute(statement)
        monkeypatch.setattr(sqlite3, "connect", slowly)
        assert read_texts(path) == ["one", "two"]
    assert next(made, None) is None


def test_a_log_that_another_process_takes_away_while_the_file_is_opened(path, monkeypatch):
    fill_store(path)
    log = path.with_name(f"{path.name}-wal")
    log.write_bytes(bytes(32))
    stat = Path.stat
    seen = []

    def stat_and_remove(file, **options):
        result = stat(file, **options)
        if file == log:
            seen.append(file)
            log.unlink(missing_ok=True)
        return result

    monkeypatch.setattr(Path, "stat", stat_and_remove)
    assert read_texts(path) == ["one", "two"]
    assert seen


def test_a_newer_version(path):
    fill_store(path)
    make_database(path, f"PRAGMA user_version = {SCHEMA + 1}")
    assert_refused(path, NewerStoreError, "upgrade")


def test_an_older_eunoe_is_named_and_what_to_do(path):
    fill_store(path)
    make_database(path, f"PRAGMA application_id = {0x45554E4F}")
    assert_refused(path, NotAStoreError, "eunoe export.*eunoe import")


def test_a_newer_version_that_appears_between_look_and_step(path, monkeypatch):
    fill_store(path)
    monkeypatch.setattr("eunoe.store.sqlite.check_is_store", lambda *_: None)
    make_database(path, f"PRAGMA user_version = {SCHEMA + 1}")
    assert_refused(path, NewerStoreError, "upgrade")


def test_a_file_marked_read_only(path):
    fill_store(path)
    path.chmod(0o444)
    assert_refused(path, ReadOnlyStoreError, "read-only")
    path.chmod(0o644)
    assert read_texts(path) == ["one", "two"]


def open_as_nobody(path):
    """Open a store in a process that may not write everywhere; return the error's name."""
    script = f"""
import asyncio, os, shutil, sys, eunoe
eunoe.open(':memory:', embedder='none').close()  # loads what another user may not read
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
try:
    eunoe.open(sys.argv[1], embedder="none")
except Exception as error:
    print(type(error).__name__, error)
"""
    return subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def reachable():
    """A file in a folder that another user can reach; pytest makes its own for the owner alone."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place) / "memory.db"


def test_a_folder_that_cannot_be_written(reachable):
    fill_store(reachable)
    reachable.chmod(0o666)
    reachable.parent.chmod(0o555)
    before = folder_hashes(reachable)
    try:
        assert "ReadOnlyStoreError" in open_as_nobody(reachable)
        assert "ReadOnlyStoreError" in open_as_nobody(reachable.with_name("new.db"))
    finally:
        reachable.parent.chmod(0o755)
    assert folder_hashes(reachable) == before


def test_a_file_that_cannot_be_read(reachable):
    fill_store(reachable)
    reachable.parent.chmod(0o777)
    reachable.chmod(0o000)
    before = sorted(file.name for file in reachable.parent.iterdir())
    assert "StoreError" in open_as_nobody(reachable)
    reachable.chmod(0o644)
    assert sorted(file.name for file in reachable.parent.iterdir()) == before
    assert read_texts(reachable) == ["one", "two"]


def test_a_folder_instead_of_a_file(tmp_path):
    with pytest.raises(NotAStoreError, match="is a folder"):
        eunoe.open(tmp_path)


def test_a_missing_folder(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        eunoe.open(tmp_path / "nowhere" / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_a_url_of_an_unknown_kind():
    with pytest.raises(StoreError, match="postgresql"):
        eunoe.open("postgresql://localhost/memory")


def test_an_empty_file_becomes_a_store(path):
    """A process killed while it made the store leaves such a file."""
    path.touch()
    fill_store(path)
    assert read_texts(path) == ["one", "two"]


def test_a_file_cut_short(path):
    fill_store(path, *(f"message {number} " * 20 for number in range(100)))
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    assert_refused(path, DamagedStoreError, "damaged")


def test_a_damaged_page_is_named_when_it_is_read(path):
    fill_store(path, *(f"message {number} " * 20 for number in range(100)))
    content = bytearray(path.read_bytes())
    page = content.index(b"message 50 ") // 4096 * 4096
    content[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    before = folder_hashes(path)
    with eunoe.open(path, embedder="none") as memory:
        found = memory.list(ANNA, kinds=["message"], limit=1000)
        numbers = [int(item.text.split()[1]) for item in found.items]
        assert 80 < len(numbers) < 100
        assert 50 not in numbers
        assert any("items seq" in note and ANNA in note for note in found.notes)
        with pytest.raises(DamagedStoreError, match="damaged"):
            memory.admin.export(ANNA, io.StringIO())
    assert folder_hashes(path) == before


def fill_until_limit(path, size):
    """Fill a store in a process whose files may not grow; return how much it acknowledged and how much it then held."""
    script = """
import resource, sys, eunoe
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with eunoe.open(sys.argv[1], embedder="none") as memory:
    for number in range(100000):
        try:
            memory.observe("user=anna", {"content": f"{number} " + "word " * 500, "id": str(number)})
        except eunoe.errors.StoreFullError:
            print(number, memory.status().messages)
            break
"""
    done = subprocess.run([sys.executable, "-c", script, path, str(size)], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_a_file_that_may_not_grow(path):
    acknowledged, held = fill_until_limit(path, 900_000)
    assert 10 < acknowledged == held
    assert len(read_texts(path)) == acknowledged
    fill_store(path, "there is room again")
    assert len(read_texts(path)) == acknowledged + 1


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not ROOT or not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill_disk(memory):
    """Write until there is no room; return how much was acknowledged."""
    for number in range(10000):
        try:
            memory.observe(ANNA, {"content": "word " * 2000, "id": str(number)})
        except StoreFullError:
            return number
    return None


def test_a_disk_that_fills_up(small_disk):
    path = small_disk / "memory.db"
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 200_000)
    with eunoe.open(path, embedder="none") as memory:
        acknowledged = fill_disk(memory)
        assert acknowledged > 5
        assert memory.status().messages == acknowledged
        filler.unlink()
        memory.observe(ANNA, "there is room again")
    assert len(read_texts(path)) == acknowledged + 1


def test_a_disk_that_is_full_already(small_disk):
    path = small_disk / "memory.db"
    fill_store(path)
    content = path.read_bytes()
    (small_disk / "filler").write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
    for name in ("memory.db", "new.db"):
        with pytest.raises(StoreFullError, match="free some space"):
            eunoe.open(small_disk / name, embedder="none")
    assert path.read_bytes() == content
    (small_disk / "filler").unlink()
    assert read_texts(path) == ["one", "two"]


def test_a_disk_that_is_mounted_read_only(small_disk):
    path = small_disk / "memory.db"
    fill_store(path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert_refused(path, ReadOnlyStoreError, "read-only")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_went_away_takes_no_more_writes(tmp_path, replaced):
    path = tmp_path / "memory.db"
    with eunoe.open(path, embedder="none") as memory:
        memory.remember("user=anna", "Anna plays the cello.")
        path.rename(tmp_path / "aside.db")
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(StoreError, match="deleted or replaced"):
            memory.remember("user=anna", "Anna likes tea.")
