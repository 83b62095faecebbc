"""The store's SQL, written once for every database.

It keeps to what SQLite and PostgreSQL both understand, with `?` for values. A subclass brings connections, blocks, the
schema and what is abstract here. Texts are compared by code point: in PostgreSQL their columns need `COLLATE "C"`.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Final

from eunoe.model.arguments import from_micros, to_micros
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.checks import Verification
from eunoe.store.codec import CHECKSUM, T, Table, find_damaged, row_checksum
from eunoe.store.contract import Counts, IndexRow, ItemQuery, VectorModel, Writing
from eunoe.store.schema import (
    ITEMS,
    MODELS,
    STREAMS,
    TABLES,
    TOMBSTONES,
    VALUES,
    VECTORS,
    AccessCount,
    CallRecord,
    ModelRow,
    PassageGraphRecord,
    SessionState,
    StreamState,
    Tombstone,
    TombstoneRow,
    UsageRecord,
    ValueRow,
    VectorRow,
)
from eunoe.store.statements import Condition, item_conditions, key_conditions, scope_condition, where_clauses


def _insert(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    assignments = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    action = f"UPDATE SET {assignments}" if assignments else "NOTHING"
    return f"{_insert(table, names)} ON CONFLICT ({', '.join(key)}) DO {action}"


@cache
def _select(table: Table[Any], alias: str = "") -> str:
    columns = ", ".join(f"{alias}.{name}" if alias else name for name in table.columns)
    return f"SELECT {columns} FROM {table.name} {alias}".rstrip()


def _put(table: Table[Any]) -> str:
    return _upsert(table.name, table.columns, table.key)


_UPDATE_ITEM: Final = f"UPDATE items SET {', '.join(f'{name} = ?' for name in ITEMS.columns)} WHERE seq = ?"
_DEFAULTS: Final = {
    name: default for name, default in Record._field_defaults.items() if name not in ("seq", "stream", "version")
}
"""Fields whose default the database knows as well."""
_ENCODED_DEFAULTS: Final = {name: ITEMS.encode_column[name]([value])[0] for name, value in _DEFAULTS.items()}
_STREAM: Final = _select(STREAMS)
_SCOPE: Final = STREAMS.columns.index("scope")
_ITEM: Final = _select(ITEMS, "i")
_ITEM_WITH_VECTOR: Final = _ITEM.replace(" FROM", ", v.data, v.checksum FROM") + " LEFT JOIN vectors v"
_SEQ, _STREAM_COLUMN, _PENDING = map(ITEMS.columns.index, ("seq", "stream", "pending"))
_CHECKSUM: Final = ITEMS.columns.index(CHECKSUM)
_index_values: Final = itemgetter(*map(ITEMS.columns.index, IndexRow._fields[:-1]), len(ITEMS.columns))
_LAST_RECORDED: Final = (
    "(SELECT i.recorded FROM items i{} WHERE i.stream = streams.id AND i.kind <> 'message'{} "
    "ORDER BY i.recorded DESC LIMIT 1)"
)
_NEW, _CHANGED, _REMOVED = range(3)
"""What the table `changes` says of a number: records from it on are new, it was changed, it was removed."""
_NOTE_CHANGE: Final = f"{_insert('changes', ('stream', 'version', 'seq', 'what'))} ON CONFLICT DO NOTHING"
_PUT: Final = {record: _put(table) for record, table in TABLES.items()}
_OWNED_VECTORS: Final = "(SELECT i.stream, v.model FROM vectors v JOIN items i ON i.seq = v.seq) AS owned"
_DUE_IN_JOBS: Final = (
    "(SELECT j.stream FROM jobs j JOIN items i ON i.stream = j.stream AND i.kind = 'message' "
    "AND i.retired IS NULL AND i.seq > j.start AND i.seq <= j.stop) AS due"
)
_ANY_MODEL: Final[Condition] = ("model IN (SELECT id FROM models)", ())
_LEASED: Final = ("jobs", "summaries", "leases")
_MAX_WITHIN: Final = 1000
"""Scopes whose streams are kept at hand."""
_ORDERS: Final = {
    "seq": "i.seq",
    "newest": "i.seq DESC",
    "latest": "i.recorded DESC, i.seq DESC",
    "position": "i.position DESC NULLS LAST, i.seq DESC",
}


class SqlReading(Verification):
    """What a step reads of a store on a SQL database."""

    def stream(self, scope: Scope) -> StreamState | None:
        execute = self.connection.execute
        row = execute(f"{_STREAM} WHERE scope = ?", (scope.text,)).fetchone()
        if row is None or row[_SCOPE] != scope.text:
            # A damaged index hides a scope: another one, of other pages, is asked before it counts as missing.
            hint = self._index_hint.format("streams_length")
            sql = f"{_STREAM}{hint} WHERE length(scope) = length(?) AND scope = ?"
            row = execute(sql, (scope.text, scope.text)).fetchone()
        if row is None:
            return None
        self._sound(STREAMS, [row], skip=row[_SCOPE] == scope.text)
        id, position, _, version, _ = row
        return StreamState(id, scope, version, position)

    def streams(
        self,
        after: str = "",
        limit: int = 1000,
        ids: Sequence[int] | None = None,
        containing: Sequence[str] = (),
        tenant: str = "",
    ) -> list[StreamState]:
        if ids is not None:
            streams = self._read(STREAMS, [("id IN ({})", ids)])
            return sorted(streams, key=lambda stream: stream.scope.text)
        source, ends = self._of_tenant(tenant)
        sql, parts = f"{_STREAM}{source} scope > ? ORDER BY scope LIMIT ?", list(filter(None, containing))
        if parts:
            # Unlike LIKE, this heeds case in every database.
            contains = " AND ".join(["replace(scope, ?, '') <> scope"] * len(parts))
            sql = f"SELECT * FROM ({sql}) AS page WHERE {contains} ORDER BY scope"
        rows = self.connection.execute(sql, (*ends, after, limit, *parts)).fetchall()
        if len(rows) < limit and not tenant and not self.store.findings.has_all_streams:
            self._check_total(STREAMS.name)
            self.store.findings.has_all_streams = True
        return STREAMS.decode(self._sound(STREAMS, rows))

    def streams_within(self, scope: Scope) -> list[StreamState]:
        tenant, user = scope.pairs.get("tenant", ""), scope.pairs.get("user", "")
        if not user:
            source, ends = self._of_tenant(tenant)
            condition, parts = scope_condition(scope)
            return self._decode_within(scope, f"{source} {condition}", (*ends, *parts))
        key, hint = f"/{Scope(user=user)}", self._index_hint.format("streams_user")
        is_between = f"{self.store.dialect.user_part} >= ? AND {self.store.dialect.user_part} < ?"
        source = f"{hint} WHERE {self.store.dialect.has_user} AND {self.store.dialect.tenant_pair} = ? AND {is_between}"
        values = (f"/{Scope(tenant=tenant)}" if tenant else "", f"{key}/", f"{key}0")
        # A user may have a thousand sessions: their rows are read again only if one of them changed.
        sums = f"SELECT count(*), sum(version), sum(checksum) FROM streams{source}"
        state = self.connection.execute(sums, values).fetchone()
        known = self.store.findings.streams_within.get(scope.text)
        if known is None or known[0] != state:
            if len(self.store.findings.streams_within) >= _MAX_WITHIN:
                self.store.findings.streams_within.clear()
            known = self.store.findings.streams_within[scope.text] = state, self._decode_within(scope, source, values)
        return list(known[1])

    def _decode_within(self, scope: Scope, source: str, values: Sequence[str]) -> list[StreamState]:
        rows = self.connection.execute(f"{_STREAM}{source}", values).fetchall()
        streams = STREAMS.decode(self._sound(STREAMS, rows))
        return sorted([each for each in streams if scope.everything.covers(each.scope)], key=attrgetter("scope.text"))

    def _of_tenant(self, tenant: str) -> tuple[str, tuple[str, ...]]:
        """What selects the streams of a tenant: between its key with the `/` after it and the same with the sign that
        follows `/` there is every scope that has it, and no other."""
        if not tenant:
            return " WHERE", ()
        key, hint = f"/{Scope(tenant=tenant)}", self._index_hint.format("streams_tenant")
        is_between = f"{self.store.dialect.tenant_part} >= ? AND {self.store.dialect.tenant_part} < ?"
        return f"{hint} WHERE {self.store.dialect.has_tenant} AND {is_between} AND", (f"{key}/", f"{key}0")

    def last_recorded(self, streams: Sequence[int], until: datetime | None = None) -> list[tuple[int, datetime]]:
        end = () if until is None else (to_micros(until),)
        last = _LAST_RECORDED.format(
            self._index_hint.format("items_stream_recorded"), " AND i.recorded <= ?" * len(end)
        )
        rows = self._find(f"SELECT id, {last} FROM streams", [("id IN ({})", streams)], before=end)
        found = sorted(((moment, stream) for stream, moment in rows if moment is not None), reverse=True)
        return [(stream, from_micros(moment)) for moment, stream in found]

    def select(self, query: ItemQuery) -> list[Record]:
        rows = self._sound(ITEMS, self._item_rows(query), query.skip_damaged)
        records = [record for record in ITEMS.decode(rows) if self._fits(query, record)]
        # Those of several statements are not yet in the order of one.
        if query.order == "position":
            records.sort(key=lambda each: (-1 if each.position is None else each.position, each.seq), reverse=True)
        elif query.order == "latest":
            records.sort(key=attrgetter("recorded", "seq"), reverse=True)
        else:
            records.sort(key=attrgetter("seq"), reverse=query.order == "newest")
        return records[: query.limit]

    def _item_rows(self, query: ItemQuery) -> Sequence[Any]:
        # Without a hint, a database that has no statistics reads all records of a stream in their order.
        hint = ""
        if query.pending:
            hint = self._index_hint.format("items_pending" if query.stream is None else "items_stream_pending")
        elif query.archived:
            hint = self._index_hint.format("items_archived")
        elif query.superseded_by is not None:
            hint = self._index_hint.format("items_superseded_by")
        elif query.topics or query.topic_start:
            hint = self._index_hint.format("items_topic")
        elif query.ids and query.stream is not None:
            hint = self._index_hint.format("items_id")
        elif query.order == "latest" and query.kinds and "message" not in query.kinds:
            hint = self._index_hint.format("items_recorded" if query.stream is None else "items_stream_recorded")
        conditions = item_conditions(query, self.store.dialect.has_part)
        try:
            return self._find(f"{_ITEM}{hint}", conditions, _ORDERS[query.order], query.limit, offset=query.offset)
        except Exception as error:
            if not self.store.tells_damage(error) or not query.skip_damaged or query.stream is None:
                raise
            return self._find_readable(_ITEM, query.stream, conditions)

    def count(self, query: ItemQuery) -> int:
        return sum(row[0] for row in self._find("SELECT count(*) FROM items i", item_conditions(query)))

    def index_rows(self, stream: int, since: int, model: int | None) -> list[IndexRow]:
        rows = self._rows_with_vectors(stream, since, model)
        if since < 1:
            self._notice_missing(stream, [row[_CHECKSUM] for row in rows])
        rows = self._sound_rows_of(stream, rows)
        lost = {row[_SEQ] for row in rows if _has_lost_vector(row, model)}
        if missing := [row[_SEQ] for row in rows if row[-2] is None and row[_SEQ] in lost]:
            lost -= {seq for (seq,) in self._find("SELECT seq FROM vectors", [_ANY_MODEL, ("seq IN ({})", missing)])}
        self.store.lost_vectors |= lost
        found = sorted(map(IndexRow._make, map(_index_values, rows)))
        return [row._replace(vector=None) if row.seq in lost else row for row in found] if lost else found

    def _rows_with_vectors(self, stream: int, since: int, model: int | None) -> list[Any]:
        sql = f"{_ITEM_WITH_VECTOR} ON v.model = ? AND v.seq = i.seq"
        newer: list[Condition] = [("i.stream = ?", (stream,)), ("i.version > ?", (since,))]
        rows: list[Any] = []
        try:
            for condition in self._changes_since(stream, since):
                rows += self._find(sql, [*newer, condition], before=(model,))
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            return self._find_readable(sql, stream, newer, (model,))
        return rows

    def _sound_rows_of(self, stream: int, rows: list[Any]) -> list[Any]:
        """Those of the rows that are undamaged and belong to the stream; what is damaged is noticed."""
        if not find_damaged(rows, _CHECKSUM) and all(row[_STREAM_COLUMN] == stream for row in rows):
            return rows
        items = self._sound(ITEMS, [row[: _CHECKSUM + 1] for row in rows], skip=True)
        sound = {row[_SEQ] for row in items if row[_STREAM_COLUMN] == stream}
        return [row for row in rows if row[_SEQ] in sound]

    def _changes_since(self, stream: int, since: int) -> list[Condition]:
        """Conditions that find what changed after a version, without a look at what did not."""
        if since < 1:
            return [("i.seq > ?", (0,))]
        execute = self.connection.execute
        changes = "FROM changes WHERE stream = ? AND version > ? AND what = ?"
        start = execute(f"SELECT min(seq) {changes}", (stream, since, _NEW)).fetchone()[0]
        rows = execute(f"SELECT seq {changes}", (stream, since, _CHANGED)).fetchall()
        changed = [seq for (seq,) in rows if start is None or seq < start]
        return [("i.seq IN ({})", changed), *([] if start is None else [("i.seq >= ?", (start,))])]

    def removed(self, stream: int, since: int) -> list[int]:
        sql = "SELECT seq FROM changes WHERE stream = ? AND version > ? AND what = ? ORDER BY seq"
        return [seq for (seq,) in self.connection.execute(sql, (stream, since, _REMOVED)).fetchall()]

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
        return [row.tombstone for row in self._read(TOMBSTONES, conditions, order, limit)]

    def model(self, name: str) -> VectorModel | None:
        rows = self._read(MODELS, [("name = ?", (name,))])
        if not rows:
            self._check_total(MODELS.name)
        return VectorModel(rows[0].id, rows[0].dimensions) if rows else None

    def get_value(self, name: str) -> str | None:
        rows = self._read(VALUES, [("name = ?", (name,))])
        if not rows:
            self._check_total(VALUES.name)
        return rows[0].value if rows else None

    def load(self, table: type[T], **key: Any) -> list[T]:
        kept: Table[T] = TABLES[table]
        is_derived = table is PassageGraphRecord  # made anew from the words by who extracts again
        return sorted(self._read(kept, key_conditions(key), skip=is_derived), key=attrgetter(*kept.key))

    def calls(self, limit: int, before: int | None = None) -> list[CallRecord]:
        conditions: list[Condition] = [] if before is None else [("number < ?", (before,))]
        return self._read(TABLES[CallRecord], conditions, "number DESC", limit, skip=True)

    def idle_sessions(self, before: datetime, messages: int, limit: int) -> list[SessionState]:
        sessions: Table[SessionState] = TABLES[SessionState]
        micros = to_micros(before)
        is_free = "EXISTS (SELECT 1 FROM jobs j WHERE j.stream = s.stream AND j.until < ? AND j.retry <= ?)"
        sql = f"{_select(sessions, 's')} WHERE active < ? AND (messages >= ? OR {is_free}) ORDER BY active LIMIT ?"
        rows = self.connection.execute(sql, (micros, messages, micros, micros, limit)).fetchall()
        return sessions.decode(self._sound(sessions, rows))

    def counts(self, streams: Sequence[int] | None = None) -> Counts:
        owned: list[Condition] = [] if streams is None else [("stream IN ({})", streams)]

        def find(select: str, condition: str = "1 = 1", end: str = "") -> list[Any]:
            clauses, execute = where_clauses([(condition, ()), *owned]), self.connection.execute
            found = (execute(f"{select} WHERE {where}{end}", values).fetchall() for where, values in clauses)
            return [row for rows in found for row in rows]

        def number(table: str, condition: str = "1 = 1", value: str = "count(*)") -> int:
            return sum(int(row[0]) for row in find(f"SELECT {value} FROM {table}", condition))

        kinds: Counter[str] = Counter()
        looked_at = "retired IS NULL AND in_review = 0"
        for kind, count in find("SELECT kind, count(*) FROM items", looked_at, " GROUP BY kind"):
            kinds[kind] += count
        failing = [row for table in _LEASED for row in find(f"SELECT error FROM {table}", "attempts > 0")]
        vectors = "vectors" if streams is None else _OWNED_VECTORS
        return Counts(
            streams=number("streams") if streams is None else len(streams),
            kinds=dict(kinds),
            retired=number("items", "retired IS NOT NULL"),
            pending=number("items", "pending = 1"),
            tombstones=number("tombstones"),
            vectors={model.name: number(vectors, f"model = {model.id}") for model in self._read(MODELS, [], "name")},
            bytes=self.store.size() if streams is None else 0,
            due_messages=number("sessions", value="coalesce(sum(messages), 0)") + number(_DUE_IN_JOBS),
            jobs=number("jobs"),
            failing=len(failing),
            error=failing[-1][0] if failing else "",
            revisions=number("revisions"),
            in_review=number("items", "in_review = 1 AND retired IS NULL"),
        )

    def _read(
        self,
        table: Table[T],
        conditions: Sequence[Condition],
        order: str = "",
        limit: int | None = None,
        skip: bool = False,
    ) -> list[T]:
        return table.decode(self._sound(table, self._find(_select(table), conditions, order, limit), skip))


class SqlWriting(SqlReading, Writing):
    """What a step reads and writes."""

    def create_stream(self, scope: Scope) -> StreamState:
        if stream := self.stream(scope):
            return stream
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM streams").fetchone()[0]
        stream = StreamState(last + 1, scope, 0, 0)
        self.connection.executemany(_insert("streams", STREAMS.columns), STREAMS.encode([stream]))
        return stream

    def advance(self, stream: int, positions: int = 0) -> StreamState:
        [state] = self._read(STREAMS, [("id = ?", (stream,))])
        state = state._replace(version=state.version + 1, position=state.position + positions)
        [(_, position, _, version, checksum)] = STREAMS.encode([state])
        sql = "UPDATE streams SET position = ?, version = ?, checksum = ? WHERE id = ?"
        self.connection.execute(sql, (position, version, checksum, stream))
        return state

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
        columns = {name: ITEMS.encode_column[name](fields[name]) for name in used}
        all_columns = [columns.get(name) or repeat(_ENCODED_DEFAULTS[name], len(records)) for name in ITEMS.values]
        columns[CHECKSUM] = list(map(row_checksum, zip(*all_columns, strict=True)))
        self.connection.executemany(_insert("items", list(columns)), zip(*columns.values(), strict=True))
        self.connection.execute(_NOTE_CHANGE, (stream.id, stream.version, first, _NEW))
        return numbered

    def update(self, records: Sequence[Record]) -> None:
        rows = ((*row, record.seq) for row, record in zip(ITEMS.encode(records), records, strict=True))
        self.connection.executemany(_UPDATE_ITEM, rows)
        changes = [(record.stream, record.version, record.seq, _CHANGED) for record in records]
        self.connection.executemany(_NOTE_CHANGE, changes)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        if self.store.findings.noticed.pop(stream, None):  # what was damaged may be among what goes
            self.store.findings.verified.discard(stream)
            self.store.findings.counted.discard(stream)
        numbers: Condition = ("seq IN ({})", seqs)
        rows = self._find("SELECT id, identity, topic FROM items", [("stream = ?", (stream,)), numbers])
        rows += self._find("SELECT data FROM vectors", [numbers])
        held = {value for row in rows for value in row if value}
        self.store.deleted |= {value.encode() if isinstance(value, str) else value for value in held}
        vectors = self.delete_vectors(seqs)
        self._delete("access_counts", [numbers])
        self._delete("passage_graphs", [numbers])
        self._delete("items", [("stream = ?", (stream,)), numbers])
        self.connection.executemany(_NOTE_CHANGE, [(stream, version, seq, _REMOVED) for seq in seqs])
        return vectors

    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        rows = TOMBSTONES.encode(TombstoneRow(stream, tombstone) for tombstone in tombstones)
        self.connection.executemany(_put(TOMBSTONES), rows)

    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None:
        self._delete("tombstones", [("stream = ?", (stream,)), ("identity IN ({})", identities)])

    def create_model(self, name: str, dimensions: int) -> VectorModel:
        if model := self.model(name):
            return model
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM models").fetchone()[0]
        rows = MODELS.encode([ModelRow(last + 1, name, dimensions)])
        self.connection.executemany(_put(MODELS), rows)
        return VectorModel(last + 1, dimensions)

    def drop_model(self, model: int) -> None:
        self._delete("vectors", [("model = ?", (model,))])
        self._delete("models", [("id = ?", (model,))])

    def adopt_model(self, model: int | None) -> None:
        connection = self.connection
        embedded = "SELECT v.seq FROM vectors v JOIN items i ON i.seq = v.seq WHERE v.model = ? AND i.stream = ?"
        for stream in list(self.iterate_streams()):
            version = self.advance(stream.id).version
            connection.execute(_NOTE_CHANGE, (stream.id, version, 0, _NEW))
            seqs = {seq for (seq,) in connection.execute(embedded, (model, stream.id)).fetchall()}
            changed = (
                record._replace(version=version, pending=model is not None and record.seq not in seqs)
                for record in self.iterate(ItemQuery(stream.id, skip_damaged=True))
            )
            connection.executemany(_UPDATE_ITEM, ((*row, row[_SEQ]) for row in ITEMS.encode(changed)))

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        rows = VECTORS.encode(VectorRow(model, seq, data) for seq, data in vectors)
        self.connection.executemany(_put(VECTORS), rows)

    def copy_vectors(self, seq: int, to: int) -> None:
        rows = self._read(VECTORS, [_ANY_MODEL, ("seq = ?", (seq,))], skip=True)
        self.connection.executemany(_put(VECTORS), VECTORS.encode(row._replace(seq=to) for row in rows))

    def delete_vectors(self, seqs: Sequence[int], model: int | None = None) -> int:
        models: Condition = _ANY_MODEL if model is None else ("model = ?", (model,))
        return self._delete("vectors", [models, ("seq IN ({})", seqs)])

    def set_value(self, name: str, value: str) -> None:
        self.connection.executemany(_put(VALUES), VALUES.encode([ValueRow(name, value)]))

    def save(self, records: Sequence[Any]) -> None:
        if records:
            table = type(records[0])
            self.connection.executemany(_PUT[table], TABLES[table].encode(records))

    def drop(self, table: type[Any], **key: Any) -> None:
        self._delete(TABLES[table].name, key_conditions(key))

    def add_access(self, counts: Sequence[AccessCount]) -> None:
        added = {count.seq: count for count in counts}
        there = self._find("SELECT seq FROM items", [("seq IN ({})", list(added))])
        table: Table[AccessCount] = TABLES[AccessCount]
        before = {count.seq: count for count in self._read(table, [("seq IN ({})", list(added))], skip=True)}
        sums = []
        for (seq,) in there:
            old, new = before.get(seq), added[seq]
            sums.append(new if old is None else AccessCount(seq, old.times + new.times, max(old.last, new.last)))
        self.save(sums)

    def add_usage(self, records: Sequence[UsageRecord]) -> None:
        for record in records:
            key: list[Condition] = [("operation = ?", (record.operation,)), ("model = ?", (record.model,))]
            for old in self._read(TABLES[UsageRecord], key, skip=True):
                sums = (mine + theirs for mine, theirs in zip(old[2:], record[2:], strict=True))
                record = UsageRecord(record.operation, record.model, *sums)
            self.save([record])

    def add_calls(self, records: Sequence[CallRecord], most: int) -> None:
        execute = self.connection.execute
        last = execute("SELECT coalesce(max(number), 0) FROM calls").fetchone()[0]
        self.save([record._replace(number=number) for number, record in enumerate(records, last + 1)])
        self._delete("calls", [("number <= ?", (last + len(records) - most,))])


def _has_lost_vector(row: tuple[Any, ...], model: int | None) -> bool:
    """Whether the vector that follows the columns of an item is damaged, or missing though it was made."""
    vector, checksum = row[-2:]
    if vector is None:
        return model is not None and not row[_PENDING]
    return bool(row_checksum((vector, model, row[_SEQ])) != checksum)
