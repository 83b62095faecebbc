"""Kept indexes: the next process answers as if it had read everything anew, whatever became of the files."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import kept_indexes as child
from tests.support.kept_indexes import SCOPE, answers, open_memory, passage, passages

import eunoe
from eunoe.index import cache, kept_indexes
from eunoe.index.stream import StreamIndex
from eunoe.store.kept_files import KeptFiles, kept_folder

COUNT = 40


@pytest.fixture(autouse=True)
def keep_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MIN_ROWS", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a kept index."""
    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        memory.remember_many(SCOPE, passages(COUNT))
        answers(memory)
    assert kept_names(path) == ["1.index"]
    return path


def kept_names(path: Path) -> list[str]:
    return [file.name for file in KeptFiles(path).paths()]


def fresh(path: Path) -> list[object]:
    """What an index that is made anew answers."""
    with open_memory(path, keep=False) as memory:
        return answers(memory)


def kept(path: Path) -> list[object]:
    with open_memory(path) as memory:
        return answers(memory)


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", child.__name__, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries were read into indexes, time by time."""
    counts: list[int] = []
    apply = StreamIndex.apply

    def count(self: StreamIndex, entries: list[object], version: int = 0) -> None:
        counts.append(len(entries))
        apply(self, entries, version)  # type: ignore[arg-type]

    monkeypatch.setattr(StreamIndex, "apply", count)
    return counts


def test_the_next_process_reads_no_text_anew(path: Path, readings: list[int]) -> None:
    found = kept(path)
    assert readings == []
    assert found == fresh(path)
    assert readings == [COUNT]


def test_a_new_process_finds_the_same(path: Path) -> None:
    found = run(path, "ask")
    assert json.loads(found.stdout) == json.loads(json.dumps(fresh(path))), found.stderr


def test_what_was_written_since_is_read_as_a_delta(path: Path, readings: list[int]) -> None:
    with open_memory(path, keep=False) as memory:
        memory.remember(SCOPE, "Zoe Quick told Bob Smith that the gateway sleeps.")
    assert kept(path) == fresh(path)
    assert readings == [1, COUNT + 1]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_any_history_ends_where_a_fresh_build_does(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path_factory.mktemp("history") / "memory.db"
    memory, number = open_memory(path), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "MIN_ROWS", 1)
        patch.setattr(cache, "_MAX_UNKEPT", 3)
        patch.setattr(cache, "_MIN_GAPS", chance.choice((2, 1024)))
        for _ in range(25):
            ids = [item.id for item in memory.list(SCOPE, kinds=["fact"], limit=100).items]
            action = chance.choice(("add", "add", "say", "forget", "update", "replace", "ask", "reopen"))
            if action == "reopen":
                memory.close()
                memory = open_memory(path, keep=chance.random() < 0.8)
            elif action == "ask":
                answers(memory)
            elif action == "say":
                memory.observe(SCOPE, [{"role": "user", "speaker": "Anna", "content": passage(chance)}])
            elif action == "add" or len(ids) < 4:
                number += 1
                memory.remember_many(SCOPE, [f"{passage(chance)} Number {number}-{each}." for each in range(3)])
            elif action == "forget":
                memory.forget(SCOPE, chance.sample(ids, 2))
            elif action == "update":
                memory.update(SCOPE, chance.choice(ids), text=passage(chance))
            else:
                memory.remember_many(SCOPE, [{"id": chance.choice(ids), "text": passage(chance)}], replace=True)
        warm = answers(memory)
        memory.close()
        assert warm == fresh(path)
        assert kept(path) == warm


def test_a_deletion_is_fed_as_a_delta(path: Path, readings: list[int]) -> None:
    with open_memory(path) as memory:
        answers(memory)
        for item in memory.list(SCOPE, limit=5).items:
            memory.forget(SCOPE, item.id)
            warm = answers(memory)
    assert sum(readings) == 0
    assert warm == fresh(path)
    assert readings == [0] * 5 + [COUNT - 5]


def test_forgotten_words_leave_the_kept_index_before_forget_returns(path: Path) -> None:
    with open_memory(path) as memory:
        id = memory.remember(SCOPE, "Zanzibar\n\nThe Xylophone Quartet of Zanzibar sings.", id="concert-1").id
        answers(memory)
    with open_memory(path) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))  # enough to be kept anew, with the words
        answers(memory)
    kept_bytes = (kept_folder(path) / "1.index").read_bytes()
    assert b"xylophone quartet" in kept_bytes
    assert b"concert-1" in kept_bytes
    with open_memory(path) as memory:
        report = memory.forget(SCOPE, id, verify=True)
        assert report.verified
        held = b"".join(file.read_bytes() for file in KeptFiles(path).paths())
        for word in (b"xylophon", b"zanzibar", b"concert-1", b"Xylophone"):
            assert word not in held
    assert b"xylophon" not in (kept_folder(path) / "1.index").read_bytes()
    assert kept(path) == fresh(path)


def test_a_search_for_traces_looks_at_kept_files(path: Path) -> None:
    with open_memory(path) as memory:
        text = "The Xylophone Quartet of Zanzibar sings in the evening."
        id = memory.remember(SCOPE, text).id
        file = kept_folder(path) / "7.index"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(KeptFiles, "drop", lambda *_: file.write_text(text))
            report = memory.forget(SCOPE, id, verify=True)
        assert report.verified is False
        assert any(file.name in trace for trace in report.traces)


def test_a_process_that_does_not_know_of_a_forget_keeps_nothing(path: Path) -> None:
    with open_memory(path) as old, open_memory(path) as other:
        secret = old.remember(SCOPE, "The Xylophone Quartet of Zanzibar sings.").id
        other.remember_many(SCOPE, passages(120, seed=5))
        answers(old)
        other.forget(SCOPE, secret)
    held = b"".join(file.read_bytes() for file in KeptFiles(path).paths())
    assert b"xylophon" not in held
    assert kept(path) == fresh(path)


@pytest.mark.parametrize("place", [0, 7, 9, 40, 300, 0.2, 0.4, 0.5, 0.6, 0.8, 0.99, -5, -1])
def test_a_flipped_byte_is_noticed(path: Path, place: float, readings: list[int]) -> None:
    file = kept_folder(path) / "1.index"
    data = bytearray(file.read_bytes())
    data[int(place * len(data)) if isinstance(place, float) else place] ^= 0x10
    file.write_bytes(data)
    assert kept(path) == fresh(path)
    assert readings[0] == COUNT


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_file_that_was_cut_short_is_not_used(path: Path, share: float, readings: list[int]) -> None:
    file = kept_folder(path) / "1.index"
    os.truncate(file, int(share * file.stat().st_size))
    assert kept(path) == fresh(path)
    assert readings[0] == COUNT


@pytest.mark.parametrize("content", [b"", b"EUNOEIX1", b"EUNOEIX1" + b"\xff" * 40, b"{}" * 100])
def test_what_is_no_kept_file_is_not_used(path: Path, content: bytes) -> None:
    (kept_folder(path) / "1.index").write_bytes(content)
    assert kept(path) == fresh(path)


def test_files_of_other_streams_and_stores_are_not_used(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with open_memory(other) as memory:
        memory.remember_many(SCOPE, passages(COUNT, seed=9))
        answers(memory)
        memory.remember_many("project=bank", passages(COUNT, seed=10))
        answers(memory, "project=bank")
    files = kept_folder(other)
    shutil.copy(files / "2.index", tmp_path / "second")
    shutil.copy(files / "1.index", files / "2.index")
    shutil.copy(tmp_path / "second", files / "1.index")
    assert kept(other) == fresh(other)
    shutil.copy(kept_folder(path) / "1.index", files / "1.index")
    assert kept(other) == fresh(other)


def test_a_copy_that_went_its_own_way_does_not_use_the_file_of_the_first(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    with open_memory(path) as memory, open_memory(copy, keep=False) as other:
        first = memory.list(SCOPE, limit=1).items[0]
        memory.update(SCOPE, first.id, text="Anna Jones restarts the Payment Gateway.")
        other.update(SCOPE, first.id, text="Nobody ever restarts anything.")
        memory.remember_many(SCOPE, passages(120, seed=5))
        other.remember_many(SCOPE, passages(120, seed=6))
        answers(memory)
    shutil.copytree(kept_folder(path), kept_folder(copy))
    assert kept(copy) == fresh(copy)


def test_an_index_that_other_code_made_is_not_used(
    path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_indexes, "reader_digest", lambda: "of another version")
    kept(path)
    assert readings == [COUNT]


@pytest.mark.parametrize("part", ["0", "1", "3", "20"])
def test_a_process_killed_while_it_writes_leaves_nothing_that_is_read(path: Path, part: str) -> None:
    with open_memory(path, keep=False) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))
    assert run(path, "killed", part).returncode == 9
    assert "1.part" in kept_names(path)
    found = kept(path)
    assert kept_names(path) == ["1.index"]
    assert found == fresh(path)


def test_two_processes_keep_at_once(path: Path) -> None:
    with open_memory(path, keep=False) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))
    command = [sys.executable, "-m", child.__name__, str(path), "ask"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) for _ in range(2)]
    found = [json.loads(process.communicate()[0]) for process in both]
    expected = json.loads(json.dumps(fresh(path)))
    assert found == [expected, expected]
    assert kept_names(path) == ["1.index"]
    assert json.loads(json.dumps(kept(path))) == expected


def test_where_nothing_can_be_written_nothing_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(kept_folder(path))
    kept_folder(path).write_text("not a folder")
    assert kept(path) == fresh(path)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept_folder(path).unlink()
    monkeypatch.setattr(KeptFiles, "write", fail)
    assert kept(path) == fresh(path)
    assert kept_names(path) == []


def test_a_store_in_memory_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with eunoe.open(":memory:", embedder="none", form=False) as memory:
        memory.remember_many(SCOPE, passages(COUNT))
        answers(memory)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db", keep=False) as memory:
        memory.remember_many(SCOPE, passages(COUNT))
        answers(memory)
    assert not kept_folder(tmp_path / "memory.db").exists()


def test_only_who_may_read_the_store_may_read_its_kept_index(path: Path) -> None:
    folder = kept_folder(path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_a_restored_store_has_no_kept_index_of_the_one_before(path: Path, tmp_path: Path) -> None:
    with open_memory(path) as memory:
        memory.admin.backup(tmp_path / "backup.db")
        memory.remember(SCOPE, "The Xylophone Quartet of Zanzibar sings.")
    eunoe.restore(tmp_path / "backup.db", path)
    assert not kept_folder(path).exists()
    assert kept(path) == fresh(path)


def test_a_new_store_in_the_place_of_a_deleted_one_begins_without(path: Path) -> None:
    path.unlink()
    with open_memory(path):
        assert not kept_folder(path).exists()


def test_what_was_damaged_since_is_left_out_and_said(path: Path) -> None:
    with open_memory(path) as memory:
        best = memory.recall(SCOPE, "Who restarts the Payment Gateway?", recipe="lexical")[0]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE items SET text = text || ' Nobody does.' WHERE id = ?", (best.id,))
    with open_memory(path) as memory:
        hits = memory.recall(SCOPE, "Who restarts the Payment Gateway?", recipe="lexical")
    assert best.id not in [hit.id for hit in hits]
    assert any("damaged" in note for note in hits.notes)
