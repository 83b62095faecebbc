"""Which of two atoms that cannot both be true came after the other, and how the older one is closed into it.

Time decides, not the order of arrival: what comes late is put in its place in the history and overrides nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush

from eunoe.model.atom import MEMORY_KEY, Record, Support, source_place, unique_supports
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.records.identity import record_content, related_topics, topic_of
from eunoe.records.insertion import VectorBatch, insert_records
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import StreamState
from eunoe.text.normalize import normalize_name

LastSaid = tuple[datetime, int]
"""When something was said last: the moment, and the message's number to decide between equal moments."""


def find_by_id(store: Reading, stream: int, id: str) -> Record | None:
    found = store.select(ItemQuery(stream, ids=[id])) if id else []
    return found[0] if found else None


def stored_receipt(record: Record) -> Receipt:
    return Receipt("stored", record.id, embedded=not record.pending)


def find_same_topic(store: Reading, stream: StreamState, record: Record) -> list[Record]:
    """Open atoms of the same kind and memory key, latest first, but for those about other people only."""
    if record.topic is None:
        return []
    if not record.people:
        return store.select(ItemQuery(stream.id, topic_start=record.topic, open=True, order="newest"))
    found = store.select(ItemQuery(stream.id, topics=related_topics(record), open=True, order="newest"))
    names = set(map(normalize_name, record.people))
    return [other for other in found if not other.people or not names.isdisjoint(map(normalize_name, other.people))]


def last_said(store: Reading, stream: StreamState, record: Record) -> LastSaid:
    """When an atom was last said to be true: by the latest message it rests on, by its own times, or when it was
    recorded."""
    moments = [(moment, 0) for moment in (record.time, record.valid_from) if moment is not None]
    moments += [(message.happened, message.seq) for message in _source_messages(store, stream, record)]
    latest = max(moments, default=(record.recorded, 0))
    # Nothing was said to be true after it had ended.
    return latest if record.valid_to is None else min(latest, (record.valid_to, 0))


def _source_messages(store: Reading, stream: StreamState, record: Record) -> Iterator[Record]:
    places: defaultdict[Scope, list[str]] = defaultdict(list)
    for scope, id in (source_place(name, stream.scope) for name in record.sources):
        places[scope].append(id)
    for scope, ids in places.items():
        owner = stream if scope is stream.scope else store.stream(scope)
        if owner:
            yield from store.select(ItemQuery(owner.id, kinds=("message",), ids=ids))


def insert_keyed(store: Writing, stream: StreamState, new: Record, vectors: VectorBatch) -> Receipt:
    """Store an atom with a memory key. Those with the same one that say something else are its rivals, but for a pinned
    one: only `update` closes it."""
    content, found = record_content(new), find_same_topic(store, stream, new)
    rivals = [other for other in found if not other.pinned and record_content(other) != content]
    return insert_in_time(store, stream, new, rivals, vectors, last_said(store, stream, new))


def insert_in_time(
    store: Writing, stream: StreamState, new: Record, rivals: Sequence[Record], vectors: VectorBatch, said: LastSaid
) -> Receipt:
    """Store an atom, last said at `said`, beside rivals that say something else. It closes the older ones; if one is
    newer, it is kept as history, closed from the start."""
    earlier, later = split_rivals(store, stream, new, rivals, said)
    if later:
        receipt, into = _insert_into_history(store, stream, new, later[0], vectors, said), later[-1]
    else:
        start = said[0] if earlier and new.valid_from is None else new.valid_from
        into = insert_records(store, stream, [new._replace(valid_from=start)], vectors)[0]
        receipt = stored_receipt(into)
    for rival in earlier:
        close_into(store, stream, rival, into, said[0], new.recorded)
    if earlier and not later:
        return Receipt("superseded", new.id, receipt.embedded, earlier[0].id)
    return receipt


def split_rivals(
    store: Writing, stream: StreamState, new: Record, rivals: Sequence[Record], said: LastSaid
) -> tuple[list[Record], list[Record]]:
    """The rivals that an atom closes, and the later ones that close it, in their order. One that is later but in review
    closes it when it is kept."""
    moments = {rival.id: last_said(store, stream, rival) for rival in rivals}
    later = sorted((rival for rival in rivals if moments[rival.id] > said), key=lambda rival: moments[rival.id])
    for rival in later:
        if rival.in_review:
            note_replaced(store, stream, rival, [new.id])
    earlier = [rival for rival in rivals if moments[rival.id] <= said]
    return earlier, [rival for rival in later if not rival.in_review]


def note_replaced(store: Writing, stream: StreamState, waiting: Record, ids: Sequence[str]) -> None:
    """Note what an atom in review is to close when it is kept."""
    replaces = tuple(dict.fromkeys([*waiting.replaces, *ids]))
    if replaces != waiting.replaces:
        store.update([waiting._replace(replaces=replaces, version=store.advance(stream.id).version)])


def _insert_into_history(
    store: Writing, stream: StreamState, new: Record, newer: Record, vectors: VectorBatch, said: LastSaid
) -> Receipt:
    """Put an atom where it belongs in the history of a newer one. Words that stand there already are not repeated."""
    before, after = _neighbours(store, stream, newer, said)
    for known in (after, before):
        if known and record_content(known) == record_content(new):
            add_support(store, stream, known, new.supports, new.people)
            return Receipt("duplicate", known.id)
    start = said[0] if new.valid_from is None else new.valid_from
    end = _end_before(start, new, after, last_said(store, stream, after)[0])
    late = new._replace(
        valid_from=start,
        valid_to=end,
        retired=new.recorded,
        superseded_by=after.id,
        supersedes=before.id if before else "",
    )
    inserted = insert_records(store, stream, [late], vectors)[0]
    changed = [after._replace(supersedes=new.id)]
    if before and before.superseded_by == after.id:
        changed.append(closed_record(before, new.id, start, before.retired or new.recorded))
    store.update([record._replace(version=inserted.version) for record in changed])
    return stored_receipt(inserted)


def _neighbours(store: Reading, stream: StreamState, newer: Record, said: LastSaid) -> tuple[Record | None, Record]:
    """The versions of an atom just before and just after the moment `said`."""
    after = newer
    before = find_by_id(store, stream.id, after.supersedes)
    while before and last_said(store, stream, before) > said:
        after = before
        before = find_by_id(store, stream.id, after.supersedes)
    return before, after


def _end_before(start: datetime, new: Record, after: Record, after_said: datetime) -> datetime:
    """When a late atom stopped being true: when the newer one began, or was said if it began no later."""
    end = after.valid_from if after.valid_from is not None and after.valid_from > start else max(start, after_said)
    return end if new.valid_to is None else max(start, min(end, new.valid_to))


def add_support(
    store: Writing,
    stream: StreamState,
    record: Record,
    supports: Sequence[Support],
    people: Iterable[str] = (),
    key: str = "",
) -> Record:
    """Rest a known atom on further messages too. One that was given by hand rests on nothing and needs nothing: it
    does not fall with a message that repeats it."""
    named = set(map(normalize_name, record.people))
    metadata = {**record.metadata, MEMORY_KEY: key} if key and record.topic is None else record.metadata
    all_people = (*record.people, *(name for name in people if normalize_name(name) not in named))
    changed = record._replace(
        supports=unique_supports([*record.supports, *supports]) if record.supports else (),
        people=all_people,
        metadata=metadata,
        topic=topic_of(record.kind, metadata, all_people),
    )
    if changed != record:
        changed = changed._replace(version=store.advance(stream.id).version)
        store.update([changed])
    return changed


def close_into(
    store: Writing, stream: StreamState, record: Record, into: Record, start: datetime, recorded: datetime
) -> None:
    """Close an atom into one that is there already, and hang it on the beginning of that one's history."""
    version = store.advance(stream.id).version
    store.update([closed_record(record, into.id, start, recorded)._replace(version=version)])
    # Read anew: what was closed into it before has changed it.
    versions = all_versions(store, stream, store.select(ItemQuery(stream.id, ids=[into.id]))[0])
    if all(record.id not in (other.id, other.supersedes) for other in versions):
        ids = {other.id for other in versions}
        first = next(other for other in versions if other.supersedes not in ids)
        store.update([first._replace(version=version, supersedes=record.id)])


def closed_record(record: Record, by: str, start: datetime, recorded: datetime) -> Record:
    """An atom as it is once another has taken its place. If the new one began before this one did, this one ends where
    it began: it was never true."""
    end = start if record.valid_to is None else min(start, record.valid_to)
    if record.valid_from is not None:
        end = max(end, record.valid_from)
    return record._replace(retired=recorded, superseded_by=by, valid_to=end)


def all_versions(store: Reading, stream: StreamState, record: Record) -> list[Record]:
    """All versions of an atom, oldest first: each before the one that closed it, else as they were recorded."""
    versions = {record.id: record}
    waiting = [record]
    while waiting:
        here = waiting.pop()
        ids = [id for id in (here.supersedes, here.superseded_by) if id and id not in versions]
        for near in store.select(ItemQuery(stream.id, ids=ids)) if ids else ():
            versions[near.id] = near
            waiting.append(near)
    return _in_order(versions)


def has_gaps(versions: Sequence[Record]) -> bool:
    """Whether a version names one that is not there: it was forgotten, or cannot be found."""
    ids = {"", *(version.id for version in versions)}
    return any(name not in ids for version in versions for name in (version.supersedes, version.superseded_by))


def _in_order(versions: Mapping[str, Record]) -> list[Record]:
    waits = Counter(record.superseded_by for record in versions.values())
    ready = [(record.seq, record.id) for record in versions.values() if not waits[record.id]]
    heapify(ready)
    ordered: dict[str, Record] = {}
    while ready:
        record = versions[heappop(ready)[1]]
        ordered[record.id] = record
        waits[record.superseded_by] -= 1
        if record.superseded_by in versions and not waits[record.superseded_by]:
            heappush(ready, (versions[record.superseded_by].seq, record.superseded_by))
    return list({**ordered, **versions}.values())  # links that form a circle follow at the end


def reworded_versions(store: Reading, record: Record) -> list[Record]:
    """An atom and the later versions that may repeat its words. Those with a memory key are left out: each is a
    statement of its own."""
    found = [record]
    while after := find_by_id(store, record.stream, found[-1].superseded_by):
        found.append(after)
    return [version for version in found if version.seq == record.seq or version.topic is None]


def bridge_gaps(store: Reading, stream: StreamState, removed: Sequence[Record]) -> list[Record]:
    """The versions that stay when some are removed, linked past those. One that only they closed is open again."""
    removed_ids = {record.id: record for record in removed}
    versions = _affected_versions(store, stream, removed)
    staying = {id: record for id, record in versions.items() if id not in removed_ids}
    linked: dict[str, Record] = {}
    for record in sorted(staying.values(), key=lambda record: -record.seq):
        is_cut_off = record.superseded_by in removed_ids
        linked[record.id] = _link_past(store, record, removed_ids, linked) if is_cut_off else record
    return [record for record in _in_single_lines(linked) if record != staying[record.id]]


def _affected_versions(store: Reading, stream: StreamState, removed: Sequence[Record]) -> dict[str, Record]:
    linked = [record for record in removed if record.supersedes or record.superseded_by]
    versions = {version.id: version for record in linked for version in all_versions(store, stream, record)}
    identities = [record.identity for record in versions.values()]
    # One that may open again cannot be open beside another one in its own words.
    for record in store.select(ItemQuery(stream.id, identities=identities, open=True)) if identities else ():
        versions |= {version.id: version for version in all_versions(store, stream, record)}
    return versions


def next_version(id: str, removed: Mapping[str, Record]) -> str:
    """The first version that stays, from this one on; empty if none does, or if the removed ones form a circle."""
    for _ in removed:
        if id in removed:
            id = removed[id].superseded_by
    return "" if id in removed else id


def _link_past(store: Reading, record: Record, removed: Mapping[str, Record], linked: Mapping[str, Record]) -> Record:
    """Link a version to the next one that stays, or open it again if there is none."""
    by = next_version(record.superseded_by, removed)
    next_start = removed[record.superseded_by].valid_from
    was_over = next_start is not None and (record.valid_to is None or record.valid_to < next_start)
    by = by or _open_duplicate(store, record, removed, linked)
    if not by:
        return record._replace(superseded_by="", retired=None, valid_to=record.valid_to if was_over else None)
    after = find_by_id(store, record.stream, by) or record
    end = record.valid_to
    if not was_over and after.valid_from is not None:
        end = after.valid_from if record.valid_from is None else max(after.valid_from, record.valid_from)
    return record._replace(superseded_by=by, valid_to=end)


def _in_single_lines(records: Mapping[str, Record]) -> list[Record]:
    """The versions of each open one in a single line, so that every version leads to every other."""
    lines: defaultdict[str, dict[str, Record]] = defaultdict(dict)
    for record in records.values():
        last = record
        for _ in records:  # an import may bring links that form a circle
            last = records.get(last.superseded_by, last)
        lines[last.id][record.id] = record
    ordered = [_in_order(line) for line in lines.values()]
    return [
        record._replace(supersedes=before.id if before else "")
        for line in ordered
        for before, record in zip([None, *line], line, strict=False)
    ]


def _open_duplicate(store: Reading, record: Record, removed: Mapping[str, Record], linked: Mapping[str, Record]) -> str:
    """The id of an open atom in the very same words, beside which this one cannot be open."""
    stored = store.select(ItemQuery(record.stream, identities=[record.identity], open=True))
    others = [other for other in (*stored, *linked.values()) if other.id not in removed]
    return next((other.id for other in others if other.identity == record.identity and other.retired is None), "")
