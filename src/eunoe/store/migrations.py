"""The schema, as a list of migrations. A file's `user_version` is the number of migrations it has been through."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from eunoe.text.normalize import fingerprint, normalize_name

Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: list[Migration] = []
APPLICATION_ID = 0x45554E4F


def migration(function: Migration) -> Migration:
    MIGRATIONS.append(function)
    return function


@migration
def create_items(connection: sqlite3.Connection) -> None:
    _execute(connection, _ITEMS)


@migration
def create_forming(connection: sqlite3.Connection) -> None:
    """Settings, jobs, summaries, passage graphs, access counts and usage."""
    _execute(connection, _FORMING)


@migration
def index_pending(connection: sqlite3.Connection) -> None:
    """Let the pending records of one stream be found without a look at those of others."""
    connection.execute("CREATE INDEX items_waiting ON items (stream, seq) WHERE pending = 1")


@migration
def use_plain_names(connection: sqlite3.Connection) -> None:
    """Call tables, columns and indexes as in the glossary, and let an index find atoms by their memory key."""
    _execute(connection, _PLAIN_NAMES)
    sql = "SELECT seq, kind, metadata FROM items WHERE kind != 'message' AND metadata LIKE '%\"memory_key\"%'"
    for seq, kind, metadata in connection.execute(sql).fetchall():
        key = json.loads(metadata).get("memory_key")
        name = normalize_name(key) if isinstance(key, str) else ""
        if name:
            topic = fingerprint("topic", kind, name)
            connection.execute("UPDATE items SET topic = ? WHERE seq = ?", (topic, seq))


def _execute(connection: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";\n"):  # `executescript` would end the transaction
        connection.execute(statement)


_ITEMS = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, scope TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE items (
    seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, pending INTEGER NOT NULL DEFAULT 0,
    kind TEXT NOT NULL, id TEXT NOT NULL, key BLOB NOT NULL, text TEXT NOT NULL, caption TEXT NOT NULL DEFAULT '',
    time INTEGER, session TEXT NOT NULL DEFAULT '', speaker TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT '',
    label TEXT NOT NULL DEFAULT '', people TEXT NOT NULL DEFAULT '', files TEXT NOT NULL DEFAULT '',
    valid_from INTEGER, valid_to INTEGER, recorded INTEGER NOT NULL, retired INTEGER,
    pinned INTEGER NOT NULL DEFAULT 0, position INTEGER, supersedes TEXT NOT NULL DEFAULT '',
    superseded_by TEXT NOT NULL DEFAULT '', source TEXT NOT NULL DEFAULT '', pages TEXT NOT NULL DEFAULT '',
    metadata TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX items_id ON items (stream, id);
CREATE UNIQUE INDEX items_key ON items (stream, key) WHERE retired IS NULL;
CREATE INDEX items_stream ON items (stream);
CREATE INDEX items_log ON items (stream, session, position) WHERE position IS NOT NULL;
CREATE INDEX items_pending ON items (seq) WHERE pending = 1;
CREATE TABLE changes (
    stream INTEGER NOT NULL, version INTEGER NOT NULL, seq INTEGER NOT NULL, what INTEGER NOT NULL,
    PRIMARY KEY (stream, version, what, seq)) WITHOUT ROWID;
CREATE TABLE forgotten (
    stream INTEGER NOT NULL, key BLOB NOT NULL, content BLOB NOT NULL, lane BLOB NOT NULL, position INTEGER,
    PRIMARY KEY (stream, key)) WITHOUT ROWID;
CREATE INDEX forgotten_log ON forgotten (stream, lane, position) WHERE position IS NOT NULL;
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);
CREATE TABLE vectors (
    model INTEGER NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID;
INSERT INTO meta VALUES ('next_seq', '1')
"""

# Words are kept in tables with row numbers only: what such a table leaves behind on a page is found and wiped.
_FORMING = """
CREATE INDEX items_atoms ON items (stream, kind, seq) WHERE kind != 'message';
CREATE TABLE settings (stream INTEGER PRIMARY KEY, preset TEXT NOT NULL, changes TEXT NOT NULL);
CREATE TABLE sessions (
    stream INTEGER PRIMARY KEY, cursor INTEGER NOT NULL, messages INTEGER NOT NULL, weight REAL NOT NULL,
    active INTEGER NOT NULL, users TEXT NOT NULL);
CREATE INDEX sessions_active ON sessions (active);
CREATE TABLE work (
    stream INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, owner TEXT NOT NULL,
    until INTEGER NOT NULL, attempts INTEGER NOT NULL, retry INTEGER NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (stream, start));
CREATE TABLE summaries (
    stream INTEGER PRIMARY KEY, revision INTEGER NOT NULL, last INTEGER NOT NULL, rebuild INTEGER NOT NULL,
    owner TEXT NOT NULL, until INTEGER NOT NULL, attempts INTEGER NOT NULL, retry INTEGER NOT NULL,
    error TEXT NOT NULL);
CREATE INDEX summaries_rebuild ON summaries (stream) WHERE rebuild = 1;
CREATE TABLE revisions (
    stream INTEGER NOT NULL, number INTEGER NOT NULL, parent INTEGER NOT NULL, text TEXT NOT NULL,
    absorbed TEXT NOT NULL, author TEXT NOT NULL, recorded INTEGER NOT NULL,
    PRIMARY KEY (stream, number));
CREATE TABLE absorbed (
    stream INTEGER NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE links (
    source INTEGER NOT NULL, stream INTEGER NOT NULL, PRIMARY KEY (source, stream)) WITHOUT ROWID;
CREATE INDEX links_stream ON links (stream);
CREATE TABLE readings (
    seq INTEGER PRIMARY KEY, content BLOB NOT NULL, model TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX readings_content ON readings (content);
CREATE TABLE uses (seq INTEGER PRIMARY KEY, times INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE usage (
    operation TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL, failures INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, micros INTEGER NOT NULL, cost REAL NOT NULL,
    PRIMARY KEY (operation, model)) WITHOUT ROWID;
CREATE TABLE hidden (key BLOB PRIMARY KEY) WITHOUT ROWID
"""

# An index may leave bytes of what was deleted on its pages: it holds a fingerprint of the memory key, not its words.
_PLAIN_NAMES = """
ALTER TABLE items RENAME COLUMN key TO identity;
ALTER TABLE items RENAME COLUMN source TO supports;
ALTER TABLE items ADD COLUMN topic BLOB;
DROP INDEX items_key;
CREATE UNIQUE INDEX items_identity ON items (stream, identity) WHERE retired IS NULL;
CREATE INDEX items_topic ON items (stream, topic) WHERE topic IS NOT NULL;
DROP INDEX items_waiting;
CREATE INDEX items_stream_pending ON items (stream, seq) WHERE pending = 1;
ALTER TABLE forgotten RENAME TO tombstones;
ALTER TABLE tombstones RENAME COLUMN key TO identity;
ALTER TABLE tombstones RENAME COLUMN lane TO session_hash;
DROP INDEX forgotten_log;
CREATE INDEX tombstones_session ON tombstones (stream, session_hash, position) WHERE position IS NOT NULL;
ALTER TABLE work RENAME TO jobs;
ALTER TABLE absorbed RENAME TO absorptions;
ALTER TABLE readings RENAME TO passage_graphs;
DROP INDEX readings_content;
CREATE INDEX passage_graphs_content ON passage_graphs (content);
ALTER TABLE uses RENAME TO access_counts;
ALTER TABLE hidden RENAME TO incognito
"""
