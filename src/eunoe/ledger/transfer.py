"""Export and import: JSON Lines, one memory a line, nothing lost and nothing doubled."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from eunoe.errors import InputError, StoreError
from eunoe.ledger.rows import atom_content, encode, id_key, message_content, row_content, time_key, words_key
from eunoe.ledger.vectors import Vectors, write
from eunoe.model.atom import KINDS, name_of, names_of
from eunoe.model.message import as_object
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope
from eunoe.model.text import checked
from eunoe.model.time import from_micros, micros, moment
from eunoe.store.contract import Row, Store, StreamRow, Tombstone

FORMAT = 1
T = TypeVar("T")
_TIMES = ("time", "valid_from", "valid_to", "recorded", "retired")
_LISTS = ("people", "files", "source", "pages")
_TEXTS = ("text", "caption", "session", "speaker", "role", "label", "supersedes", "superseded_by")
_ALL = ("message", *KINDS)
_PAGE = 1000
_MOST = 1 << 53
_KEY = (16,)
_MARK = (0, 16)
# JSON leaves these as they are, and many tools take them for the end of a line.
_LINE_ENDS = re.compile(r"[\x85\u2028\u2029]")


def save(
    store: Store,
    streams: Sequence[tuple[Scope, StreamRow]],
    target: str | Path | TextIO,
    progress: Callable[[int], None] | None,
) -> int:
    """Writes streams line by line; a file appears under its name only when it is complete."""
    if not isinstance(target, str | Path):
        return _save(store, streams, target, progress)
    path = Path(target)
    part = path.with_name(f".{os.urandom(8).hex()}.part")  # a name of its own: another export may write here too
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            count = _save(store, streams, file, progress)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreError(f"cannot write {path}: {error.strerror}") from error
        raise
    return count


def _save(
    store: Store, streams: Sequence[tuple[Scope, StreamRow]], file: TextIO, progress: Callable[[int], None] | None
) -> int:
    file.write(json.dumps({"eunoe": FORMAT}) + "\n")
    count = 0
    with store.reading():  # one snapshot for all lines: what is written meanwhile is wholly in it or not at all
        for line in chain.from_iterable(_lines(store, scope, stream) for scope, stream in streams):
            file.write(_LINE_ENDS.sub(_escape, json.dumps(line, ensure_ascii=False)) + "\n")
            count += 1
            if progress and count % 1000 == 0:
                progress(count)
    return count


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


@contextmanager
def opened(source: str | Path | Iterable[str]) -> Iterator[Iterable[str]]:
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        with Path(source).open(encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason}") from error


def _lines(store: Store, scope: Scope, stream: StreamRow) -> Iterator[dict[str, Any]]:
    """What one scope holds, tombstones last."""
    after = 0
    while rows := store.page(stream.id, after, _PAGE, _ALL, retired=True):
        yield from (_row_line(scope, row) for row in rows)
        after = rows[-1].seq
    yield from (_stone_line(scope, stone) for stone in store.tombstones(stream.id))


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Items in lists of this size; those before a bad one come before its error."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except InputError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def read(texts: Iterable[str]) -> Iterator[tuple[Scope, Row | Tombstone]]:
    """Rows and tombstones out of lines; a bad line is named."""
    for number, text in enumerate(texts, 1):
        try:
            if not text.strip():
                continue
            line = _object(text)
            if "eunoe" in line:
                _check_format(line)
                continue
            yield Scope.of(str(line.get("scope", ""))), _read_line(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"line {number}: {_said(error)}; the lines before it were imported") from None


def absorb(store: Store, stream: StreamRow, items: Sequence[Row | Tombstone], vectors: Vectors) -> ImportReport:
    """Writes what is new, then the tombstones: those of an export say nothing against its own lines."""
    rows = [item for item in items if isinstance(item, Row)]
    stones = [item for item in items if isinstance(item, Tombstone)]
    held = {row.id: row for row in store.by_id(stream.id, [row.id for row in rows])}
    closed = _close(store, stream, rows, held)
    new, forgotten, conflicts = _new(store, stream, rows, held)
    placed, end = _placed(new, stream.position)
    # The places of forgotten messages are not given away again: a replay must find the gaps where they were.
    end = max([end, *(stone.position + 1 for stone in stones if stone.position is not None)])
    if not placed and end > stream.position:
        store.advance(stream.id, end - stream.position)
    write(store, stream, placed, vectors, end - stream.position)
    store.bury(stream.id, stones)
    duplicates = len(rows) - len(new) - forgotten - closed - conflicts
    return ImportReport(len(new), duplicates, forgotten, len(stones), closed, conflicts)


def _close(store: Store, stream: StreamRow, rows: Sequence[Row], held: Mapping[str, Row]) -> int:
    """Closes what is still open here and was closed by the time of the export."""
    ended = [row for row in rows if row.retired is not None and row.id in held]
    ended = [row for row in ended if held[row.id].retired is None and held[row.id].text == row.text]
    if ended:
        version = store.advance(stream.id).version
        names = ("retired", "valid_to", "superseded_by")
        store.replace(
            [held[row.id]._replace(version=version, **{name: getattr(row, name) for name in names}) for row in ended]
        )
    return len(ended)


def _placed(rows: Sequence[Row], end: int) -> tuple[list[Row], int]:
    """Messages keep their places where these are free; gives the next free one too."""
    placed = []
    for row in rows:
        if row.kind == "message":
            position = max(end, row.position or 0)
            row, end = row._replace(position=position), position + 1
        placed.append(row)
    return placed, end


def _new(store: Store, stream: StreamRow, rows: Sequence[Row], held: Mapping[str, Row]) -> tuple[list[Row], int, int]:
    """The rows that are not here yet, and how many were refused: as forgotten, and as other words under a known id
    or key."""
    ids = dict(held)
    keys = {row.key: row for row in store.by_key(stream.id, [row.key for row in rows if row.retired is None])}
    buried = {stone.key for stone in store.buried(stream.id, [key for row in rows for key in _marks(row)])}
    new = []
    forgotten = conflicts = 0
    for row in rows:
        if row.id in ids:
            conflicts += ids[row.id].text != row.text
        elif row.retired is None and row.key in keys:
            conflicts += row_content(keys[row.key]) != row_content(row)
        elif buried.intersection(_marks(row)):
            forgotten += 1
        else:
            ids[row.id] = row
            if row.retired is None:
                keys[row.key] = row
            new.append(row)
    return new, forgotten, conflicts


def _marks(row: Row) -> tuple[bytes, ...]:
    """What a tombstone could know this row by."""
    if row.kind == "message":
        content = message_content(row)
        if row.time is not None:
            return row.key, id_key(row.id), time_key(row.time, content)
        return (row.key, id_key(row.id), *([words_key(content)] if row.key != id_key(row.id) else []))
    return row.key, id_key(row.id), atom_content(row.kind, row.text)


def _row_line(scope: Scope, row: Row) -> dict[str, Any]:
    line: dict[str, Any] = {"scope": str(scope), "kind": row.kind, "id": row.id, "text": row.text}
    line |= {name: getattr(row, name) for name in _TEXTS[1:] if getattr(row, name)}
    line |= {name: from_micros(getattr(row, name)).isoformat() for name in _TIMES if getattr(row, name) is not None}
    line |= {name: json.loads(getattr(row, name)) for name in (*_LISTS, "metadata") if getattr(row, name)}
    if row.pinned:
        line["pinned"] = True
    if row.position is not None:
        line["position"] = row.position
    return line | {"key": row.key.hex()}


def _stone_line(scope: Scope, stone: Tombstone) -> dict[str, Any]:
    line = {"scope": str(scope), "kind": "tombstone", "key": stone.key.hex(), "content": stone.content.hex()}
    return line | {"lane": stone.lane.hex(), "position": stone.position}


def _read_line(line: Mapping[str, Any]) -> Row | Tombstone:
    kind = line.get("kind")
    if kind == "tombstone":
        position = line.get("position")
        key, content, lane = (bytes.fromhex(line[name]) for name in ("key", "content", "lane"))
        for name, value, sizes in (("key", key, _KEY), ("content", content, _MARK), ("lane", lane, _MARK)):
            _check_size(name, value, sizes)
        return Tombstone(key, content, lane, position if position is None else _position(position))
    if kind not in _ALL:
        raise InputError(f"kind {kind!r} is not one of {', '.join(_ALL)}, tombstone")
    return _row(line, str(kind))


def _row(line: Mapping[str, Any], kind: str) -> Row:
    fields: dict[str, Any] = {name: checked(line.get(name, ""), name) for name in _TEXTS}
    fields |= {name: micros(moment(line[name], name)) if line.get(name) is not None else None for name in _TIMES}
    if fields["recorded"] is None:
        raise InputError("the line has no 'recorded' time: is it an export?")
    fields |= {name: encode(list(names_of(line[name], name))) if line.get(name) else "" for name in _LISTS}
    id = name_of(line["id"], "id")
    if not id:
        raise InputError("the line has an empty id")
    position = _position(line.get("position", 0)) if kind == "message" else None
    row = Row(
        seq=0,
        stream=0,
        version=0,
        kind=kind,
        id=id,
        key=b"",
        pinned=int(bool(line.get("pinned"))),
        pending=0,
        position=position,
        metadata=encode(as_object(line["metadata"])) if line.get("metadata") else "",
        **fields,
    )
    return _checked_atom(row, line) if kind in KINDS else row._replace(key=_message_key(row, line))


def _position(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise InputError(f"position {value!r} is not a place in a log")
    return value


def _checked_atom(row: Row, line: Mapping[str, Any]) -> Row:
    if not row.text.strip():
        raise InputError(f"the {row.kind} says nothing: its text is empty or only blanks")
    if row.valid_from is not None and row.valid_to is not None and row.valid_to < row.valid_from:
        if row.retired is None:
            raise InputError("valid_to is before valid_from")
        row = row._replace(valid_to=row.valid_from)  # closed by an update that reached back: it was never true
    named = _given_key(line) == id_key(row.id)
    return row._replace(key=id_key(row.id) if named else atom_content(row.kind, row.text))


def _message_key(row: Row, line: Mapping[str, Any]) -> bytes:
    """The key the line gives. That of a message known by its place, or as the second of two at one moment, cannot be
    told from the line alone; other words under a known key are a conflict."""
    return _given_key(line) or id_key(row.id)


def _given_key(line: Mapping[str, Any]) -> bytes:
    if not line.get("key"):
        return b""
    key = bytes.fromhex(line["key"])
    _check_size("key", key, _KEY)
    return key


def _check_size(name: str, value: bytes, sizes: Sequence[int]) -> None:
    if len(value) not in sizes:
        raise InputError(f"{name} is {len(value)} bytes long, not {sizes[-1]}: is it an export?")


def _object(text: str) -> dict[str, Any]:
    line = json.loads(text)
    if not isinstance(line, dict):
        raise InputError("not a JSON object")
    return line


def _check_format(line: Mapping[str, Any]) -> None:
    if line["eunoe"] != FORMAT:
        raise InputError(f"format {line['eunoe']} is not known here (this version reads {FORMAT}): upgrade eunoe")


def _said(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at column {error.colno})"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
