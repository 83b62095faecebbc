"""The store's SQL, written once for every database.

It keeps to what SQLite and PostgreSQL both understand, with `?` for values. A subclass brings connections, blocks, the
schema and the abstract methods. Texts are compared by code point: in PostgreSQL their columns need `COLLATE "C"`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Protocol

from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.time import to_micros
from eunoe.store.codec import codec_of
from eunoe.store.contract import Counts, IndexRow, Store, VectorModel
from eunoe.store.query import (
    Condition,
    ItemQuery,
    item_conditions,
    item_order,
    limit_clause,
    marks,
    sort_items,
    where_clauses,
)
from eunoe.store.tables import TABLES, AccessCount, SessionState, StreamState, T, Tombstone, UsageRecord

_ITEMS: Final = codec_of(Record)
_ITEM_COLUMNS: Final = ", ".join(f"i.{name}" for name in _ITEMS.names)
_ALWAYS_INSERTED: Final = ("seq", "stream", "version")
"""Columns for which the database has no default though the field has one."""
_STREAM: Final = "SELECT id, scope, version, position FROM streams"
_TOMBSTONE: Final = f"SELECT {', '.join(Tombstone._fields)} FROM tombstones"
_NEW, _CHANGED, _REMOVED = range(3)
"""What the table `changes` says of a number: records from it on are new, it was changed, it was removed."""


class Cursor(Protocol):
    """What comes back from a statement, as in the Python database API."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class SqlStore(Store):
    """A store on a SQL database."""

    @abstractmethod
    def _execute(self, sql: str, *values: Any) -> Cursor:
        """Run a statement inside the block of the calling thread."""

    @abstractmethod
    def _execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""

    @abstractmethod
    def _size(self) -> int:
        """The bytes that the database takes."""

    def _index_hint(self, index: str) -> str:
        """What follows a table's name where a certain index should be used."""
        return ""

    def stream(self, scope: Scope) -> StreamState | None:
        row = self._execute(f"{_STREAM} WHERE scope = ?", scope.text).fetchone()
        return StreamState(row[0], scope, row[2], row[3]) if row else None

    def create_stream(self, scope: Scope) -> StreamState:
        stream = self.stream(scope)
        if stream is None:
            self._execute("INSERT INTO streams (scope, version, position) VALUES (?, 0, 0)", scope.text)
            stream = self.stream(scope)
        assert stream is not None
        return stream

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
        return list(map(_stream_state, self._execute(sql, after, limit, *parts).fetchall()))

    def advance(self, stream: int, positions: int = 0) -> StreamState:
        sql = "UPDATE streams SET version = version + 1, position = position + ? WHERE id = ?"
        self._execute(sql, positions, stream)
        return _stream_state(self._execute(f"{_STREAM} WHERE id = ?", stream).fetchone())

    def insert(self, records: Sequence[Record]) -> list[Record]:
        if not records:
            return []
        first = int(self.get_value("next_seq") or 1)
        self.set_value("next_seq", str(first + len(records)))
        fields: dict[str, Sequence[Any]] = dict(zip(_ITEMS.names, zip(*records, strict=True), strict=True))
        fields["seq"] = range(first, first + len(records))
        # Most records leave most columns at their default, and binding a column costs as much as writing one.
        used = [
            column
            for column in _ITEMS.columns
            if column.name in _ALWAYS_INSERTED or not column.is_default(fields[column.name])
        ]
        rows = zip(*(column.to_stored(fields[column.name]) for column in used), strict=True)
        self._execute_many(_insert("items", [column.name for column in used]), rows)
        numbered = list(map(Record._make, zip(*fields.values(), strict=True)))
        start: dict[tuple[int, int], int] = {}
        for record in numbered:
            start.setdefault((record.stream, record.version), record.seq)
        self._note_changes((stream, version, seq, _NEW) for (stream, version), seq in start.items())
        return numbered

    def update(self, records: Sequence[Record]) -> None:
        if records:
            assignments = ", ".join(f"{name} = ?" for name in _ITEMS.names)
            rows = ((*row, record.seq) for row, record in zip(_ITEMS.encode(records), records, strict=True))
            self._execute_many(f"UPDATE items SET {assignments} WHERE seq = ?", rows)
            self._note_changes((record.stream, record.version, record.seq, _CHANGED) for record in records)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        numbers: Condition = ("seq IN ({})", seqs)
        vectors = self._delete("vectors", ("model IN (SELECT id FROM models)", ()), numbers)
        self._delete("access_counts", numbers)
        self._delete("passage_graphs", numbers)
        self._delete("items", ("stream = ?", (stream,)), numbers)
        self._note_changes((stream, version, seq, _REMOVED) for seq in seqs)
        return vectors

    def _note_changes(self, changes: Iterable[tuple[int, int, int, int]]) -> None:
        sql = f"{_insert('changes', ('stream', 'version', 'seq', 'what'))} ON CONFLICT DO NOTHING"
        self._execute_many(sql, changes)

    def select(self, query: ItemQuery) -> list[Record]:
        hint = ""
        if query.pending:  # else a database without statistics reads all records in their order
            hint = self._index_hint("items_pending" if query.stream is None else "items_stream_pending")
        sql = f"SELECT {_ITEM_COLUMNS} FROM items i{hint}"
        return sort_items(_ITEMS.decode(self._find(sql, item_conditions(query), item_order(query))), query)

    def count(self, query: ItemQuery) -> int:
        return sum(row[0] for row in self._find("SELECT count(*) FROM items i", item_conditions(query)))

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
        changes = "FROM changes WHERE stream = ? AND version > ? AND what = ?"
        start = self._execute(f"SELECT min(seq) {changes}", stream, since, _NEW).fetchone()[0]
        rows = self._execute(f"SELECT seq {changes}", stream, since, _CHANGED).fetchall()
        changed = [seq for (seq,) in rows if start is None or seq < start]
        return [("i.seq IN ({})", changed), *([] if start is None else [("i.seq >= ?", (start,))])]

    def removed(self, stream: int, since: int) -> list[int]:
        sql = "SELECT seq FROM changes WHERE stream = ? AND version > ? AND what = ? ORDER BY seq"
        return [seq for (seq,) in self._execute(sql, stream, since, _REMOVED).fetchall()]

    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        sql = _upsert("tombstones", ("stream", *Tombstone._fields), ("stream", "identity"))
        self._execute_many(sql, [(stream, *tombstone) for tombstone in tombstones])

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
        rows = self._find(_TOMBSTONE, conditions, limit_clause(f" ORDER BY {order}", limit))
        return list(map(Tombstone._make, rows))

    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None:
        self._delete("tombstones", ("stream = ?", (stream,)), ("identity IN ({})", identities))

    def model(self, name: str) -> VectorModel | None:
        row = self._execute("SELECT id, dimensions FROM models WHERE name = ?", name).fetchone()
        return VectorModel(*row) if row else None

    def create_model(self, name: str, dimensions: int) -> VectorModel:
        model = self.model(name)
        if model is None:
            self._execute(_insert("models", ("name", "dimensions")), name, dimensions)
            model = self.model(name)
        assert model is not None
        return model

    def drop_model(self, model: int) -> None:
        self._delete("vectors", ("model = ?", (model,)))
        self._delete("models", ("id = ?", (model,)))

    def adopt_model(self, model: int | None) -> None:
        self._execute("UPDATE streams SET version = version + 1")
        self._execute("INSERT INTO changes (stream, version, seq, what) SELECT id, version, 0, ? FROM streams", _NEW)
        version = "(SELECT version FROM streams WHERE id = items.stream)"
        is_embedded = "EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = items.seq)"
        sql = f"UPDATE items SET version = {version}, pending = CASE WHEN {is_embedded} THEN 0 ELSE ? END"
        self._execute(sql, model, int(model is not None))

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        sql = _upsert("vectors", ("model", "seq", "data"), ("model", "seq"))
        self._execute_many(sql, [(model, seq, data) for seq, data in vectors])

    def get_value(self, name: str) -> str | None:
        row = self._execute("SELECT value FROM meta WHERE name = ?", name).fetchone()
        return row[0] if row else None

    def set_value(self, name: str, value: str) -> None:
        self._execute(_upsert("meta", ("name", "value"), ("name",)), name, value)

    def load(self, table: type[T], **key: Any) -> list[T]:
        codec, (name, columns) = codec_of(table), TABLES[table]
        rows = self._find(f"SELECT {', '.join(codec.names)} FROM {name}", _key_conditions(table, key))
        return sorted(codec.decode(rows), key=attrgetter(*columns))

    def save(self, records: Sequence[Any]) -> None:
        if records:
            (name, key), codec = TABLES[type(records[0])], codec_of(type(records[0]))
            self._execute_many(_upsert(name, codec.names, key), codec.encode(records))

    def drop(self, table: type[Any], **key: Any) -> None:
        self._delete(TABLES[table].name, *_key_conditions(table, key))

    def add_access(self, counts: Sequence[AccessCount]) -> None:
        sql = (
            "INSERT INTO access_counts (seq, times, last) SELECT seq, ?, ? FROM items WHERE seq = ? "
            "ON CONFLICT (seq) DO UPDATE SET times = access_counts.times + excluded.times, "
            "last = CASE WHEN excluded.last > access_counts.last THEN excluded.last ELSE access_counts.last END"
        )
        self._execute_many(sql, [(count.times, to_micros(count.last), count.seq) for count in counts])

    def add_usage(self, records: Sequence[UsageRecord]) -> None:
        sums = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in UsageRecord._fields[2:])
        insert = _insert("usage", UsageRecord._fields)
        self._execute_many(f"{insert} ON CONFLICT (operation, model) DO UPDATE SET {sums}", records)

    def idle_sessions(self, before: datetime, messages: int, limit: int) -> list[SessionState]:
        codec, micros = codec_of(SessionState), to_micros(before)
        is_free = "EXISTS (SELECT 1 FROM jobs j WHERE j.stream = s.stream AND j.until < ? AND j.retry <= ?)"
        sql = (
            f"SELECT {', '.join(codec.names)} FROM sessions s "
            f"WHERE active < ? AND (messages >= ? OR {is_free}) ORDER BY active LIMIT ?"
        )
        return codec.decode(self._execute(sql, micros, messages, micros, micros, limit).fetchall())

    def counts(self) -> Counts:
        kinds = self._execute("SELECT kind, count(*) FROM items WHERE retired IS NULL GROUP BY kind").fetchall()
        vectors = self._execute(
            "SELECT name, (SELECT count(*) FROM vectors v WHERE v.model = m.id) FROM models m ORDER BY name"
        ).fetchall()
        errors = self._execute(
            "SELECT error FROM jobs WHERE attempts > 0 UNION ALL SELECT error FROM summaries WHERE attempts > 0"
        ).fetchall()
        in_sessions = self._number("SELECT coalesce(sum(messages), 0) FROM sessions")
        in_jobs = self._number(
            "SELECT count(*) FROM jobs j JOIN items i ON i.stream = j.stream "
            "AND i.kind = 'message' AND i.seq > j.start AND i.seq <= j.stop"
        )
        return Counts(
            streams=self._number("SELECT count(*) FROM streams"),
            kinds=dict(kinds),
            retired=self._number("SELECT count(*) FROM items WHERE retired IS NOT NULL"),
            pending=self._number("SELECT count(*) FROM items WHERE pending = 1"),
            tombstones=self._number("SELECT count(*) FROM tombstones"),
            vectors=dict(vectors),
            bytes=self._size(),
            due_messages=in_sessions + in_jobs,
            jobs=self._number("SELECT count(*) FROM jobs"),
            failing=len(errors),
            error=errors[-1][0] if errors else "",
            revisions=self._number("SELECT count(*) FROM revisions"),
        )

    def _number(self, sql: str) -> int:
        return int(self._execute(sql).fetchone()[0])

    def _find(
        self, select: str, conditions: Sequence[Condition], ending: Condition = ("", ()), before: Sequence[Any] = ()
    ) -> list[Any]:
        """Rows that meet the conditions. `before` are the values that stand in front of them."""
        end, last = ending
        return [
            row
            for where, values in where_clauses(conditions)
            for row in self._execute(f"{select} WHERE {where}{end}", *before, *values, *last).fetchall()
        ]

    def _delete(self, table: str, *conditions: Condition) -> int:
        clauses = where_clauses(conditions)
        return sum(self._execute(f"DELETE FROM {table} WHERE {where}", *values).rowcount for where, values in clauses)


def _key_conditions(table: type[Any], key: Mapping[str, Any]) -> list[Condition]:
    codec = codec_of(table)
    conditions: list[Condition] = []
    for name, value in key.items():
        if isinstance(value, list):
            conditions.append((f"{name} IN ({{}})", codec.encode_values(name, value)))
        elif isinstance(value, bool):
            conditions.append((f"{name} = {value:d}", ()))  # in words, so that a partial index can be used
        else:
            conditions.append((f"{name} = ?", codec.encode_values(name, [value])))
    return conditions


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks(names)})"


def _upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    assignments = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    action = f"UPDATE SET {assignments}" if assignments else "NOTHING"
    return f"{_insert(table, names)} ON CONFLICT ({', '.join(key)}) DO {action}"


def _stream_state(row: Sequence[Any]) -> StreamState:
    id, scope, version, position = row
    return StreamState(id, Scope.stored(scope), version, position)
