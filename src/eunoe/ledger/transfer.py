"""Export and import: JSON Lines, one memory a line, nothing lost and nothing doubled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from eunoe.errors import InputError, StoreError
from eunoe.ledger.rows import atom_content, id_key, message_content
from eunoe.ledger.vectors import Vectors, write
from eunoe.model.atom import KINDS
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope
from eunoe.model.text import checked, digest
from eunoe.model.time import from_micros, micros, moment
from eunoe.store.contract import Row, Store, StreamRow, Tombstone

FORMAT = 1
_TIMES = ("time", "valid_from", "valid_to", "recorded", "retired")
_LISTS = ("people", "files", "source", "pages")
_TEXTS = ("text", "caption", "session", "speaker", "role", "label", "supersedes", "superseded_by")
_ALL = ("message", *KINDS)


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
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            count = _save(store, streams, file, progress)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
    return count


def _save(
    store: Store, streams: Sequence[tuple[Scope, StreamRow]], file: TextIO, progress: Callable[[int], None] | None
) -> int:
    file.write(json.dumps({"eunoe": FORMAT}) + "\n")
    count = 0
    for line in chain.from_iterable(lines(store, scope, stream) for scope, stream in streams):
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
        count += 1
        if progress and count % 1000 == 0:
            progress(count)
    return count


@contextmanager
def opened(source: str | Path | Iterable[str]) -> Iterator[Iterable[str]]:
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        # Only \n ends a line: a text may hold other characters that editors take for line ends.
        with Path(source).open(encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason}") from error


def lines(store: Store, scope: Scope, stream: StreamRow, page: int = 1000) -> Iterator[dict[str, Any]]:
    """What one scope holds, tombstones first, so that whoever reads it knows them before the words come."""
    with store.reading():
        stones = list(store.tombstones(stream.id))
    yield from (_stone_line(scope, stone) for stone in stones)
    after = 0
    while True:
        with store.reading():
            rows = store.page(stream.id, after, page, _ALL, retired=True)
        if not rows:
            return
        yield from (_row_line(scope, row) for row in rows)
        after = rows[-1].seq


def read(texts: Iterable[str]) -> Iterator[tuple[Scope, Row | Tombstone]]:
    """Rows and tombstones out of lines; a bad line is named."""
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = _object(text)
            if "eunoe" in line:
                _check_format(line)
                continue
            yield Scope.of(str(line.get("scope", ""))), _read_line(line)
        except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"line {number}: {_said(error)}; the lines before it were imported") from None


def absorb(store: Store, stream: StreamRow, items: Sequence[Row | Tombstone], vectors: Vectors) -> ImportReport:
    """Writes what is new."""
    stones = [item for item in items if isinstance(item, Tombstone)]
    store.bury(stream.id, stones)
    rows = [item for item in items if isinstance(item, Row)]
    new, forgotten = _new(store, stream, rows)
    end = stream.position
    placed = []
    for row in new:
        if row.kind == "message":
            position = max(end, row.position or 0)
            row, end = row._replace(position=position), position + 1
        placed.append(row)
    write(store, stream, placed, vectors, end - stream.position)
    return ImportReport(len(new), len(rows) - len(new) - forgotten, forgotten, len(stones))


def _new(store: Store, stream: StreamRow, rows: Sequence[Row]) -> tuple[list[Row], int]:
    ids = {row.id for row in store.by_id(stream.id, [row.id for row in rows])}
    keys = {row.key for row in store.by_key(stream.id, [row.key for row in rows if row.retired is None])}
    buried = {stone.key for stone in store.buried(stream.id, [key for row in rows for key in _marks(row)])}
    new = []
    forgotten = 0
    for row in rows:
        if row.id in ids or (row.retired is None and row.key in keys):
            continue
        if buried.intersection(_marks(row)):
            forgotten += 1
            continue
        ids.add(row.id)
        if row.retired is None:
            keys.add(row.key)
        new.append(row)
    return new, forgotten


def _marks(row: Row) -> tuple[bytes, ...]:
    """What a tombstone could know this row by."""
    if row.kind == "message":
        return row.key, id_key(row.id)
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
        return Tombstone(key, content, lane, position if position is None else int(position))
    if kind not in _ALL:
        raise InputError(f"kind {kind!r} is not one of {', '.join(_ALL)}, tombstone")
    return _row(line, str(kind))


def _row(line: Mapping[str, Any], kind: str) -> Row:
    fields: dict[str, Any] = {name: checked(line.get(name, ""), name) for name in _TEXTS}
    fields |= {name: micros(moment(line[name], name)) if line.get(name) is not None else None for name in _TIMES}
    if fields["recorded"] is None:
        raise InputError("the line has no 'recorded' time: is it an export?")
    fields |= {name: json.dumps(list(line[name]), ensure_ascii=False) if line.get(name) else "" for name in _LISTS}
    id = checked(line["id"], "id")
    position = int(line.get("position", 0)) if kind == "message" else None
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
        metadata=json.dumps(line["metadata"], ensure_ascii=False) if line.get("metadata") else "",
        **fields,
    )
    return row._replace(key=bytes.fromhex(line["key"]) if line.get("key") else _key(row))


def _key(row: Row) -> bytes:
    if row.kind == "message":
        return id_key(row.id) if row.id else digest("place", str(row.position), message_content(row).hex())
    return atom_content(row.kind, row.text)


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
