"""Between typed records and the plain values of a database: derived from the types of a record's fields.

A table's `encode` and `decode` are generated with the conversions written out, so that a value costs no call.
Each row ends with a checksum of its other values, by which damage is noticed where the row is read.
"""

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from json.encoder import encode_basestring
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar, get_type_hints
from zlib import crc32

from eunoe.model.arguments import Kind
from eunoe.model.atom import NO_METADATA
from eunoe.model.scope import Scope

T = TypeVar("T", bound=tuple[Any, ...])

TimeOrNever = Annotated[datetime | None, 0]
"""A moment that is kept as 0 where there is none."""

CHECKSUM: Final = "checksum"
dump_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_scan_json: Final = json.JSONDecoder().raw_decode

_MARSHAL_FORMAT: Final = 2
"""The last one in which equal values give equal bytes in every process and version of Python."""


def row_checksum(row: tuple[Any, ...]) -> int:
    """The checksum of a row's values, in the order of their columns' names. It tells any single flipped bit."""
    try:
        return crc32(marshal.dumps(row, _MARSHAL_FORMAT))
    except ValueError:  # a subclass of a plain type, which a database keeps as that type
        plain = [next((kind(value) for kind in (str, int) if isinstance(value, kind)), value) for value in row]
        return crc32(marshal.dumps(tuple(plain), _MARSHAL_FORMAT))


def _load_groups(text: str) -> tuple[tuple[str, ...], ...]:
    parts = _scan_json(text)[0]
    groups = [tuple(part) for part in parts if isinstance(part, list)]
    first = tuple([part for part in parts if isinstance(part, str)])
    return (first, *groups) if first else tuple(groups)


_LIST: Final = "'[' + ','.join(map(_quote, $)) + ']'"
"""What `dump_json` gives for a list of texts, in a fifth of the time."""
_CONVERSIONS: Final[Mapping[Any, tuple[str, str]]] = {
    **dict.fromkeys((str, int, bytes, int | None, bytes | None, Kind), ("$", "$")),
    float: ("$ + 0.0", "$"),  # as a database gives it back: 0.0 for 0 and for -0.0
    Scope: ("$.text", "_scope($)"),
    bool: ("int($)", "bool($)"),
    datetime: ("($ - _epoch) // _microsecond", "_epoch + $ * _microsecond"),
    datetime | None: (
        "None if $ is None else ($ - _epoch) // _microsecond",
        "None if $ is None else _epoch + $ * _microsecond",
    ),
    TimeOrNever: ("0 if $ is None else ($ - _epoch) // _microsecond", "_epoch + $ * _microsecond if $ else None"),
    tuple[str, ...]: (f"{_LIST} if $ else ''", "tuple(_scan_json($)[0]) if $ else ()"),
    # The first group's texts, then each further group as a list of its own: most atoms have one group.
    tuple[tuple[str, ...], ...]: (
        f"'' if not $ else {_LIST.replace('$', '$[0]')} if len($) == 1 else _dump_json([*$[0], *$[1:]])",
        "() if not $ else (tuple(_scan_json($)[0]),) if $.count('[') == 1 else _load_groups($)",
    ),
    Mapping[str, Any]: ("_dump_json(dict($)) if $ else ''", "_scan_json($)[0] if $ else _no_metadata"),
}
"""How a value of each type is written and read, in Python, with `$` for the value."""
_NAMES: Final[Mapping[str, Any]] = {
    "_new": tuple.__new__,
    "_epoch": datetime(1970, 1, 1, tzinfo=UTC),
    "_microsecond": timedelta(microseconds=1),
    "_quote": encode_basestring,
    "_dump_json": dump_json,
    "_scan_json": _scan_json,
    "_load_groups": _load_groups,
    "_no_metadata": NO_METADATA,
    "_scope": Scope.stored,
}
"""What the conversions refer to; no field begins with an underscore."""


class Index(NamedTuple):
    """An index of a table: its columns, and of which rows it is, both in SQL."""

    name: str
    columns: str
    where: str = ""
    unique: bool = False


class Table(Generic[T]):
    """Where records of one type are kept, which columns tell them apart, and how they are written and read.

    The parts of a record within a record are columns of their own. A row has its columns in
    the order of their names, then its checksum.
    """

    def __init__(
        self,
        name: str,
        record: type[T],
        key: tuple[str, ...],
        *,
        place: tuple[str, int] | None = None,
        indexes: Sequence[Index] = (),
        with_rowid: bool = True,
        is_derived: bool = False,
    ) -> None:
        """`place` is the number of a stream or record that begins with the place, and how many bits come after it.
        What `is_derived` can be made anew: its rows are not counted, and a damaged one is left out."""
        self.name = name
        self.record = record
        self.key = key
        self.primary_key = ("place", *key) if place else key
        self.place = place
        self.indexes = indexes
        self.with_rowid = with_rowid
        self.is_derived = is_derived
        self.hints: dict[str, Any] = {}
        """The type of each column's values."""
        self._names = dict(_NAMES)
        fields, stored, made = _expressions(record, self._names, self.hints)
        if place:
            stored["place"], self.hints["place"] = f"{place[0]} >> {place[1]}", int
        self._stored = dict(sorted(stored.items()))
        self.values = tuple(self._stored)
        self.columns = (*self.values, CHECKSUM)
        row, columns = ", ".join(self._stored.values()), ", ".join(self.columns)
        self._encode_values: Callable[[Iterable[T]], list[tuple[Any, ...]]] = eval(
            f"lambda records: [({row},) for {fields} in records]", self._names
        )
        self.decode: Callable[[Iterable[Sequence[Any]]], list[T]] = eval(
            f"lambda rows: [{made} for {columns}, in rows]", self._names
        )

    def encode(self, records: Iterable[T]) -> list[tuple[Any, ...]]:
        return [(*row, row_checksum(row)) for row in self._encode_values(records)]

    @cached_property
    def encode_column(self) -> Mapping[str, Callable[[Sequence[Any]], list[Any]]]:
        """For each column, a function that encodes its values: quicker for many records that leave most columns out."""
        stored = self._stored.items()
        return {name: eval(f"lambda values: [{value} for {name} in values]", self._names) for name, value in stored}

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The values that tell a row apart."""
        return tuple([row[place] for place in self._key_places])

    def primary_key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The same, after the place where it has one."""
        return (row[self._place], *self.key_of(row)) if self.place else self.key_of(row)

    @cached_property
    def _key_places(self) -> Sequence[int]:
        return tuple(map(self.values.index, self.key))

    @cached_property
    def _place(self) -> int:
        return self.values.index("place")

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The values of columns that a record leaves at their default, as a database holds them."""
        known = {name: value for name, value in self.record._field_defaults.items() if name in self._stored}  # type: ignore[attr-defined]
        return {name: self.encode_column[name]([value])[0] for name, value in known.items()}


def find_damaged(rows: Iterable[tuple[Any, ...]], place: int = -1) -> list[tuple[Any, ...]]:
    """Return the rows whose checksum, which stands in this place, is not that of the values before it."""
    return [row for row in rows if row_checksum(row[:place]) != row[place]]


def _expressions(record: Any, names: dict[str, Any], hints: dict[str, Any]) -> tuple[str, dict[str, str], str]:
    """The fields that a record is unpacked into, the stored value of each column, and the record made of columns."""
    names[record.__name__] = record
    fields: list[str] = []
    stored: dict[str, str] = {}
    values: list[str] = []
    for name, hint in get_type_hints(record, include_extras=True).items():
        if hasattr(hint, "_fields"):
            field, columns, value = _expressions(hint, names, hints)
        else:
            to_stored, value = (conversion.replace("$", name) for conversion in _CONVERSIONS[hint])
            field, columns = name, {name: to_stored}
            hints[name] = hint
        fields.append(field)
        stored |= columns
        values.append(value)
    return f"({', '.join(fields)},)", stored, f"_new({record.__name__}, ({', '.join(values)},))"
