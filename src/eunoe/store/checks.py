"""Damage: noticed where rows are read, and looked for in what belongs to a stream or to the whole store.

A row has a checksum. A stream counts the rows that belong to it and adds up their checksums, a place counts its
streams, and `counters` the rows of the store's own tables: that is how rows are missed which a damaged page hides.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from eunoe.errors import DamagedStoreError
from eunoe.model.atom import Record
from eunoe.model.result import CheckReport, Damage
from eunoe.store.codec import Index, Table, find_damaged
from eunoe.store.contract import ItemQuery, RowMark
from eunoe.store.schema import ALL_TABLES, CHANGES, COUNTED_TABLES, ITEMS, STREAM_BITS, STREAM_TABLES, STREAMS
from eunoe.store.statements import Condition, Statements, of_records, of_stream

Progress = Callable[[int], None]
Row = tuple[Any, ...]

_PAGE_ROWS: Final = 2000
_MAX_KEY_CHARACTERS: Final = 80
"""A damaged row may have other words where its key should be; keys are short and have no spaces."""
_MISSING: Final = "{} of its {} rows cannot be found"
_SUM: Final = "its rows do not add up"
_PAGES: Final = "pages of it cannot be read"
_ROW: Final = "the row is not as it was written"
_ADVICE: Final = "restore a backup, or run `eunoe check` to see all that is lost"
_ROW_MARKS: Final = (
    "SELECT i.seq, i.version, i.checksum, coalesce(v.checksum, -1), coalesce(p.checksum, -1) FROM items i "
    "LEFT JOIN vectors v ON v.model = ? AND v.place = i.place AND v.seq = i.seq "
    "LEFT JOIN passage_graphs p ON p.place = i.place AND p.seq = i.seq"
)
_log = logging.getLogger("eunoe")


class Verification(Statements):
    """What a step knows of damage."""

    def noticed(self, stream: int) -> tuple[Damage, ...]:
        return tuple(self.store.findings.noticed.get(stream, ()))

    def damage(self, stream: int, most: int | None = None) -> tuple[Damage, ...]:
        if stream not in self.store.findings.verified:
            if most is None or self._expected(stream)[0] <= most:
                self._verify(stream)
                self.store.findings.verified.add(stream)
            elif stream not in self.store.findings.counted:
                self._notice_missing(stream)
                self.store.findings.counted.add(stream)
        return self.noticed(stream)

    def check(self, progress: Progress | None = None) -> CheckReport:
        found = list(self.store.structure_damage(self.connection))
        sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        read = 0
        for table in ALL_TABLES:
            if table is CHANGES:  # a version that nobody finds any more is read anew
                continue
            with self._damage_of(table.name, found):
                for rows in self._pages(table):
                    read += len(rows)
                    found += [self._damage(table, row) for row in find_damaged(rows)]
                    if table in STREAM_TABLES:
                        _add_up(sums, rows, table.values.index("stream"))
                    if progress:
                        progress(read)
            if table in (STREAMS, *COUNTED_TABLES):
                with self._damage_of(table.name, found):
                    found += self._total_damage(table.name)
        with self._damage_of(STREAMS.name, found):
            totals = self.connection.execute("SELECT id, rows, digest FROM streams").fetchall()
            for id, rows, digest in totals:
                found += self._sum_damage("", self._scope_of(id), (rows, digest), tuple(sums[id]))
        found += self._lost_vector_damage()
        return CheckReport(read, tuple(dict.fromkeys(found)))

    def _sound(self, table: Table[Any], rows: Sequence[Row], skip: bool = False) -> Sequence[Row]:
        """The rows that are as they were written. Others raise, or with `skip` are noted and left out."""
        damaged = find_damaged(rows)
        if not damaged:
            return rows
        for row in damaged:
            self._notice(self._damage(table, row), _stream_of(table, row), skip)
        return [row for row in rows if not any(row is each for each in damaged)]

    def _fits(self, query: ItemQuery, record: Record) -> bool:
        """Whether a record is one that was asked for: a damaged index may lead to another one."""
        fits = (
            query.stream in (None, record.stream)
            and (query.streams is None or record.stream in query.streams)
            and (query.ids is None or record.id in query.ids)
            and (query.identities is None or record.identity in query.identities)
        )
        if not fits:
            self._notice(Damage("items", "", "", "an index leads to other rows"), query.stream, query.skip_damaged)
        return fits

    def _notice(self, damage: Damage, stream: int | None, skip: bool) -> None:
        if not skip:
            raise DamagedStoreError(f"{self.store.target} is damaged: {damage}; {_ADVICE}")
        known = self.store.findings.noticed.setdefault(stream or 0, {})
        if damage not in known:
            known[damage] = None
            _log.warning("%s is damaged: %s; it is left out", self.store.target, damage)

    def _check_total(self, table: str) -> None:
        """Raise DamagedStoreError if rows of a table are missing."""
        for damage in self._total_damage(table):
            self._notice(damage, None, skip=False)

    def _notice_missing(self, stream: int, items: Sequence[Any] | None = None) -> None:
        """Compare the rows that belong to a stream with what it has counted; the checksums of items may be given."""
        count, total = len(items or ()), sum(checksum for checksum in items or () if isinstance(checksum, int))
        for table in STREAM_TABLES if items is None else STREAM_TABLES[1:]:
            for rows, digest in self._rows_of(stream, table, "count(*), coalesce(sum(checksum), 0)") or ():
                count, total = count + rows, total + digest
        self._compare(stream, count, total)

    def row_marks(self, stream: int, model: int | None) -> list[RowMark]:
        try:
            rows: Sequence[RowMark] = self._find(_ROW_MARKS, [of_stream(stream, "i.")], before=(model,))
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            raise DamagedStoreError(f"{self.store.target} is damaged: {_PAGES}; {_ADVICE}") from error
        self._notice_missing(stream, [row[2] for row in rows])
        return sorted(rows)

    def _rows_of(self, stream: int, table: Table[Any], columns: str) -> Sequence[Row] | None:
        """What a table holds of a stream; None, which is noted, if its pages cannot be read."""
        try:
            hint = self._index_hint.format("items_stream") if table is ITEMS else ""  # else an index may tell values
            return self._find(f"SELECT {columns} FROM {table.name}{hint}", [of_stream(stream)])
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            self._notice(Damage(table.name, "", self._scope_of(stream), _PAGES), stream, skip=True)
            return None

    def _expected(self, stream: int) -> Row:
        """How many rows a stream has counted, and what their checksums add up to."""
        sql = "SELECT rows, digest FROM streams WHERE place = ? AND id = ?"
        row: Row = self.connection.execute(sql, (stream >> STREAM_BITS, stream)).fetchone()
        return row or (0, 0)

    def _compare(self, stream: int, count: int, total: int) -> None:
        for damage in self._sum_damage("", self._scope_of(stream), self._expected(stream), (count, total)):
            self._notice(damage, stream, skip=True)

    def _verify(self, stream: int) -> None:
        """Look for damage in all that belongs to a stream, and in the indexes by which it is found."""
        count, total, is_readable = 0, 0, True
        items: Sequence[Row] = ()
        for table in STREAM_TABLES:
            columns = ", ".join(table.columns)
            rows = self._rows_of(stream, table, columns)
            if rows is None:
                is_readable = is_readable and table is not ITEMS
                rows = self._find_readable(f"SELECT {columns} FROM items i", stream, []) if table is ITEMS else ()
            self._sound(table, rows, skip=True)
            items = rows if table is ITEMS else items
            count, total = count + len(rows), total + sum(row[-1] for row in rows if isinstance(row[-1], int))
        self._compare(stream, count, total)
        seqs = set(map(ITEMS.key_of, items))
        for index in ITEMS.indexes if is_readable else ():
            if index.columns.startswith("place, stream, ") and not self._agrees(stream, index, seqs):
                damage = Damage(f"index {index.name}", "", self._scope_of(stream), "it does not agree with its table")
                self._notice(damage, stream, skip=True)

    def _agrees(self, stream: int, index: Index, seqs: set[tuple[Any, ...]]) -> bool:
        """Whether an index holds the same of a stream's records as their rows do."""
        sql, conditions = f"SELECT {index.columns}, seq FROM items{{}}", [of_stream(stream)]
        if index.where:
            conditions.append((index.where, ()))
        try:
            held = set(self._find(sql.format(self._index_hint.format(index.name)), conditions))
            rows = set(self._find(sql.format(self._index_hint.format("items_stream")), conditions))
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            return False
        return held == rows and seqs.issuperset((row[-1],) for row in held)

    def _find_readable(
        self, select: str, stream: int, conditions: Sequence[Condition], before: Sequence[Any] = ()
    ) -> list[Any]:
        """Rows of a stream that meet the conditions, without those whose pages cannot be read."""
        seqs = self._readable_seqs(stream)
        rows: list[Any] = []
        parts = [seqs[start : start + _PAGE_ROWS] for start in range(0, len(seqs), _PAGE_ROWS)]
        while parts:
            part = parts.pop()
            try:
                rows += self._find(select, [*conditions, of_records(part, "i.")], before=before)
            except Exception as error:
                if not self.store.tells_damage(error):
                    raise
                if len(part) == 1:
                    self._notice(self._item_damage(stream, part[0], _PAGES), stream, skip=True)
                else:
                    parts += [part[: len(part) // 2], part[len(part) // 2 :]]
        return sorted(rows, key=ITEMS.key_of)

    def _readable_seqs(self, stream: int) -> list[int]:
        """The numbers of a stream's records, by its index or, if that cannot be read, by the table."""
        hint = self._index_hint.format("items_stream")
        try:
            rows = self._find(f"SELECT seq FROM items{hint}", [of_stream(stream)])
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            rows = self._find("SELECT seq FROM items", [("+stream = ?", (stream,))])
        return [seq for (seq,) in rows]

    def _pages(self, table: Table[Any]) -> Iterator[Sequence[Row]]:
        """All rows of a table in the order of their keys, some at a time."""
        key, marks = ", ".join(table.primary_key), ", ".join("?" * len(table.primary_key))
        select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
        conditions: list[Condition] = []
        while rows := self._find(select, conditions, key, _PAGE_ROWS):
            yield rows
            conditions = [(f"({key}) > ({marks})", table.primary_key_of(rows[-1]))]

    @contextmanager
    def _damage_of(self, table: str, found: list[Damage]) -> Iterator[None]:
        """Note that a table cannot be read to its end."""
        try:
            yield
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            found.append(Damage(table, "", "", _PAGES))

    def _total_damage(self, table: str) -> Iterator[Damage]:
        execute = self.connection.execute
        if table == STREAMS.name:
            expected = execute("SELECT coalesce(sum(streams), 0) FROM places").fetchone()
        else:
            expected = execute("SELECT rows FROM counters WHERE name = ?", (table,)).fetchone() or (0,)
        found = execute(f"SELECT count(*) FROM {table}").fetchone()
        yield from self._sum_damage(table, "", expected, found)

    def _sum_damage(self, table: str, scope: str, expected: Row, found: Row) -> Iterator[Damage]:
        if tuple(expected) != tuple(found):
            is_short = found[0] < expected[0]
            lost = expected[0] - found[0]
            yield Damage(table, "", scope, _MISSING.format(lost, expected[0]) if is_short else _SUM)

    def _lost_vector_damage(self) -> Iterator[Damage]:
        sql = (
            "SELECT count(*) FROM items i JOIN meta n ON n.name = 'model' JOIN models m ON m.name = n.value "
            "WHERE i.pending = 0 AND NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.place = i.place AND v.seq = i.seq AND v.model IN (SELECT id FROM models))"
        )
        found: list[Damage] = []
        with self._damage_of("vectors", found):
            (lost,) = self.connection.execute(sql).fetchone()
            if lost:
                found.append(Damage("vectors", "", "", f"{lost} records have none; recall makes them anew"))
        yield from found

    def _damage(self, table: Table[Any], row: Row) -> Damage:
        stream = _stream_of(table, row)
        if table is ITEMS:
            return self._item_damage(stream, row[ITEMS.values.index("seq")], _ROW)
        key = ", ".join(f"{name} {_key_text(value)}" for name, value in zip(table.key, table.key_of(row), strict=True))
        return Damage(table.name, key, "" if stream is None else self._scope_of(stream), _ROW)

    def _item_damage(self, stream: int | None, seq: int, problem: str) -> Damage:
        """The id comes from its index: where it should stand in a damaged row, other words may stand."""
        hint = self._index_hint.format("items_id")
        key = f"seq {_key_text(seq)}"
        try:
            found = self._find(f"SELECT id FROM items{hint}", [of_stream(stream or 0), ("seq = ?", (seq,))])
            if found:
                key = f"id {_key_text(found[0][0])}"
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
        return Damage(ITEMS.name, key, "" if stream is None else self._scope_of(stream), problem)

    def _scope_of(self, stream: Any) -> str:
        try:
            sql = "SELECT scope FROM streams WHERE place = ? AND id = ?"
            row = self.connection.execute(sql, (int(stream) >> STREAM_BITS, stream)).fetchone()
        except Exception as error:
            if not self.store.tells_damage(error):
                raise
            return ""
        return str(row[0]) if row else ""


def _stream_of(table: Table[Any], row: Row) -> int | None:
    name = "id" if table is STREAMS else "stream"
    value = row[table.values.index(name)] if name in table.values else None
    return value if isinstance(value, int) else None


def _key_text(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _MAX_KEY_CHARACTERS and not set(text) & set(" \n\t") else "?"


def _add_up(sums: defaultdict[int, list[int]], rows: Sequence[Row], place: int) -> None:
    for row in rows:
        if isinstance(row[place], int) and isinstance(row[-1], int):
            total = sums[row[place]]
            total[0] += 1
            total[1] += row[-1]
