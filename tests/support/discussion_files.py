"""Files of discussions as another program writes and reads them, with plain Python."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE memories (id INTEGER PRIMARY KEY, discussion_id TEXT NOT NULL, memory_text TEXT NOT NULL,
    date_added TEXT NOT NULL, metadata_json TEXT);
CREATE VIRTUAL TABLE memories_fts USING fts5(
    title, summary, entities, key_phrases, memory_text_unweighted, tokenize='porter');
CREATE TABLE vector_memory_hash_log (id INTEGER PRIMARY KEY AUTOINCREMENT, discussion_id TEXT NOT NULL,
    message_hash TEXT NOT NULL, timestamp DATETIME NOT NULL);
CREATE TABLE memory_embeddings (memory_id INTEGER, model TEXT, dim INTEGER, vector BLOB,
    PRIMARY KEY (memory_id, model));
"""
DATE = "2025-09-14T12:34:56.123456+00:00"
TEA = {"title": "Tea", "summary": "Anna likes green tea.", "entities": ["Anna"], "key_phrases": ["green tea"]}
ROME = {"title": "Rome", "summary": "Anna moved to Rome.", "entities": ["Anna", "Rome"], "key_phrases": ["moved"]}


def message_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def block(text: str, message: str = "") -> dict[str, str]:
    """An entry of a file of memories that ends on a message."""
    return {"text_block": text, "hash": message_hash(message or text)}


def write_folder(folder: Path, memories: Sequence[Mapping[str, str]] = (), **files: Any) -> Path:
    """Write the folder of a discussion; `files` are the JSON of other files by their stems."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {**({"memories": list(memories)} if memories else {}), **files}
    for stem, value in contents.items():
        (folder / f"{stem}.json").write_text(json.dumps(value, indent=4))
    return folder


def write_database(
    path: Path, id: str, objects: Iterable[Mapping[str, Any]], hashes: Iterable[str] = (), **rows: Any
) -> Path:
    """Write a database as the other program does; it is in order, with its rows indexed."""
    with closing(sqlite3.connect(path)) as connection, connection:
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            connection.executescript(SCHEMA)
        for each in objects:
            cursor = connection.execute(
                "INSERT INTO memories (discussion_id, memory_text, date_added, metadata_json) VALUES (?, ?, ?, ?)",
                [id, each["summary"], DATE, json.dumps(each)],
            )
            lists = [" ".join(each[name]).replace('"', "") for name in ("entities", "key_phrases")]
            connection.execute(
                "INSERT INTO memories_fts (rowid, title, summary, entities, key_phrases, memory_text_unweighted) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [cursor.lastrowid, each["title"], each["summary"], *lists, each["summary"]],
            )
        connection.executemany(
            "INSERT INTO vector_memory_hash_log (discussion_id, message_hash, timestamp) VALUES (?, ?, ?)",
            [(id, hash, DATE) for hash in hashes],
        )
    return path


def insert_row(path: Path, id: str, text: object, metadata: object, date: object = DATE) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO memories (discussion_id, memory_text, date_added, metadata_json) VALUES (?, ?, ?, ?)",
            [id, text, date, metadata],
        )


def query(path: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement, values).fetchall()


def search(path: Path, keywords: str, id: str, limit: int = 5) -> list[str]:
    """Search as the other program does: phrases, joined by OR, the best first."""
    terms = [term.strip().replace("-", " ").replace('"', '""') for term in keywords.split(";") if term.strip()]
    match = " OR ".join(f'"{term}"' for term in terms[:60])
    statement = (
        "SELECT m.memory_text FROM memories_fts f JOIN memories m ON m.id = f.rowid "
        "WHERE memories_fts MATCH ? AND m.discussion_id = ? ORDER BY bm25(memories_fts) ASC LIMIT ?"
    )
    return [row[0] for row in query(path, statement, match, id, limit)]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files below a folder, their bytes and when they were written."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
