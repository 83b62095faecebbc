import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support import discussion_files
from tests.support.discussion_files import DATE, ROME, TEA, query, search

from eunoe.apps.discussion.files import database as module
from eunoe.apps.discussion.files.database import Database, LoggedHash, Row, read_database, write_database
from eunoe.errors import InputError, StoreBusyError


def row(fields: dict[str, Any], id: int = 0) -> Row:
    return Row(id, fields["summary"], DATE, json.dumps(fields))


def test_other_programs_find_the_best_first(tmp_path: Path) -> None:
    path = tmp_path / "vector_memory.db"
    both = {**TEA, "title": "Green tea", "summary": "Green tea, green tea.", "entities": ["tea"]}
    write_database(path, "trip", Database((row(ROME), row(TEA), row(both))), "folders")
    assert search(path, "green tea", "trip") == [both["summary"], TEA["summary"]]
    assert search(path, "rome;nothing", "trip") == [ROME["summary"]]
    assert search(path, "moving", "trip") == [ROME["summary"]]  # the stem of "moved"
    assert search(path, "green tea", "other") == []
    assert query(path, "SELECT id FROM memories") == query(path, "SELECT rowid FROM memories_fts")


def test_the_schema_is_that_of_the_other_program(tmp_path: Path) -> None:
    theirs = discussion_files.write_database(tmp_path / "theirs.db", "trip", [TEA])
    write_database(tmp_path / "ours.db", "trip", Database((row(TEA),)), "folders")
    tables = [name for (name,) in query(theirs, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    for name in tables:
        info = f"PRAGMA table_xinfo({name})"
        assert query(tmp_path / "ours.db", info) == query(theirs, info)
    assert query(tmp_path / "ours.db", "SELECT * FROM memories_fts") == query(theirs, "SELECT * FROM memories_fts")


def test_a_database_of_the_first_version_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(discussion_files.SCHEMA.replace("memory_text_unweighted", "memory_text"))
    for rows in ((row(ROME),), (row(ROME), row(TEA))):
        write_database(path, "trip", Database(rows), "folders")
    assert search(path, "rome;green tea", "trip", 2) == [ROME["summary"], TEA["summary"]]
    assert query(path, "SELECT memory_text FROM memories_fts") == [(ROME["summary"],), (TEA["summary"],)]


def test_quotation_marks_are_taken_out_of_lists(tmp_path: Path) -> None:
    fields = {**TEA, "entities": ['the "Blue" Cup', "Anna"]}
    write_database(tmp_path / "x.db", "trip", Database((row(fields),)), "folders")
    assert query(tmp_path / "x.db", "SELECT entities FROM memories_fts") == [("the Blue Cup Anna",)]


def test_the_last_ten_hashes_are_kept(tmp_path: Path) -> None:
    hashes = tuple(LoggedHash(f"{number:064}", DATE) for number in range(12))
    write_database(tmp_path / "x.db", "trip", Database(hashes=hashes), "folders")
    statement = "SELECT message_hash FROM vector_memory_hash_log ORDER BY id"
    assert [hash for (hash,) in query(tmp_path / "x.db", statement)] == [each.hash for each in hashes[2:]]


def test_the_flat_layout_has_a_tracker(tmp_path: Path) -> None:
    path = tmp_path / "x_vector_memory.db"
    for last in ("aa", "bb"):
        write_database(path, "x", Database(hashes=(LoggedHash(last, DATE),)), "flat")
    assert query(path, "SELECT * FROM vector_memory_tracker") == [("x", "bb", DATE)]


def test_what_did_not_change_keeps_its_id_and_its_vectors(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [TEA, ROME])
    discussion_files.write_database(path, "other", [TEA])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO memory_embeddings VALUES (?, 'm', 1, x'00')", [(1,), (2,), (3,)])
    changed = {**ROME, "summary": "Anna moved to Milan."}
    write_database(path, "trip", Database((row(TEA, 1), row(changed, 2), row(ROME))), "folders")
    assert query(path, "SELECT id, memory_text FROM memories WHERE discussion_id = 'trip' ORDER BY id") == [
        (1, TEA["summary"]),
        (2, changed["summary"]),
        (4, ROME["summary"]),
    ]
    assert query(path, "SELECT memory_id FROM memory_embeddings ORDER BY 1") == [(1,), (3,)]
    assert read_database(path, "other").rows == (row(TEA, 3),)


def test_rows_without_an_id_are_recognised(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [TEA, TEA, ROME])
    before = path.read_bytes()
    write_database(path, "trip", Database((row(ROME), row(TEA), row(TEA))), "folders")
    assert path.read_bytes() == before


def test_an_id_that_another_discussion_has_is_not_taken(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "other", [TEA])
    write_database(path, "trip", Database((row(ROME, 1),)), "folders")
    assert query(path, "SELECT id, discussion_id FROM memories") == [(1, "other"), (2, "trip")]


def test_nothing_of_a_row_that_is_gone_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    secret = {**TEA, "summary": "The PIN is zweiundvierzig.", "key_phrases": ["zweiundvierzig"]}
    write_database(path, "trip", Database((row(secret), row(ROME))), "folders")
    assert b"zweiundvierzig" in path.read_bytes()
    write_database(path, "trip", Database((row(ROME),)), "folders")
    assert b"zweiundvierzig" not in path.read_bytes()
    assert search(path, "zweiundvierzig", "trip") == []


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.db"
    write_database(path, "trip", Database((row(TEA),)), "folders")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(module, "_read_hashes", fail)
    with pytest.raises(InputError):
        write_database(path, "trip", Database((row(ROME),)), "folders")
    monkeypatch.undo()
    assert [each.text for each in read_database(path, "trip").rows] == [TEA["summary"]]


def test_a_database_that_is_held_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.0)
    path = discussion_files.write_database(tmp_path / "x.db", "trip", [TEA])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match=r"x\.db is held"):
            write_database(path, "trip", Database(), "folders")
