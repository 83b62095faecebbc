"""The store's SQL, written once for every database.

It keeps to what SQLite and PostgreSQL both understand, with `?` for values. A subclass brings connections, blocks, the
schema and what is abstract here. Texts are compared by code point: in PostgreSQL their columns need `COLLATE "C"`.
"""

import threading
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from operator import attrgetter
from typing import Any, ClassVar, Final, NoReturn, Protocol

from eunoe.errors import StoreError
from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.time import to_micros
from eunoe.store.codec import T, Table
from eunoe.store.contract import Counts, IndexRow, Store, VectorModel
from eunoe.store.query import ItemQuery
from eunoe.store.tables import TABLES, AccessCount, SessionState, StreamState, Tombstone, UsageRecord

MAX_PARAMETERS: Final = 500
"""Values in one list of a statement; databases limit them, SQLite before 3.32 to 999 in all."""

Condition = tuple[str, Sequence[Any]]
"""A condition in SQL and its values: one for its `?`, or any number for its `{}`."""


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    assignments = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    action = f"UPDATE SET {assignments}" if assignments else "NOTHING"
    return f"{_insert(table, names)} ON CONFLICT ({', '.join(key)}) DO {action}"


_ITEMS: Final = Table("items", Record, ("seq",))
_ITEM_COLUMNS: Final = ", ".join(f"i.{name}" for name in _ITEMS.columns)
_UPDATE_ITEM: Final = f"UPDATE items SET {', '.join(f'{name} = ?' for name in _ITEMS.columns)} WHERE seq = ?"
_DEFAULTS: Final = {
    name: default for name, default in Record._field_defaults.items() if name not in ("seq", "stream", "version")
}
"""Fields whose default the database knows as well."""
_STREAM: Final = "SELECT id, scope, version, position FROM streams"
_NEW, _CHANGED, _REMOVED = range(3)
"""What the table `changes` says of a number: records from it on are new, it was changed, it was removed."""
_NOTE_CHANGE: Final = f"{_insert('changes', ('stream', 'version', 'seq', 'what'))} ON CONFLICT DO NOTHING"
_TOMBSTONE: Final = f"SELECT {', '.join(Tombstone._fields)} FROM tombstones"
_PUT_TOMBSTONE: Final = _upsert("tombstones", ("stream", *Tombstone._fields), ("stream", "identity"))
_PUT_VECTOR: Final = _upsert("vectors", ("model", "seq", "data"), ("model", "seq"))
_PUT_VALUE: Final = _upsert("meta", ("name", "value"), ("name",))
_PUT: Final = {record: _upsert(table.name, table.columns, table.key) for record, table in TABLES.items()}

_CONDITIONS: Final = {
    "stream": "i.stream = ?",
    "kinds": "i.kind IN ({})",
    "ids": "i.id IN ({})",
    "identities": "i.identity IN ({})",
    "topics": "i.topic IN ({})",
    "seqs": "i.seq IN ({})",
    "after": "i.seq > ?",
    "until": "i.seq <= ?",
    "session": "i.position IS NOT NULL AND i.session = ?",
    "open": "i.retired IS NULL",
    "supported": "i.supports <> ''",
    "described": "i.metadata <> ''",
    "pending": "i.pending = 1",
    "unabsorbed": "NOT EXISTS (SELECT 1 FROM absorptions a WHERE a.stream = i.stream AND a.id = i.id)",
    "without_graph": "NOT EXISTS (SELECT 1 FROM passage_graphs g WHERE g.seq = i.seq)",
    "without_vector": "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = i.seq)",
}
"""What stands for the fields of an `ItemQuery`."""
_LAST_TOPIC: Final = b"\xff" * 64
"""No topic that begins with the same bytes goes on with higher ones."""
_ORDERS: Final = {"seq": "i.seq", "newest": "i.seq DESC", "position": "i.position DESC NULLS LAST, i.seq DESC"}


class Cursor(Protocol):
    """What comes back from a statement, as in the Python database API."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What runs the statements of a block, with `?` for their values."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object: ...


class NoConnection:
    """Refuses every statement, and says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def execute(self, *_: object) -> NoReturn:
        raise StoreError(self._reason)

    executemany = execute


OUTSIDE: Final = NoConnection("a store is used inside `with store.reading()` or `with store.writing()`")


class Block(threading.local):
    """The connection of the block that a thread has open."""

    connection: Connection = OUTSIDE


class SqlStore(Store):
    """A store on a SQL database. Its `reading` and `writing` put the connection into `_block`, and `OUTSIDE` back."""

    _index_hint: ClassVar[str] = ""
    """What follows a table's name where a certain index should be used, with `{}` for that index."""

    def __init__(self) -> None:
        self._block = Block()

    @abstractmethod
    def _size(self) -> int:
        """The bytes that the database takes."""

    def stream(self, scope: Scope) -> StreamState | None:
        row = self._block.connection.execute(f"{_STREAM} WHERE scope = ?", (scope.text,)).fetchone()
        return StreamState(row[0], scope, row[2], row[3]) if row else None

    def create_stream(self, scope: Scope) -> StreamState:
        if stream := self.stream(scope):
            return stream
        sql = "INSERT INTO streams (scope, version, position) VALUES (?, 0, 0)"
        self._block.connection.execute(sql, (scope.text,))
        return self.create_stream(scope)

    def streams(
        self, after: str = "", limit: int = 1000, ids: Sequence[int] | None = None, containing: Sequence[str] = ()
    ) -> list[StreamState]:
        if ids is not None:
            streams = map(_stream_state, self._find(_STREAM, [("id IN ({})", ids)]))
            return sorted(streams, key=lambda stream: stream.scope.text)
        sql, parts = f"{_STREAM} WHERE scope > ? ORDER BY scope LIMIT ?", list(filter(None, containing))
        if parts:
            # Unlike LIKE, this heeds case in every database.
            contains = " AND ".join(["replace(scope, ?, '') <> scope"] * len(parts))
            sql = f"SELECT id, scope, version, position FROM ({sql}) AS page WHERE {contains} ORDER BY scope"
        return list(map(_stream_state, self._block.connection.execute(sql, (after, limit, *parts)).fetchall()))

    def advance(self, stream: int, positions: int = 0) -> StreamState:
        execute = self._block.connection.execute
        execute("UPDATE streams SET version = version + 1, position = position + ? WHERE id = ?", (positions, stream))
        return _stream_state(execute(f"{_STREAM} WHERE id = ?", (stream,)).fetchone())

    def insert(self, stream: StreamState, records: Sequence[Record]) -> list[Record]:
        if not records:
            return []
        first = int(self.get_value("next_seq") or 1)
        self.set_value("next_seq", str(first + len(records)))
        fields: dict[str, Sequence[Any]] = dict(zip(Record._fields, zip(*records, strict=True), strict=True))
        fields["seq"] = range(first, first + len(records))
        fields |= {"stream": [stream.id] * len(records), "version": [stream.version] * len(records)}
        numbered = list(map(Record._make, zip(*fields.values(), strict=True)))
        # Most records leave most columns at their default, and binding a column costs as much as writing one.
        used = [name for name in fields if name not in _DEFAULTS or fields[name].count(_DEFAULTS[name]) < len(records)]
        rows = zip(*[_ITEMS.encode_column[name](fields[name]) for name in used], strict=True)
        self._block.connection.executemany(_insert("items", used), rows)
        self._block.connection.execute(_NOTE_CHANGE, (stream.id, stream.version, first, _NEW))
        return numbered

    def update(self, records: Sequence[Record]) -> None:
        rows = ((*row, record.seq) for row, record in zip(_ITEMS.encode(records), records, strict=True))
        self._block.connection.executemany(_UPDATE_ITEM, rows)
        changes = [(record.stream, record.version, record.seq, _CHANGED) for record in records]
        self._block.connection.executemany(_NOTE_CHANGE, changes)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        numbers: Condition = ("seq IN ({})", seqs)
        vectors = self._delete("vectors", [("model IN (SELECT id FROM models)", ()), numbers])
        self._delete("access_counts", [numbers])
        self._delete("passage_graphs", [numbers])
        self._delete("items", [("stream = ?", (stream,)), numbers])
        self._block.connection.executemany(_NOTE_CHANGE, [(stream, version, seq, _REMOVED) for seq in seqs])
        return vectors

    def select(self, query: ItemQuery) -> list[Record]:
        # Without a hint, a database that has no statistics reads all records of a stream in their order.
        hint = ""
        if query.pending:
            hint = self._index_hint.format("items_pending" if query.stream is None else "items_stream_pending")
        elif query.topics or query.topic_start:
            hint = self._index_hint.format("items_topic")
        sql = f"SELECT {_ITEM_COLUMNS} FROM items i{hint}"
        records = _ITEMS.decode(self._find(sql, _item_conditions(query), _ORDERS[query.order], query.limit))
        # Those of several statements are not yet in the order of one.
        if query.order == "position":
            records.sort(key=lambda each: (-1 if each.position is None else each.position, each.seq), reverse=True)
        else:
            records.sort(key=attrgetter("seq"), reverse=query.order == "newest")
        return records[: query.limit]

    def count(self, query: ItemQuery) -> int:
        return sum(row[0] for row in self._find("SELECT count(*) FROM items i", _item_conditions(query)))

    def index_rows(self, stream: int, since: int, model: int | None) -> list[IndexRow]:
        columns = ", ".join(f"i.{name}" for name in IndexRow._fields[:-1])
        sql = f"SELECT {columns}, v.data FROM items i LEFT JOIN vectors v ON v.model = ? AND v.seq = i.seq"
        newer: list[Condition] = [("i.stream = ?", (stream,)), ("i.version > ?", (since,))]
        rows: list[Any] = []
        for condition in self._changes_since(stream, since):
            rows += self._find(sql, [*newer, condition], before=(model,))
        return sorted(map(IndexRow._make, rows))

    def _changes_since(self, stream: int, since: int) -> list[Condition]:
        """Conditions that find what changed after a version, without a look at what did not."""
        if since < 1:
            return [("i.seq > ?", (0,))]
        execute = self._block.connection.execute
        changes = "FROM changes WHERE stream = ? AND version > ? AND what = ?"
        start = execute(f"SELECT min(seq) {changes}", (stream, since, _NEW)).fetchone()[0]
        rows = execute(f"SELECT seq {changes}", (stream, since, _CHANGED)).fetchall()
        changed = [seq for (seq,) in rows if start is None or seq < start]
        return [("i.seq IN ({})", changed), *([] if start is None else [("i.seq >= ?", (start,))])]

    def removed(self, stream: int, since: int) -> list[int]:
        sql = "SELECT seq FROM changes WHERE stream = ? AND version > ? AND what = ? ORDER BY seq"
        return [seq for (seq,) in self._block.connection.execute(sql, (stream, since, _REMOVED)).fetchall()]

    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        self._block.connection.executemany(_PUT_TOMBSTONE, [(stream, *tombstone) for tombstone in tombstones])

    def tombstones(
        self,
        stream: int,
        identities: Sequence[bytes] | None = None,
        session_hash: bytes | None = None,
        limit: int | None = None,
    ) -> list[Tombstone]:
        conditions: list[Condition] = [("stream = ?", (stream,))]
        order = "identity"
        if identities is not None:
            conditions.append(("identity IN ({})", identities))
        if session_hash is not None:
            conditions.append(("position IS NOT NULL AND session_hash = ?", (session_hash,)))
            order = "position DESC"
        return list(map(Tombstone._make, self._find(_TOMBSTONE, conditions, order, limit)))

    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None:
        self._delete("tombstones", [("stream = ?", (stream,)), ("identity IN ({})", identities)])

    def model(self, name: str) -> VectorModel | None:
        sql = "SELECT id, dimensions FROM models WHERE name = ?"
        row = self._block.connection.execute(sql, (name,)).fetchone()
        return VectorModel(*row) if row else None

    def create_model(self, name: str, dimensions: int) -> VectorModel:
        if model := self.model(name):
            return model
        self._block.connection.execute("INSERT INTO models (name, dimensions) VALUES (?, ?)", (name, dimensions))
        return self.create_model(name, dimensions)

    def drop_model(self, model: int) -> None:
        self._delete("vectors", [("model = ?", (model,))])
        self._delete("models", [("id = ?", (model,))])

    def adopt_model(self, model: int | None) -> None:
        execute = self._block.connection.execute
        execute("UPDATE streams SET version = version + 1")
        execute("INSERT INTO changes (stream, version, seq, what) SELECT id, version, 0, ? FROM streams", (_NEW,))
        version = "(SELECT version FROM streams WHERE id = items.stream)"
        is_embedded = "EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = items.seq)"
        sql = f"UPDATE items SET version = {version}, pending = CASE WHEN {is_embedded} THEN 0 ELSE ? END"
        execute(sql, (model, int(model is not None)))

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._block.connection.executemany(_PUT_VECTOR, [(model, seq, data) for seq, data in vectors])

    def get_value(self, name: str) -> str | None:
        row = self._block.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set_value(self, name: str, value: str) -> None:
        self._block.connection.execute(_PUT_VALUE, (name, value))

    def load(self, table: type[T], **key: Any) -> list[T]:
        kept: Table[T] = TABLES[table]
        rows = self._find(f"SELECT {', '.join(kept.columns)} FROM {kept.name}", _key_conditions(key))
        return sorted(kept.decode(rows), key=attrgetter(*kept.key))

    def save(self, records: Sequence[Any]) -> None:
        if records:
            table = type(records[0])
            self._block.connection.executemany(_PUT[table], TABLES[table].encode(records))

    def drop(self, table: type[Any], **key: Any) -> None:
        self._delete(TABLES[table].name, _key_conditions(key))

    def add_access(self, counts: Sequence[AccessCount]) -> None:
        sql = (
            "INSERT INTO access_counts (seq, times, last) SELECT seq, ?, ? FROM items WHERE seq = ? "
            "ON CONFLICT (seq) DO UPDATE SET times = access_counts.times + excluded.times, "
            "last = CASE WHEN excluded.last > access_counts.last THEN excluded.last ELSE access_counts.last END"
        )
        rows = [(times, last, seq) for seq, times, last in TABLES[AccessCount].encode(counts)]
        self._block.connection.executemany(sql, rows)

    def add_usage(self, records: Sequence[UsageRecord]) -> None:
        sums = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in UsageRecord._fields[2:])
        sql = f"{_insert('usage', UsageRecord._fields)} ON CONFLICT (operation, model) DO UPDATE SET {sums}"
        self._block.connection.executemany(sql, records)

    def idle_sessions(self, before: datetime, messages: int, limit: int) -> list[SessionState]:
        sessions: Table[SessionState] = TABLES[SessionState]
        micros = to_micros(before)
        is_free = "EXISTS (SELECT 1 FROM jobs j WHERE j.stream = s.stream AND j.until < ? AND j.retry <= ?)"
        sql = (
            f"SELECT {', '.join(sessions.columns)} FROM sessions s "
            f"WHERE active < ? AND (messages >= ? OR {is_free}) ORDER BY active LIMIT ?"
        )
        return sessions.decode(
            self._block.connection.execute(sql, (micros, messages, micros, micros, limit)).fetchall()
        )

    def counts(self) -> Counts:
        execute = self._block.connection.execute
        kinds = execute("SELECT kind, count(*) FROM items WHERE retired IS NULL GROUP BY kind").fetchall()
        vectors = execute(
            "SELECT name, (SELECT count(*) FROM vectors v WHERE v.model = m.id) FROM models m ORDER BY name"
        ).fetchall()
        errors = execute(
            "SELECT error FROM jobs WHERE attempts > 0 UNION ALL SELECT error FROM summaries WHERE attempts > 0"
        ).fetchall()
        numbers = {
            "streams": "SELECT count(*) FROM streams",
            "retired": "SELECT count(*) FROM items WHERE retired IS NOT NULL",
            "pending": "SELECT count(*) FROM items WHERE pending = 1",
            "tombstones": "SELECT count(*) FROM tombstones",
            "due_messages": "SELECT (SELECT coalesce(sum(messages), 0) FROM sessions) + "
            "(SELECT count(*) FROM jobs j JOIN items i ON i.stream = j.stream "
            "AND i.kind = 'message' AND i.seq > j.start AND i.seq <= j.stop)",
            "jobs": "SELECT count(*) FROM jobs",
            "revisions": "SELECT count(*) FROM revisions",
        }
        return Counts(
            kinds=dict(kinds),
            vectors=dict(vectors),
            bytes=self._size(),
            failing=len(errors),
            error=errors[-1][0] if errors else "",
            **{name: int(execute(sql).fetchone()[0]) for name, sql in numbers.items()},
        )

    def _find(
        self,
        select: str,
        conditions: Sequence[Condition],
        order: str = "",
        limit: int | None = None,
        before: Sequence[Any] = (),
    ) -> list[Any]:
        """Rows that meet the conditions. `before` are the values that stand in front of them."""
        execute = self._block.connection.execute
        end = (f" ORDER BY {order}" if order else "") + ("" if limit is None else " LIMIT ?")
        last = () if limit is None else (limit,)
        return [
            row
            for where, values in where_clauses(conditions)
            for row in execute(f"{select} WHERE {where}{end}", (*before, *values, *last)).fetchall()
        ]

    def _delete(self, table: str, conditions: Sequence[Condition]) -> int:
        execute = self._block.connection.execute
        clauses = where_clauses(conditions)
        return sum(execute(f"DELETE FROM {table} WHERE {where}", values).rowcount for where, values in clauses)


def where_clauses(conditions: Sequence[Condition]) -> list[tuple[str, list[Any]]]:
    """Join conditions for statements that together find each record once. A list that is too long for one statement
    makes several, an empty one none."""
    choices: list[list[Sequence[Any]]] = []
    for sql, values in conditions:
        if "{}" in sql:
            unique = list(dict.fromkeys(values))
            starts = range(0, len(unique), MAX_PARAMETERS)
            choices.append([unique[start : start + MAX_PARAMETERS] for start in starts])
        else:
            choices.append([values])
    clauses = []
    for parts in product(*choices):
        texts = [sql.format(", ".join("?" * len(part))) for (sql, _), part in zip(conditions, parts, strict=True)]
        clauses.append((" AND ".join(texts) or "1 = 1", [value for part in parts for value in part]))
    return clauses


def _item_conditions(query: ItemQuery) -> list[Condition]:
    conditions: list[Condition] = []
    for name, sql in _CONDITIONS.items():
        value = getattr(query, name)
        if value is not None and value is not False:
            conditions.append((sql, () if value is True else value if "{}" in sql else (value,)))
    if query.topic_start is not None:
        conditions.append(("i.topic BETWEEN ? AND ?", (query.topic_start, query.topic_start + _LAST_TOPIC)))
    if query.kinds is not None and "message" not in query.kinds:
        conditions.append(("i.kind <> 'message'", ()))  # says nothing new, but lets the index on atoms be used
    return conditions


def _key_conditions(key: Mapping[str, Any]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, value in key.items():
        if isinstance(value, list):
            conditions.append((f"{name} IN ({{}})", value))
        elif isinstance(value, bool):
            conditions.append((f"{name} = {value:d}", ()))  # in words, so that a partial index can be used
        else:
            conditions.append((f"{name} = ?", (value,)))
    return conditions


def _stream_state(row: Sequence[Any]) -> StreamState:
    id, scope, version, position = row
    return StreamState(id, Scope.stored(scope), version, position)
