"""Versions of a summary: committed by compare and swap, never overwritten, purged of what is forgotten.

What a revision knows is its lineage: the observations it took in itself and those of the revisions it was written from.
The observations noted as absorbed are always those of the current revision's lineage, no more and no less.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.stream import Revision
from eunoe.model.time import from_micros
from eunoe.records.rows import atom_contents, encode
from eunoe.store.books import RevisionRow, SummaryRow
from eunoe.store.contract import Store, StreamRow
from eunoe.text.sentences import sentences

EXTRACTIVE = "extractive"
"""The author of what was put together from observations alone."""


def all_of(store: Store, stream: StreamRow | None) -> list[Revision]:
    """Oldest first."""
    if stream is None:
        return []
    number = state(store, stream).revision
    return [_revision(row, number) for row in store.books.revisions(stream.id)]


def current(store: Store, stream: StreamRow | None) -> Revision | None:
    """The revision that counts, or None."""
    number = state(store, stream).revision if stream else 0
    row = store.books.revision(stream.id, number) if stream and number else None
    return _revision(row, number) if row else None


def state(store: Store, stream: StreamRow) -> SummaryRow:
    return store.books.summary(stream.id) or SummaryRow(stream.id)


def ancestry(store: Store, stream: StreamRow, number: int) -> list[RevisionRow]:
    """A revision and those it was written from, latest first."""
    chain = []
    while number and (row := store.books.revision(stream.id, number)):
        chain.append(row)
        number = row.parent
    return chain


def taken(row: RevisionRow) -> tuple[str, ...]:
    """Ids of the observations it took in beyond its parent's."""
    return tuple(json.loads(row.absorbed)) if row.absorbed else ()


def commit(
    store: Store, stream: StreamRow, parent: int, text: str, absorbed: Sequence[str], author: str, now: int
) -> Revision:
    """Makes a new revision out of `parent` and these observations.

    ConflictError if `parent` is not current, or if one of the observations does not wait any more: it was forgotten,
    closed or taken in meanwhile, and the text may hold its words.
    """
    summary = _expected(store, stream, parent)
    waiting = {row.id for row in store.books.unabsorbed(stream.id)} if absorbed else set()
    if not waiting.issuperset(absorbed):
        raise ConflictError("an observation changed while the summary was written: write it anew")
    revision = _add(store, stream, summary, parent, text, absorbed, author, now)
    store.books.put_summary(SummaryRow(stream.id, revision.number, revision.number))
    return revision


def revise(store: Store, stream: StreamRow, text: str, author: str, parent: int | None, now: int) -> Revision:
    """Puts a text written by hand in place; it takes in nothing. The same text again changes nothing."""
    if author == EXTRACTIVE:
        raise InputError(f"{author!r} is the author of summaries made without a model: name another")
    standing = current(store, stream)
    if standing and standing.text == text:
        return standing
    _check_unforgotten(store, stream, text)
    summary = state(store, stream) if parent is None else _expected(store, stream, parent)
    revision = _add(store, stream, summary, summary.revision, text, (), author, now)
    store.books.put_summary(SummaryRow(stream.id, revision.number, revision.number, summary.rebuild))
    return revision


def forgotten(store: Store, stream: StreamRow, text: str) -> list[str]:
    """Those of a text, its lines and its sentences that were forgotten."""
    parts = {part: atom_contents(part) for part in (text, *text.splitlines(), *sentences(text)) if part.strip()}
    marks = dict.fromkeys(mark for own in parts.values() for mark in own)
    buried = {stone.key for stone in store.buried(stream.id, list(marks))}
    return [part for part, own in parts.items() if not buried.isdisjoint(own)]


def _check_unforgotten(store: Store, stream: StreamRow, text: str) -> None:
    if forgotten(store, stream, text):
        raise InputError("the summary holds words that were forgotten in this scope: leave them out")


def restore(store: Store, stream: StreamRow | None, number: int, now: int) -> Revision:
    """Makes an earlier text current again, as a child of its own revision: it has that one's lineage, and what the
    revisions in between took in waits again."""
    row = store.books.revision(stream.id, number) if stream else None
    if row is None or stream is None:
        raise NotFoundError(f"there is no revision {number} in this scope: it never was, or went with what it held")
    summary = state(store, stream)
    if summary.revision == number:
        return _revision(row, number)
    _check_unforgotten(store, stream, row.text)
    revision = _add(store, stream, summary, number, row.text, (), row.author, now)
    store.books.put_summary(SummaryRow(stream.id, revision.number, revision.number, summary.rebuild))
    settle(store, stream, revision.number)
    return revision


def purge(store: Store, stream: StreamRow, gone: Collection[str]) -> bool:
    """Takes back every revision that had taken in one of these atoms; True if the summary must be written anew."""
    summary = store.books.summary(stream.id)
    if summary is None or not gone:
        return False
    rows = store.books.revisions(stream.id)
    tainted = _tainted(rows, set(gone))
    kept = _clean(rows, tainted, summary.revision)
    store.books.drop_revisions(stream.id, sorted(tainted))
    if kept == summary.revision:
        store.books.put_summary(summary._replace(rebuild=_left(store, summary, summary.rebuild)))
        return False
    settle(store, stream, kept)
    # Whoever is writing has read what is gone: the lease ends.
    rebuild = _left(store, summary, 1)
    store.books.put_summary(summary._replace(revision=kept, rebuild=rebuild, owner="", until=0, retry=0))
    return bool(rebuild)


def drop(store: Store, stream: StreamRow) -> None:
    """Takes back every revision, whatever it was made from. Their numbers stay used up."""
    summary = store.books.summary(stream.id)
    if summary is not None:
        store.books.drop_revisions(stream.id, [row.number for row in store.books.revisions(stream.id)])
        settle(store, stream, 0)
        store.books.put_summary(SummaryRow(stream.id, last=summary.last))


def _left(store: Store, summary: SummaryRow, rebuild: int) -> int:
    """Whether there is anything to write the summary anew from."""
    return int(bool(rebuild and store.books.unabsorbed_count(summary.stream)))


def _tainted(rows: Sequence[RevisionRow], gone: set[str]) -> set[int]:
    """A parent's number is always lower than its child's, so one pass is enough."""
    found: set[int] = set()
    for row in rows:
        if row.parent in found or not gone.isdisjoint(taken(row)):
            found.add(row.number)
    return found


def _clean(rows: Sequence[RevisionRow], tainted: Collection[int], number: int) -> int:
    """The nearest of a revision and those it was written from that is not tainted; 0 if all are."""
    parents = {row.number: row.parent for row in rows}
    while number in tainted:
        number = parents[number]
    return number


def settle(store: Store, stream: StreamRow, number: int) -> None:
    """Notes as absorbed what the lineage of this revision holds."""
    lineage: Mapping[str, int] = {id: row.number for row in ancestry(store, stream, number) for id in taken(row)}
    books = store.books
    books.release(stream.id, [id for id in books.absorbed(stream.id) if id not in lineage])
    for taker in sorted(set(lineage.values())):
        books.absorb(stream.id, [id for id, by in lineage.items() if by == taker], taker)


def _expected(store: Store, stream: StreamRow, parent: int) -> SummaryRow:
    summary = state(store, stream)
    if summary.revision != parent:
        raise ConflictError(
            f"revision {parent} is not current any more, {summary.revision} is: read it and write the summary anew"
        )
    return summary


def _add(
    store: Store,
    stream: StreamRow,
    summary: SummaryRow,
    parent: int,
    text: str,
    absorbed: Sequence[str],
    author: str,
    now: int,
) -> Revision:
    if not text.strip():
        raise InputError("the summary says nothing: its text is empty or only blanks")
    row = RevisionRow(stream.id, summary.last + 1, parent, text, encode(list(absorbed)), author, now)
    store.books.put_revision(row)
    store.books.absorb(stream.id, absorbed, row.number)
    store.advance(stream.id)
    return _revision(row, row.number)


def _revision(row: RevisionRow, current: int) -> Revision:
    return Revision(
        number=row.number,
        text=row.text,
        parent=row.parent,
        absorbed=taken(row),
        author=row.author,
        recorded=from_micros(row.recorded),
        current=row.number == current,
    )
