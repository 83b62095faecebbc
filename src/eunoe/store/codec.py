"""Between typed records and the plain values of a database: derived from the types of a record's fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from eunoe.model.record import NO_METADATA
from eunoe.model.time import from_micros, to_micros
from eunoe.store.tables import Lease

R = TypeVar("R", bound=NamedTuple)
Convert = Callable[[Any], Any]

dump_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Column(NamedTuple):
    """One column of a table."""

    name: str
    default: Any
    """What the database holds for the field's default; None also where there is no default."""
    encode: Convert | None = None
    decode: Convert | None = None


class Codec:
    """Encodes and decodes the records of one type."""

    def __init__(self, record: type[Any]) -> None:
        self._record = record
        self.columns = tuple(_columns(record))
        self.names = tuple(column.name for column in self.columns)
        self._decoders = [(place, each.decode) for place, each in enumerate(self.columns) if each.decode]
        self._encoders = [(place, each.encode) for place, each in enumerate(self.columns) if each.encode]
        self._lease = "lease" in record._fields

    def decode(self, row: Sequence[Any]) -> Any:
        values = list(row)
        for place, convert in self._decoders:
            values[place] = convert(values[place])
        if self._lease:  # its columns are the last ones
            start = len(values) - len(Lease._fields)
            values[start:] = [Lease._make(values[start:])]
        return self._record._make(values)

    def decode_all(self, rows: Iterable[Sequence[Any]]) -> list[Any]:
        decode = self.decode
        return [decode(row) for row in rows]

    def encode(self, record: Sequence[Any]) -> list[Any]:
        values = [*record[:-1], *record[-1]] if self._lease else list(record)
        for place, convert in self._encoders:
            values[place] = convert(values[place])
        return values

    def value(self, name: str, value: Any) -> Any:
        """The plain value of one field, for a condition."""
        encode = self.columns[self.names.index(name)].encode
        return encode(value) if encode else value


_codecs: Final[dict[type[Any], Codec]] = {}


def codec_of(record: type[Any]) -> Codec:
    codec = _codecs.get(record)
    if codec is None:
        codec = _codecs[record] = Codec(record)
    return codec


def _columns(record: type[Any]) -> Iterable[Column]:
    hints = get_type_hints(record, include_extras=True)
    for name in record._fields:
        if hints[name] is Lease:
            yield from _columns(Lease)
            continue
        encode, decode = _converters(hints[name])
        default = record._field_defaults.get(name)
        yield Column(name, encode(default) if encode and default is not None else default, encode, decode)


def _converters(hint: Any) -> tuple[Convert | None, Convert | None]:
    """How values of a type are written and read; None where they are kept as they are."""
    if get_origin(hint) is Annotated:
        return _time_or_never, _never_or_time
    if hint is datetime:
        return to_micros, from_micros
    if get_origin(hint) is UnionType and datetime in get_args(hint):
        return _optional_micros, _optional_time
    if hint is bool:
        return int, bool
    if get_origin(hint) is tuple:
        nested = get_origin(get_args(hint)[0]) is tuple
        return (_dump_groups, _load_groups) if nested else (_dump_list, _load_list)
    return (_dump_object, _load_object) if get_origin(hint) is Mapping else (None, None)


def _time_or_never(time: datetime | None) -> int:
    return 0 if time is None else to_micros(time)


def _never_or_time(micros: int) -> datetime | None:
    return from_micros(micros) if micros else None


def _optional_micros(time: datetime | None) -> int | None:
    return None if time is None else to_micros(time)


def _optional_time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _dump_list(values: Sequence[str]) -> str:
    return dump_json(list(values)) if values else ""


def _load_list(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text else ()


def _dump_groups(groups: Sequence[Sequence[str]]) -> str:
    """The first group's texts, then each further group as a list of its own: most atoms have one group."""
    return dump_json([*groups[0], *map(list, groups[1:])]) if groups else ""


def _load_groups(text: str) -> tuple[tuple[str, ...], ...]:
    if not text:
        return ()
    values = json.loads(text)
    first = tuple(value for value in values if isinstance(value, str))
    return tuple(group for group in (first, *(tuple(value) for value in values if isinstance(value, list))) if group)


def _dump_object(value: Mapping[str, Any]) -> str:
    return dump_json(dict(value)) if value else ""


def _load_object(text: str) -> Mapping[str, Any]:
    return json.loads(text) if text else NO_METADATA
