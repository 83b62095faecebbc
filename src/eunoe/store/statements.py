"""What a step reads with: the conditions of statements, and what a store on a SQL database has."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from secrets import token_hex
from typing import Any, ClassVar, Final, NoReturn, Protocol

from eunoe.errors import StoreError
from eunoe.model.arguments import to_micros
from eunoe.model.result import Damage
from eunoe.model.scope import Scope
from eunoe.store.codec import Table
from eunoe.store.contract import ItemQuery, Reading, Store
from eunoe.store.schema import SEQ_BITS, STREAM_BITS, Dialect, StreamState

MAX_PARAMETERS: Final = 500
"""Values in one list of a statement; databases limit them, SQLite before 3.32 to 999 in all."""

_NO_LIMIT: Final = 2**63 - 1
Condition = tuple[str, Sequence[Any]] | tuple[str, Sequence[Any], int]
"""A condition in SQL and its values: one for each `?`, or any number for its `{}`. A third value says how many bits of
these numbers come after their place, which the `?` before them is for."""

_CONDITIONS: Final = {
    "kinds": "i.kind IN ({})",
    "labels": "i.label IN ({})",
    "ids": "i.id IN ({})",
    "identities": "i.identity IN ({})",
    "superseded_by": "i.superseded_by <> '' AND i.superseded_by IN ({})",
    "topics": "i.topic IN ({})",
    "session": "i.position IS NOT NULL AND i.session = ?",
    "open": "i.retired IS NULL",
    "archived": "i.retired IS NOT NULL AND i.superseded_by = ''",
    "reviewed": "i.in_review = 0",
    "in_review": "i.in_review = 1",
    "supported": "i.supports <> ''",
    "described": "i.metadata <> ''",
    "pending": "i.pending = 1",
    "unabsorbed": (
        "NOT EXISTS (SELECT 1 FROM absorptions a WHERE a.place = i.place AND a.stream = i.stream AND a.id = i.id)"
    ),
    "without_graph": "NOT EXISTS (SELECT 1 FROM passage_graphs g WHERE g.place = i.place AND g.seq = i.seq)",
    "without_vector": "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.place = i.place AND v.seq = i.seq)",
}
"""What stands for the fields of an `ItemQuery`."""
_LAST_TOPIC: Final = b"\xff" * 64
"""No topic that begins with the same bytes goes on with higher ones."""


def where_clauses(conditions: Sequence[Condition]) -> list[tuple[str, list[Any]]]:
    """Join conditions for statements that together find each record once. A list that is too long for one statement, or
    of more than one place, makes several, an empty one none."""
    choices = [_alternatives(*condition) for condition in conditions]
    return [
        (" AND ".join(sql for sql, _ in parts) or "1 = 1", [value for _, values in parts for value in values])
        for parts in product(*choices)
    ]


def _alternatives(sql: str, values: Sequence[Any], shift: int | None = None) -> list[tuple[str, Sequence[Any]]]:
    if "{}" not in sql:
        return [(sql, values)]
    unique = list(dict.fromkeys(values))
    groups: list[tuple[Sequence[int], list[Any]]] = [((), unique)]
    if shift is not None:
        groups = [
            ((place,), list(group)) for place, group in groupby(sorted(unique), key=lambda number: number >> shift)
        ]
    return [
        (sql.format(", ".join("?" * len(part))), (*place, *part))
        for place, numbers in groups
        for start in range(0, len(numbers), MAX_PARAMETERS)
        for part in [numbers[start : start + MAX_PARAMETERS]]
    ]


def of_stream(stream: int, alias: str = "") -> Condition:
    """What belongs to a stream."""
    return f"{alias}place = ? AND {alias}stream = ?", (stream >> STREAM_BITS, stream)


def of_streams(streams: Sequence[int], alias: str = "", column: str = "stream") -> Condition:
    return f"{alias}place = ? AND {alias}{column} IN ({{}})", streams, STREAM_BITS


def of_records(seqs: Sequence[int], alias: str = "") -> Condition:
    return f"{alias}place = ? AND {alias}seq IN ({{}})", seqs, STREAM_BITS + SEQ_BITS


def item_conditions(query: ItemQuery, has_part: str) -> list[Condition]:
    """The conditions of a query. `has_part` asks whether a text stands in the metadata, as a database does it best."""
    conditions: list[Condition] = []
    if query.stream is not None:
        conditions.append(of_stream(query.stream, "i."))
    if query.streams is not None:
        conditions.append(of_streams(query.streams, "i."))
    if query.seqs is not None:
        conditions.append(of_records(query.seqs, "i."))
    for sign, number in ((">", query.after), ("<=", query.until)):
        if number is not None and query.stream is not None:
            conditions.append((f"i.seq {sign} ?", (number,)))
        elif number is not None:  # in the order of the key, which is the same
            conditions.append((f"(i.place, i.seq) {sign} (?, ?)", (number >> STREAM_BITS + SEQ_BITS, number)))
    for name, sql in _CONDITIONS.items():
        value = getattr(query, name)
        if name == "open" and query.known_at is not None:
            continue
        if value is not None and value is not False:
            conditions.append((sql, () if value is True else value if "{}" in sql else (value,)))
    conditions += [(f"({' OR '.join([has_part] * len(parts))})", parts) for parts in query.metadata_parts]
    conditions += _time_conditions(query)
    if query.topic_start is not None:
        conditions.append(("i.topic BETWEEN ? AND ?", (query.topic_start, query.topic_start + _LAST_TOPIC)))
    if query.kinds is not None and "message" not in query.kinds:
        conditions.append(("i.kind <> 'message'", ()))  # says nothing new, but lets the index on atoms be used
    return conditions


def _time_conditions(query: ItemQuery) -> Iterator[Condition]:
    if query.known_at is not None:
        yield "i.recorded <= ?", (to_micros(query.known_at),)
        if query.open:
            yield "(i.retired IS NULL OR i.retired > ?)", (to_micros(query.known_at),)
    if query.since is not None:
        yield "i.recorded >= ?", (to_micros(query.since),)
    if query.before is not None:
        yield "i.recorded < ?", (to_micros(query.before),)
    if query.older_than is not None:
        yield "(i.recorded, i.seq) < (?, ?)", (to_micros(query.older_than[0]), query.older_than[1])


def scope_condition(scope: Scope) -> Condition:
    """Find streams by the parts of their scopes' texts. Unlike LIKE, `replace` heeds case in every database."""
    has_part = "replace('/' || scope || '/', ?, '') <> '/' || scope || '/'"
    parts = [f"/{part}/" for part in scope.alone.text.split("/")]
    return " AND ".join([has_part] * len(parts)), parts


def key_conditions(table: Table[Any], key: Mapping[str, Any]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, value in key.items():
        if table.place and name == table.place[0]:
            values = value if isinstance(value, list) else [value]
            conditions.append((f"place = ? AND {name} IN ({{}})", values, table.place[1]))
        elif isinstance(value, list):
            conditions.append((f"{name} IN ({{}})", value))
        elif isinstance(value, bool):
            conditions.append((f"{name} = {value:d}", ()))  # in words, so that a partial index can be used
        else:
            conditions.append((f"{name} = ?", (value,)))
    return conditions


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


ENDED: Final = NoConnection("what a step of a store is given can be used in that step only")


@dataclass(slots=True)
class Findings:
    """What the steps of an open store have found out for later ones."""

    noticed: dict[int, dict[Damage, None]] = field(default_factory=dict)
    """Damage by the numbers of streams. Rows that were left out are remembered until their stream is repaired."""
    verified: set[int] = field(default_factory=set)
    counted: set[int] = field(default_factory=set)
    has_all_streams: bool = False
    streams_within: dict[str, tuple[Any, list[StreamState]]] = field(default_factory=dict)


class SqlStore(Store):
    """A store on a SQL database. Its `read` and `write` make a `SqlReading` and a `SqlWriting` for each step."""

    dialect: ClassVar[Dialect]

    def __init__(self) -> None:
        self.token = token_hex(8)
        self.deleted = set()
        self.lost_vectors = set()
        self.findings = Findings()

    @abstractmethod
    def size(self) -> int:
        """The bytes that the database takes."""

    @abstractmethod
    def tells_damage(self, error: Exception) -> bool:
        """Whether an error of the database says that its pages or values cannot be read."""

    @abstractmethod
    def structure_damage(self, connection: Connection) -> Iterator[Damage]:
        """What the database itself finds wrong with its pages and indexes."""


class Statements(Reading):
    """What a step reads with: SQL on the connection that its snapshot is open on."""

    def __init__(self, store: SqlStore, connection: Connection) -> None:
        self.store: SqlStore = store
        self.connection = connection
        self._index_hint = store.dialect.index_hint

    def _find(
        self,
        select: str,
        conditions: Sequence[Condition],
        order: str = "",
        limit: int | None = None,
        before: Sequence[Any] = (),
        offset: int = 0,
    ) -> list[Any]:
        """Rows that meet the conditions. `before` are the values that stand in front of them."""
        execute = self.connection.execute
        limit = _NO_LIMIT if offset and limit is None else limit  # SQLite has no OFFSET without LIMIT
        end = (f" ORDER BY {order}" if order else "") + ("" if limit is None else " LIMIT ?")
        last = () if limit is None else (limit,)
        if offset:
            end, last = f"{end} OFFSET ?", (*last, offset)
        return [
            row
            for where, values in where_clauses(conditions)
            for row in execute(f"{select} WHERE {where}{end}", (*before, *values, *last)).fetchall()
        ]

    def _delete(self, table: str, conditions: Sequence[Condition]) -> int:
        execute = self.connection.execute
        clauses = where_clauses(conditions)
        return sum(execute(f"DELETE FROM {table} WHERE {where}", values).rowcount for where, values in clauses)
