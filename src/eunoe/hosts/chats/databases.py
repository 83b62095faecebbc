"""SQLite files with chats: LangChain's SQL history, sessions of the OpenAI Agents SDK, LangGraph's checkpoints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from eunoe.errors import InputError
from eunoe.hosts.chats.conversation import Conversation
from eunoe.hosts.chats.plain import read_message

_HEADER: Final = b"SQLite format 3\x00"


class Table(NamedTuple):
    """A table with chats: what wrote it, and how it is read."""

    format: str
    name: str
    read: Callable[[sqlite3.Connection, str], Iterator[Conversation]]


def is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def find_table(path: Path) -> Table:
    with closing(_connect(path)) as connection:
        tables = _tables(connection)
    for name, columns in tables.items():
        for needed, format, read in _KINDS:
            if needed <= columns:
                return Table(format, name, read)
    raise InputError(f"{path} holds no chats that are known: its tables are {', '.join(sorted(tables)) or 'none'}")


def read_table(path: Path, table: Table) -> Iterator[Conversation]:
    with closing(_connect(path)) as connection:
        try:
            yield from table.read(connection, _quote(table.name))
        except sqlite3.Error as error:
            raise InputError(f"{path} cannot be read: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Read only: whoever wrote it may still be at it."""
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)


def _tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: {row[1] for row in connection.execute(f"PRAGMA table_info({_quote(name)})")} for name in names}
    except sqlite3.Error as error:
        raise InputError(f"the SQLite file cannot be read: {error}") from None


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_langchain(connection: sqlite3.Connection, table: str) -> Iterator[Conversation]:
    for session, rows in _sessions(connection, f"SELECT session_id, id, message, NULL FROM {table}"):
        yield _conversation(session, [read_message(value, f"{session}#{id}") for id, value, _ in rows])


def _read_openai_agents(connection: sqlite3.Connection, table: str) -> Iterator[Conversation]:
    query = f"SELECT session_id, id, message_data, created_at FROM {table}"
    for session, rows in _sessions(connection, query):
        said = [(id, value, time) for id, value, time in rows if value.get("role")]
        # Ids of items are the provider's: some are made up and the same for every item.
        messages = [read_message({**value, "id": None}, f"{session}#{id}", time) for id, value, time in said]
        yield _conversation(session, messages)


def _sessions(
    connection: sqlite3.Connection, query: str
) -> Iterator[tuple[str, list[tuple[int, Mapping[str, Any], str | None]]]]:
    """Rows by session, in the order in which they were written."""
    sessions: dict[str, list[tuple[int, Mapping[str, Any], str | None]]] = {}
    for session, id, text, time in connection.execute(f"{query} ORDER BY session_id, id"):
        value = _parse(text)
        sessions.setdefault(str(session), []).append((id, value, time))
    yield from sessions.items()


def _parse(text: object) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str | bytes) else text
    except ValueError:
        raise InputError("a row of the table holds no JSON") from None
    if not isinstance(value, Mapping):
        raise InputError("a row of the table holds no message")
    return value


def _conversation(session: str, messages: list[dict[str, Any]]) -> Conversation:
    return Conversation(session, [each for each in messages if each["text"].strip()])


def _read_langgraph(connection: sqlite3.Connection, table: str) -> Iterator[Conversation]:
    from eunoe.hosts.chats.checkpoints import read_threads  # with it comes LangGraph

    query = f"SELECT thread_id, type, checkpoint, metadata FROM {table} WHERE checkpoint_ns = '' "
    yield from read_threads(connection.execute(f"{query} ORDER BY thread_id, checkpoint_id"))


_KINDS: Final = (
    (frozenset({"id", "session_id", "message"}), "LangChain's SQL history", _read_langchain),
    (frozenset({"id", "session_id", "message_data", "created_at"}), "OpenAI Agents SDK", _read_openai_agents),
    (
        frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint"}),
        "LangGraph checkpoints",
        _read_langgraph,
    ),
)
"""The columns by which each is known."""
