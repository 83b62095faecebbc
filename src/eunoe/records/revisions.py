"""Revisions of a summary: committed by compare and swap, never overwritten, purged of what is forgotten.

What a revision knows is its lineage: the observations it absorbed itself and those of the revisions it was written
from. The observations noted as absorbed are always those of the current revision's lineage, no more and no less.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.model.arguments import ATOM_KINDS, show
from eunoe.model.atom import EXTRACTIVE, Record
from eunoe.model.stream import Revision
from eunoe.records.identity import all_tombstone_identities
from eunoe.records.scrubbing import mark_scrub_due
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Absorption, Lease, RevisionRecord, StreamState, SummaryState
from eunoe.text.analyzer import content_terms
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

_NO_REVISION = "there is no revision {} in this scope: it never was, or went with what it held"
_UNABSORBED = ItemQuery(kinds=("observation",), open=True, reviewed=True, unabsorbed=True)


def all_revisions(store: Reading, stream: StreamState | None) -> list[Revision]:
    """Oldest first."""
    if stream is None:
        return []
    current = load_summary(store, stream).revision
    return [_revision(record, current) for record in store.load(RevisionRecord, stream=stream.id)]


def current_revision(store: Reading, stream: StreamState | None) -> Revision | None:
    record = load_revision(store, stream, load_summary(store, stream).revision) if stream else None
    return _revision(record, record.number) if record else None


def load_summary(store: Reading, stream: StreamState) -> SummaryState:
    found = store.load(SummaryState, stream=stream.id)
    return found[0] if found else SummaryState(stream.id)


def load_revision(store: Reading, stream: StreamState | None, number: int) -> RevisionRecord | None:
    found = store.load(RevisionRecord, stream=stream.id, number=number) if stream and number else []
    return found[0] if found else None


def unabsorbed(store: Reading, stream: int, skip_damaged: bool = False, limit: int | None = None) -> list[Record]:
    """Open observations that no summary holds, oldest first."""
    return store.select(_UNABSORBED._replace(stream=stream, skip_damaged=skip_damaged, limit=limit))


def unabsorbed_count(store: Reading, stream: int) -> int:
    return store.count(_UNABSORBED._replace(stream=stream))


def ancestry(store: Reading, stream: StreamState, number: int) -> list[RevisionRecord]:
    """A revision and those it was written from, latest first."""
    chain = []
    while record := load_revision(store, stream, number):
        chain.append(record)
        number = record.parent
    return chain


def commit_revision(
    store: Writing,
    stream: StreamState,
    parent: int,
    text: str,
    absorbed: Sequence[str],
    author: str,
    now: datetime,
    shown: Sequence[str] = (),
) -> Revision:
    """Make a new revision out of `parent` and these observations. `shown` are others that its author read.

    Raise ConflictError if `parent` is not current, or if one of the observations does not wait any more: it was
    forgotten, closed or absorbed meanwhile, and the text may hold its words.
    """
    summary = _expect_current(store, stream, parent)
    waiting = {record.id for record in unabsorbed(store, stream.id)} if absorbed or shown else set()
    if not waiting.issuperset([*absorbed, *shown]):
        raise ConflictError("an observation changed while the summary was written: write it anew")
    return _add(store, stream, summary._replace(rebuild=False), parent, text, absorbed, author, now)


class NewSummary(NamedTuple):
    """A text written outside the engine that is to become the summary."""

    text: str
    author: str
    parent: int | None = None
    """The revision that has to be current; None if any may be."""
    absorbed: Sequence[str] = ()
    """Ids of open memories that it says."""
    base: int | None = None
    """The revision it was written from, 0 for none; None if that is the current one."""


def write_revision(store: Writing, stream: StreamState, new: NewSummary, now: datetime) -> Revision:
    """Put a text in place. It has the lineage of its base; what later revisions had absorbed waits again. The same text
    again, with nothing new absorbed, changes nothing."""
    if new.author == EXTRACTIVE and not new.absorbed:
        raise InputError(f"{new.author!r} is the author of summaries made without a model: name another")
    current = load_revision(store, stream, load_summary(store, stream).revision)
    if current and _is_written(store, stream, new, current):
        return _revision(current, current.number)
    _check_unforgotten(store, stream, new.text)
    summary = load_summary(store, stream) if new.parent is None else _expect_current(store, stream, new.parent)
    base = summary.revision if new.base is None else _expect_revision(store, stream, new.base)
    absorbed = _find_unabsorbed(store, stream, new.absorbed, base, summary.revision)
    summary = summary._replace(rebuild=summary.rebuild and not absorbed)
    revision = _add(store, stream, summary, base, new.text, absorbed, new.author, now)
    if base != summary.revision:
        note_absorbed(store, stream, revision.number)
    return revision


def _is_written(store: Reading, stream: StreamState, new: NewSummary, current: RevisionRecord) -> bool:
    """Whether the current revision says the same and holds all that is to be absorbed."""
    if current.text != new.text or new.base not in (None, current.number, current.parent):
        return False
    return _lineage(store, stream, current.number).issuperset(new.absorbed)


def _lineage(store: Reading, stream: StreamState, number: int) -> set[str]:
    return {id for record in ancestry(store, stream, number) for id in record.absorbed}


def _expect_revision(store: Reading, stream: StreamState, number: int) -> int:
    if number and load_revision(store, stream, number) is None:
        raise NotFoundError(_NO_REVISION.format(number))
    return number


def _find_unabsorbed(store: Reading, stream: StreamState, ids: Sequence[str], base: int, current: int) -> list[str]:
    """Those of some open memories that the lineage of a revision does not hold."""
    query = ItemQuery(stream.id, ids=ids, kinds=ATOM_KINDS, open=True)
    missing = set(ids) - {record.id for record in store.select(query)} if ids else set()
    if missing:
        raise ConflictError(
            f"there is no open memory {show(min(missing))} in this scope: it was closed or forgotten, or never "
            "was one. Read them anew and write the summary again"
        )
    if base == current:  # what its lineage holds is noted, so that a long one need not be read
        held = {absorption.id for absorption in store.load(Absorption, stream=stream.id, id=list(ids))}
    else:
        held = _lineage(store, stream, base)
    return [id for id in ids if id not in held]


def restore_revision(store: Writing, stream: StreamState | None, number: int, now: datetime) -> Revision:
    """Make an earlier text current again, as a child of its own revision: it has that one's lineage, and what the
    revisions in between absorbed waits again."""
    record = load_revision(store, stream, number)
    if record is None or stream is None:
        raise NotFoundError(_NO_REVISION.format(number))
    summary = load_summary(store, stream)
    if summary.revision == number:
        return _revision(record, number)
    _check_unforgotten(store, stream, record.text)
    revision = _add(store, stream, summary, number, record.text, (), record.author, now)
    note_absorbed(store, stream, revision.number)
    return revision


def forgotten_parts(store: Reading, stream: StreamState, text: str) -> list[str]:
    """Those of a text, its lines and its sentences that were forgotten."""
    parts = {
        part: all_tombstone_identities(part)
        for part in (text, *text.splitlines(), *split_sentences(text))
        if part.strip()
    }
    identities = dict.fromkeys(identity for own in parts.values() for identity in own)
    buried = {tombstone.identity for tombstone in store.tombstones(stream.id, list(identities))}
    return [part for part, own in parts.items() if not buried.isdisjoint(own)]


def _check_unforgotten(store: Reading, stream: StreamState, text: str) -> None:
    if forgotten_parts(store, stream, text):
        raise InputError("the summary holds words that were forgotten in this scope: leave them out")


def purge_revisions(
    store: Writing,
    stream: StreamState,
    gone: Collection[str],
    is_unwanted: Callable[[str], bool] | None = None,
    observed: datetime | None = None,
    empty: Collection[int] = (),
) -> bool:
    """Take back every revision that had absorbed one of these atoms, whose text is unwanted or empty, or that was made
    from observations since `observed`, when the first observation that goes was recorded: its words may have been read
    without being absorbed. Return whether to write the summary anew."""
    found = store.load(SummaryState, stream=stream.id)
    if not found or not (gone or is_unwanted or empty):
        return False
    summary = found[0]
    records = store.load(RevisionRecord, stream=stream.id)
    tainted = _find_tainted(records, set(gone), is_unwanted, observed) | {*empty}
    records = _past_empty(records, empty)
    kept = nearest_allowed(records, tainted, summary.revision)
    store.drop(RevisionRecord, stream=stream.id, number=sorted(tainted))
    if empty:
        store.save([record for record in records if record.number not in tainted])
        note_absorbed(store, stream, kept)
    if kept == summary.revision:
        rebuild = summary.rebuild and unabsorbed_count(store, stream.id) > 0
        store.save([summary._replace(rebuild=rebuild)])
        return False
    note_absorbed(store, stream, kept)
    rebuild = unabsorbed_count(store, stream.id) > 0
    # Whoever is writing has read what is gone: the lease ends.
    lease = summary.lease._replace(owner="", until=None, retry=None)
    store.save([summary._replace(revision=kept, rebuild=rebuild, lease=lease)])
    return rebuild


def drop_revisions(store: Writing, stream: StreamState) -> None:
    """Take back every revision, whatever it was made from. Their numbers stay used up."""
    found = store.load(SummaryState, stream=stream.id)
    if found:
        store.drop(RevisionRecord, stream=stream.id)
        note_absorbed(store, stream, 0)
        store.save([SummaryState(stream.id, last=found[0].last)])


def _find_tainted(
    records: Sequence[RevisionRecord],
    gone: set[str],
    is_unwanted: Callable[[str], bool] | None,
    observed: datetime | None,
) -> set[int]:
    """A parent's number is always lower than its child's, so one pass is enough. What absorbed nothing was written by
    hand or restored, and read nothing."""
    tainted: set[int] = set()
    for record in records:
        was_read = observed is not None and bool(record.absorbed) and record.recorded >= observed
        is_tainted = was_read or record.parent in tainted or not gone.isdisjoint(record.absorbed)
        if is_tainted or (is_unwanted and is_unwanted(record.text)):
            tainted.add(record.number)
    return tainted


def _past_empty(records: Sequence[RevisionRecord], empty: Collection[int]) -> list[RevisionRecord]:
    """Revisions, each with the lineage of the empty ones that it was written from."""
    passed: dict[int, RevisionRecord] = {}
    for record in records:  # a parent comes before its child
        parent = passed[record.parent] if record.parent in empty else None
        own = record._replace(parent=parent.parent, absorbed=parent.absorbed + record.absorbed) if parent else record
        passed[record.number] = own
    return [*passed.values()]


def nearest_allowed(records: Sequence[RevisionRecord], refused: Collection[int], number: int) -> int:
    """The nearest of a revision and those it was written from that is not refused; 0 if all are."""
    parents = {record.number: record.parent for record in records}
    while number in refused:
        number = parents[number]
    return number


def note_absorbed(store: Writing, stream: StreamState, number: int) -> None:
    """Note as absorbed what the lineage of this revision holds."""
    lineage = {id: record.number for record in ancestry(store, stream, number) for id in record.absorbed}
    known = store.load(Absorption, stream=stream.id)
    store.drop(Absorption, stream=stream.id, id=[each.id for each in known if each.id not in lineage])
    store.save([Absorption(stream.id, id, by) for id, by in lineage.items()])


def rename_absorbed(store: Writing, stream: StreamState, id: str, to: str) -> None:
    """Note under another id that an observation was absorbed: other words have its id now."""
    for absorption in store.load(Absorption, stream=stream.id, id=id):
        store.drop(Absorption, stream=stream.id, id=id)
        store.save([absorption._replace(id=to)])
    revisions = [each for each in store.load(RevisionRecord, stream=stream.id) if id in each.absorbed]
    renamed = [tuple(to if name == id else name for name in each.absorbed) for each in revisions]
    store.save([each._replace(absorbed=ids) for each, ids in zip(revisions, renamed, strict=True)])


def _expect_current(store: Reading, stream: StreamState, parent: int) -> SummaryState:
    summary = load_summary(store, stream)
    if summary.revision != parent:
        raise ConflictError(
            f"revision {parent} is not current any more, {summary.revision} is: read it and write the summary anew"
        )
    return summary


def _add(
    store: Writing,
    stream: StreamState,
    summary: SummaryState,
    parent: int,
    text: str,
    absorbed: Sequence[str],
    author: str,
    now: datetime,
) -> Revision:
    if not text.strip():
        raise InputError("the summary says nothing: its text is empty or only blanks")
    record = RevisionRecord(stream.id, summary.last + 1, parent, text, tuple(absorbed), author, now)
    store.save([record])
    store.save([Absorption(stream.id, id, record.number) for id in absorbed])
    store.save([SummaryState(stream.id, record.number, record.number, summary.rebuild, Lease())])
    store.advance(stream.id)
    return _revision(record, record.number)


def _revision(record: RevisionRecord, current: int) -> Revision:
    number, parent, text, absorbed, author, recorded = record[1:]
    return Revision(number, text, parent, absorbed, author, recorded, current=number == current)


MIN_PHRASE_CHARACTERS = 12
"""A shorter text stands by chance in others."""
_PAGE = 200
"""Few records: most words are soon found in others."""
_STEM_CHARACTERS = 3
"""A stem may end in other letters than its words; so many of its first are in each of them."""
_WORD = re.compile(r"\w")
_DIGIT_GROUP = re.compile(r"(?<=\d)[,.'\u00a0\u202f ](?=\d{3}(?!\d))")
"""What stands between the digits of one number, as in 48,500."""


def cut_forgotten(store: Writing, stream: StreamState, texts: Sequence[str]) -> list[int]:
    """Take out of every revision of a stream what surely says something of forgotten texts. Return the numbers of those
    that have nothing left: they are still to be purged."""
    records = store.load(RevisionRecord, stream=stream.id) if texts else []
    parts = find_forgotten(store, stream, [record.text for record in records], texts)
    sure = [part for part, is_sure in parts.items() if is_sure]
    cut = {record: _without(record.text, sure) for record in records if any(part in record.text for part in sure)}
    if cut:
        mark_scrub_due(store, stream, store.advance(stream.id).version)
        store.save([record._replace(text=text) for record, text in cut.items() if text])
    return [record.number for record, text in cut.items() if not text]


def find_forgotten(
    store: Reading, stream: StreamState, summaries: Iterable[str], texts: Sequence[str]
) -> Mapping[str, bool]:
    """The parts of summaries of a stream that say something of forgotten texts which nothing left in the stream does,
    and whether they surely do: they repeat a text, a number or a name of it, or hold little else."""
    parts = list(dict.fromkeys(part for summary in summaries for part in _split(summary)))
    if not parts or not texts:
        return {}
    gone = _terms("\n".join(texts)) - _terms(" ".join(stream.scope.pairs.values()))
    telling = set().union(*map(_telling_terms, texts))
    terms = {part: _terms(part) for part in parts}
    phrases = [text for text in texts if len(text) >= MIN_PHRASE_CHARACTERS]
    repeated = {part: [text for text in phrases if text in part] for part in parts}
    alone = {term for own in terms.values() for term in own & gone}
    unsaid = {text for found in repeated.values() for text in found}
    for record in store.iterate(ItemQuery(stream.id), _PAGE) if alone or unsaid else ():
        words = f"{record.text}\n{record.caption}"
        folded = fold(_with_whole_numbers(words))
        if any(term[: max(_STEM_CHARACTERS, len(term) - _STEM_CHARACTERS)] in folded for term in alone):
            alone -= _terms(words)
        unsaid = {text for text in unsaid if text not in words}
        if not (alone or unsaid):
            return {}

    def is_sure(part: str, own: set[str]) -> bool:
        is_told = bool(own & (telling | _telling_terms(part))) or 2 * len(own) > len(terms[part])
        return is_told or not unsaid.isdisjoint(repeated[part])

    found = {part: terms[part] & alone for part in parts}
    return {part: is_sure(part, own) for part, own in found.items() if own or not unsaid.isdisjoint(repeated[part])}


def _terms(text: str) -> set[str]:
    return content_terms(_with_whole_numbers(text))


def _with_whole_numbers(text: str) -> str:
    """A text, and it once more with each number as one word."""
    return f"{text}\n{_DIGIT_GROUP.sub('', text)}" if _DIGIT_GROUP.search(text) else text


def _telling_terms(text: str) -> set[str]:
    """Terms of names and numbers: what is capitalised, but for the first word, and what has a digit."""
    named = (token for token in text.split()[1:] if token.lstrip("\"'(")[:1].isupper())
    numbers = (term for term in _terms(text) if any(map(str.isdigit, term)))
    return _terms(" ".join(named)).union(numbers)


def _split(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from split_sentences(line) or filter(str.strip, [line])


def _without(text: str, parts: Sequence[str]) -> str:
    """A text without parts, and without the lines that hold nothing else; empty if no word is left."""
    lines = []
    for line in text.splitlines():
        kept = line
        for part in parts:
            kept = " ".join(kept.split(part)) if part in kept else kept
        if kept == line or _WORD.search(kept):
            lines.append(kept.rstrip())
    left = "\n".join(lines)
    return left if _WORD.search(left) else ""
