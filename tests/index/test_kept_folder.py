"""Whatever happens to the folder of kept indexes, no verb fails, and forget says what may be left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support import kept_indexes as child
from tests.support.kept_indexes import NOBODY, SCOPE, SECRET, HashedWords, answers, held_bytes, open_memory, passages
from tests.support.steps import steps_of

import eunoe
from eunoe.index import cache, kept_indexes
from eunoe.records import scrubbing
from eunoe.store import kept_files
from eunoe.store.kept_files import KeptFiles, kept_folder
from eunoe.store.sqlite import SqliteStore

COUNT = 12


@pytest.fixture(autouse=True)
def keep_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MIN_ROWS", 1)


def make(path: Path, keep: bool = True) -> Path:
    """A store with the secret, and its kept index."""
    with open_memory(path, keep=keep) as memory:
        memory.remember_many(SCOPE, passages(COUNT))
        memory.remember(SCOPE, SECRET, id="secret")
        answers(memory)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = make(tmp_path / "memory.db")
    assert b"xylophon" in held_bytes(path)
    return path


def forget(path: Path, id: str = "secret") -> eunoe.ForgetReport:
    with open_memory(path) as memory:
        return memory.forget(SCOPE, id, verify=True)


def is_due(path: Path) -> bool:
    with open_memory(path) as memory, steps_of(memory).reading():
        return bool(steps_of(memory).get_value(scrubbing._DUE_VALUE))


def ask(path: Path, keep: bool = True) -> list[Any]:
    with open_memory(path, keep=keep) as memory:
        return answers(memory)


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", child.__name__, str(path), *arguments]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


# Who may not look


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A store of a user who may do little, in a folder that they can reach."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to others")
    with tempfile.TemporaryDirectory() as place:
        path = make(Path(place) / "memory.db")
        for each in (Path(place), *Path(place).rglob("*")):
            os.chown(each, NOBODY, NOBODY)
        yield path


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o700), (0, 0o755), (NOBODY, 0o000)])
def test_a_folder_that_forget_may_not_read_or_change_is_told(reachable: Path, owner: int, mode: int) -> None:
    folder = kept_folder(reachable)
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    verified, traces = json.loads(start(reachable, "forget", "secret").communicate()[0])
    assert verified is False
    assert any("memory.db.index" in trace and "delete the folder memory.db.index" in trace for trace in traces)
    assert b"xylophon" in held_bytes(reachable)
    shutil.rmtree(folder)
    assert not is_due(reachable)


def test_a_folder_that_forget_may_read_after_its_mode_is_that_of_the_store(reachable: Path) -> None:
    kept_folder(reachable).chmod(0o500)
    verified, _ = json.loads(start(reachable, "forget", "secret").communicate()[0])
    assert verified is True
    assert b"xylophon" not in held_bytes(reachable)


def test_what_cannot_be_removed_is_told_until_it_is_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, scrub, scrubs = Path.unlink, SqliteStore.scrub, list[float | None]()

    def count(store: SqliteStore, timeout: float | None = None) -> None:
        scrubs.append(timeout)
        scrub(store, timeout)

    monkeypatch.setattr(SqliteStore, "scrub", count)

    def refuse(file: Path, missing_ok: bool = False) -> None:
        if file.suffix == ".index":
            raise PermissionError(13, "Permission denied", str(file))
        unlink(file, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        report = forget(path)
        assert report.verified is False
        assert any("memory.db.index/1.index cannot be opened or removed" in trace for trace in report.traces)
        assert is_due(path)
        assert len(scrubs) == 1  # the store itself is done
        assert ask(path) == ask(path, keep=False)
    assert not is_due(path)
    assert b"xylophon" not in held_bytes(path)


# Who keeps meanwhile


@pytest.mark.parametrize("is_first", [True, False])
def test_a_process_that_keeps_while_something_is_forgotten_leaves_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    path = make(tmp_path / "memory.db", keep=not is_first)
    if not is_first:
        shutil.rmtree(kept_folder(path))
        kept_folder(path).mkdir()
    keeper = start(path, "wait")
    assert keeper.stdout is not None
    assert keeper.stdin is not None
    assert keeper.stdout.readline() == "writing\n"
    waits: list[float] = []

    def let_go_on(seconds: float) -> None:
        if not waits:
            keeper.communicate("\n")
        waits.append(seconds)

    monkeypatch.setattr(kept_files.time, "sleep", let_go_on)
    report = forget(path)
    if keeper.poll() is None:
        keeper.communicate("\n")
    assert waits
    assert b"xylophon" not in held_bytes(path)
    assert report.verified
    assert ask(path) == ask(path, keep=False)


def test_a_process_that_keeps_for_long_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(path, keep=False) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))
    monkeypatch.setattr(scrubbing, "_KEPT_SECONDS", 0.0)
    keeper = start(path, "wait")
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == "writing\n"
    report = forget(path)
    assert report.verified is False
    assert any("another process holds memory.db.index/lock" in trace for trace in report.traces)
    assert is_due(path)
    keeper.communicate("\n")
    assert not is_due(path)
    assert b"xylophon" not in held_bytes(path)


def test_who_lost_the_lock_writes_nothing(path: Path) -> None:
    files, other = KeptFiles(path), KeptFiles(path)
    with files.lock(0) as lock:
        shutil.rmtree(files.folder)
        with other.lock(0):
            pass
        with pytest.raises(OSError, match="lock"):
            files.write(1, {}, [b"words"], b"key", lock)
    assert files.paths() == []


def test_where_nothing_was_kept_forget_makes_no_folder(tmp_path: Path) -> None:
    path = make(tmp_path / "memory.db", keep=False)
    with open_memory(path, keep=False) as memory:
        assert memory.forget(SCOPE, "secret", verify=True).verified
    assert not kept_folder(path).exists()


# What lies there


def put_folder(place: Path) -> None:
    if place.is_file():
        place.unlink()
    place.mkdir()
    (place / "letter.txt").write_text("mine")


def put_pipe(place: Path) -> None:
    place.unlink(missing_ok=True)
    os.mkfifo(place)


def put_link(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")


def put_nested(place: Path) -> None:
    text = b"[" * 100_000
    place.write_bytes(b"EUNOEIX2" + len(text).to_bytes(8) + bytes(8) + text)


def put_odd_stamp(place: Path) -> None:
    text = json.dumps({"store": [], "stream": {}, "version": "x" * 9}).encode()
    place.write_bytes(b"EUNOEIX2" + len(text).to_bytes(8) + bytes(8) + text)


def put_endless(place: Path) -> None:
    place.write_bytes(b"EUNOEIX2" + (64).to_bytes(8) + (1 << 50).to_bytes(8) + b"{}" * 40)


@pytest.mark.parametrize("put", [put_folder, put_pipe, put_link, put_nested, put_odd_stamp, put_endless])
@pytest.mark.parametrize("name", ["1.index", "2.index", "1.part", "lock", "sub"])
def test_nothing_that_lies_there_is_an_error(path: Path, put: Any, name: str) -> None:
    place = kept_folder(path) / name
    put(place)
    assert ask(path) == ask(path, keep=False)
    put(place) if not os.path.lexists(place) else None
    report = forget(path)
    is_left = (put is put_folder and name != "sub") or (name == "lock" and put in (put_pipe, put_link))
    assert report.verified is not is_left, report.traces
    assert is_due(path) is is_left
    assert is_left or b"xylophon" not in held_bytes(path)
    assert ask(path) == ask(path, keep=False)
    if is_left:
        shutil.rmtree(kept_folder(path))
        assert not is_due(path)


def test_a_link_in_the_place_of_the_folder_is_not_followed(path: Path, tmp_path: Path) -> None:
    folder, elsewhere = kept_folder(path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("letter.txt", "film.part"):
        (elsewhere / name).write_text("mine")
    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)
    assert ask(path) == ask(path, keep=False)
    assert sorted(file.name for file in elsewhere.iterdir()) == ["film.part", "letter.txt"]
    folder.unlink()
    folder.symlink_to(tmp_path / "moved")
    report = forget(path)
    assert report.verified is False
    assert any("memory.db.index" in trace for trace in report.traces)
    assert (tmp_path / "moved" / "1.index").exists()
    folder.unlink()
    folder.symlink_to(tmp_path / "nowhere")
    assert not is_due(path)


def test_files_of_others_are_left_alone(path: Path) -> None:
    folder, names = kept_folder(path), ["letter.txt", "film.part", "0.index", "x1.index", "1.index.old"]
    for name in names:
        (folder / name).write_text("mine")
    put_folder(folder / "sub")
    assert forget(path).verified
    ask(path)
    path.unlink()
    with open_memory(path, keep=False):
        pass
    assert sorted(file.name for file in folder.iterdir()) == sorted([*names, "sub"])


def test_a_store_that_is_shared_no_more_takes_its_kept_index_along(path: Path) -> None:
    def modes() -> dict[str, int]:
        folder = kept_folder(path)
        return {file.name: file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())}

    def expected(file: int, folder: int) -> dict[str, int]:
        return {"memory.db.index": folder, "1.index": file, "lock": file}

    path.chmod(0o644)
    ask(path)
    assert modes()["1.index"] == 0o644
    with open_memory(path) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))
        answers(memory)
    assert modes() == expected(0o644, 0o755)
    path.chmod(0o600)
    ask(path)
    assert (modes()["memory.db.index"], modes()["1.index"]) == (0o700, 0o600)
    with open_memory(path) as memory:
        memory.remember_many(SCOPE, passages(120, seed=6))
        answers(memory)
    assert modes() == expected(0o600, 0o700)


# Which index it is


class OtherWords(HashedWords):
    """Vectors of the same length that mean something else."""

    def embed(self, texts: list[str]) -> np.ndarray[Any, Any]:
        return super().embed(texts)[:, ::-1] ** 2


def open_with(path: Path, embedder: Any, keep: bool = True) -> eunoe.Memory:
    return eunoe.open(path, embedder=embedder, llm="none", form=False, keep_indexes=keep)


@pytest.mark.parametrize("name", ["hashed-words", "other-words"])
def test_an_index_with_the_vectors_of_another_model_is_not_used(tmp_path: Path, name: str) -> None:
    path, other = tmp_path / "memory.db", OtherWords()
    other.name = name
    with open_with(path, "none") as memory:
        memory.remember_many(SCOPE, passages(COUNT))
        answers(memory)
    shutil.copy(path, tmp_path / "copy.db")
    for embedder in (HashedWords(), other):
        shutil.copy(tmp_path / "copy.db", path)
        with open_with(path, "none", keep=False) as memory:
            memory.admin.reembed(embedder)
        with open_with(path, embedder) as memory:
            found = answers(memory)
        with open_with(path, embedder, keep=False) as memory:
            assert found == answers(memory)
    assert (kept_folder(path) / "1.index").exists()


def test_an_index_of_a_copy_with_the_same_version_is_removed(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy.db")
    with open_memory(path) as memory:
        memory.forget(SCOPE, memory.list(SCOPE, limit=1).items[0].id)
        answers(memory)
    assert b"xylophon" in held_bytes(path)
    shutil.copy(tmp_path / "copy.db", path)
    with open_memory(path, keep=False) as memory:
        assert memory.forget(SCOPE, "secret", verify=True).verified
    assert b"xylophon" not in held_bytes(path)


def test_a_file_that_somebody_else_signed_is_not_used(path: Path) -> None:
    files = KeptFiles(path)
    with open_memory(path) as memory:
        key = memory._engine.store.read((), kept_indexes._key)
    file = files.read(1, key)
    assert file is not None
    for changed in (bytes(len(file.content)), b"\xff" * len(file.content)):
        with files.lock(0) as lock:
            files.write(1, file.stamp, [changed], b"another key", lock)
        assert files.read(1, key) is None
        assert ask(path) == ask(path, keep=False)
