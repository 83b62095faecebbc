"""The books of the embedded store, in the same SQLite file as the memories and in the same transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from eunoe.store.books import (
    Books,
    Health,
    ReadingRow,
    RevisionRow,
    SessionRow,
    SettingsRow,
    SummaryRow,
    UsageRow,
    Use,
    WorkRow,
)
from eunoe.store.contract import Row, StreamRow

_CHUNK = 500
_ITEM = ", ".join(f"i.{name}" for name in Row._fields)
_STREAM = "s.id, s.scope, s.version, s.position"
_WAITING = (
    "FROM items i WHERE i.stream = ? AND i.kind = 'observation' AND i.kind != 'message' AND i.retired IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM absorbed a WHERE a.stream = i.stream AND a.id = i.id)"
)
_UNREAD = (
    "FROM items i WHERE i.stream = ? AND i.seq > ? AND i.retired IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM readings r WHERE r.seq = i.seq) AND i.kind IN"
)
T = TypeVar("T")


class SqliteBooks(Books):
    """Asks the store for the calling thread's connection, so that every step is part of the store's own."""

    def __init__(self, connection: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connection

    def settings(self, stream: int) -> SettingsRow | None:
        row = self._one(f"SELECT {_names(SettingsRow)} FROM settings WHERE stream = ?", stream)
        return SettingsRow._make(row) if row else None

    def put_settings(self, row: SettingsRow) -> None:
        self._put("settings", [row])

    def drop_settings(self, stream: int) -> None:
        self._do("DELETE FROM settings WHERE stream = ?", stream)

    def configured(self) -> list[tuple[StreamRow, SettingsRow]]:
        names = ", ".join(f"t.{name}" for name in SettingsRow._fields)
        found = self._all(f"SELECT {_STREAM}, {names} FROM settings t JOIN streams s ON s.id = t.stream ORDER BY scope")
        return [(StreamRow._make(row[:4]), SettingsRow._make(row[4:])) for row in found]

    def session(self, stream: int) -> SessionRow | None:
        row = self._one(f"SELECT {_names(SessionRow)} FROM sessions WHERE stream = ?", stream)
        return SessionRow._make(row) if row else None

    def put_session(self, row: SessionRow) -> None:
        self._put("sessions", [row])

    def drop_session(self, stream: int) -> None:
        self._do("DELETE FROM sessions WHERE stream = ?", stream)
        self._do("DELETE FROM work WHERE stream = ?", stream)

    def idle(self, before: int, least: int, limit: int) -> list[tuple[StreamRow, SessionRow]]:
        names = ", ".join(f"t.{name}" for name in SessionRow._fields)
        free = "EXISTS (SELECT 1 FROM work w WHERE w.stream = t.stream AND w.until < ? AND w.retry <= ?)"
        sql = (
            f"SELECT {_STREAM}, {names} FROM sessions t JOIN streams s ON s.id = t.stream "
            f"WHERE t.active < ? AND (t.messages >= ? OR {free}) ORDER BY t.active LIMIT ?"
        )
        found = self._all(sql, before, least, before, before, limit)
        return [(StreamRow._make(row[:4]), SessionRow._make(row[4:])) for row in found]

    def work(self, stream: int) -> list[WorkRow]:
        found = self._all(f"SELECT {_names(WorkRow)} FROM work WHERE stream = ? ORDER BY start", stream)
        return [WorkRow._make(row) for row in found]

    def put_work(self, rows: Sequence[WorkRow]) -> None:
        self._put("work", rows)

    def drop_work(self, stream: int, start: int) -> None:
        self._do("DELETE FROM work WHERE stream = ? AND start = ?", stream, start)

    def summary(self, stream: int) -> SummaryRow | None:
        row = self._one(f"SELECT {_names(SummaryRow)} FROM summaries WHERE stream = ?", stream)
        return SummaryRow._make(row) if row else None

    def put_summary(self, row: SummaryRow) -> None:
        self._put("summaries", [row])

    def revisions(self, stream: int) -> list[RevisionRow]:
        found = self._all(f"SELECT {_names(RevisionRow)} FROM revisions WHERE stream = ? ORDER BY number", stream)
        return [RevisionRow._make(row) for row in found]

    def revision(self, stream: int, number: int) -> RevisionRow | None:
        sql = f"SELECT {_names(RevisionRow)} FROM revisions WHERE stream = ? AND number = ?"
        row = self._one(sql, stream, number)
        return RevisionRow._make(row) if row else None

    def put_revision(self, row: RevisionRow) -> None:
        self._put("revisions", [row])

    def drop_revisions(self, stream: int, numbers: Sequence[int]) -> None:
        for part in _chunks(numbers):
            self._do(f"DELETE FROM revisions WHERE stream = ? AND number IN ({_marks(part)})", stream, *part)

    def absorb(self, stream: int, ids: Sequence[str], revision: int) -> None:
        rows = [(stream, id, revision) for id in ids]
        self._connection().executemany("INSERT OR REPLACE INTO absorbed VALUES (?, ?, ?)", rows)

    def release(self, stream: int, ids: Sequence[str]) -> None:
        for part in _chunks(ids):
            self._do(f"DELETE FROM absorbed WHERE stream = ? AND id IN ({_marks(part)})", stream, *part)

    def absorbed(self, stream: int) -> dict[str, int]:
        return dict(self._all("SELECT id, revision FROM absorbed WHERE stream = ?", stream))

    def unabsorbed(self, stream: int) -> list[Row]:
        return [Row._make(row) for row in self._all(f"SELECT {_ITEM} {_WAITING} ORDER BY i.seq", stream)]

    def unabsorbed_count(self, stream: int) -> int:
        return int(self._one(f"SELECT count(*) {_WAITING}", stream)[0])

    def latest(self, stream: int, kind: str, limit: int) -> list[Row]:
        sql = (
            f"SELECT {_ITEM} FROM items i WHERE i.stream = ? AND i.kind = ? AND i.kind != 'message' "
            "AND i.retired IS NULL ORDER BY i.seq DESC LIMIT ?"
        )
        return [Row._make(row) for row in self._all(sql, stream, kind, limit)]

    def living(self, stream: int, kind: str) -> int:
        sql = "SELECT count(*) FROM items WHERE stream = ? AND kind = ? AND kind != 'message' AND retired IS NULL"
        return int(self._one(sql, stream, kind)[0])

    def rebuilds(self, limit: int) -> list[StreamRow]:
        sql = f"SELECT {_STREAM} FROM summaries t JOIN streams s ON s.id = t.stream WHERE t.rebuild = 1 LIMIT ?"
        return [StreamRow._make(row) for row in self._all(sql, limit)]

    def link(self, source: int, stream: int) -> None:
        self._do("INSERT OR IGNORE INTO links (source, stream) VALUES (?, ?)", source, stream)

    def resting_on(self, source: int) -> list[StreamRow]:
        sql = f"SELECT {_STREAM} FROM links l JOIN streams s ON s.id = l.stream WHERE l.source = ? ORDER BY s.scope"
        return [StreamRow._make(row) for row in self._all(sql, source)]

    def rests_on(self, stream: int) -> list[StreamRow]:
        sql = f"SELECT {_STREAM} FROM links l JOIN streams s ON s.id = l.source WHERE l.stream = ? ORDER BY s.scope"
        return [StreamRow._make(row) for row in self._all(sql, stream)]

    def put_readings(self, rows: Sequence[ReadingRow]) -> None:
        self._put("readings", rows)

    def readings(self, seqs: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for part in _chunks(seqs):
            found.update(self._all(f"SELECT seq, data FROM readings WHERE seq IN ({_marks(part)})", *part))
        return found

    def known_readings(self, stream: int, contents: Sequence[bytes]) -> dict[bytes, ReadingRow]:
        names = ", ".join(f"r.{name}" for name in ReadingRow._fields)
        found: dict[bytes, ReadingRow] = {}
        for part in _chunks(contents):
            sql = (
                f"SELECT {names} FROM readings r JOIN items i ON i.seq = r.seq "
                f"WHERE i.stream = ? AND r.content IN ({_marks(part)})"
            )
            found |= {row[1]: ReadingRow._make(row) for row in self._all(sql, stream, *part)}
        return found

    def unread(self, stream: int, kinds: Sequence[str], after: int, limit: int) -> list[Row]:
        sql = f"SELECT {_ITEM} {_UNREAD} ({_marks(kinds)}) ORDER BY i.seq LIMIT ?"
        return [Row._make(row) for row in self._all(sql, stream, after, *kinds, limit)]

    def unread_count(self, stream: int, kinds: Sequence[str]) -> int:
        return int(self._one(f"SELECT count(*) {_UNREAD} ({_marks(kinds)})", stream, 0, *kinds)[0])

    def touch(self, uses: Mapping[int, Use]) -> None:
        sql = (
            "INSERT INTO uses (seq, times, last) SELECT seq, ?, ? FROM items WHERE seq = ? "
            "ON CONFLICT (seq) DO UPDATE SET times = times + excluded.times, last = max(last, excluded.last)"
        )
        self._connection().executemany(sql, [(use.times, use.last, seq) for seq, use in uses.items()])

    def uses(self, seqs: Sequence[int]) -> dict[int, Use]:
        found: dict[int, Use] = {}
        for part in _chunks(seqs):
            rows = self._all(f"SELECT seq, times, last FROM uses WHERE seq IN ({_marks(part)})", *part)
            found |= {row[0]: Use(row[1], row[2]) for row in rows}
        return found

    def spend(self, rows: Sequence[UsageRow]) -> None:
        added = ", ".join(f"{name} = {name} + excluded.{name}" for name in UsageRow._fields[2:])
        sql = (
            f"INSERT INTO usage ({_names(UsageRow)}) VALUES ({_marks(UsageRow._fields)}) "
            f"ON CONFLICT (operation, model) DO UPDATE SET {added}"
        )
        self._connection().executemany(sql, rows)

    def spent(self) -> list[UsageRow]:
        found = self._all(f"SELECT {_names(UsageRow)} FROM usage ORDER BY operation, model")
        return [UsageRow._make(row) for row in found]

    def hide(self, key: bytes) -> None:
        self._do("INSERT OR IGNORE INTO hidden (key) VALUES (?)", key)

    def show(self, key: bytes) -> None:
        self._do("DELETE FROM hidden WHERE key = ?", key)

    def hidden(self, key: bytes) -> bool:
        return self._one("SELECT 1 FROM hidden WHERE key = ?", key) is not None

    def health(self) -> Health:
        in_work = (
            "SELECT count(*) FROM work w JOIN items i ON i.stream = w.stream "
            "AND i.kind = 'message' AND i.seq > w.start AND i.seq <= w.stop"
        )
        waiting = self._one("SELECT coalesce(sum(messages), 0) FROM sessions")[0] + self._one(in_work)[0]
        failing = self._all(
            "SELECT error FROM work WHERE attempts > 0 UNION ALL SELECT error FROM summaries WHERE attempts > 0"
        )
        return Health(
            due_messages=waiting,
            work=self._one("SELECT count(*) FROM work")[0],
            failing=len(failing),
            revisions=self._one("SELECT count(*) FROM revisions")[0],
            error=failing[-1][0] if failing else "",
        )

    def _put(self, table: str, rows: Sequence[Any]) -> None:
        if rows:
            names = _names(type(rows[0]))
            sql = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({_marks(rows[0])})"
            self._connection().executemany(sql, rows)

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self._connection().execute(sql, values).fetchall()

    def _one(self, sql: str, *values: Any) -> Any:
        return self._connection().execute(sql, values).fetchone()

    def _do(self, sql: str, *values: Any) -> None:
        self._connection().execute(sql, values)


def _names(row: type[NamedTuple]) -> str:
    return ", ".join(row._fields)


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
