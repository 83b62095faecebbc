"""SQLite files with chats: LangChain's SQL history, sessions of the OpenAI Agents SDK, LangGraph's checkpoints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.chats.formats import Conversation, read_message
from eunoe.hosts.common import Problems

_ITEM: Final = "message_data, created_at"
_HEADER: Final = b"SQLite format 3\x00"


class Table(NamedTuple):
    """A table with chats: what wrote it, and how it is read."""

    format: str
    name: str
    read: Callable[[sqlite3.Connection, str, Problems], Iterator[Conversation]]


def is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def find_table(path: Path) -> Table:
    try:
        with closing(_connect(path)) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            infos = {name: connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall() for name in names}
    except sqlite3.Error as error:
        raise InputError(f"the SQLite file cannot be read: {error}") from None
    tables = {name: {row[1] for row in rows} for name, rows in infos.items()}
    for name, columns in tables.items():
        for needed, format, read in _KINDS:
            if needed <= columns:
                return Table(format, name, read)
    raise InputError(f"{path} holds no chats that are known: its tables are {', '.join(sorted(tables)) or 'none'}")


def read_table(path: Path, table: Table, problems: Problems) -> Iterator[Conversation]:
    with closing(_connect(path)) as connection:
        try:
            yield from table.read(connection, _quote(table.name), problems)
        except sqlite3.Error as error:
            raise InputError(f"{path} cannot be read: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Read only: whoever wrote it may still be at it."""
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _read_sessions(
    columns: str, connection: sqlite3.Connection, table: str, problems: Problems
) -> Iterator[Conversation]:
    """Rows by session, in the order in which they were written."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    rows = connection.execute(f"SELECT session_id, id, {columns} FROM {table} ORDER BY session_id, id")
    for session, id, text, time in rows:
        messages = sessions.setdefault(str(session), [])
        with problems.catch(f"session {session}, row {id}"):
            value = json.loads(text) if isinstance(text, str | bytes) else text
            if not isinstance(value, Mapping):
                raise InputError("it holds no message")
            if columns == _ITEM:  # calls, results and reasoning have no role; ids are the provider's, some made up
                value = {**value, "id": None} if value.get("role") else {}
            messages.append(read_message(value, f"{session}#{id}", time))
    for name, messages in sessions.items():
        yield Conversation(name, [each for each in messages if each["text"].strip()])


def _read_langgraph(connection: sqlite3.Connection, table: str, problems: Problems) -> Iterator[Conversation]:
    """Every message that a thread has ever held, with the time of its first checkpoint."""
    try:
        from langchain_core.messages import BaseMessage, RemoveMessage
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    except ImportError as error:
        raise MissingPackageError("LangGraph's checkpoints need LangGraph: pip install 'eunoe[langgraph]'") from error

    # No type outside the serializer's own list is made: a checkpoint can name any class.
    serializer = JsonPlusSerializer(allowed_msgpack_modules=None)
    query = f"SELECT thread_id, type, checkpoint, metadata FROM {table} WHERE checkpoint_ns = '' "
    rows = connection.execute(f"{query} ORDER BY thread_id, checkpoint_id")
    for thread, group in groupby(rows, key=lambda row: str(row[0])):
        messages: dict[str, dict[str, Any]] = {}
        person = ""
        for _, packing, data, metadata in group:
            person = person or _person(metadata)
            with problems.catch(f"thread {thread}"):
                try:
                    checkpoint = serializer.loads_typed((packing, data))
                except Exception as error:  # whatever a damaged or foreign checkpoint makes the serializer raise
                    raise InputError(f"a checkpoint cannot be read ({type(error).__name__})") from error
                values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
                found = values.get("messages") if isinstance(values, dict) else None
                said = [each for each in found if isinstance(each, BaseMessage)] if isinstance(found, list) else []
                kept = (each for each in said if not isinstance(each, RemoveMessage))
                for number, each in enumerate(kept):
                    value = read_message(each.model_dump(), f"{thread}#{number}", checkpoint.get("ts"))
                    if value["text"].strip():
                        messages.setdefault(value["id"], value)
        yield Conversation(thread, list(messages.values()), person)


def _person(metadata: bytes | str | None) -> str:
    try:
        value = json.loads(metadata or "{}")
    except ValueError:
        return ""
    user = value.get("user_id") if isinstance(value, dict) else None
    return str(user) if isinstance(user, str | int) else ""


_KINDS: Final = (
    (frozenset({"id", "session_id", "message"}), "LangChain's SQL history", partial(_read_sessions, "message, NULL")),
    (
        frozenset({"id", "session_id", "message_data", "created_at"}),
        "OpenAI Agents SDK",
        partial(_read_sessions, _ITEM),
    ),
    (
        frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint"}),
        "LangGraph checkpoints",
        _read_langgraph,
    ),
)
"""The columns by which each is known."""
