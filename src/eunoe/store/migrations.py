"""The schema, as a list of migrations. A file's `user_version` is the number of migrations it has been through.

`SqliteStore` applies them when it opens a file.
"""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from eunoe.text.look_alikes import former_normal_form
from eunoe.text.normalize import fingerprint, normalize, normalize_name

Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: list[Migration] = []
APPLICATION_ID = 0x45554E4F


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


def _run_script(connection: sqlite3.Connection, name: str) -> None:
    script = (Path(__file__).parent / "schema" / f"{name}.sql").read_text("utf-8")
    for statement in script.split(";\n"):  # `executescript` would end the transaction
        connection.execute(statement)
