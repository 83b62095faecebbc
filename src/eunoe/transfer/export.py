"""Export and import: JSON Lines, one memory a line, nothing lost and nothing doubled.

The first line names the format. A `preset` line has no scope: it is a kind of stream that was changed or added and that
one of the exported streams is of. All other lines name theirs: `settings`, then `message`, `fact` and `observation`,
then `session` (users whom no message names), `summary` (every revision, and which one counts) and `tombstone`. Messages
that were turned into memories say `formed`; the others are due wherever they go. Row numbers, leases, vectors and cost
stay behind.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

from eunoe.errors import InputError, StoreError
from eunoe.model.atom import KINDS, name_of, names_of
from eunoe.model.message import as_object
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope
from eunoe.model.time import from_micros, micros, moment
from eunoe.records import jobs, streams
from eunoe.records.rows import (
    atom_content,
    atom_marks,
    encode,
    id_key,
    message_content,
    passage,
    row_content,
    time_key,
    words_key,
)
from eunoe.records.vectors import Vectors, write
from eunoe.store.books import RevisionRow, SessionRow, Use, WorkRow
from eunoe.store.contract import Row, Store, StreamRow, Tombstone
from eunoe.text.normalize import checked
from eunoe.transfer import importing
from eunoe.transfer.importing import SessionLine, SettingsLine, SummaryLine

FORMAT = 2
T = TypeVar("T")


class Entry(NamedTuple):
    """A message or atom out of an export, with what the books say of it."""

    row: Row
    formed: bool = False
    use: Use | None = None


class PresetLine(NamedTuple):
    name: str
    changes: Mapping[str, Any]


Line = Entry | Tombstone | SettingsLine | SessionLine | SummaryLine | PresetLine
Read = tuple[Scope | None, Line]

_TIMES = ("time", "valid_from", "valid_to", "recorded", "retired")
_LISTS = ("people", "files", "pages")
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
    chosen: Sequence[tuple[Scope, StreamRow]],
    target: str | Path | TextIO,
    progress: Callable[[int], None] | None,
) -> int:
    """Writes streams line by line; a file appears under its name only when it is complete."""
    if not isinstance(target, str | Path):
        return _save(store, chosen, target, progress)
    path = Path(target)
    part = path.with_name(f".{os.urandom(8).hex()}.part")  # a name of its own: another export may write here too
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            count = _save(store, chosen, file, progress)
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
    store: Store, chosen: Sequence[tuple[Scope, StreamRow]], file: TextIO, progress: Callable[[int], None] | None
) -> int:
    file.write(json.dumps({"eunoe": FORMAT}) + "\n")
    count = 0
    with store.reading():  # one snapshot for all lines: what is written meanwhile is wholly in it or not at all
        for line in chain(_presets(store, chosen), *(_lines(store, scope, stream) for scope, stream in chosen)):
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
    _check_name(str(source))
    try:
        with Path(source).open(encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason}") from error


def _check_name(name: str) -> None:
    try:
        os.stat(name)
    except ValueError as error:
        raise InputError(f"{name!r} names no file: {error}") from error
    except OSError:
        pass  # opening it says what is wrong


def _presets(store: Store, chosen: Sequence[tuple[Scope, StreamRow]]) -> Iterator[dict[str, Any]]:
    kinds = {kind[0] for scope, _ in chosen if (kind := streams.found(store, scope))}
    for name, changes in sorted(importing.changed_presets(store).items()):
        if name in kinds:
            yield {"kind": "preset", "name": name, "changes": changes}


def _lines(store: Store, scope: Scope, stream: StreamRow) -> Iterator[dict[str, Any]]:
    """What one scope holds, tombstones last."""
    settings = store.books.settings(stream.id)
    if settings:
        changes = json.loads(settings.changes)
        yield {"scope": str(scope), "kind": "settings", "preset": settings.preset, "changes": changes}
    session, pieces = store.books.session(stream.id), store.books.work(stream.id)
    users = set()
    after = 0
    while rows := store.page(stream.id, after, _PAGE, _ALL, retired=True):
        uses = store.books.uses([row.seq for row in rows])
        for row in rows:
            formed = row.kind == "message" and _is_formed(row.seq, session, pieces)
            yield _row_line(scope, Entry(row, formed, uses.get(row.seq)))
        users.update(importing.speakers(rows, scope))
        after = rows[-1].seq
    known = json.loads(session.users) if session and session.users else []
    if not users.issuperset(known):
        yield {"scope": str(scope), "kind": "session", "users": known}
    yield from _summary_line(store, scope, stream)
    yield from (_stone_line(scope, stone) for stone in store.tombstones(stream.id))


def _is_formed(seq: int, session: SessionRow | None, pieces: Sequence[WorkRow]) -> bool:
    return session is not None and seq <= session.cursor and not any(one.start < seq <= one.stop for one in pieces)


def _summary_line(store: Store, scope: Scope, stream: StreamRow) -> Iterator[dict[str, Any]]:
    summary, rows = store.books.summary(stream.id), store.books.revisions(stream.id)
    if summary and rows:
        numbers = {"current": summary.revision, "last": summary.last, "rebuild": bool(summary.rebuild)}
        line = {"scope": str(scope), "kind": "summary", **numbers}
        yield line | {"revisions": [_revision_line(row) for row in rows]}


def _revision_line(row: RevisionRow) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in ("number", "parent", "text", "author")}
    absorbed = json.loads(row.absorbed) if row.absorbed else []
    return fields | {"absorbed": absorbed, "recorded": from_micros(row.recorded).isoformat()}


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


def read(texts: Iterable[str]) -> Iterator[Read]:
    """Lines with their scopes; a bad one is named."""
    for number, text in enumerate(texts, 1):
        try:
            if not text.strip():
                continue
            line = _object(text)
            if "eunoe" in line:
                _check_format(line)
                continue
            yield read_one(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"line {number}: {_said(error)}; the lines before it were imported") from None


def read_one(line: Mapping[str, Any]) -> Read:
    """One line and its scope. What is wrong with it comes as one of the errors that odd values raise."""
    if line.get("kind") == "preset":
        return None, PresetLine(name_of(line["name"], "name"), importing.checked_changes(line["changes"]))
    return Scope.of(str(line.get("scope", ""))), _read_line(line)


def passages(batch: Sequence[Read]) -> list[str]:
    """The texts that need a vector."""
    return [passage(line.row) for _, line in batch if isinstance(line, Entry)]


def absorb_all(store: Store, batch: Sequence[Read], vectors: Vectors) -> ImportReport:
    """Writes lines of several scopes, presets first: what follows may need them."""
    presets = [line for _, line in batch if isinstance(line, PresetLine)]
    total = sum((importing.take_preset(store, line.name, line.changes) for line in presets), ImportReport())
    for scope in dict.fromkeys(scope for scope, _ in batch if scope is not None):
        lines = [line for owner, line in batch if owner == scope]
        total += absorb(store, scope, lines, vectors)
    return total


def absorb(store: Store, scope: Scope, lines: Sequence[Line], vectors: Vectors) -> ImportReport:
    """Writes what is new, then the tombstones: those of an export say nothing against its own lines."""
    if jobs.is_hidden(store, scope):  # the session is incognito here
        return ImportReport(forgotten=len(lines))
    total, lines = _shown(store, scope, lines)
    if not lines:
        return total
    for settings in [line for line in lines if isinstance(line, SettingsLine)]:
        total += importing.take_settings(store, scope, settings)
    stream = store.make_stream(str(scope))
    total += _absorb_rows(store, scope, stream, lines, vectors)
    for session in [line for line in lines if isinstance(line, SessionLine)]:
        total += importing.take_session(store, stream, session)
    for summary in [line for line in lines if isinstance(line, SummaryLine)]:
        total += importing.take_summary(store, stream, summary)
    stones = [line for line in lines if isinstance(line, Tombstone)]
    store.bury(stream.id, stones)
    return total + ImportReport(tombstones=len(stones))


def _shown(store: Store, scope: Scope, lines: Sequence[Line]) -> tuple[ImportReport, list[Line]]:
    """The lines without messages that name a session which is incognito here."""
    sessions = {line.row.session for line in lines if isinstance(line, Entry)}
    hidden = {session for session in sessions if session and jobs.is_hidden(store, scope, session)}
    shown = [line for line in lines if not (isinstance(line, Entry) and line.row.session in hidden)]
    return ImportReport(forgotten=len(lines) - len(shown)), shown


def _absorb_rows(
    store: Store, scope: Scope, stream: StreamRow, lines: Sequence[Line], vectors: Vectors
) -> ImportReport:
    entries = [line for line in lines if isinstance(line, Entry)]
    rows = [entry.row for entry in entries]
    held = {row.id: row for row in store.by_id(stream.id, [row.id for row in rows])}
    closed = _close(store, stream, rows, held)
    new, forgotten, conflicts = _new(store, stream, rows, held)
    placed, end = _placed(new, stream.position)
    # The places of forgotten messages are not given away again: a replay must find the gaps where they were.
    ends = [line.position + 1 for line in lines if isinstance(line, Tombstone) and line.position is not None]
    end = max([end, *ends])
    if not placed and end > stream.position:
        store.advance(stream.id, end - stream.position)
    written = write(store, stream, placed, vectors, end - stream.position)
    _book(store, scope, stream, entries, written, held)
    duplicates = len(rows) - len(new) - forgotten - closed - conflicts
    return ImportReport(len(new), duplicates, forgotten, 0, closed, conflicts)


def _book(
    store: Store,
    scope: Scope,
    stream: StreamRow,
    entries: Sequence[Entry],
    written: Sequence[Row],
    held: Mapping[str, Row],
) -> None:
    """Notes how often what came was used, and which of the messages were turned into memories already."""
    here = {row.id: row for row in written}
    store.books.touch({here[entry.row.id].seq: entry.use for entry in entries if entry.use and entry.row.id in here})
    both = {**held, **here}
    formed = {
        both[entry.row.id].seq
        for entry in entries
        if entry.formed and entry.row.id in both and both[entry.row.id].text == entry.row.text
    }
    importing.take_messages(store, scope, stream, [row for row in written if row.kind == "message"], formed)


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
    return row.key, id_key(row.id), *atom_marks(row.kind, row.text)


def _row_line(scope: Scope, entry: Entry) -> dict[str, Any]:
    row = entry.row
    line: dict[str, Any] = {"scope": str(scope), "kind": row.kind, "id": row.id, "text": row.text}
    line |= {name: getattr(row, name) for name in _TEXTS[1:] if getattr(row, name)}
    line |= {name: from_micros(getattr(row, name)).isoformat() for name in _TIMES if getattr(row, name) is not None}
    line |= {name: json.loads(getattr(row, name)) for name in (*_LISTS, "source", "metadata") if getattr(row, name)}
    if row.pinned:
        line["pinned"] = True
    if row.position is not None:
        line["position"] = row.position
    if entry.formed:
        line["formed"] = True
    if entry.use:
        line["uses"] = {"times": entry.use.times, "last": from_micros(entry.use.last).isoformat()}
    return line | {"key": row.key.hex()}


def _stone_line(scope: Scope, stone: Tombstone) -> dict[str, Any]:
    line = {"scope": str(scope), "kind": "tombstone", "key": stone.key.hex(), "content": stone.content.hex()}
    return line | {"lane": stone.lane.hex(), "position": stone.position}


def _read_line(line: Mapping[str, Any]) -> Line:
    kind = line.get("kind")
    if kind in _ALL:
        return _entry(line, str(kind))
    if kind not in _READERS:
        raise InputError(f"kind {kind!r} is not one of {', '.join((*_ALL, *_READERS))}")
    return _READERS[kind](line)


def _stone(line: Mapping[str, Any]) -> Tombstone:
    position = line.get("position")
    key, content, lane = (bytes.fromhex(line[name]) for name in ("key", "content", "lane"))
    for name, value, sizes in (("key", key, _KEY), ("content", content, _MARK), ("lane", lane, _MARK)):
        _check_size(name, value, sizes)
    return Tombstone(key, content, lane, position if position is None else _position(position))


def _settings(line: Mapping[str, Any]) -> SettingsLine:
    return SettingsLine(name_of(line["preset"], "preset"), importing.checked_changes(line["changes"]))


def _session(line: Mapping[str, Any]) -> SessionLine:
    return SessionLine(names_of(line["users"], "users"))


def _summary(line: Mapping[str, Any]) -> SummaryLine:
    rows: list[RevisionRow] = []
    for value in line["revisions"]:
        rows.append(_revision(value, {row.number for row in rows}))
    numbers = [row.number for row in rows]
    if not numbers or numbers != sorted(numbers):
        raise InputError("the revisions are none, or not in order")
    current, last = _position(line["current"]), _position(line["last"])
    if current not in (0, *numbers) or last < numbers[-1]:
        raise InputError(f"revision {current} of {last} does not fit the revisions {numbers}")
    return SummaryLine(current, last, _flag(line, "rebuild"), tuple(rows))


def _revision(value: Mapping[str, Any], before: set[int]) -> RevisionRow:
    number, parent = _position(value["number"]), _position(value["parent"])
    if number < 1 or number in before or parent not in (0, *before):
        raise InputError(f"revision {number} does not follow from revision {parent}")
    text, author = checked(value["text"], "text"), checked(value["author"], "author")
    if not text.strip():
        raise InputError(f"revision {number} says nothing: its text is empty or only blanks")
    absorbed = names_of(value["absorbed"], "absorbed")
    return RevisionRow(0, number, parent, text, encode(list(absorbed)), author, micros(moment(value["recorded"])))


_READERS: Mapping[Any, Callable[[Mapping[str, Any]], Line]] = {
    "tombstone": _stone,
    "settings": _settings,
    "session": _session,
    "summary": _summary,
}


def _entry(line: Mapping[str, Any], kind: str) -> Entry:
    use = None
    if line.get("uses") is not None:
        use = Use(_position(line["uses"]["times"]), micros(moment(line["uses"]["last"], "last")))
    return Entry(_row(line, kind), _flag(line, "formed") and kind == "message", use)


def _flag(line: Mapping[str, Any], name: str) -> bool:
    value = line.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r:.40}, not true or false")
    return value


def _sources(values: object) -> str:
    """What bears an atom out: names, and lists of names that are enough on their own."""
    if not isinstance(values, list):
        raise InputError(f"source must be a list of texts, not {type(values).__name__}")
    single = names_of([value for value in values if not isinstance(value, list)], "source")
    groups = [list(names_of(value, "source")) for value in values if isinstance(value, list) and value]
    return encode([*single, *groups]) if single or groups else ""


def _row(line: Mapping[str, Any], kind: str) -> Row:
    fields: dict[str, Any] = {name: checked(line.get(name, ""), name) for name in _TEXTS}
    fields |= {name: micros(moment(line[name], name)) if line.get(name) is not None else None for name in _TIMES}
    if fields["recorded"] is None:
        raise InputError("the line has no 'recorded' time: is it an export?")
    fields |= {name: encode(list(names_of(line[name], name))) if line.get(name) else "" for name in _LISTS}
    fields["source"] = _sources(line["source"]) if line.get("source") else ""
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
        raise InputError(f"{value!r:.40} is no number or position that an export could hold")
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
    if line["eunoe"] not in range(1, FORMAT + 1):
        raise InputError(f"format {line['eunoe']!r:.40} is not known here (this version reads {FORMAT}): upgrade eunoe")


def _said(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON ({error.msg} at column {error.colno})"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
