"""The store's SQL, written once for every database. What databases write differently stands in their `Dialect`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.store.codec import codec_of
from eunoe.store.contract import Counts, IndexRow, Store, VectorModel
from eunoe.store.query import MAX_PARAMETERS, ItemQuery, conditions, ending, statements
from eunoe.store.tables import TABLES, AccessCount, SessionState, StreamState, T, Tombstone, UsageRecord


class Dialect(NamedTuple):
    """What databases write differently."""

    greatest: str
    """The function that gives the larger of two values."""
    index_hint: str
    """How a statement names the index to use; {} stands for its name."""


_ITEMS: Final = codec_of(Record)
_ITEM_COLUMNS: Final = ", ".join(f"i.{name}" for name in _ITEMS.names)
_ALWAYS_INSERTED: Final = frozenset({"seq", "stream", "version", "kind", "id", "identity", "text", "recorded"})
_STREAM: Final = "SELECT id, scope, version, position FROM streams"
_TOMBSTONE: Final = f"SELECT {', '.join(Tombstone._fields)} FROM tombstones WHERE stream = ?"
_NEW, _CHANGED, _REMOVED = range(3)
"""What the table `changes` says of a number: records from it on are new, it was changed, it was removed."""


class SqlStore(Store):
    """A store on a SQL database. A subclass brings connections, transactions and the schema."""

    dialect: Dialect

    def __init__(self) -> None:
        self._local = threading.local()
        """`_local.connection` is the connection of the calling thread, inside `reading` and `writing`."""

    @abstractmethod
    def _size(self) -> int:
        """The bytes that the database takes."""

    def stream(self, scope: Scope) -> StreamState | None:
        row = self._one(f"{_STREAM} WHERE scope = ?", scope.text)
        return StreamState(row[0], scope, row[2], row[3]) if row else None

    def create_stream(self, scope: Scope) -> StreamState:
        known = self.stream(scope)
        if known:
            return known
        self._do("INSERT INTO streams (scope, version, position) VALUES (?, 0, 0)", scope.text)
        made = self.stream(scope)
        assert made is not None
        return made

    def streams(
        self, after: str = "", limit: int = 1000, ids: Sequence[int] | None = None, containing: Sequence[str] = ()
    ) -> list[StreamState]:
        if ids is not None:
            rows = [row for part in _chunks(ids) for row in self._all(f"{_STREAM} WHERE id IN ({_marks(part)})", *part)]
            return sorted(map(_stream_of, rows), key=lambda stream: stream.scope.text)
        sql = f"{_STREAM} WHERE scope > ? ORDER BY scope LIMIT ?"
        if containing:
            likes = " AND ".join(["scope LIKE ? ESCAPE '\\'"] * len(containing))
            sql = f"SELECT id, scope, version, position FROM ({sql}) AS first WHERE {likes}"
        return list(map(_stream_of, self._all(sql, after, limit, *map(_like, containing))))

    def advance(self, stream: int, positions: int = 0) -> StreamState:
        sql = "UPDATE streams SET version = version + 1, position = position + ? WHERE id = ?"
        self._do(sql, positions, stream)
        return _stream_of(self._one(f"{_STREAM} WHERE id = ?", stream))

    def insert(self, records: Sequence[Record]) -> list[Record]:
        if not records:
            return []
        first = int(self.get_value("next_seq") or 1)
        self.set_value("next_seq", str(first + len(records)))
        numbered = [record._replace(seq=seq) for seq, record in enumerate(records, first)]
        names, columns = [], []
        # Most records leave most columns empty, and binding a column costs as much as writing one.
        for column, values in zip(_ITEMS.columns, zip(*numbered, strict=True), strict=True):
            plain = list(map(column.encode, values)) if column.encode else values
            if column.name in _ALWAYS_INSERTED or plain.count(column.default) < len(plain):
                names.append(column.name)
                columns.append(plain)
        sql = f"INSERT INTO items ({', '.join(names)}) VALUES ({_marks(names)})"
        self._many(sql, zip(*columns, strict=True))
        start: dict[tuple[int, int], int] = {}
        for record in numbered:
            start.setdefault((record.stream, record.version), record.seq)
        self._note((stream, version, seq, _NEW) for (stream, version), seq in start.items())
        return numbered

    def update(self, records: Sequence[Record]) -> None:
        assignments = ", ".join(f"{name} = ?" for name in _ITEMS.names)
        rows = [(*_ITEMS.encode(record), record.seq) for record in records]
        self._many(f"UPDATE items SET {assignments} WHERE seq = ?", rows)
        self._note((record.stream, record.version, record.seq, _CHANGED) for record in records)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        vectors = 0
        models = [row[0] for row in self._all("SELECT id FROM models")]
        for part in _chunks(seqs):
            marks = _marks(part)
            for model in models:
                vectors += self._do(f"DELETE FROM vectors WHERE model = ? AND seq IN ({marks})", model, *part)
            for table in ("access_counts", "passage_graphs"):
                self._do(f"DELETE FROM {table} WHERE seq IN ({marks})", *part)
            self._do(f"DELETE FROM items WHERE stream = ? AND seq IN ({marks})", stream, *part)
        self._note((stream, version, seq, _REMOVED) for seq in seqs)
        return vectors

    def _note(self, changes: Iterable[tuple[int, int, int, int]]) -> None:
        sql = "INSERT INTO changes (stream, version, seq, what) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._many(sql, changes)

    def select(self, query: ItemQuery) -> list[Record]:
        parts = list(statements(query))
        if len(parts) == 1:
            return _ITEMS.decode_all(self._rows(query))
        records = _ITEMS.decode_all(chain.from_iterable(map(self._rows, parts)))
        records.sort(key=lambda record: record.seq, reverse=query.order != "seq")
        return records[: query.limit]

    def _rows(self, query: ItemQuery) -> list[Any]:
        where, values = conditions(query)
        hint = ""
        if query.pending:  # else a database without statistics reads all records in their order
            hint = self.dialect.index_hint.format("items_pending" if query.stream is None else "items_waiting")
        limit = [] if query.limit is None else [query.limit]
        return self._all(f"SELECT {_ITEM_COLUMNS} FROM items i{hint} WHERE {where}{ending(query)}", *values, *limit)

    def count(self, query: ItemQuery) -> int:
        parts = map(conditions, statements(query))
        return sum(self._number(f"SELECT count(*) FROM items i WHERE {where}", *values) for where, values in parts)

    def index_rows(self, stream: int, since: int, model: int | None) -> list[IndexRow]:
        columns = ", ".join(f"i.{name}" for name in IndexRow._fields[:-1])
        sql = (
            f"SELECT {columns}, v.data FROM items i LEFT JOIN vectors v ON v.model = ? AND v.seq = i.seq "
            "WHERE i.stream = ? AND i.version > ? AND {} ORDER BY i.seq"
        )
        found = (
            self._all(sql.format(where), model, stream, since, *seqs)
            for where, seqs in self._changed_since(stream, since)
        )
        return sorted(map(IndexRow._make, chain.from_iterable(found)))

    def _changed_since(self, stream: int, since: int) -> Iterator[tuple[str, Sequence[int]]]:
        """Conditions that find what changed after a version, without a look at what did not."""
        if since < 1:
            yield "i.seq > ?", [0]
            return
        seen = "FROM changes WHERE stream = ? AND version > ? AND what = ?"
        new = self._one(f"SELECT min(seq) {seen}", stream, since, _NEW)[0]
        changed = {row[0] for row in self._all(f"SELECT seq {seen}", stream, since, _CHANGED)}
        if new is not None:
            yield "i.seq >= ?", [new]
        for part in _chunks([seq for seq in changed if new is None or seq < new]):
            yield f"i.seq IN ({_marks(part)})", part

    def removed(self, stream: int, since: int) -> list[int]:
        sql = "SELECT seq FROM changes WHERE stream = ? AND version > ? AND what = ? ORDER BY seq"
        return [row[0] for row in self._all(sql, stream, since, _REMOVED)]

    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        names = ("stream", *Tombstone._fields)
        rows = [(stream, *tombstone) for tombstone in tombstones]
        self._many(_upsert("tombstones", names, ("stream", "identity")), rows)

    def tombstones(
        self,
        stream: int,
        identities: Sequence[bytes] | None = None,
        session_hash: bytes | None = None,
        limit: int | None = None,
    ) -> list[Tombstone]:
        last = ([] if limit is None else [limit], "" if limit is None else " LIMIT ?")
        if identities is not None:
            sql = f"{_TOMBSTONE} AND identity IN "
            rows = [row for part in _chunks(identities) for row in self._all(f"{sql}({_marks(part)})", stream, *part)]
        elif session_hash is not None:
            sql = f"{_TOMBSTONE} AND session_hash = ? AND position IS NOT NULL ORDER BY position DESC{last[1]}"
            rows = self._all(sql, stream, session_hash, *last[0])
        else:
            rows = self._all(f"{_TOMBSTONE} ORDER BY identity{last[1]}", stream, *last[0])
        return list(map(Tombstone._make, rows))

    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None:
        for part in _chunks(identities):
            self._do(f"DELETE FROM tombstones WHERE stream = ? AND identity IN ({_marks(part)})", stream, *part)

    def model(self, name: str) -> VectorModel | None:
        row = self._one("SELECT id, dimensions FROM models WHERE name = ?", name)
        return VectorModel(*row) if row else None

    def create_model(self, name: str, dimensions: int) -> VectorModel:
        known = self.model(name)
        if known is None:
            self._do("INSERT INTO models (name, dimensions) VALUES (?, ?)", name, dimensions)
            known = self.model(name)
        assert known is not None
        return known

    def drop_model(self, model: int) -> None:
        self._do("DELETE FROM vectors WHERE model = ?", model)
        self._do("DELETE FROM models WHERE id = ?", model)

    def adopt_model(self, model: int | None) -> None:
        self._do("UPDATE streams SET version = version + 1")
        self._do("INSERT INTO changes (stream, version, seq, what) SELECT id, version, 0, ? FROM streams", _NEW)
        version = "(SELECT version FROM streams WHERE id = items.stream)"
        embedded = "EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = items.seq)"
        sql = f"UPDATE items SET version = {version}, pending = CASE WHEN {embedded} THEN 0 ELSE ? END"
        self._do(sql, model, int(model is not None))

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        rows = [(model, seq, data) for seq, data in vectors]
        self._many(_upsert("vectors", ("model", "seq", "data"), ("model", "seq")), rows)

    def get_value(self, name: str) -> str | None:
        row = self._one("SELECT value FROM meta WHERE name = ?", name)
        return row[0] if row else None

    def set_value(self, name: str, value: str) -> None:
        self._do(_upsert("meta", ("name", "value"), ("name",)), name, value)

    def load(self, table: type[T], **key: Any) -> list[T]:
        codec = codec_of(table)
        order = ", ".join(TABLES[table].key)
        sql = f"SELECT {', '.join(codec.names)} FROM {TABLES[table].name} WHERE {{}} ORDER BY {order}"
        return codec.decode_all(
            row for where, values in _matching(table, key) for row in self._all(sql.format(where), *values)
        )

    def save(self, records: Sequence[Any]) -> None:
        if records:
            table, codec = TABLES[type(records[0])], codec_of(type(records[0]))
            self._many(_upsert(table.name, codec.names, table.key), list(map(codec.encode, records)))

    def drop(self, table: type[Any], **key: Any) -> None:
        for where, values in _matching(table, key):
            self._do(f"DELETE FROM {TABLES[table].name} WHERE {where}", *values)

    def add_access(self, counts: Sequence[AccessCount]) -> None:
        sql = (
            "INSERT INTO access_counts (seq, times, last) SELECT seq, ?, ? FROM items WHERE seq = ? "
            "ON CONFLICT (seq) DO UPDATE SET times = access_counts.times + excluded.times, "
            f"last = {self.dialect.greatest}(access_counts.last, excluded.last)"
        )
        rows = map(codec_of(AccessCount).encode, counts)
        self._many(sql, [(times, last, seq) for seq, times, last in rows])

    def add_usage(self, records: Sequence[UsageRecord]) -> None:
        added = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in UsageRecord._fields[2:])
        sql = (
            f"INSERT INTO usage ({', '.join(UsageRecord._fields)}) VALUES ({_marks(UsageRecord._fields)}) "
            f"ON CONFLICT (operation, model) DO UPDATE SET {added}"
        )
        self._many(sql, records)

    def idle_sessions(self, before: int, messages: int, limit: int) -> list[SessionState]:
        codec = codec_of(SessionState)
        free = "EXISTS (SELECT 1 FROM jobs j WHERE j.stream = s.stream AND j.until < ? AND j.retry <= ?)"
        sql = (
            f"SELECT {', '.join(f's.{name}' for name in codec.names)} FROM sessions s "
            f"WHERE s.active < ? AND (s.messages >= ? OR {free}) ORDER BY s.active LIMIT ?"
        )
        return codec.decode_all(self._all(sql, before, messages, before, before, limit))

    def counts(self) -> Counts:
        kinds = self._all("SELECT kind, count(*) FROM items WHERE retired IS NULL GROUP BY kind")
        vectors = self._all(
            "SELECT name, (SELECT count(*) FROM vectors v WHERE v.model = m.id) FROM models m ORDER BY name"
        )
        in_jobs = (
            "SELECT count(*) FROM jobs j JOIN items i ON i.stream = j.stream "
            "AND i.kind = 'message' AND i.seq > j.start AND i.seq <= j.stop"
        )
        errors = self._all(
            "SELECT error FROM jobs WHERE attempts > 0 UNION ALL SELECT error FROM summaries WHERE attempts > 0"
        )
        waiting = self._number("SELECT coalesce(sum(messages), 0) FROM sessions")
        return Counts(
            streams=self._number("SELECT count(*) FROM streams"),
            kinds=dict(kinds),
            retired=self._number("SELECT count(*) FROM items WHERE retired IS NOT NULL"),
            pending=self._number("SELECT count(*) FROM items WHERE pending = 1"),
            tombstones=self._number("SELECT count(*) FROM tombstones"),
            vectors=dict(vectors),
            bytes=self._size(),
            due_messages=waiting + self._number(in_jobs),
            jobs=self._number("SELECT count(*) FROM jobs"),
            failing=len(errors),
            error=errors[-1][0] if errors else "",
            revisions=self._number("SELECT count(*) FROM revisions"),
        )

    def _all(self, sql: str, *values: Any) -> list[Any]:
        rows: list[Any] = self._local.connection.execute(sql, values).fetchall()
        return rows

    def _one(self, sql: str, *values: Any) -> Any:
        return self._local.connection.execute(sql, values).fetchone()

    def _number(self, sql: str, *values: Any) -> int:
        return int(self._one(sql, *values)[0])

    def _do(self, sql: str, *values: Any) -> int:
        return int(self._local.connection.execute(sql, values).rowcount)

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._local.connection.executemany(sql, rows)


def _matching(table: type[Any], key: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Conditions for values of a table's columns; a list that is too long for one statement makes several."""
    codec = codec_of(table)
    plain: defaultdict[bool, list[tuple[str, Any]]] = defaultdict(list)
    for name, value in key.items():
        plain[isinstance(value, list)].append((name, value))
    where = " AND ".join(f"{name} = ?" for name, _ in plain[False])
    values = [codec.value(name, value) for name, value in plain[False]]
    if not plain[True]:
        yield where or "1 = 1", values
        return
    ((name, several),) = plain[True]
    for part in _chunks(several):
        yield " AND ".join([*([where] if where else []), f"{name} IN ({_marks(part)})"]), [*values, *part]


def _upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    rest = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    action = f"UPDATE SET {rest}" if rest else "NOTHING"
    columns = ", ".join(names)
    return f"INSERT INTO {table} ({columns}) VALUES ({_marks(names)}) ON CONFLICT ({', '.join(key)}) DO {action}"


def _stream_of(row: Any) -> StreamState:
    return StreamState(row[0], Scope.stored(row[1]), row[2], row[3])


def _like(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + MAX_PARAMETERS] for start in range(0, len(values), MAX_PARAMETERS))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
