import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.discussion_files import DATE, ROME, TEA, insert_row, snapshot, write_database

from eunoe.apps.discussion.files.database import Database, LoggedHash, read_database
from eunoe.errors import InputError


def test_rows_and_hashes_of_one_discussion_are_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "vector_memory.db", "trip", [TEA, ROME], ["aa", "bb"])
    write_database(path, "other", [TEA], ["cc"])
    database = read_database(path, "trip")
    assert [(row.id, row.text, row.date) for row in database.rows] == [
        (1, TEA["summary"], DATE),
        (2, ROME["summary"], DATE),
    ]
    assert database.hashes == (LoggedHash("aa", DATE), LoggedHash("bb", DATE))
    assert database.foreign == 1


def test_the_tracker_of_older_databases_is_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "x_vector_memory.db", "x", [TEA])
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
        write_database(path, "trip", [TEA])
        connection.execute("BEGIN IMMEDIATE")  # whoever writes keeps everybody else out
        before = snapshot(tmp_path)
        assert "vector_memory.db-wal" in before
        assert [row.text for row in read_database(path, "trip").rows] == [TEA["summary"]]
        assert snapshot(tmp_path) == before


def test_a_file_that_may_not_be_written_is_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "vector_memory.db", "trip", [TEA])
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
    path = write_database(tmp_path / "vector_memory.db", "trip", [TEA] * 200)
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
    path = write_database(tmp_path / "vector_memory.db", "trip", [])
    insert_row(path, "trip", b"Anna likes tea.", None, 20250914)
    (row,) = read_database(path, "trip").rows
    assert (row.text, row.metadata, row.date) == ("Anna likes tea.", "", "20250914")
