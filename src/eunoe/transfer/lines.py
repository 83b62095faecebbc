"""The lines of an export, and how they are written and read.

The first line names the format. A `preset` line has no scope: it is a kind of stream that was changed or added and that
one of the exported streams is of. All other lines name theirs: `settings`, then `message`, `fact` and `observation`,
then `session` (users whom no message names), `summary` (every revision, and which one is current) and `tombstone`.
Messages that were turned into memories say `formed`; the others are due wherever they go. Numbers, leases, vectors and
cost stay behind.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from eunoe.errors import InputError
from eunoe.model.arguments import (
    ATOM_KINDS,
    KINDS,
    Kind,
    check_metadata,
    check_name,
    check_names,
    check_text,
    parse_time,
)
from eunoe.model.atom import Record, unique_supports
from eunoe.model.message import role_named
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings
from eunoe.records.identity import atom_identity, id_identity, topic_of
from eunoe.store.schema import AccessCount, RevisionRecord, Tombstone

FORMAT: Final = 2

_MAX_NUMBER: Final = 1 << 53
"""JSON readers of other languages lose digits beyond it."""
_LEFT_BEHIND: Final = frozenset({"seq", "stream", "version", "pending", "identity", "supports", "topic"})
"""Fields that mean nothing elsewhere, or that have a form of their own in a line."""
_FIELDS: Final = {
    name: hint for name, hint in get_type_hints(Record).items() if name in Record._fields and name not in _LEFT_BEHIND
}
_ANY_SETTINGS: Final = Settings(owner=("any",), observation_extraction_max=100_000, fact_extraction_max=100_000)


class ItemLine(NamedTuple):
    """A message or atom, with what the store says of it besides."""

    record: Record
    formed: bool = False
    access: AccessCount | None = None


class PresetLine(NamedTuple):
    name: str
    changes: Mapping[str, Any]


class SettingsLine(NamedTuple):
    preset: str
    changes: Mapping[str, Any]


class SessionLine(NamedTuple):
    users: tuple[str, ...]


class SummaryLine(NamedTuple):
    current: int
    last: int
    rebuild: bool
    revisions: tuple[RevisionRecord, ...]
    """In order, each after its parent; without a stream."""


Line = ItemLine | Tombstone | SettingsLine | SessionLine | SummaryLine | PresetLine
ScopedLine = tuple[Scope | None, Line]


def write_item(scope: Scope, line: ItemLine) -> dict[str, Any]:
    record = line.record
    written: dict[str, Any] = {"scope": scope.text, "kind": record.kind, "id": record.id, "text": record.text}
    for name in _FIELDS:
        value = getattr(record, name)
        if name not in written and value is not None and value != Record._field_defaults.get(name):
            written[name] = _plain(value)
    if record.supports:
        written["source"] = [*record.supports[0], *map(list, record.supports[1:])]
    if line.formed:
        written["formed"] = True
    if line.access:
        written["uses"] = {"times": line.access.times, "last": line.access.last.isoformat()}
    return written | {"key": record.identity.hex()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def write_tombstone(scope: Scope, tombstone: Tombstone) -> dict[str, Any]:
    return {
        "scope": scope.text,
        "kind": "tombstone",
        "key": tombstone.identity.hex(),
        "content": tombstone.content.hex(),
        "lane": tombstone.session_hash.hex(),
        "position": tombstone.position,
    }


def write_revision(record: RevisionRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "parent": record.parent,
        "text": record.text,
        "author": record.author,
        "absorbed": list(record.absorbed),
        "recorded": record.recorded.isoformat(),
    }


def read_lines(texts: Iterable[str]) -> Iterator[ScopedLine]:
    """Read lines with their scopes; a bad one is named."""
    for number, text in enumerate(texts, 1):
        try:
            if not text.strip():
                continue
            line = json.loads(text)
            if not isinstance(line, dict):
                raise InputError("not a JSON object")
            if "eunoe" not in line:
                yield read_line(line)
            elif line["eunoe"] not in range(1, FORMAT + 1):
                raise InputError(
                    f"format {line['eunoe']!r:.40} is not known here (this version reads {FORMAT}): upgrade eunoe"
                )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"line {number}: {_reason(error)}; the lines before it were imported") from None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at column {error.colno})"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def read_line(line: Mapping[str, Any]) -> ScopedLine:
    """Read one line and its scope. What is wrong with it comes as one of the errors that odd values raise."""
    kind = line.get("kind")
    if kind == "preset":
        return None, PresetLine(check_name(line["name"], "name"), check_changes(line["changes"]))
    scope = Scope.exact(str(line.get("scope", "")))
    if kind in KINDS:
        return scope, _read_item(line, kind)
    if kind not in _READERS:
        raise InputError(f"kind {kind!r} is not one of {', '.join((*KINDS, *_READERS))}")
    return scope, _READERS[kind](line)


def check_changes(changes: object) -> Mapping[str, Any]:
    """Changes of settings that some stream could have."""
    known = check_metadata(changes, "changes")
    for name, value in known.items():
        _ANY_SETTINGS.changed(**{name: value})
    return known


def _read_tombstone(line: Mapping[str, Any]) -> Tombstone:
    position = line.get("position")
    return Tombstone(
        _fingerprint(line["key"], "key", (16,)),
        _fingerprint(line["content"], "content", (0, 16)),
        _fingerprint(line["lane"], "lane", (0, 16)),
        position if position is None else _number(position),
    )


def _read_settings(line: Mapping[str, Any]) -> SettingsLine:
    return SettingsLine(check_name(line["preset"], "preset"), check_changes(line["changes"]))


def _read_session(line: Mapping[str, Any]) -> SessionLine:
    return SessionLine(check_names(line["users"], "users"))


def _read_summary(line: Mapping[str, Any]) -> SummaryLine:
    records: list[RevisionRecord] = []
    for value in line["revisions"]:
        records.append(_read_revision(value, {record.number for record in records}))
    numbers = [record.number for record in records]
    if not numbers or numbers != sorted(numbers):
        raise InputError("the revisions are none, or not in order")
    current, last = _number(line["current"]), _number(line["last"])
    if current not in (0, *numbers) or last < numbers[-1]:
        raise InputError(f"revision {current} of {last} does not fit the revisions {numbers}")
    return SummaryLine(current, last, _flag(line, "rebuild"), tuple(records))


def _read_revision(value: Mapping[str, Any], before: set[int]) -> RevisionRecord:
    number, parent = _number(value["number"]), _number(value["parent"])
    if number < 1 or number in before or parent not in (0, *before):
        raise InputError(f"revision {number} does not follow from revision {parent}")
    text, author = check_text(value["text"], "text"), check_text(value["author"], "author")
    if not text.strip():
        raise InputError(f"revision {number} says nothing: its text is empty or only blanks")
    absorbed = check_names(value["absorbed"], "absorbed")
    return RevisionRecord(0, number, parent, text, absorbed, author, parse_time(value["recorded"]))


_READERS: Final[Mapping[Any, Callable[[Mapping[str, Any]], Line]]] = {
    "tombstone": _read_tombstone,
    "settings": _read_settings,
    "session": _read_session,
    "summary": _read_summary,
}


def _read_item(line: Mapping[str, Any], kind: Kind) -> ItemLine:
    access = None
    if line.get("uses") is not None:
        access = AccessCount(0, _number(line["uses"]["times"]), parse_time(line["uses"]["last"], "last"))
    record = _read_record(line)
    record = _check_atom(record, line) if kind in ATOM_KINDS else _check_message(record, line)
    return ItemLine(record, _flag(line, "formed") and kind == "message", access)


def _read_record(line: Mapping[str, Any]) -> Record:
    if line.get("recorded") is None:
        raise InputError("the line has no 'recorded' time: is it an export?")
    if not check_name(line["id"], "id"):
        raise InputError("the line has an empty id")
    check_text(line.get("text", ""), "text")
    fields = {
        name: _read_field(name, hint, line[name])
        for name, hint in _FIELDS.items()
        if line.get(name) is not None and name not in ("kind", "position")
    }
    supports = _read_supports(line["source"]) if line.get("source") else ()
    if line["kind"] == "message" and "key" not in line and not fields.get("role"):  # written by hand
        fields["role"] = role_named(str(fields.get("speaker", "")))
    return Record(**{"text": "", **fields}, kind=line["kind"], identity=b"", supports=supports)


def _read_field(name: str, hint: Any, value: Any) -> Any:
    if hint is datetime or datetime in get_args(hint):
        return parse_time(value, name)
    if get_origin(hint) is tuple:
        return check_names(value, name)
    if get_origin(hint) is Mapping:
        return check_metadata(value)
    return bool(value) if hint is bool else check_text(value, name)


def _read_supports(values: object) -> tuple[tuple[str, ...], ...]:
    """Names, and lists of names that are enough on their own."""
    if not isinstance(values, list):
        raise InputError(f"source must be a list of texts, not {type(values).__name__}")
    first = check_names([value for value in values if not isinstance(value, list)], "source")
    return unique_supports([first, *(check_names(value, "source") for value in values if isinstance(value, list))])


def _check_atom(record: Record, line: Mapping[str, Any]) -> Record:
    if not record.text.strip():
        raise InputError(f"the {record.kind} says nothing: its text is empty or only blanks")
    if record.valid_from is not None and record.valid_to is not None and record.valid_to < record.valid_from:
        if record.retired is None:
            raise InputError("valid_to is before valid_from")
        record = record._replace(valid_to=record.valid_from)  # closed by an update that reached back: never true
    has_own_id = _given_identity(line) == id_identity(record.id)
    identity = id_identity(record.id) if has_own_id else atom_identity(record.kind, record.text)
    return record._replace(identity=identity, topic=topic_of(record.kind, record.metadata, record.people))


def _check_message(record: Record, line: Mapping[str, Any]) -> Record:
    """With the identity that the line gives. That of a message known by its place, or as the second of two at one
    moment, cannot be told from the line alone; other words under a known identity are a conflict."""
    identity = _given_identity(line) or id_identity(record.id)
    return record._replace(identity=identity, position=_number(line.get("position", 0)))


def _given_identity(line: Mapping[str, Any]) -> bytes:
    return _fingerprint(line["key"], "key", (16,)) if line.get("key") else b""


def _fingerprint(text: str, name: str, sizes: Sequence[int]) -> bytes:
    value = bytes.fromhex(text)
    if len(value) not in sizes:
        raise InputError(f"{name} is {len(value)} bytes long, not {sizes[-1]}: is it an export?")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MAX_NUMBER:
        raise InputError(f"{value!r:.40} is no number or position that an export could hold")
    return value


def _flag(line: Mapping[str, Any], name: str) -> bool:
    value = line.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r:.40}, not true or false")
    return value
