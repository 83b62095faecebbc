"""What is written to a file never takes the place of a store, and never appears half-written."""

from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import StoreError
from eunoe.store.output_file import check_no_store, open_output

ANNA = "user=anna"
ROUNDS = 6


@pytest.fixture
def open_memory(path: Path):
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, ["one", "two"])
        yield memory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_export_never_replaces_the_store_or_what_lies_beside_it(open_memory, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "linked-folder").symlink_to(tmp_path)
    (tmp_path / "link-to-log").symlink_to(tmp_path / "memory.db-wal")
    os.link(path, tmp_path / "hard")
    names = [
        *("memory.db", "./memory.db", "folder/../memory.db", "linked-folder/memory.db", str(path), "link", "hard"),
        *("memory.db-wal", "memory.db-shm", "memory.db-journal", "MEMORY.DB-WAL", "link-to-log", "folder", "."),
    ]
    inode = path.stat().st_ino
    for name in names:
        if name == "MEMORY.DB-WAL" and not (tmp_path / "MEMORY.DB").exists():
            continue  # names of another case are other names here
        with pytest.raises(StoreError, match="name a"):
            open_memory.admin.export(ANNA, name)
    open_memory.observe(ANNA, "three")
    assert path.stat().st_ino == inode
    assert [item.text for item in open_memory.list(ANNA).items] == ["one", "two", "three"]


def test_an_export_never_replaces_another_store(open_memory, tmp_path):
    with eunoe.open(tmp_path / "other.db", embedder="none") as other:
        other.observe(ANNA, "mine")
        with pytest.raises(StoreError, match="is a store"):
            open_memory.admin.export(ANNA, tmp_path / "other.db")
    with pytest.raises(StoreError, match="belongs to the store"):
        open_memory.admin.export(ANNA, tmp_path / "other.db-wal")
    with eunoe.open(tmp_path / "other.db", embedder="none") as other:
        assert [item.text for item in other.list(ANNA).items] == ["mine"]


def test_looking_at_an_open_store_does_not_drop_its_locks(open_memory, path, start):
    """POSIX takes all locks of a process off a file as soon as it closes any handle of it."""
    for _ in range(3):
        with pytest.raises(StoreError):
            check_no_store(path)
    with pytest.raises(eunoe.errors.StoreBusyError):
        raise_in_child(path)


def raise_in_child(path: Path) -> None:
    """Try to replace a store from another process, which its locks forbid."""
    script = "import sys, eunoe\neunoe.restore(sys.argv[1], sys.argv[2])"
    copy = path.with_name("copy.db")
    eunoe.open(copy, embedder="none").close()
    done = subprocess.run([sys.executable, "-c", script, copy, path], capture_output=True, text=True)
    if "StoreBusyError" in done.stderr:
        raise eunoe.errors.StoreBusyError(done.stderr)


def test_a_link_stays_a_link(open_memory, tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "old.jsonl").write_text("old")
    (tmp_path / "link").symlink_to("place/old.jsonl")
    (tmp_path / "second").symlink_to("link")
    (tmp_path / "dangling").symlink_to("place/new.jsonl")
    for name in ("second", "dangling"):
        open_memory.admin.export(ANNA, tmp_path / name)
        assert (tmp_path / name).is_symlink()
    for name in ("old.jsonl", "new.jsonl"):
        assert (tmp_path / "place" / name).read_text().count("\n") == 3
    assert sorted(file.name for file in (tmp_path / "place").iterdir()) == ["new.jsonl", "old.jsonl"]


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(open_memory, tmp_path):
    target = tmp_path / "out.jsonl"
    open_memory.admin.export(ANNA, target)
    assert mode(target) == 0o600
    target.chmod(0o644)
    open_memory.admin.export(ANNA, target)
    assert mode(target) == 0o644


def test_a_new_store_is_private_and_an_old_one_keeps_its_mode(tmp_path):
    before = os.umask(0)
    try:
        for name, wanted in (("new.db", 0o600), ("old.db", 0o640)):
            path = tmp_path / name
            if wanted != 0o600:
                path.touch()
                path.chmod(wanted)
            with eunoe.open(path, embedder="none") as memory:
                memory.observe(ANNA, "one")
                assert [mode(file) for file in tmp_path.glob(f"{name}*")] == [wanted] * 3
    finally:
        os.umask(before)


def test_a_pipe_is_written_to(open_memory, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    open_memory.admin.export(ANNA, tmp_path / "pipe")
    reader.join()
    assert found[0].count("\n") == 3
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def _lines(terminal: int, count: int) -> bytes:
    """A terminal gives what has come so far, which may be less than what was written."""
    found = b""
    while found.count(b"\n") < count:
        found += os.read(terminal, 65536)
    return found


def test_devices_are_written_to_and_stay(open_memory, tmp_path):
    """A terminal of its own, which cannot come to harm: nobody can make files beside it."""
    master, slave = os.openpty()
    terminal = os.ttyname(slave)
    (tmp_path / "link").symlink_to(terminal)
    try:
        for name in (terminal, tmp_path / "link"):
            assert open_memory.admin.export(ANNA, name) == 2
            assert b'"one"' in _lines(master, 3)
        assert stat.S_ISCHR(os.stat(terminal).st_mode)
        assert (tmp_path / "link").is_symlink()
    finally:
        os.close(master)
        os.close(slave)


def test_a_socket_is_refused(open_memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(StoreError, match="name a file"):
            open_memory.admin.export(ANNA, tmp_path / "socket")
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)


@pytest.mark.parametrize("append", [False, True])
def test_standard_output_by_its_name_goes_on_where_it_was(path, tmp_path, append):
    """The shell's file may hold something already, and something may follow."""
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, ["one", "two"])
    out = tmp_path / "out"
    out.write_text("earlier\n")
    script = """
import sys, eunoe
print("first", flush=True)
with eunoe.open(sys.argv[1]) as memory:
    memory.admin.export("user=anna", "/dev/stdout")
print("last", flush=True)
"""
    with out.open("a" if append else "w") as file:
        subprocess.run([sys.executable, "-c", script, path], stdout=file, check=True)
    lines = out.read_text().splitlines()
    assert lines[: len(lines) - 4] == (["earlier", "first"] if append else ["first"])
    assert '"one"' in lines[-3]
    assert lines[-1] == "last"


def test_an_error_leaves_the_old_file(tmp_path):
    target = tmp_path / "out"
    target.write_text("old")

    def write_half() -> None:
        with open_output(target) as file:
            file.write("half")
            raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        write_half()
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_killed_while_exporting(path, tmp_path, start):
    """The file is the earlier one or the new one, and what was left half-written goes with the next."""
    target = tmp_path / "out[1].jsonl"
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.observe(ANNA, [f"message {number} " * 20 for number in range(800)])
    chance = random.Random("killed while exporting")
    for _ in range(ROUNDS):
        child = start("export_again", path, target)
        assert child.read()
        time.sleep(chance.random() * 0.1)  # any moment will do; this only makes sure that they differ
        child.kill()
        assert target.read_text().count("\n") == 801
    with eunoe.open(path, embedder="none", form=False) as memory:
        memory.admin.export(ANNA, target)
    assert not [file for file in tmp_path.iterdir() if file.name.endswith(".part")]


def test_two_exports_to_one_file_do_not_disturb_each_other(open_memory, tmp_path):
    target = tmp_path / "out.jsonl"
    with open_output(target) as first:
        first.write("slow")
        open_memory.admin.export(ANNA, target)
        assert target.read_text().count("\n") == 3
    assert target.read_text() == "slow"
