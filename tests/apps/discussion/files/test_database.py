"""The database of another program: read without touching it, written as its own, its rows kept as they are."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import discussion_files
from tests.support.discussion_files import DATE, ROME, TEA, insert_row, query, search, snapshot

from eunoe.apps.discussion.files import database as module
from eunoe.apps.discussion.files.database import (
    Database,
    LoggedHash,
    Row,
    read_database,
    read_row,
    write_database,
    write_row,
)
from eunoe.apps.discussion.model import KeywordMemory
from eunoe.errors import InputError, StoreBusyError


def test_rows_and_hashes_of_one_discussion_are_read(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [TEA, ROME], ["aa", "bb"])
    discussion_files.write_database(path, "other", [TEA], ["cc"])
    database = read_database(path, "trip")
    assert [(row.id, row.text, row.date) for row in database.rows] == [
        (1, TEA["summary"], DATE),
        (2, ROME["summary"], DATE),
    ]
    assert database.hashes == (LoggedHash("aa", DATE), LoggedHash("bb", DATE))
    assert database.foreign == 1


def test_the_tracker_of_older_databases_is_read(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "x_vector_memory.db", "x", [TEA])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE vector_memory_tracker "
            "(discussion_id TEXT PRIMARY KEY, last_checked_message_hash TEXT, last_updated DATETIME)"
        )
        connection.executemany(
            "INSERT INTO vector_memory_tracker VALUES (?, ?, ?)", [("x", "aa", DATE), ("y", "bb", DATE)]
        )
    assert read_database(path, "x").hashes == (LoggedHash("aa", DATE),)


def test_a_database_in_use_is_read_with_its_log_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "vector_memory.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        discussion_files.write_database(path, "trip", [TEA])
        connection.execute("BEGIN IMMEDIATE")  # whoever writes keeps everybody else out
        before = snapshot(tmp_path)
        assert "vector_memory.db-wal" in before
        assert [row.text for row in read_database(path, "trip").rows] == [TEA["summary"]]
        assert snapshot(tmp_path) == before


def test_a_file_that_may_not_be_written_is_read(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [TEA])
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert len(read_database(path, "trip").rows) == 1
    finally:
        tmp_path.chmod(0o700)
    assert [file.name for file in tmp_path.iterdir()] == ["vector_memory.db"]


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "vector_memory.db").touch()
    assert read_database(tmp_path / "vector_memory.db", "trip") == Database()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_database_is_refused_by_name(share: float, tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [TEA] * 200)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=r"vector_memory\.db is damaged"):
        read_database(path, "trip")


def test_what_is_no_such_database_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "vector_memory.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match=r"vector_memory\.db is damaged"):
        read_database(path, "trip")
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE chats (id INTEGER)")
    with pytest.raises(InputError, match="is no database of memories: its tables are chats"):
        read_database(path, "trip")


def test_a_value_of_another_type_is_read_as_text(tmp_path: Path) -> None:
    path = discussion_files.write_database(tmp_path / "vector_memory.db", "trip", [])
    insert_row(path, "trip", b"Anna likes tea.", None, 20250914)
    (row,) = read_database(path, "trip").rows
    assert (row.text, row.metadata, row.date) == ("Anna likes tea.", "", "20250914")


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


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


NAMES = st.sampled_from(["title", "summary", "entities", "key_phrases", "topics", "sentiment", "source"])


METADATA = st.dictionaries(NAMES, VALUES | st.lists(TEXT), max_size=7).map(json.dumps) | TEXT


DATES = st.sampled_from([DATE, "2025-09-14", "2025-09-14T12:00:00Z", "yesterday", ""])


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), METADATA, DATES)
def test_every_row_comes_back(text: str, metadata: str, date: str) -> None:
    row = Row(7, text, date, metadata)
    memory, _ = read_row(row)
    assert memory is not None
    assert write_row(memory) == row


def test_a_regular_row_is_read_into_its_fields() -> None:
    fields = {**TEA, "sentiment": "glad", "topics": ["drinks"], "source": "chat"}
    memory, note = read_row(Row(3, TEA["summary"], DATE, json.dumps(fields)))
    assert memory == KeywordMemory(
        title="Tea",
        summary="Anna likes green tea.",
        entities=("Anna",),
        key_phrases=("green tea",),
        topics=("drinks",),
        sentiment="glad",
        extra={"file_row": [3, TEA["summary"], DATE, json.dumps(fields)]},
        time=datetime(2025, 9, 14, 12, 34, 56, 123456, UTC),
    )
    assert note == ""


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        ("", "has no metadata"),
        ("{half", "has metadata that is no JSON"),
        ("[1]", "has no metadata"),
        ('{"title": "\\ud800"}', "has metadata that is no JSON"),
        (json.dumps({**TEA, "entities": None}), "has an odd entities"),
        (json.dumps({"title": "Tea", "summary": "Anna likes green tea."}), "has no entities, has no key_phrases"),
    ],
)
def test_an_odd_row_is_kept_and_told(metadata: str, note: str) -> None:
    memory, told = read_row(Row(3, TEA["summary"], DATE, metadata))
    assert memory is not None
    assert memory.summary == TEA["summary"]
    assert told == f"row 3 {note}: it is kept as it is"


def test_a_row_without_words_is_told() -> None:
    assert read_row(Row(3, " ", DATE, json.dumps({"entities": ["Anna"]}))) == (
        None,
        "row 3 holds no words: it is left out",
    )


def test_words_are_found_where_the_text_is_blank() -> None:
    memory, _ = read_row(Row(3, "", DATE, json.dumps(TEA)))
    assert memory is not None
    assert memory.summary == TEA["summary"]
    assert write_row(memory).text == ""


def test_a_memory_made_here_becomes_a_row() -> None:
    time = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    memory = KeywordMemory(title="Tea", summary="Green.", entities=("Anna",), topics=("drinks",), time=time)
    row = write_row(memory)
    assert (row.id, row.text, row.date) == (0, "Green.", "2025-01-02T03:04:05+00:00")
    assert json.loads(row.metadata) == {
        "title": "Tea",
        "summary": "Green.",
        "entities": ["Anna"],
        "key_phrases": [],
        "topics": ["drinks"],
    }


def test_a_row_that_was_put_right_keeps_what_else_it_says() -> None:
    memory, _ = read_row(Row(3, TEA["summary"], DATE, json.dumps({**TEA, "mood": "glad"})))
    assert memory
    row = write_row(replace(memory, summary="Anna likes coffee."))
    assert (row.id, row.text, row.date) == (3, "Anna likes coffee.", DATE)
    assert json.loads(row.metadata) == {**TEA, "summary": "Anna likes coffee.", "mood": "glad"}
