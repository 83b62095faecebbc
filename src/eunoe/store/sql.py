"""The store's SQL, written once for every database.

It keeps to what SQLite and PostgreSQL both understand, with `?` for values. A subclass brings connections, blocks, the
schema and what is abstract here. Texts are compared by code point: in PostgreSQL their columns need `COLLATE "C"`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Final

from eunoe.errors import StoreError
from eunoe.model.arguments import from_micros, to_micros
from eunoe.model.atom import Record
from eunoe.model.scope import Scope
from eunoe.store.checks import Verification
from eunoe.store.codec import CHECKSUM, T, Table, find_damaged, row_checksum
from eunoe.store.contract import Counts, IndexRow, ItemQuery, VectorModel, Writing
from eunoe.store.schema import (
    CHANGES,
    COUNTED_TABLES,
    COUNTERS,
    ITEMS,
    MODELS,
    PLACES,
    SEQ_BITS,
    STREAM_BITS,
    STREAM_TABLES,
    STREAMS,
    TABLES,
    TOMBSTONES,
    VALUES,
    VECTORS,
    AccessCount,
    CallRecord,
    Change,
    CounterRow,
    KeptIndexPart,
    ModelRow,
    PassageGraphRecord,
    PlaceRow,
    SessionState,
    StreamRow,
    StreamState,
    Tombstone,
    TombstoneRow,
    UsageRecord,
    ValueRow,
    VectorRow,
    place_of,
)
from eunoe.store.statements import (
    Condition,
    Connection,
    SqlStore,
    item_conditions,
    key_conditions,
    of_records,
    of_stream,
    of_streams,
    scope_condition,
    where_clauses,
)


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


@cache
def _put(table: Table[Any]) -> str:
    return _upsert(table.name, table.columns, table.primary_key)


_UPDATE_ITEM: Final = (
    f"UPDATE items SET {', '.join(f'{name} = ?' for name in ITEMS.columns)} WHERE place = ? AND seq = ?"
)
_COUNTED: Final = ("position", "version", "last", "rows", "digest", CHECKSUM)
"""What a write changes of a stream."""
_UPDATE_STREAM: Final = f"UPDATE streams SET {', '.join(f'{name} = ?' for name in _COUNTED)} WHERE place = ? AND id = ?"
_counted_values: Final = itemgetter(*map(STREAMS.columns.index, (*_COUNTED, "place", "id")))
_DEFAULTS: Final = {
    name: default for name, default in Record._field_defaults.items() if name not in ("seq", "stream", "version")
}
"""Fields whose default the database knows as well."""
_STREAM: Final = _select(STREAMS)
_SCOPE: Final = STREAMS.columns.index("scope")
_ITEM: Final = _select(ITEMS, "i")
_ITEM_WITH_VECTOR: Final = _ITEM.replace(" FROM", ", v.data, v.checksum FROM") + " LEFT JOIN vectors v"
_SEQ, _STREAM_COLUMN, _PENDING, _PLACE = map(ITEMS.columns.index, ("seq", "stream", "pending", "place"))
_CHECKSUM: Final = ITEMS.columns.index(CHECKSUM)
_index_values: Final = itemgetter(*map(ITEMS.columns.index, IndexRow._fields[:-1]), len(ITEMS.columns))
_LAST_RECORDED: Final = (
    "(SELECT i.recorded FROM items i{} WHERE i.place = streams.place AND i.stream = streams.id "
    "AND i.kind <> 'message'{} ORDER BY i.recorded DESC LIMIT 1)"
)
_NEW, _CHANGED, _REMOVED = range(3)
"""What the table `changes` says of a number: records from it on are new, it was changed, it was removed."""
_NOTE_CHANGE: Final = f"{_insert(CHANGES.name, CHANGES.columns)} ON CONFLICT DO NOTHING"
_OWNED_VECTORS: Final = (
    "(SELECT i.place, i.stream, v.model FROM vectors v JOIN items i ON i.place = v.place AND i.seq = v.seq) AS owned"
)
_DUE_IN_JOBS: Final = (
    "(SELECT j.place, j.stream FROM jobs j "
    "JOIN items i ON i.place = j.place AND i.stream = j.stream AND i.kind = 'message' "
    "AND i.retired IS NULL AND i.seq > j.start AND i.seq <= j.stop) AS due"
)
_ANY_MODEL: Final[Condition] = ("model IN (SELECT id FROM models)", ())
_LEASED: Final = ("jobs", "summaries", "leases")
_PAGE: Final = 2000
_MAX_WITHIN: Final = 1000
"""Scopes whose streams are kept at hand."""
_ORDERS: Final = {
    "seq": "i.place, i.seq",
    "newest": "i.place DESC, i.seq DESC",
    "latest": "i.recorded DESC, i.seq DESC",
    "position": "i.position DESC NULLS LAST, i.seq DESC",
}


class SqlReading(Verification):
    """What a step reads of a store on a SQL database."""

    def _states(self, rows: Sequence[Any]) -> list[StreamState]:
        return [row.state for row in STREAMS.decode(rows)]

    def stream(self, scope: Scope) -> StreamState | None:
        execute, place = self.connection.execute, place_of(scope)
        row = execute(f"{_STREAM} WHERE place = ? AND scope = ?", (place, scope.text)).fetchone()
        if row is None or row[_SCOPE] != scope.text:
            # A damaged index hides a scope: another one, of other pages, is asked before it counts as missing.
            hint = self._index_hint.format("streams_scope")
            row = execute(f"{_STREAM}{hint} WHERE scope = ?", (scope.text,)).fetchone()
        if row is None:
            return None
        self._sound(STREAMS, [row], skip=row[_SCOPE] == scope.text)
        return self._states([row])[0]._replace(scope=scope)

    def streams(
        self,
        after: str = "",
        limit: int = 1000,
        ids: Sequence[int] | None = None,
        containing: Sequence[str] = (),
        tenant: str = "",
    ) -> list[StreamState]:
        if ids is not None:
            streams = self._states(self._sound(STREAMS, self._find(_STREAM, [of_streams(ids, column="id")])))
            return sorted(streams, key=lambda stream: stream.scope.text)
        source, own = self._of_tenant(tenant)
        sql, parts = f"{_STREAM}{source} AND scope > ? ORDER BY scope LIMIT ?", list(filter(None, containing))
        if parts:
            # Unlike LIKE, this heeds case in every database.
            contains = " AND ".join(["replace(scope, ?, '') <> scope"] * len(parts))
            sql = f"SELECT * FROM ({sql}) AS page WHERE {contains} ORDER BY scope"
        rows = self.connection.execute(sql, (*own, after, limit, *parts)).fetchall()
        if len(rows) < limit and not tenant and not self.store.findings.has_all_streams:
            self._check_total(STREAMS.name)
            self.store.findings.has_all_streams = True
        return self._states(self._sound(STREAMS, rows))

    def streams_within(self, scope: Scope) -> list[StreamState]:
        tenant, user = scope.pairs.get("tenant", ""), scope.pairs.get("user", "")
        if not user:
            source, own = self._of_tenant(tenant)
            condition, parts = scope_condition(scope)[:2]
            return self._decode_within(scope, f"{source} AND {condition}", (*own, *parts))
        hint = self._index_hint.format("streams_owner")
        source = f"{hint} WHERE place = ? AND tenant = ? AND owner = ? AND owner <> ''"
        values = (place_of(scope), tenant, user)
        # A user may have a thousand sessions: their rows are read again only if one of them changed.
        sums = f"SELECT count(*), sum(version), sum(checksum) FROM streams{source}"
        state, known = self.connection.execute(sums, values).fetchone(), self.store.findings.streams_within
        if scope.text not in known or known[scope.text][0] != state:
            if len(known) >= _MAX_WITHIN:
                known.clear()
            known[scope.text] = state, self._decode_within(scope, source, values)
        return list(known[scope.text][1])

    def _decode_within(self, scope: Scope, source: str, values: Sequence[Any]) -> list[StreamState]:
        rows = self.connection.execute(f"{_STREAM}{source}", values).fetchall()
        streams = [row.state for row in STREAMS.decode(self._sound(STREAMS, rows))]
        return sorted([each for each in streams if scope.everything.covers(each.scope)], key=attrgetter("scope.text"))

    def _of_tenant(self, tenant: str) -> tuple[str, tuple[str, ...]]:
        """What selects the streams of a tenant, or all."""
        if not tenant:
            return " WHERE 1 = 1", ()
        return f"{self._index_hint.format('streams_tenant')} WHERE tenant <> '' AND tenant = ?", (tenant,)

    def last_recorded(self, streams: Sequence[int], until: datetime | None = None) -> list[tuple[int, datetime]]:
        end = () if until is None else (to_micros(until),)
        last = _LAST_RECORDED.format(
            self._index_hint.format("items_stream_recorded"), " AND i.recorded <= ?" * len(end)
        )
        rows = self._find(f"SELECT id, {last} FROM streams", [of_streams(streams, column="id")], before=end)
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
        return sum(
            row[0]
            for row in self._find("SELECT count(*) FROM items i", item_conditions(query, self.store.dialect.has_part))
        )

    def index_rows(self, stream: int, since: int, model: int | None) -> list[IndexRow]:
        rows = self._rows_with_vectors(stream, since, model)
        if since < 1:
            self._notice_missing(stream, [row[_CHECKSUM] for row in rows])
        rows = self._sound_rows_of(stream, rows)
        lost = {row[_SEQ] for row in rows if _has_lost_vector(row, model)}
        if missing := [row[_SEQ] for row in rows if row[-2] is None and row[_SEQ] in lost]:
            lost -= {seq for (seq,) in self._find("SELECT seq FROM vectors", [_ANY_MODEL, of_records(missing)])}
        self.store.lost_vectors |= lost
        found = sorted(map(IndexRow._make, map(_index_values, rows)))
        return [row._replace(vector=None) if row.seq in lost else row for row in found] if lost else found

    def _rows_with_vectors(self, stream: int, since: int, model: int | None) -> list[Any]:
        sql = f"{_ITEM_WITH_VECTOR} ON v.model = ? AND v.place = i.place AND v.seq = i.seq"
        newer: list[Condition] = [of_stream(stream, "i."), ("i.version > ?", (since,))]
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
        start = min(self._changes(stream, since, _NEW), default=None)
        changed = [seq for seq in self._changes(stream, since, _CHANGED) if start is None or seq < start]
        return [of_records(changed, "i."), *([] if start is None else [("i.seq >= ?", (start,))])]

    def _changes(self, stream: int, since: int, what: int) -> list[int]:
        conditions: list[Condition] = [of_stream(stream), ("version > ? AND what = ?", (since, what))]
        return [seq for (seq,) in self._find("SELECT seq FROM changes", conditions)]

    def removed(self, stream: int, since: int) -> list[int]:
        return sorted(self._changes(stream, since, _REMOVED))

    def tombstones(
        self,
        stream: int,
        identities: Sequence[bytes] | None = None,
        session_hash: bytes | None = None,
        limit: int | None = None,
    ) -> list[Tombstone]:
        conditions: list[Condition] = [of_stream(stream)]
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
        return sorted(self._read(kept, key_conditions(kept, key), skip=kept.is_derived), key=attrgetter(*kept.key))

    def calls(self, limit: int, before: int | None = None) -> list[CallRecord]:
        conditions: list[Condition] = [] if before is None else [("number < ?", (before,))]
        return self._read(TABLES[CallRecord], conditions, "number DESC", limit, skip=True)

    def idle_sessions(self, before: datetime, messages: int, limit: int) -> list[SessionState]:
        sessions: Table[SessionState] = TABLES[SessionState]
        micros = to_micros(before)
        of_session = "j.place = s.place AND j.stream = s.stream"
        is_free = f"EXISTS (SELECT 1 FROM jobs j WHERE {of_session} AND j.until < ? AND j.retry <= ?)"
        sql = f"{_select(sessions, 's')} WHERE active < ? AND (messages >= ? OR {is_free}) ORDER BY active LIMIT ?"
        rows = self.connection.execute(sql, (micros, messages, micros, micros, limit)).fetchall()
        return sessions.decode(self._sound(sessions, rows))

    def counts(self, streams: Sequence[int] | None = None) -> Counts:
        owned: list[Condition] = [] if streams is None else [of_streams(streams)]

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

    def __init__(self, store: SqlStore, connection: Connection) -> None:
        super().__init__(store, connection)
        self._rows: dict[int, StreamRow] = {}
        """The streams that this step writes to, as they are by now: they are written when it ends, each once."""

    def finish(self) -> None:
        """Write what the step has changed of streams."""
        if self._rows:
            rows = map(_counted_values, STREAMS.encode(self._rows.values()))
            self.connection.executemany(_UPDATE_STREAM, rows)

    def _row(self, stream: int) -> StreamRow:
        if stream not in self._rows:
            [self._rows[stream]] = self._read(STREAMS, [of_streams([stream], column="id")])
        return self._rows[stream]

    def _states(self, rows: Sequence[Any]) -> list[StreamState]:
        return [self._rows.get(state.id, row).state for row in STREAMS.decode(rows) for state in [row.state]]

    def streams_within(self, scope: Scope) -> list[StreamState]:
        return [self._rows[each.id].state if each.id in self._rows else each for each in super().streams_within(scope)]

    def _expected(self, stream: int) -> tuple[Any, ...]:
        row = self._rows.get(stream)
        return (row.rows, row.digest) if row else super()._expected(stream)

    def _count(self, stream: int, rows: int, digest: int) -> None:
        """Count rows that a stream got or lost, and what their checksums add up to."""
        if stream not in self._rows and not self._find("SELECT 1 FROM streams", [of_streams([stream], column="id")]):
            return  # it is lost, and that is noticed by its place
        row = self._row(stream)
        self._rows[stream] = row._replace(rows=row.rows + rows, digest=row.digest + digest)

    def _count_put(self, table: Table[Any], rows: Sequence[tuple[Any, ...]]) -> None:
        """Count rows that are about to be written, those with a known key in the place of others."""
        is_own = table in STREAM_TABLES
        if not is_own and table not in COUNTED_TABLES:
            return
        number = table.values.index("stream") if is_own else 0
        sql = f"SELECT checksum FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in table.primary_key)}"
        written: dict[tuple[Any, ...], Any] = {}
        for row in rows:
            key = table.primary_key_of(row)
            if key not in written:
                found = self.connection.execute(sql, key).fetchone()
                written[key] = found[0] if found else None
            if is_own:
                self._count(row[number], written[key] is None, row[-1] - _as_number(written[key]))
            elif written[key] is None:
                self._count_table(table, 1)
            written[key] = row[-1]

    def _count_table(self, table: Table[Any], rows: int) -> None:
        known = self.connection.execute("SELECT rows FROM counters WHERE name = ?", (table.name,)).fetchone()
        row = CounterRow(table.name, (known[0] if known else 0) + rows)
        self.connection.executemany(_put(COUNTERS), COUNTERS.encode([row]))

    def _put(self, table: Table[T], records: Iterable[T]) -> None:
        rows = table.encode(records)
        self._count_put(table, rows)
        self.connection.executemany(_put(table), rows)

    def _drop(self, table: Table[Any], conditions: Sequence[Condition]) -> int:
        """Delete the rows of a table that meet the conditions; return how many there were."""
        if table in STREAM_TABLES:
            for stream, checksum in self._find(f"SELECT stream, checksum FROM {table.name}", conditions):
                self._count(stream, -1, -_as_number(checksum))
        count = self._delete(table.name, conditions)
        if count and table in COUNTED_TABLES:
            self._count_table(table, -count)
        return count

    def create_stream(self, scope: Scope) -> StreamState:
        if stream := self.stream(scope):
            return stream
        place = place_of(scope)
        known = self._read(PLACES, [("place = ?", (place,))])
        number = known[0].streams + 1 if known else 1
        if number >= 1 << STREAM_BITS:
            raise StoreError(f"{self.store.target} has no room for another scope of {scope}")
        self.connection.executemany(_put(PLACES), PLACES.encode([PlaceRow(place, number)]))
        state = StreamState(place << STREAM_BITS | number, scope, 0, 0)
        self._rows[state.id] = row = StreamRow(state, scope.pairs.get("tenant", ""), scope.pairs.get("user", ""))
        self.connection.executemany(_insert("streams", STREAMS.columns), STREAMS.encode([row]))
        return state

    def advance(self, stream: int, positions: int = 0) -> StreamState:
        row = self._row(stream)
        state = row.state._replace(version=row.state.version + 1, position=row.state.position + positions)
        self._rows[stream] = row._replace(state=state)
        return state

    def insert(self, stream: StreamState, records: Sequence[Record]) -> list[Record]:
        if not records:
            return []
        row, count = self._row(stream.id), len(records)
        if row.last + count >= 1 << SEQ_BITS:
            raise StoreError(f"{stream.scope} is full: it was given {row.last:,} memories")
        first = (stream.id << SEQ_BITS | row.last) + 1
        fields: dict[str, Sequence[Any]] = dict(zip(Record._fields, zip(*records, strict=True), strict=True))
        fields["seq"] = range(first, first + count)
        fields |= {"stream": [stream.id] * count, "version": [stream.version] * count}
        numbered = list(map(Record._make, zip(*fields.values(), strict=True)))
        # Most records leave most columns at their default, and binding a column costs as much as writing one.
        used = [name for name in fields if name not in _DEFAULTS or fields[name].count(_DEFAULTS[name]) < count]
        columns = {name: ITEMS.encode_column[name](fields[name]) for name in used}
        columns["place"] = [stream.id >> STREAM_BITS] * count
        all_columns = [columns.get(name) or repeat(ITEMS.defaults[name], count) for name in ITEMS.values]
        columns[CHECKSUM] = list(map(row_checksum, zip(*all_columns, strict=True)))
        self.connection.executemany(_insert("items", list(columns)), zip(*columns.values(), strict=True))
        self._rows[stream.id] = row._replace(
            last=row.last + count, rows=row.rows + count, digest=row.digest + sum(columns[CHECKSUM])
        )
        self._note_changes([Change(stream.id, stream.version, _NEW, first)])
        return numbered

    def _note_changes(self, changes: Iterable[Change]) -> None:
        self.connection.executemany(_NOTE_CHANGE, CHANGES.encode(changes))

    def update(self, records: Sequence[Record]) -> None:
        rows = ITEMS.encode(records)
        sql = "SELECT seq, checksum FROM items"
        known = dict(self._find(sql, [of_records([record.seq for record in records])]))
        for record, row in zip(records, rows, strict=True):
            if record.seq in known:
                self._count(record.stream, 0, row[-1] - _as_number(known[record.seq]))
                known[record.seq] = row[-1]
        keys = map(ITEMS.primary_key_of, rows)
        self.connection.executemany(_UPDATE_ITEM, ((*row, *key) for row, key in zip(rows, keys, strict=True)))
        self._note_changes(Change(record.stream, record.version, _CHANGED, record.seq) for record in records)

    def delete(self, stream: int, seqs: Sequence[int], version: int) -> int:
        if self.store.findings.noticed.pop(stream, None):  # what was damaged may be among what goes
            self.store.findings.verified.discard(stream)
            self.store.findings.counted.discard(stream)
        chosen, numbers = [of_stream(stream), of_records(seqs)], of_records(seqs)
        rows = self._find("SELECT id, identity, topic FROM items", chosen)
        rows += self._find("SELECT data FROM vectors", [numbers])
        held = {value for row in rows for value in row if value}
        self.store.deleted |= {value.encode() if isinstance(value, str) else value for value in held}
        vectors = self.delete_vectors(seqs)
        for table in (TABLES[AccessCount], TABLES[PassageGraphRecord]):
            self._drop(table, [numbers])
        self._drop(TABLES[KeptIndexPart], [of_stream(stream)])  # the words stand in it as well
        self._drop(ITEMS, chosen)
        self._note_changes(Change(stream, version, _REMOVED, seq) for seq in seqs)
        return vectors

    def add_tombstones(self, stream: int, tombstones: Sequence[Tombstone]) -> None:
        self._put(TOMBSTONES, (TombstoneRow(stream, tombstone) for tombstone in tombstones))

    def remove_tombstones(self, stream: int, identities: Sequence[bytes]) -> None:
        self._drop(TOMBSTONES, [of_stream(stream), ("identity IN ({})", identities)])

    def create_model(self, name: str, dimensions: int) -> VectorModel:
        if model := self.model(name):
            return model
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM models").fetchone()[0]
        self._put(MODELS, [ModelRow(last + 1, name, dimensions)])
        return VectorModel(last + 1, dimensions)

    def drop_model(self, model: int) -> None:
        self._drop(VECTORS, [("model = ?", (model,))])
        self._drop(MODELS, [("id = ?", (model,))])

    def adopt_model(self, model: int | None) -> None:
        sql = "SELECT v.seq FROM vectors v JOIN items i ON i.place = v.place AND i.seq = v.seq"
        for stream in list(self.iterate_streams()):
            version = self.advance(stream.id).version
            self._note_changes([Change(stream.id, version, _NEW, 0)])
            seqs = {seq for (seq,) in self._find(sql, [("v.model = ?", (model,)), of_stream(stream.id, "i.")])}
            records = list(self.iterate(ItemQuery(stream.id, skip_damaged=True)))
            for start in range(0, len(records), _PAGE):
                self.update([
                    record._replace(version=version, pending=model is not None and record.seq not in seqs)
                    for record in records[start : start + _PAGE]
                ])  # fmt: skip

    def put_vectors(self, model: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        self._put(VECTORS, (VectorRow(model, seq, data) for seq, data in vectors))

    def copy_vectors(self, seq: int, to: int) -> None:
        rows = self._read(VECTORS, [_ANY_MODEL, of_records([seq])], skip=True)
        self._put(VECTORS, (row._replace(seq=to) for row in rows))

    def delete_vectors(self, seqs: Sequence[int], model: int | None = None) -> int:
        models: Condition = _ANY_MODEL if model is None else ("model = ?", (model,))
        return self._drop(VECTORS, [models, of_records(seqs)])

    def set_value(self, name: str, value: str) -> None:
        self._put(VALUES, [ValueRow(name, value)])

    def save(self, records: Sequence[Any]) -> None:
        if records:
            self._put(TABLES[type(records[0])], records)

    def drop(self, table: type[Any], **key: Any) -> None:
        self._drop(TABLES[table], key_conditions(TABLES[table], key))

    def add_access(self, counts: Sequence[AccessCount]) -> None:
        added = {count.seq: count for count in counts}
        numbers, table = of_records(list(added)), TABLES[AccessCount]
        before = {count.seq: count for count in self._read(table, [numbers], skip=True)}
        sums = []
        there = {seq for (seq,) in self._find("SELECT seq FROM items", [numbers])}
        for seq in sorted(there & added.keys()):  # a damaged index may lead to others
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
        last = self.connection.execute("SELECT coalesce(max(number), 0) FROM calls").fetchone()[0]
        self.save([record._replace(number=number) for number, record in enumerate(records, last + 1)])
        self._drop(TABLES[CallRecord], [("number <= ?", (last + len(records) - most,))])


def _as_number(checksum: Any) -> int:
    """A checksum as it counts; a damaged one counts nothing."""
    return checksum if isinstance(checksum, int) else 0


def _has_lost_vector(row: tuple[Any, ...], model: int | None) -> bool:
    """Whether the vector that follows the columns of an item is damaged, or missing though it was made."""
    vector, checksum = row[-2:]
    if vector is None:
        return model is not None and not row[_PENDING]
    return bool(row_checksum((vector, model, row[_PLACE], row[_SEQ])) != checksum)
