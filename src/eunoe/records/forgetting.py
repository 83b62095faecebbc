"""Forgetting: what is reached, what keeps it from coming back, and the search that proves it gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from eunoe.errors import NotFoundError, StoreBusyError, StoreFullError
from eunoe.model.atom import KINDS
from eunoe.model.result import ForgetReport
from eunoe.model.scope import Scope
from eunoe.records import jobs, revisions
from eunoe.records.rows import (
    atom_contents,
    id_key,
    lane,
    message_content,
    people,
    rest_on,
    row_content,
    said_by,
    source_place,
    supports,
    time_key,
    words_key,
)
from eunoe.records.turns import user_of
from eunoe.records.versions import bridged, chain, marked, reworded, unmark
from eunoe.store.contract import Row, Store, StreamRow, Tombstone
from eunoe.text.normalize import same_name

Selection = Callable[[Store, StreamRow | None], list[Row]]
Chosen = tuple[StreamRow, Sequence[Row]]
Place = tuple[str, str]

_ALL = ("message", "fact", "observation")
_PAGE = 2000
# Shorter texts stand by chance in any file; their rows are still checked one by one.
_SHORTEST_NEEDLE = 12
_SCRUB_DUE = "scrub_due"
_UNWIPED = "the memories are removed, but their bytes are not yet wiped off the disk"
_WIPE_LATER = "Forget the same once more {}, or open the store again"


@dataclass(frozen=True, slots=True)
class Removal:
    """What was taken out of one stream."""

    scope: Scope
    stream: StreamRow
    rows: tuple[Row, ...]
    vectors: int = 0
    mentions: tuple[str, ...] = ()
    revisions: int = 0
    """Versions of its summary that went."""
    rebuild: bool = False
    """Whether its summary must be written anew."""


def named(store: Store, stream: StreamRow | None, ids: Sequence[str]) -> list[Row]:
    """Rows with these ids; all must be there, or have been forgotten before."""
    rows = store.by_id(stream.id, ids) if stream else []
    missing = set(ids) - {row.id for row in rows}
    if missing and stream:
        buried = {stone.key for stone in store.buried(stream.id, list(map(id_key, missing)))}
        missing = {id for id in missing if id_key(id) not in buried}
    if missing:
        raise NotFoundError(f"there is no memory {', '.join(sorted(missing))} in this scope; nothing was removed")
    return rows


def everything(store: Store, stream: StreamRow | None) -> list[Row]:
    return list(_walk(store, stream))


def of_person(store: Store, stream: StreamRow | None, person: str, mentions: bool) -> list[Row]:
    """What the person said and what was noted about them; with `mentions` also what others said of them."""
    spoken = _speaks(person)
    named_in = _mentions(person)
    scope = Scope.parse(stream.scope) if stream else None
    return [
        row for row in _walk(store, stream) if any(map(spoken, _names(row, scope))) or (mentions and named_in(row.text))
    ]


def _names(row: Row, scope: Scope | None) -> tuple[str, ...]:
    """Whom a row is known to be of. A message that names nobody is the user's to whom the conversation belongs."""
    if row.kind != "message":
        return people(row)
    return (row.speaker, said_by(row)) if row.speaker or scope is None else (said_by(row), user_of(row, scope))


def mentions_left(store: Store, stream: StreamRow, person: str) -> tuple[str, ...]:
    named_in = _mentions(person)
    return tuple(row.id for row in _walk(store, stream) if named_in(row.text))


def remove(
    store: Store, chosen: Sequence[Chosen], *, may_return: bool = False, whole: bool = False, person: str = ""
) -> list[Removal]:
    """Takes rows out with everything that rests on them in any scope, and leaves tombstones unless they may return."""
    reach = Reach(store)
    for stream, rows in chosen:
        reach.add(stream, [*rows, *_archived(store, stream, rows)])
    reach.spread()
    asked = {stream.id for stream, _ in chosen}
    touched = [stream for stream in reach.streams() if stream.id in asked or reach.touches(stream)]
    removals = [_take(store, stream, reach, may_return, whole and stream.id in asked) for stream in touched]
    for removal in removals:
        jobs.clean(store, removal.stream, whole and removal.stream.id in asked, person)
    return [_with_mentions(store, one, person) if person and one.stream.id in asked else one for one in removals]


def _archived(store: Store, stream: StreamRow, rows: Sequence[Row]) -> list[Row]:
    """Archived atoms that say the same as one of these: put away, but not forgotten."""
    contents = {content for row in rows if row.kind != "message" for content in atom_contents(row.text)}
    if not contents:
        return []
    away = (row for row in _walk(store, stream, KINDS) if row.retired is not None and not row.superseded_by)
    return [row for row in away if row_content(row) in contents]


def _take(store: Store, stream: StreamRow, reach: Reach, may_return: bool, whole: bool) -> Removal:
    rows, kept = reach.fallen(stream), reach.lightened(stream)
    before = len(store.books.revisions(stream.id))
    vectors = 0
    if rows or kept or (whole and before):
        version = store.advance(stream.id).version
        store.set_meta(_SCRUB_DUE, f"{stream.id}.{version}")
        store.replace([row._replace(version=version) for row in kept])
        linked = bridged(store, stream, rows)
        seqs = [row.seq for row in rows]
        vectors = store.delete(stream.id, seqs, version) if rows else 0
        unmark(store, stream, seqs)
        store.replace([row._replace(version=version) for row in linked])
    if not may_return:
        store.bury(stream.id, [stone for row in rows for stone in _stones(row, whole)])
    rebuild = _take_revisions(store, stream, rows, whole)
    revisions_left = len(store.books.revisions(stream.id))
    return Removal(Scope.parse(stream.scope), stream, tuple(rows), vectors, (), before - revisions_left, rebuild)


def _take_revisions(store: Store, stream: StreamRow, rows: Sequence[Row], whole: bool) -> bool:
    if whole:
        revisions.drop(store, stream)
        return False
    return revisions.purge(store, stream, [row.id for row in rows if row.kind != "message"])


def _with_mentions(store: Store, removal: Removal, person: str) -> Removal:
    return replace(removal, mentions=mentions_left(store, removal.stream, person))


def scrub(store: Store, patience: float | None = None) -> str:
    """Wipes deleted bytes off the disk if that is still due; says what is left to do, or nothing."""
    with store.reading():
        due = store.get_meta(_SCRUB_DUE)
    if not due:
        return ""
    try:
        store.scrub(patience)
        with store.writing():
            if store.get_meta(_SCRUB_DUE) == due:  # else something was deleted meanwhile
                store.set_meta(_SCRUB_DUE, "")
    except StoreBusyError:
        return f"{_UNWIPED}: another process keeps reading the store. {_WIPE_LATER.format('when it ends')}"
    except StoreFullError:
        return f"{_UNWIPED}: there is no room to do it. {_WIPE_LATER.format('when there is')}"
    return ""


def report(
    removals: Sequence[Removal], rebuilt: Sequence[Scope], traces: Sequence[str] | None, left: str
) -> ForgetReport:
    """What was removed, in words for the caller; `traces` is None if nobody looked, `left` is what is still to do."""
    found = [*(traces or ()), *([left] if left else [])]
    rows = [row for removal in removals for row in removal.rows]
    return ForgetReport(
        messages=tuple(row.id for row in rows if row.kind == "message"),
        atoms=tuple(row.id for row in rows if row.kind != "message"),
        vectors=sum(removal.vectors for removal in removals),
        scopes=tuple(removal.scope for removal in removals if removal.rows or removal.revisions),
        mentions=tuple(id for removal in removals for id in removal.mentions),
        verified=None if traces is None else not found,
        traces=tuple(found),
        revisions=sum(removal.revisions for removal in removals),
        rebuilt=tuple(rebuilt),
    )


def needles(removals: Sequence[Removal]) -> list[str]:
    """The texts that a search of everything should not find any more."""
    texts = (text for removal in removals for row in removal.rows for text in (row.text, row.caption))
    return list(dict.fromkeys(text.strip() for text in texts if len(text.strip()) >= _SHORTEST_NEEDLE))


def in_error(removals: Sequence[Removal], error: str) -> bool:
    """Whether an error, put on one line and cut short, repeats the opening of a removed text."""
    return any(" ".join(text.split())[:_SHORTEST_NEEDLE] in error for text in needles(removals))


def traces(store: Store, removals: Sequence[Removal]) -> list[str]:
    """Where something that should be gone was found. Words that another memory still holds are not a trace."""
    found = []
    for removal in removals:
        ids = [row.id for row in removal.rows]
        with store.reading():
            left = store.by_id(removal.stream.id, ids)
        found += [f"items: {row.id} is still there" for row in left]
        if marked(store, removal.stream, [row.seq for row in removal.rows]):
            found.append(f"memory keys of {removal.scope}")
    for text, places in store.traces(needles(removals)).items():
        held = "items.text" in places or "items.caption" in places
        found += [f"{place}: {text[:40]!r}" for place in (_in_summaries(store, removals, text) if held else places)]
    return found


def _in_summaries(store: Store, removals: Sequence[Removal], text: str) -> list[str]:
    """Summaries that repeat a text which no memory of their own scope holds: those of other scopes excuse nothing."""
    with store.reading():
        return [
            f"revisions.text of {removal.scope}"
            for removal in removals
            if any(text in row.text for row in store.books.revisions(removal.stream.id))
            and not any(text in row.text or text in row.caption for row in _walk(store, removal.stream))
        ]


class Resting(NamedTuple):
    """An atom and the groups that bear it out, each member by its scope and id."""

    row: Row
    groups: tuple[frozenset[Place], ...]


class Reach:
    """What falls with some rows: all versions of each atom, and every atom that loses its last support, in whatever
    stream it is and however far away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._streams: dict[int, StreamRow] = {}
        self._fallen: dict[int, dict[int, Row]] = {}
        self._resting: dict[int, list[Resting]] = {}
        self._gone: set[Place] = set()

    def add(self, stream: StreamRow, rows: Iterable[Row], chosen: bool = True) -> None:
        """Rows of one stream that fall: with all their versions if they were chosen, else with those made out of their
        words."""
        self._streams.setdefault(stream.id, stream)
        fallen = self._fallen.setdefault(stream.id, {})
        for row in rows:
            if row.seq not in fallen:
                versions = _versions(self._store, stream, row) if chosen else reworded(self._store, row)
                fallen |= {version.seq: version for version in versions}
                self._gone |= {(stream.scope, version.id) for version in versions}

    def spread(self) -> None:
        """Follows everything that rests on what fell, until nothing more falls."""
        while True:
            for stream in [stream for stream in self.streams() if self._fallen[stream.id]]:
                for near in (stream, *self._store.books.resting_on(stream.id)):
                    self._load(near)
            falling = {number: self._falling(number) for number in self._resting}
            if not any(falling.values()):
                return
            for number, rows in falling.items():
                self.add(self._streams[number], rows, chosen=False)

    def streams(self) -> list[StreamRow]:
        """Those that were named first, then those that were reached."""
        return list(self._streams.values())

    def touches(self, stream: StreamRow) -> bool:
        return bool(self._fallen[stream.id] or self.lightened(stream))

    def fallen(self, stream: StreamRow) -> list[Row]:
        rows = self._fallen[stream.id]
        return [rows[seq] for seq in sorted(rows)]

    def lightened(self, stream: StreamRow) -> list[Row]:
        """Atoms that stay, on the support that is left to them."""
        return [
            resting.row._replace(source=rest_on(_standing(resting, self._gone)))
            for resting in self._resting.get(stream.id, ())
            if resting.row.seq not in self._fallen[stream.id] and any(self._hit(group) for group in resting.groups)
        ]

    def _load(self, stream: StreamRow) -> None:
        if stream.id not in self._resting:
            self.add(stream, ())
            owner = Scope.parse(stream.scope)
            self._resting[stream.id] = [_resting(row, owner) for row in self._store.citing(stream.id)]

    def _falling(self, number: int) -> list[Row]:
        fallen = self._fallen[number]
        return [
            resting.row
            for resting in self._resting[number]
            if resting.row.seq not in fallen and resting.groups and all(map(self._hit, resting.groups))
        ]

    def _hit(self, group: frozenset[Place]) -> bool:
        return not self._gone.isdisjoint(group)


def _resting(row: Row, owner: Scope) -> Resting:
    return Resting(row, tuple(frozenset(_place(name, owner) for name in group) for group in supports(row)))


def _place(name: str, owner: Scope) -> Place:
    scope, id = source_place(name, owner)
    return str(scope), id


def _standing(resting: Resting, gone: Set[Place]) -> list[tuple[str, ...]]:
    pairs = zip(supports(resting.row), resting.groups, strict=True)
    return [names for names, group in pairs if gone.isdisjoint(group)]


def _versions(store: Store, stream: StreamRow, row: Row) -> list[Row]:
    return [row] if row.kind == "message" else chain(store, stream, row)


def _stones(row: Row, whole: bool) -> Iterator[Tombstone]:
    if row.kind == "message":
        yield Tombstone(row.key, message_content(row), lane(row.session), row.position)
    for key in _marks(row, whole):
        if key != row.key or row.kind != "message":
            yield Tombstone(key, b"", b"", None)


def _marks(row: Row, whole: bool) -> Iterator[bytes]:
    """An atom is known again by its id, and by its words as whatever kind they return. A message is known by its id,
    by its words and time, and by its words alone unless a whole scope went: then small talk such as "hello" must be
    free to be said again."""
    yield id_key(row.id)
    if row.kind != "message":
        yield from atom_contents(row.text)
        return
    content = message_content(row)
    if row.time is not None:
        yield time_key(row.time, content)
    if not whole:
        yield words_key(content)


def _walk(store: Store, stream: StreamRow | None, kinds: Sequence[str] = _ALL) -> Iterator[Row]:
    after = 0
    while stream and (page := store.page(stream.id, after, _PAGE, kinds, retired=True)):
        yield from page
        after = page[-1].seq


def _speaks(person: str) -> Callable[[str], bool]:
    wanted = same_name(person)
    return lambda name: same_name(name) == wanted


def _mentions(person: str) -> Callable[[str], bool]:
    """Whether a text has the name as a word of its own; letters of a script without spaces are no part of a word."""
    from eunoe.text.analyzer import SPACELESS

    name = same_name(person)
    unspaced = re.compile(f"[{SPACELESS}]")
    before = "" if unspaced.match(name[:1]) else rf"(?<![^\W{SPACELESS}])"
    after = "" if unspaced.match(name[-1:]) else rf"(?![^\W{SPACELESS}])"
    pattern = re.compile(before + re.escape(name) + after)
    return lambda text: pattern.search(same_name(text)) is not None
