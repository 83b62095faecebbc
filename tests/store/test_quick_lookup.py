"""Reading by id takes one statement, and sees all that the long way sees: other processes, damage, other files."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import eunoe
from eunoe import Memory
from eunoe.errors import DamagedStoreError, NewerStoreError, NotFoundError, ReplacedStoreError
from eunoe.store.migrations import MIGRATIONS

ANNA, BEN = "user=anna", "user=ben"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with eunoe.open(path, embedder="none", llm="none", form=False) as opened:
        opened.remember(ANNA, "Anna's", id="a")
        opened.remember(BEN, "Ben's", id="a")
        assert [opened.get(scope, "a").text for scope in (ANNA, BEN)] == ["Anna's", "Ben's"]  # the streams are known
        yield opened


def run(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def test_what_another_opening_writes_is_read_at_once(memory: Memory, path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none") as other:
        for number in range(3):
            other.remember(ANNA, f"number {number}", id="a", replace=True)
            assert memory.get(ANNA, "a").text == f"number {number}"
        other.forget(ANNA, "a")
    with pytest.raises(NotFoundError):
        memory.get(ANNA, "a")
    assert memory.get_many(ANNA, ["a"]) == []
    assert memory.get(BEN, "a").text == "Ben's"


def test_a_damaged_row_is_told(memory: Memory, path: Path) -> None:
    run(path, "UPDATE items SET text = 'Eve''s' WHERE text = 'Anna''s'")
    with pytest.raises(DamagedStoreError):
        memory.get(ANNA, "a")
    with pytest.raises(DamagedStoreError):
        memory.get_many(ANNA, ["a"])
    assert memory.get(BEN, "a").text == "Ben's"


def test_a_row_of_another_scope_is_never_shown(memory: Memory, path: Path) -> None:
    run(path, "UPDATE items SET stream = 2, id = 'b', identity = x'00' WHERE stream = 1")
    with pytest.raises(DamagedStoreError):
        memory.get(BEN, "b")


def test_a_newer_schema_is_refused(memory: Memory, path: Path) -> None:
    run(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(NewerStoreError):
        memory.get(ANNA, "a")
    run(path, f"PRAGMA user_version = {len(MIGRATIONS)}")
    assert memory.get(ANNA, "a").text == "Anna's"


def test_another_file_in_its_place_is_noticed(memory: Memory, path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)
    with pytest.raises(ReplacedStoreError):
        memory.get(ANNA, "a")


def test_a_stream_that_came_to_nothing_is_not_remembered(memory: Memory) -> None:
    store = memory._engine.store

    def give_up() -> None:
        with store.writing():
            store.create_stream(eunoe.Scope(user="zoe"))
            assert store.find_at_once(eunoe.Scope(user="zoe"), ["a"]) is None
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    memory.remember("user=eve", "Eve's", id="a")  # has the number that Zoe's would have had
    assert memory.get_many("user=zoe", ["a"]) == []
    assert memory.get("user=eve", "a").text == "Eve's"
