"""Kept indexes: the next process answers as if it had read everything anew, whatever became of the rows."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import kept_indexes as child
from tests.support.kept_indexes import SCOPE, answers, kept_bytes, open_memory, passage, passages

import eunoe
from eunoe.index import cache, kept_indexes
from eunoe.index.stream import StreamIndex
from eunoe.store.schema import KeptIndexPart
from eunoe.store.sql import SqlWriting

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
    assert kept_bytes(path)
    return path


def fresh(path: Path) -> list[object]:
    """What an index that is made anew answers."""
    with open_memory(path, keep=False) as memory:
        return answers(memory)


def kept(path: Path) -> list[object]:
    with open_memory(path) as memory:
        return answers(memory)


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", child.__name__, str(path)]
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
    found = run(path)
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


def test_forgotten_words_leave_the_kept_index_in_the_same_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(path) as memory:
        id = memory.remember(SCOPE, "Zanzibar\n\nThe Xylophone Quartet of Zanzibar sings.", id="concert-1").id
        memory.remember_many(SCOPE, passages(120, seed=5))  # enough to be kept anew, with the words
        answers(memory)
    assert b"xylophone quartet" in kept_bytes(path)
    with open_memory(path) as memory:
        assert memory.forget(SCOPE, id, verify=True).verified
        assert kept_bytes(path) == b""
        answers(memory)
    assert b"xylophon" not in kept_bytes(path) != b""
    assert kept(path) == fresh(path)


def test_a_search_for_traces_looks_at_kept_indexes(path: Path) -> None:
    text = "The Xylophone Quartet of Zanzibar sings in the evening."

    with open_memory(path) as memory:
        id = memory.remember(SCOPE, text).id
        row = memory._engine.store.read((), lambda store: store.load(KeptIndexPart))[0]
        with pytest.MonkeyPatch.context() as patch:
            delete = SqlWriting.delete
            late = row._replace(part=99, data=text.encode())
            patch.setattr(SqlWriting, "delete", lambda store, *args: (delete(store, *args), store.save([late]))[0])
            report = memory.forget(SCOPE, id, verify=True)
        assert report.verified is False
        assert any("kept_indexes.data" in trace for trace in report.traces)


def test_a_process_that_does_not_know_of_a_forget_keeps_nothing(path: Path) -> None:
    with open_memory(path) as old, open_memory(path) as other:
        secret = old.remember(SCOPE, "The Xylophone Quartet of Zanzibar sings.").id
        other.remember_many(SCOPE, passages(120, seed=5))
        answers(old)
        other.forget(SCOPE, secret)
    assert b"xylophon" not in kept_bytes(path)
    assert kept(path) == fresh(path)


def test_what_is_forgotten_between_copy_and_write_is_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(path) as memory, open_memory(path) as other:
        secret = memory.remember(SCOPE, "The Xylophone Quartet of Zanzibar sings.").id
        memory.remember_many(SCOPE, passages(120, seed=5))
        answers(memory)
        read = memory._engine.store.read

        def read_and_forget(scopes: Any, step: Any) -> Any:
            copied = read(scopes, step)
            if isinstance(step, partial) and step.func.__name__ == "_copy":
                other.forget(SCOPE, secret)
            return copied

        with monkeypatch.context() as patch:
            patch.setattr(memory._engine.store, "read", read_and_forget)
            memory._engine.indexes.keep()
        assert other.get_many(SCOPE, [secret]) == []
        assert kept_bytes(path) == b""


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE kept_indexes SET data = zeroblob(length(data))",
        "UPDATE kept_indexes SET data = x'00' WHERE part = 0",
        "DELETE FROM kept_indexes WHERE part = 1",
        "DELETE FROM kept_indexes WHERE part = 0",
    ],
)
def test_an_index_that_is_damaged_or_not_whole_is_made_anew(path: Path, sql: str, readings: list[int]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)
    assert kept(path) == fresh(path)
    assert readings[0] == COUNT


def test_an_index_that_other_code_made_is_not_used(
    path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_indexes, "reader_digest", lambda: "of another version")
    kept(path)
    assert readings == [COUNT]


def test_two_processes_keep_at_once(path: Path) -> None:
    with open_memory(path, keep=False) as memory:
        memory.remember_many(SCOPE, passages(120, seed=5))
    command = [sys.executable, "-m", child.__name__, str(path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) for _ in range(2)]
    found = [json.loads(process.communicate()[0]) for process in both]
    expected = json.loads(json.dumps(fresh(path)))
    assert found == [expected, expected]
    assert json.loads(json.dumps(kept(path))) == expected


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
    assert kept_bytes(tmp_path / "memory.db") == b""


def test_a_backup_holds_no_kept_index(path: Path, tmp_path: Path) -> None:
    with open_memory(path) as memory:
        memory.admin.backup(tmp_path / "backup.db")
        memory.remember(SCOPE, "The Xylophone Quartet of Zanzibar sings.")
    assert kept_bytes(tmp_path / "backup.db") == b""
    eunoe.restore(tmp_path / "backup.db", path)
    assert kept(path) == fresh(path)


def test_what_was_damaged_since_is_left_out_and_said(path: Path) -> None:
    with open_memory(path) as memory:
        best = memory.recall(SCOPE, "Who restarts the Payment Gateway?", recipe="lexical")[0]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE items SET text = text || ' Nobody does.' WHERE id = ?", (best.id,))
    with open_memory(path) as memory:
        hits = memory.recall(SCOPE, "Who restarts the Payment Gateway?", recipe="lexical")
    assert best.id not in [hit.id for hit in hits]
    assert any("damaged" in note for note in hits.notes)
