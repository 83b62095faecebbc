"""The schema, as a list of migrations. A file's `user_version` is the number of migrations it has been through.

`SqliteStore` applies them when it opens a file.
"""

import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Collection
from pathlib import Path

from eunoe.store.codec import row_checksum
from eunoe.text.normalize import fingerprint, former_normal_form, normalize, normalize_name

Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: list[Migration] = []
APPLICATION_ID = 0x45554E4F
HAS_TENANT = "instr('/' || scope, '/tenant=') > 0"
TENANT_PART = "substr('/' || scope || '/', instr('/' || scope, '/tenant='))"
TENANT_PAIR = f"CASE WHEN {HAS_TENANT} THEN substr({TENANT_PART}, 1, instr(substr({TENANT_PART}, 2), '/')) ELSE '' END"
HAS_USER = HAS_TENANT.replace("tenant", "user")
USER_PART = TENANT_PART.replace("tenant", "user")
_log = logging.getLogger("eunoe")


def migration(function: Migration) -> Migration:
    MIGRATIONS.append(function)
    return function


@migration
def create_items(connection: sqlite3.Connection) -> None:
    _run_script(connection, "create_items")


@migration
def create_forming(connection: sqlite3.Connection) -> None:
    """Settings, jobs, summaries, passage graphs, access counts and usage."""
    _run_script(connection, "create_forming")


@migration
def index_pending(connection: sqlite3.Connection) -> None:
    """Let the pending records of one stream be found without a look at those of others."""
    connection.execute("CREATE INDEX items_waiting ON items (stream, seq) WHERE pending = 1")


@migration
def use_plain_names(connection: sqlite3.Connection) -> None:
    """Call tables, columns and indexes as in the glossary, and let an index find atoms by their memory key."""
    _run_script(connection, "use_plain_names")
    sql = "SELECT seq, kind, metadata, people FROM items WHERE kind != 'message' AND metadata LIKE '%\"memory_key\"%'"
    for seq, kind, metadata, people in connection.execute(sql).fetchall():
        key = json.loads(metadata).get("memory_key")
        name = normalize_name(key) if isinstance(key, str) else ""
        if name:
            names = {normalize_name(person) for person in json.loads(people or "[]")}
            about = [fingerprint("several people")] if len(names) > 1 else [fingerprint("person", one) for one in names]
            topic = b"".join([fingerprint("topic", kind, name), *about])
            connection.execute("UPDATE items SET topic = ? WHERE seq = ?", (topic, seq))


@migration
def tell_texts_apart(connection: sqlite3.Connection) -> None:
    """Know atoms by letters and signs that older identities left out, as in "Maßen" and "Massen"."""
    rows = connection.execute("SELECT seq, kind, text, identity FROM items WHERE kind != 'message'")
    changed = [
        (fingerprint(kind, normalize(text)), seq)
        for seq, kind, text, identity in rows
        if normalize(text) != former_normal_form(text) and identity == fingerprint(kind, former_normal_form(text))
    ]
    connection.executemany("UPDATE items SET identity = ? WHERE seq = ?", changed)


_STREAM_TABLES = (
    "items",
    "tombstones",
    "settings",
    "sessions",
    "jobs",
    "summaries",
    "revisions",
    "absorptions",
    "links",
)
_OTHER_TABLES = ("streams", "vectors", "models", "meta", "passage_graphs", "access_counts", "usage", "incognito")
_UNCHECKED = ("checksum", "rows", "digest")
"""Columns that are no part of a row's checksum."""
_PROGRESS_ROWS = 100_000


@migration
def add_checksums(connection: sqlite3.Connection) -> None:
    """A checksum for every row, and for every stream the number and the sum of those that belong to it.

    Triggers keep the sums, so that no statement can forget to.
    """
    connection.execute("CREATE TABLE digests (name TEXT PRIMARY KEY, rows INTEGER NOT NULL, digest INTEGER NOT NULL)")
    connection.execute("CREATE INDEX streams_length ON streams (length(scope), scope)")
    for column in ("rows", "digest"):
        connection.execute(f"ALTER TABLE streams ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0")
    for table in (*_STREAM_TABLES, *_OTHER_TABLES):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    write_checksums(connection, *_STREAM_TABLES, *_OTHER_TABLES)
    for table in _STREAM_TABLES:
        connection.execute(
            f"UPDATE streams SET rows = rows + (SELECT count(*) FROM {table} WHERE stream = streams.id), "
            f"digest = digest + (SELECT coalesce(sum(checksum), 0) FROM {table} WHERE stream = streams.id)"
        )
        _add_triggers(connection, table, "streams", "id = {}.stream", "checksum")
    for table in _OTHER_TABLES:
        _add_digest(connection, table)


@migration
def add_review(connection: sqlite3.Connection) -> None:
    """Let atoms wait for review, let an index find the latest ones, and log the calls of language models."""
    _run_script(connection, "add_review")
    write_checksums(connection, "items", added=("in_review", "replaces"))
    _add_digest(connection, "calls")


def _add_digest(connection: sqlite3.Connection, table: str) -> None:
    # The row of a stream changes with every write to it: its number alone is added up.
    value = "id" if table == "streams" else "checksum"
    connection.execute(f"INSERT INTO digests SELECT '{table}', count(*), coalesce(sum({value}), 0) FROM {table}")
    _add_triggers(connection, table, "digests", f"name = '{table}'", value)


@migration
def index_tenants(connection: sqlite3.Connection) -> None:
    """Let the streams of one tenant, and the latest atoms of a stream, be found without a look at those of others; give
    cursors a secret."""
    connection.execute(f"CREATE INDEX streams_tenant ON streams ({TENANT_PART}) WHERE {HAS_TENANT}")
    latest = "(stream, recorded, seq, kind, in_review) WHERE kind != 'message'"
    connection.execute(f"CREATE INDEX items_stream_recorded ON items {latest}")
    add_cursor_key(connection)


@migration
def index_closed(connection: sqlite3.Connection) -> None:
    """Let the versions that an id closed, and what was archived, be found without a look at all the rest."""
    closed = "(stream, superseded_by) WHERE superseded_by <> ''"
    connection.execute(f"CREATE INDEX items_superseded_by ON items {closed}")
    archived = "(stream, seq) WHERE retired IS NOT NULL AND superseded_by = ''"
    connection.execute(f"CREATE INDEX items_archived ON items {archived}")


@migration
def create_leases(connection: sqlite3.Connection) -> None:
    """Leases of work that is done outside the engine."""
    connection.execute(
        "CREATE TABLE leases (stream INTEGER NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL, owner TEXT NOT NULL, "
        "until INTEGER NOT NULL, attempts INTEGER NOT NULL, retry INTEGER NOT NULL, error TEXT NOT NULL, "
        "checksum INTEGER NOT NULL, PRIMARY KEY (stream, name)) WITHOUT ROWID"
    )
    _add_triggers(connection, "leases", "streams", "id = {}.stream", "checksum")


@migration
def index_users(connection: sqlite3.Connection) -> None:
    """Let the streams of one user of a tenant be found without a look at those of others."""
    connection.execute(f"CREATE INDEX streams_user ON streams ({TENANT_PAIR}, {USER_PART}) WHERE {HAS_USER}")


def add_cursor_key(connection: sqlite3.Connection) -> None:
    secret = ("cursor_key", secrets.token_hex(16))
    connection.execute("INSERT INTO meta (name, value, checksum) VALUES (?, ?, ?)", (*secret, row_checksum(secret)))


def _add_triggers(connection: sqlite3.Connection, table: str, counter: str, condition: str, value: str) -> None:
    steps = {
        "INSERT": ("rows = rows + 1, digest = digest + NEW.{0}", "NEW"),
        "DELETE": ("rows = rows - 1, digest = digest - OLD.{0}", "OLD"),
        "UPDATE OF checksum": ("digest = digest - OLD.{0} + NEW.{0}", "NEW"),
    }
    for event, (assignments, row) in steps.items():
        if event == "UPDATE OF checksum" and value != "checksum":
            continue
        connection.execute(
            f"CREATE TRIGGER {table}_{event.split()[0].lower()} AFTER {event} ON {table} BEGIN UPDATE {counter} "
            f"SET {assignments.format(value)} WHERE {condition.format(row)}; END"
        )


def write_checksums(connection: sqlite3.Connection, *tables: str, added: Collection[str] = ()) -> None:
    """Write the checksum of every row anew: to be called by each migration that changes rows or columns.

    Where columns were `added`, a row that was damaged without them stays so.
    """
    done = 0
    for table in tables:
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        names = sorted(column[1] for column in columns if column[1] not in _UNCHECKED)
        key = [column[1] for column in columns if column[5]]
        places = [names.index(name) for name in key]
        former = [place for place, name in enumerate(names) if name not in added]
        update = f"UPDATE {table} SET checksum = ? WHERE {' AND '.join(f'{name} = ?' for name in key)}"
        for *values, checksum in connection.execute(f"SELECT {', '.join(names)}, checksum FROM {table}").fetchall():
            row = tuple(values)
            if added and row_checksum(tuple(row[place] for place in former)) != checksum:
                continue
            connection.execute(update, (row_checksum(row), *(row[place] for place in places)))
            done += 1
            if done % _PROGRESS_ROWS == 0:
                _log.info("checksums of %d rows written", done)


def _run_script(connection: sqlite3.Connection, name: str) -> None:
    script = (Path(__file__).parent / "schema" / f"{name}.sql").read_text("utf-8")
    for statement in script.split(";\n"):  # `executescript` would end the transaction
        connection.execute(statement)
