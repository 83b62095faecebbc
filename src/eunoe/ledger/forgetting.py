"""Forgetting: what is reached, what keeps it from coming back, and the search that proves it gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eunoe.errors import NotFoundError, StoreBusyError, StoreFullError
from eunoe.ledger.atoms import chain
from eunoe.ledger.rows import atom_contents, id_key, lane, message_content, people, sources, time_key, words_key
from eunoe.model.result import ForgetReport
from eunoe.model.scope import Scope
from eunoe.model.text import same_name
from eunoe.store.contract import Row, Store, StreamRow, Tombstone

Selection = Callable[[Store, StreamRow | None], list[Row]]

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
    vectors: int
    mentions: tuple[str, ...] = ()


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
    return [
        row
        for row in _walk(store, stream)
        if spoken(row.speaker) or any(map(spoken, people(row))) or (mentions and named_in(row.text))
    ]


def mentions_left(store: Store, stream: StreamRow, person: str) -> tuple[str, ...]:
    named_in = _mentions(person)
    return tuple(row.id for row in _walk(store, stream) if named_in(row.text))


def remove(
    store: Store,
    scope: Scope,
    stream: StreamRow,
    rows: Sequence[Row],
    *,
    may_return: bool = False,
    whole: bool = False,
    person: str = "",
) -> Removal:
    """Takes rows out with everything that rests on them, and leaves tombstones unless they may return."""
    reached = _reach(store, stream, rows)
    vectors = 0
    if reached:
        version = store.advance(stream.id).version
        vectors = store.delete(stream.id, [row.seq for row in reached], version)
        store.set_meta(_SCRUB_DUE, f"{stream.id}.{version}")
    if reached and not may_return:
        store.bury(stream.id, [stone for row in reached for stone in _stones(row, whole)])
    mentions = mentions_left(store, stream, person) if person else ()
    return Removal(scope, stream, tuple(reached), vectors, mentions)


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


def report(removals: Sequence[Removal], traces: Sequence[str] | None, left: str) -> ForgetReport:
    """What was removed, in words for the caller; `traces` is None if nobody looked, `left` is what is still to do."""
    found = [*(traces or ()), *([left] if left else [])]
    rows = [row for removal in removals for row in removal.rows]
    return ForgetReport(
        messages=tuple(row.id for row in rows if row.kind == "message"),
        atoms=tuple(row.id for row in rows if row.kind != "message"),
        vectors=sum(removal.vectors for removal in removals),
        scopes=tuple(removal.scope for removal in removals if removal.rows),
        mentions=tuple(id for removal in removals for id in removal.mentions),
        verified=None if traces is None else not found,
        traces=tuple(found),
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
    for text, places in store.traces(needles(removals)).items():
        if "items.text" not in places and "items.caption" not in places:
            found += [f"{place}: {text[:40]!r}" for place in places]
    return found


def _reach(store: Store, stream: StreamRow, rows: Sequence[Row]) -> list[Row]:
    """The rows, all versions of each atom, and every atom that rests on one of them, however far away."""
    reached: dict[int, Row] = {}
    citing = store.citing(stream.id)
    waiting = list(rows)
    while waiting:
        versions = {row.seq: row for one in waiting for row in _versions(store, stream, one) if row.seq not in reached}
        reached |= versions
        gone = {row.id for row in versions.values()}
        waiting = [row for row in citing if row.seq not in reached and gone.intersection(sources(row))]
    return [reached[seq] for seq in sorted(reached)]


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


def _walk(store: Store, stream: StreamRow | None) -> Iterator[Row]:
    after = 0
    while stream and (page := store.page(stream.id, after, _PAGE, _ALL, retired=True)):
        yield from page
        after = page[-1].seq


def _speaks(person: str) -> Callable[[str], bool]:
    wanted = same_name(person)
    return lambda name: same_name(name) == wanted


def _mentions(person: str) -> Callable[[str], bool]:
    """Whether a text has the name as a word of its own; letters of a script without spaces are no part of a word."""
    from eunoe.index.text import SPACELESS

    name = same_name(person)
    unspaced = re.compile(f"[{SPACELESS}]")
    before = "" if unspaced.match(name[:1]) else rf"(?<![^\W{SPACELESS}])"
    after = "" if unspaced.match(name[-1:]) else rf"(?![^\W{SPACELESS}])"
    pattern = re.compile(before + re.escape(name) + after)
    return lambda text: pattern.search(same_name(text)) is not None
