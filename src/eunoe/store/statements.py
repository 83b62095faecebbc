"""The statements of a block: how a store runs them, and what they find."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from secrets import token_hex
from typing import Any, ClassVar, Final, NoReturn, Protocol

from eunoe.errors import StoreError
from eunoe.model.arguments import to_micros
from eunoe.model.result import Damage
from eunoe.model.scope import Scope
from eunoe.store.contract import ItemQuery, Reading, Store
from eunoe.store.schema import StreamState

MAX_PARAMETERS: Final = 500
"""Values in one list of a statement; databases limit them, SQLite before 3.32 to 999 in all."""

Condition = tuple[str, Sequence[Any]]
"""A condition in SQL and its values: one for its `?`, or any number for its `{}`."""

_CONDITIONS: Final = {
    "stream": "i.stream = ?",
    "streams": "i.stream IN ({})",
    "kinds": "i.kind IN ({})",
    "labels": "i.label IN ({})",
    "ids": "i.id IN ({})",
    "identities": "i.identity IN ({})",
    "superseded_by": "i.superseded_by <> '' AND i.superseded_by IN ({})",
    "topics": "i.topic IN ({})",
    "seqs": "i.seq IN ({})",
    "after": "i.seq > ?",
    "until": "i.seq <= ?",
    "session": "i.position IS NOT NULL AND i.session = ?",
    "open": "i.retired IS NULL",
    "archived": "i.retired IS NOT NULL AND i.superseded_by = ''",
    "reviewed": "i.in_review = 0",
    "in_review": "i.in_review = 1",
    "supported": "i.supports <> ''",
    "described": "i.metadata <> ''",
    "pending": "i.pending = 1",
    "unabsorbed": "NOT EXISTS (SELECT 1 FROM absorptions a WHERE a.stream = i.stream AND a.id = i.id)",
    "without_graph": "NOT EXISTS (SELECT 1 FROM passage_graphs g WHERE g.seq = i.seq)",
    "without_vector": "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = ? AND v.seq = i.seq)",
}
"""What stands for the fields of an `ItemQuery`."""
HAS_PART: Final = "replace(i.metadata, ?, '') <> i.metadata"
"""Unlike LIKE, this heeds case in every database."""
_LAST_TOPIC: Final = b"\xff" * 64
"""No topic that begins with the same bytes goes on with higher ones."""


def where_clauses(conditions: Sequence[Condition]) -> list[tuple[str, list[Any]]]:
    """Join conditions for statements that together find each record once. A list that is too long for one statement
    makes several, an empty one none."""
    if all("{}" not in sql or 0 < len(values) <= MAX_PARAMETERS for sql, values in conditions):
        lists = [list(dict.fromkeys(values)) if "{}" in sql else values for sql, values in conditions]
        return [_joined(conditions, lists)]
    choices: list[list[Sequence[Any]]] = []
    for sql, values in conditions:
        if "{}" in sql:
            unique = list(dict.fromkeys(values))
            starts = range(0, len(unique), MAX_PARAMETERS)
            choices.append([unique[start : start + MAX_PARAMETERS] for start in starts])
        else:
            choices.append([values])
    return [_joined(conditions, parts) for parts in product(*choices)]


def _joined(conditions: Sequence[Condition], parts: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    pairs = zip(conditions, parts, strict=True)
    texts = [sql.format(", ".join("?" * len(part))) if "{}" in sql else sql for (sql, _), part in pairs]
    return " AND ".join(texts) or "1 = 1", [value for part in parts for value in part]


def item_conditions(query: ItemQuery, has_part: str = HAS_PART) -> list[Condition]:
    """The conditions of a query. `has_part` asks whether a text stands in the metadata, as a database does it best."""
    conditions: list[Condition] = []
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


def key_conditions(key: Mapping[str, Any]) -> list[Condition]:
    conditions: list[Condition] = []
    for name, value in key.items():
        if isinstance(value, list):
            conditions.append((f"{name} IN ({{}})", value))
        elif isinstance(value, bool):
            conditions.append((f"{name} = {value:d}", ()))  # in words, so that a partial index can be used
        else:
            conditions.append((f"{name} = ?", (value,)))
    return conditions


_NO_LIMIT: Final = 2**63 - 1


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


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a database says otherwise than others."""

    index_hint: str = ""
    """What follows a table's name where a certain index should be used, with `{}` for that index."""
    has_part: str = HAS_PART
    has_tenant: str = ""
    """Whether a stream's scope has a tenant, as the index `streams_tenant` asks it."""
    tenant_part: str = ""
    """What that index holds: the scope from its tenant on, between `/` and `/`."""
    tenant_pair: str = ""
    """The key and value of a scope's tenant after `/`, as the index `streams_user` asks it; empty if it has none."""
    has_user: str = ""
    user_part: str = ""
    """The same for users."""


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
