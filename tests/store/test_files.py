"""Files that are not what they should be are refused and left as they are; old ones are brought up to date."""

from __future__ import annotations

import hashlib
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
from eunoe.store import migrations
from eunoe.store.migrations import APPLICATION_ID, MIGRATIONS

ANNA = "user=anna"
FIXTURES = Path(__file__).parents[1] / "fixtures"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOBODY = 65534


def folder(path):
    """Every file beside and including this one, with its content."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.parent.iterdir() if file.is_file()
    }


def refused(path, error, match):
    before = folder(path)
    with pytest.raises(error, match=match) as caught:
        eunoe.open(path)
    assert folder(path) == before
    assert "\n" not in str(caught.value)


def sqlite_file(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def filled(path, *texts):
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, list(texts) or ["one", "two"])


def texts(path, scope=ANNA):
    with eunoe.open(path, embedder="none") as memory:
        return [item.text for item in memory.list(scope, limit=1000).items]


@pytest.mark.parametrize(
    "content",
    [b"hello, I am a letter", b"\0" * 5000, b"SQLite format 3", b"SQLite format 3\0" + b"\0" * 40, os.urandom(9000)],
    ids=["text", "zeros", "short", "half a header", "noise"],
)
def test_not_a_database(path, content):
    path.write_bytes(content)
    refused(path, NotAStoreError, "not a Eunoe store")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_programs_database(path, mode):
    sqlite_file(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')")
    refused(path, NotAStoreError, "another program's")


def test_another_programs_database_that_is_still_empty(path):
    sqlite_file(path, "PRAGMA application_id = 77", "CREATE TABLE notes (text)", "DROP TABLE notes")
    refused(path, NotAStoreError, "another program's")


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
    made = iter([lambda: filled(path)])

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
        assert texts(path) == ["one", "two"]
    assert next(made, None) is None


def test_a_log_that_another_process_takes_away_while_the_file_is_opened(path, monkeypatch):
    filled(path)
    log = path.with_name(f"{path.name}-wal")
    log.write_bytes(bytes(32))
    exists = Path.exists

    def seen_and_gone(file, **options):
        there = exists(file, **options)
        if file == log:
            log.unlink(missing_ok=True)
        return there

    monkeypatch.setattr(Path, "exists", seen_and_gone)
    assert texts(path) == ["one", "two"]


def test_a_newer_version(path):
    filled(path)
    sqlite_file(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    refused(path, NewerStoreError, "upgrade")


def test_a_newer_version_that_appears_between_look_and_step(path, monkeypatch):
    filled(path)
    monkeypatch.setattr("eunoe.store.sqlite._inspect", lambda path: None)
    sqlite_file(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    refused(path, NewerStoreError, "upgrade")


def test_a_file_marked_read_only(path):
    filled(path)
    path.chmod(0o444)
    refused(path, ReadOnlyStoreError, "read-only")
    path.chmod(0o644)
    assert texts(path) == ["one", "two"]


def as_nobody(path):
    """Opens a store in a process that may not write everywhere; gives the error's name."""
    script = f"""
import os, sys, eunoe, eunoe.engine, eunoe.store.location
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
    filled(reachable)
    reachable.chmod(0o666)
    reachable.parent.chmod(0o555)
    before = folder(reachable)
    try:
        assert "ReadOnlyStoreError" in as_nobody(reachable)
        assert "ReadOnlyStoreError" in as_nobody(reachable.with_name("new.db"))
    finally:
        reachable.parent.chmod(0o755)
    assert folder(reachable) == before


def test_a_file_that_cannot_be_read(reachable):
    filled(reachable)
    reachable.parent.chmod(0o777)
    reachable.chmod(0o000)
    before = sorted(file.name for file in reachable.parent.iterdir())
    assert "StoreError" in as_nobody(reachable)
    reachable.chmod(0o644)
    assert sorted(file.name for file in reachable.parent.iterdir()) == before
    assert texts(reachable) == ["one", "two"]


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
    filled(path)
    assert texts(path) == ["one", "two"]


def test_a_file_cut_short(path):
    filled(path, *(f"message {number} " * 20 for number in range(100)))
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)
    refused(path, DamagedStoreError, "damaged")


def test_a_damaged_page_is_named_when_it_is_read(path):
    filled(path, *(f"message {number} " * 20 for number in range(100)))
    content = bytearray(path.read_bytes())
    page = content.index(b"message 50 ") // 4096 * 4096
    content[page : page + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    before = folder(path)
    with eunoe.open(path, embedder="none") as memory, pytest.raises(DamagedStoreError, match="damaged"):
        memory.list(ANNA, limit=1000)
    assert folder(path) == before


def limited(path, size):
    """Fills a store in a process whose files may not grow; gives how much it acknowledged and how much it then held."""
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
    acknowledged, held = limited(path, 900_000)
    assert 10 < acknowledged == held
    assert len(texts(path)) == acknowledged
    filled(path, "there is room again")
    assert len(texts(path)) == acknowledged + 1


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not ROOT or not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(memory):
    """Writes until there is no room; gives how much was acknowledged."""
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
        acknowledged = fill(memory)
        assert acknowledged > 5
        assert memory.status().messages == acknowledged
        filler.unlink()
        memory.observe(ANNA, "there is room again")
    assert len(texts(path)) == acknowledged + 1


def test_a_disk_that_is_full_already(small_disk):
    path = small_disk / "memory.db"
    filled(path)
    content = path.read_bytes()
    (small_disk / "filler").write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
    for name in ("memory.db", "new.db"):
        with pytest.raises(StoreFullError, match="free some space"):
            eunoe.open(small_disk / name, embedder="none")
    assert path.read_bytes() == content
    (small_disk / "filler").unlink()
    assert texts(path) == ["one", "two"]


def test_a_disk_that_is_mounted_read_only(small_disk):
    path = small_disk / "memory.db"
    filled(path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused(path, ReadOnlyStoreError, "read-only")


def test_the_fixture_of_every_schema_is_kept():
    assert sorted(file.name for file in FIXTURES.glob("*.db")) == [
        f"schema-{n}.db" for n in range(1, len(MIGRATIONS) + 1)
    ]


@pytest.fixture(params=sorted(FIXTURES.glob("*.db")), ids=lambda file: file.stem)
def old(request, path):
    return shutil.copy(request.param, path)


def test_an_old_file_opens_and_reads_right(old):
    with eunoe.open(old) as memory:
        items = {item.id: item for item in memory.list(ANNA, retired=True).items}
        said = [item.text for item in items.values() if item.kind == "message"]
        words = "NUL \0 and emoji 🌊 and a line\u2028end"
        assert said == ["bare one", "bare two", words, "with id", "with time"]
        assert items["home"].superseded_by in items
        assert [version.text for version in memory.history(ANNA, "home")] == [
            "Anna lives in Paris.",
            "Anna lives in Rome.",
        ]
        assert items["home"].valid_to.isoformat() == "2024-01-01T00:00:00+00:00"
        assert items["home"].people == ("Anna",)
        assert items["home"].source == ("m1",)
        assert {item.recorded.isoformat() for item in items.values()} == {"2024-05-07T18:30:00+00:00"}
        assert memory.scopes(user="ben") == [eunoe.Scope(user="ben", agent="cook")]
        assert memory.list("user=ben/agent=cook").items[0].metadata == {"stars": 4.5}
        status = memory.status()
        assert (status.schema, status.messages, status.facts, status.observations, status.retired) == (
            len(MIGRATIONS),
            5,
            2,
            1,
            1,
        )
        assert status.unembedded == 0
        assert sum(status.vectors.values()) == 9


def test_an_old_file_remembers_what_was_forgotten(old):
    with eunoe.open(old) as memory:
        outcomes = memory.observe(
            ANNA, [{"content": "to be forgotten", "id": "m2"}, {"content": "with id", "id": "m1"}]
        )
        assert [receipt.outcome for receipt in outcomes] == ["forgotten", "duplicate"]
        assert memory.remember(ANNA, "A fact to be forgotten.").outcome == "forgotten"
        assert memory.observe(ANNA, {"content": "with time", "time": 1_700_000_000})[0].outcome == "duplicate"


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_a_new_step_upgrades_an_old_file_in_place(old, monkeypatch):
    before = set(dump(old))

    def second(connection):
        connection.execute("ALTER TABLE streams ADD COLUMN settings TEXT NOT NULL DEFAULT ''")

    monkeypatch.setattr(migrations, "STEPS", MIGRATIONS)
    monkeypatch.setattr("eunoe.store.sqlite.STEPS", [*MIGRATIONS, second])
    with eunoe.open(old) as memory:
        assert memory.status().schema == len(MIGRATIONS) + 1
        assert len(memory.list(ANNA, retired=True).items) == 8
    assert all("streams" in line for line in before - set(dump(old)))
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("SELECT settings FROM streams").fetchall() == [("",), ("",)]
    monkeypatch.undo()
    refused(old, NewerStoreError, "upgrade")


def test_a_step_that_fails_leaves_the_file_as_it_was(old, monkeypatch):
    def second(connection):
        connection.execute("CREATE TABLE extra (name TEXT)")
        connection.execute("DELETE FROM items")
        raise ValueError("the step failed")

    monkeypatch.setattr("eunoe.store.sqlite.STEPS", [*MIGRATIONS, second])
    before = folder(old)
    with pytest.raises(ValueError, match="the step failed"):
        eunoe.open(old)
    assert folder(old) == before


def test_two_processes_upgrade_a_file_once(path, start):
    filled(path)
    children = [start("migrate", path) for _ in range(3)]
    for child in children:
        assert child.read() == {"ready": True}
    for child in children:
        child.tell()
    assert [child.read() for child in children] == [{"items": 2, "schema": len(MIGRATIONS) + 1}] * 3
    assert [child.end() for child in children] == [0, 0, 0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM extra").fetchall() == [("made once",)]


def test_the_default_file_is_the_users_own(tmp_path, monkeypatch):
    monkeypatch.delenv("EUNOE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with eunoe.open(embedder="none") as memory:
        assert memory.memory.target == str(tmp_path / "eunoe" / "memory.db")


def test_the_environment_can_name_the_file(path, monkeypatch):
    monkeypatch.setenv("EUNOE_STORE", str(path))
    with eunoe.open(embedder="none") as memory:
        assert memory.memory.target == str(path)


def test_urls_name_files(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    filled(path)
    assert texts(f"sqlite:///{path}") == ["one", "two"]
    assert texts("sqlite:///memory.db") == ["one", "two"]
    for wrong in ("sqlite://memory.db", "sqlite:///"):
        with pytest.raises(StoreError, match="write sqlite:///"):
            eunoe.open(wrong)


def schema(path):
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"), key=repr)


def test_an_upgraded_file_has_the_schema_of_a_new_one(old, tmp_path):
    for path in (old, tmp_path / "new.db"):
        with eunoe.open(path):
            pass
    assert schema(old) == schema(tmp_path / "new.db")


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
