"""Which of two atoms that cannot both be true came after the other, and how the older one is closed into it.

Time decides, not the order of arrival: what comes late is put in its place in the history and overrides nothing.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from eunoe.model.atom import KINDS
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.rows import encode, people, rest_on, row_content, source_place, sources, supports
from eunoe.records.vectors import Vectors, write
from eunoe.store.contract import Bearer, Marks, Row, Store, StreamRow
from eunoe.text.normalize import same_name

MEMORY_KEY = "memory_key"
"""The field of an atom's metadata that says what it is about, if that has one value at a time."""
AUTHOR = "author"
"""The field of a formed atom's metadata that says who put it in words: a model, or `extractive`."""
_FIELD = f'"{MEMORY_KEY}"'
_MOST_STREAMS, _MOST_KEYS = 64, 200_000

Since = tuple[int, int]
"""When something was said last: the moment, and at the same moment the number of the message."""


def memory_key(metadata: Mapping[str, Any]) -> str:
    """The key as keys are compared; empty if there is none.

    >>> memory_key({"memory_key": " Home "})
    'home'
    """
    value = metadata.get(MEMORY_KEY)
    return same_name(value) if isinstance(value, str) else ""


class Namesakes:
    """The living atoms of one stream that have a memory key, for a step that writes."""

    def __init__(self, store: Store, stream: StreamRow) -> None:
        self._store = store
        self._stream = stream
        self._marks = _marks(store, stream)

    def add(self, row: Row) -> None:
        """An atom that this step wrote or changed."""
        _mark(self._marks, self._store.by_id(self._stream.id, [row.id]))

    def of(self, row: Row) -> list[Row]:
        """Living atoms of the same kind and key that are about the same people; latest first."""
        key = key_of(row)
        if not key:
            return []
        marked = self._marks.rows.get(hash((row.kind, key)), {})
        names = set(_names(row))
        near = [seq for seq, others in marked.items() if not names or not others or not names.isdisjoint(others)]
        living = [other for other in self._store.by_seq(near) if other.retired is None]
        for seq in set(near).difference(other.seq for other in living):
            del marked[seq]
        rows = [other for other in living if (other.kind, key_of(other)) == (row.kind, key) and _about_same(row, other)]
        return sorted(rows, key=lambda other: -other.seq)

    def rivals(self, row: Row) -> list[Row]:
        """Those that say something else. A pinned one is not among them: only `update` closes it."""
        return [other for other in self.of(row) if not other.pinned and row_content(other) != row_content(row)]


def key_of(row: Row | Bearer) -> str:
    return memory_key(json.loads(row.metadata)) if _FIELD in row.metadata else ""


def _about_same(row: Row, other: Row) -> bool:
    one, two = (set(map(same_name, people(each))) for each in (row, other))
    return not one or not two or not one.isdisjoint(two)


def _names(row: Row | Bearer) -> tuple[int, ...]:
    return tuple(hash(same_name(name)) for name in people(row))


def _marks(store: Store, stream: StreamRow) -> Marks:
    """The keys as they are now: read out of the stream's atoms once, and then out of what changed, whoever changed it.
    An atom may be there that was closed since."""
    marks = store.marks.pop(stream.id, None)
    if marks is None or marks.version > stream.version:
        marks = Marks()
    if marks.rows:
        _drop(marks, store.removed(stream.id, marks.version))
    _mark(marks, store.bearing(stream.id, KINDS, _FIELD, marks.version))
    marks.version = stream.version
    store.marks[stream.id] = marks
    while len(store.marks) > _MOST_STREAMS or sum(len(one.rows) for one in store.marks.values()) > _MOST_KEYS:
        del store.marks[next(iter(store.marks))]
    return marks


def _mark(marks: Marks, atoms: Sequence[Row | Bearer]) -> None:
    for atom in atoms:
        if key := key_of(atom):
            marks.rows.setdefault(hash((atom.kind, key)), {})[atom.seq] = _names(atom)


def unmark(store: Store, stream: StreamRow, seqs: Sequence[int]) -> None:
    """Leaves nothing of rows that were deleted in what is kept of the keys."""
    if stream.id in store.marks:
        _drop(store.marks[stream.id], seqs)


def marked(store: Store, stream: StreamRow, seqs: Sequence[int]) -> bool:
    """Whether something of these rows is in what is kept of the keys; another thread may be writing."""
    marks = store.marks.get(stream.id)
    return marks is not None and not all(map(set(seqs).isdisjoint, list(marks.rows.values())))


def _drop(marks: Marks, seqs: Sequence[int]) -> None:
    if seqs and marks.rows:
        gone = set(seqs)
        left = ((mark, {seq: rows[seq] for seq in rows if seq not in gone}) for mark, rows in marks.rows.items())
        marks.rows = {mark: rows for mark, rows in left if rows}


def since(store: Store, stream: StreamRow, row: Row) -> Since:
    """When an atom was last said to be true: by the latest message it rests on, by its own times, or when it was
    recorded."""
    moments = [(moment, 0) for moment in (row.time, row.valid_from) if moment is not None]
    moments += [_said(source) for source in _sources(store, stream, row)]
    latest = max(moments, default=(row.recorded, 0))
    return latest if row.valid_to is None else min(latest, (row.valid_to, 0))


def _said(message: Row) -> Since:
    return (message.recorded if message.time is None else message.time), message.seq


def _sources(store: Store, stream: StreamRow, row: Row) -> Iterable[Row]:
    places: defaultdict[Scope, list[str]] = defaultdict(list)
    owner = Scope.parse(stream.scope)
    for scope, id in (source_place(name, owner) for name in sources(row)):
        places[scope].append(id)
    for scope, ids in places.items():
        found = store.stream(str(scope))
        yield from (source for source in store.by_id(found.id, ids) if source.kind == "message") if found else ()


def succeed(store: Store, stream: StreamRow, new: Row, rivals: Sequence[Row], vectors: Vectors) -> Receipt:
    """Stores an atom that says something else than its rivals. It closes the older ones; if one is newer, it is kept as
    history, closed from the start."""
    at = since(store, stream, new)
    ages = {row.id: since(store, stream, row) for row in rivals}
    later = sorted((row for row in rivals if ages[row.id] > at), key=lambda row: ages[row.id])
    earlier = [row for row in rivals if ages[row.id] <= at]
    if later:
        receipt, into = _fit_in(store, stream, new, later[0], vectors), later[-1]
    else:
        start = at[0] if earlier and new.valid_from is None else new.valid_from
        into = write(store, stream, [new._replace(valid_from=start)], vectors)[0]
        receipt = Receipt("stored", new.id, embedded=not into.pending)
    for row in earlier:
        close(store, stream, row, into, at[0], new.recorded)
    if earlier and not later:
        return Receipt("superseded", new.id, receipt.embedded, earlier[0].id)
    return receipt


def _fit_in(store: Store, stream: StreamRow, new: Row, living: Row, vectors: Vectors) -> Receipt:
    """Puts an atom where it belongs in the history of a newer one. Words that stand there already are not repeated."""
    before, after = _place(store, stream, new, living)
    for known in (after, before):
        if known and row_content(known) == row_content(new):
            support(store, stream, known, supports(new), people(new))
            return Receipt("duplicate", known.id)
    start = since(store, stream, new)[0] if new.valid_from is None else new.valid_from
    end = _end(start, new, after, since(store, stream, after)[0])
    late = new._replace(valid_from=start, valid_to=end, retired=new.recorded, superseded_by=after.id)
    placed = write(store, stream, [late._replace(supersedes=before.id if before else "")], vectors)[0]
    changed = [after._replace(supersedes=new.id)]
    if before and before.superseded_by == after.id:
        changed.append(closed(before, new.id, start, before.retired or new.recorded))
    store.replace([row._replace(version=placed.version) for row in changed])
    return Receipt("stored", new.id, embedded=not placed.pending)


def _place(store: Store, stream: StreamRow, new: Row, living: Row) -> tuple[Row | None, Row]:
    """The versions that it comes after and before."""
    at = since(store, stream, new)
    before, after = _before(store, stream, living), living
    while before and since(store, stream, before) > at:
        after = before
        before = _before(store, stream, after)
    return before, after


def _before(store: Store, stream: StreamRow, row: Row) -> Row | None:
    found = store.by_id(stream.id, [row.supersedes]) if row.supersedes else []
    return found[0] if found else None


def _end(start: int, new: Row, after: Row, said: int) -> int:
    """Where the newer one began to hold; where it was said, if it claims to have held all the while."""
    end = after.valid_from if after.valid_from is not None and after.valid_from > start else max(start, said)
    return end if new.valid_to is None else max(start, min(end, new.valid_to))


def support(
    store: Store, stream: StreamRow, row: Row, groups: Sequence[Sequence[str]], names: Iterable[str] = (), key: str = ""
) -> Row:
    """Rests a known atom on further messages too. One that was given by hand rests on nothing and needs nothing: it
    does not fall with a message that repeats it."""
    held = supports(row)
    known = set(map(same_name, people(row)))
    united = [*people(row), *(name for name in names if same_name(name) not in known)]
    metadata = json.loads(row.metadata) if row.metadata else {}
    changed = row._replace(
        source=rest_on([*held, *groups]) if held else row.source,
        people=encode(united) if united else "",
        metadata=encode(metadata | {MEMORY_KEY: key}) if key and not memory_key(metadata) else row.metadata,
    )
    if changed != row:
        changed = changed._replace(version=store.advance(stream.id).version)
        store.replace([changed])
    return changed


def close(store: Store, stream: StreamRow, row: Row, into: Row, start: int, recorded: int) -> None:
    """Closes an atom into one that is there already, and hangs it on the beginning of that one's history."""
    version = store.advance(stream.id).version
    store.replace([closed(row, into.id, start, recorded)._replace(version=version)])
    # Read anew: what was closed into it before has changed it.
    versions = chain(store, stream, store.by_id(stream.id, [into.id])[0])
    if all(row.id not in (other.id, other.supersedes) for other in versions):
        store.replace([_first(versions)._replace(version=version, supersedes=row.id)])


def closed(row: Row, by: str, start: int, recorded: int) -> Row:
    """What an update says began before the old atom did leaves that one no time in which it was true."""
    end = start if row.valid_to is None else min(start, row.valid_to)
    if row.valid_from is not None:
        end = max(end, row.valid_from)
    return row._replace(retired=recorded, superseded_by=by, valid_to=end)


def chain(store: Store, stream: StreamRow, row: Row) -> list[Row]:
    """All versions of an atom, oldest first: each before the one that closed it, else as they were recorded."""
    versions = {row.id: row}
    waiting = [row]
    while waiting:
        here = waiting.pop()
        ids = [id for id in (here.supersedes, here.superseded_by) if id and id not in versions]
        for near in store.by_id(stream.id, ids):
            versions[near.id] = near
            waiting.append(near)
    return _in_order(versions)


def _in_order(versions: Mapping[str, Row]) -> list[Row]:
    waits = Counter(row.superseded_by for row in versions.values())
    ready = [(row.seq, row.id) for row in versions.values() if not waits[row.id]]
    heapify(ready)
    ordered: dict[str, Row] = {}
    while ready:
        row = versions[heappop(ready)[1]]
        ordered[row.id] = row
        waits[row.superseded_by] -= 1
        if row.superseded_by in versions and not waits[row.superseded_by]:
            heappush(ready, (versions[row.superseded_by].seq, row.superseded_by))
    return list({**ordered, **versions}.values())


def reworded(store: Store, row: Row) -> list[Row]:
    """An atom and the later versions that may repeat its words. One with a memory key is a statement by itself, and so
    is what came before."""
    found = [row]
    while after := store.by_id(row.stream, [found[-1].superseded_by]) if found[-1].superseded_by else []:
        found += after
    return [version for version in found if version.seq == row.seq or not key_of(version)]


def bridged(store: Store, stream: StreamRow, gone: Sequence[Row]) -> list[Row]:
    """The versions that stay when some go, linked past those. One that was closed by nothing but them is open again."""
    going = {row.id: row for row in gone}
    linked = [row for row in gone if row.supersedes or row.superseded_by]
    found = {version.id: version for row in linked for version in chain(store, stream, row)}
    for row in store.by_key(stream.id, [row.key for row in found.values()]):  # in the words of one that may open again
        found |= {version.id: version for version in chain(store, stream, row)}
    staying = {id: row for id, row in found.items() if id not in going}
    rows: dict[str, Row] = {}
    for row in sorted(staying.values(), key=lambda row: -row.seq):
        rows[row.id] = _past(store, row, going, rows) if row.superseded_by in going else row
    return [row for row in _strung(rows) if row != staying[row.id]]


def _past(store: Store, row: Row, going: Mapping[str, Row], done: Mapping[str, Row]) -> Row:
    """A version as it is without those that closed it."""
    by = row.superseded_by
    while by in going:
        by = going[by].superseded_by
    over = (row.valid_to or 0) < (going[row.superseded_by].valid_from or 0)
    by = by or _namesake(store, row, going, done)
    if not by:
        return row._replace(superseded_by="", retired=None, valid_to=row.valid_to if over else None)
    after = next(iter(store.by_id(row.stream, [by])), row)
    end = row.valid_to if over or after.valid_from is None else max(after.valid_from, row.valid_from or 0)
    return row._replace(superseded_by=by, valid_to=end)


def _strung(rows: Mapping[str, Row]) -> list[Row]:
    """The versions of each living one in a single line, so that every version leads to every other."""
    lines: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows.values():
        head = row
        while head.superseded_by in rows:
            head = rows[head.superseded_by]
        lines[head.id][row.id] = row
    ordered = [_in_order(line) for line in lines.values()]
    return [
        row._replace(supersedes=before.id if before else "")
        for line in ordered
        for before, row in zip([None, *line], line, strict=False)
    ]


def _namesake(store: Store, row: Row, going: Mapping[str, Row], opened: Mapping[str, Row]) -> str:
    """A living atom in the very same words, beside which this one cannot be open."""
    living = [other for other in (*store.by_key(row.stream, [row.key]), *opened.values()) if other.id not in going]
    return next((other.id for other in living if other.key == row.key and other.retired is None), "")


def _first(versions: Sequence[Row]) -> Row:
    """Where a chain begins: what closes into it is hung on there, so that every version leads to every other."""
    ids = {row.id for row in versions}
    return next(row for row in versions if row.supersedes not in ids)
