"""The schema, as a list of steps. A file's `user_version` is the number of steps it has been through."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

Step = Callable[[sqlite3.Connection], None]

STEPS: list[Step] = []
APPLICATION_ID = 0x45554E4F


def step(function: Step) -> Step:
    STEPS.append(function)
    return function


@step
def first(connection: sqlite3.Connection) -> None:
    for statement in _FIRST.split(";\n"):
        connection.execute(statement)


_FIRST = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE items (
    seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, pending INTEGER NOT NULL,
    kind TEXT NOT NULL, id TEXT NOT NULL, key BLOB NOT NULL, text TEXT NOT NULL, caption TEXT NOT NULL,
    time INTEGER, session TEXT NOT NULL, speaker TEXT NOT NULL, role TEXT NOT NULL, label TEXT NOT NULL,
    people TEXT NOT NULL, files TEXT NOT NULL, valid_from INTEGER, valid_to INTEGER, recorded INTEGER NOT NULL,
    retired INTEGER, pinned INTEGER NOT NULL, position INTEGER, supersedes TEXT NOT NULL, superseded_by TEXT NOT NULL,
    source TEXT NOT NULL, pages TEXT NOT NULL, metadata TEXT NOT NULL);
CREATE UNIQUE INDEX items_id ON items (stream, id);
CREATE UNIQUE INDEX items_key ON items (stream, key) WHERE retired IS NULL;
CREATE INDEX items_version ON items (stream, version);
CREATE INDEX items_log ON items (stream, session, position) WHERE position IS NOT NULL;
CREATE INDEX items_pending ON items (seq) WHERE pending = 1;
CREATE TABLE removed (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (stream, version, seq)) WITHOUT ROWID;
CREATE TABLE forgotten (
    stream INTEGER NOT NULL, key BLOB NOT NULL, content BLOB NOT NULL, lane BLOB NOT NULL, position INTEGER,
    PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE INDEX forgotten_log ON forgotten (stream, lane, position) WHERE position IS NOT NULL;
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);
CREATE TABLE vectors (
    model INTEGER NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID;
INSERT INTO meta VALUES ('next_seq', '1')
"""
