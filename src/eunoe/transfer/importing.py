"""Import: what is new comes in, what is here stays, and what was forgotten here stays forgotten."""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from eunoe.errors import InputError, LlmError, ScopeError
from eunoe.llm import check_model_spec
from eunoe.model.atom import Record, SourcePlace, source_place, unique_supports
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope
from eunoe.model.stream import MODEL_SETTINGS, Settings
from eunoe.model.turn import turns_to_form
from eunoe.records import identity
from eunoe.records.insertion import VectorBatch, insert_records, link_sources
from eunoe.records.jobs import cut_into_chunks, job_messages
from eunoe.records.log import add_turns, join_users, link_users, load_session, log_after, recount, save_session
from eunoe.records.revisions import forgotten_parts, load_summary, nearest_allowed, note_absorbed, unabsorbed_count
from eunoe.records.streams import SettingsReader, changed_presets, configure_stream, is_incognito, save_preset
from eunoe.records.versions import bridge_gaps, next_version
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Job, RevisionRecord, SessionState, SettingsRecord, StreamState, SummaryState, Tombstone
from eunoe.transfer.lines import (
    ItemLine,
    Line,
    PresetLine,
    ScopedLine,
    SessionLine,
    SettingsLine,
    SummaryLine,
    read_lines,
)


def find_buried(store: Reading, stream: StreamState, records: Sequence[Record]) -> dict[str, Record]:
    """The records that have a tombstone here, by id."""
    buried = _find_tombstones(store, stream, {record.id: _identities(record) for record in records})
    return {record.id: record for record in records if record.id in buried}


def forgotten_sources(store: Reading, batch: Sequence[ScopedLine]) -> set[SourcePlace]:
    """What the atoms of a batch rest on and is not here, for it was forgotten."""
    lines = {(scope, line.record.id): line.record for scope, line in batch if scope and isinstance(line, ItemLine)}
    gone: set[SourcePlace] = set()
    for scope, ids in _source_ids(lines).items():
        if stream := store.stream(scope):
            missing = ids - {record.id for record in store.select(ItemQuery(stream.id, ids=sorted(ids)))}
            known = {id: lines.get((scope, id)) for id in missing}
            own = {id: _identities(line) if line else (identity.id_identity(id),) for id, line in known.items()}
            gone |= {(scope, id) for id in _find_tombstones(store, stream, own)}
    return gone


def _source_ids(lines: Mapping[SourcePlace, Record]) -> dict[Scope, set[str]]:
    ids: defaultdict[Scope, set[str]] = defaultdict(set)
    for (owner, _), record in lines.items():
        for name in chain(*record.supports):
            scope, id = source_place(name, owner)
            ids[scope].add(id)
    return ids


def without_sources(record: Record, owner: Scope, gone: Set[SourcePlace]) -> Record:
    """A record with the supports that are left to it."""
    groups = (group for group in record.supports if gone.isdisjoint(source_place(name, owner) for name in group))
    return record._replace(supports=unique_supports(groups)) if gone and record.supports else record


def _find_tombstones(store: Reading, stream: StreamState, identities: dict[str, tuple[bytes, ...]]) -> set[str]:
    """The ids of those that a tombstone recognises."""
    wanted = [identity for own in identities.values() for identity in own]
    found = {tombstone.identity for tombstone in store.tombstones(stream.id, wanted)} if wanted else set()
    return {id for id, own in identities.items() if not found.isdisjoint(own)}


def _identities(record: Record) -> tuple[bytes, ...]:
    """What a tombstone could recognise this record by."""
    own = (record.identity, identity.id_identity(record.id))
    if record.kind != "message":
        return *own, *identity.tombstone_identities(record.kind, record.text)
    content = identity.message_content(record)
    if record.time is not None:
        return *own, identity.time_identity(record.time, content)
    return own if record.identity == own[1] else (*own, identity.words_identity(content))


T = TypeVar("T")

_STORED = ImportReport(stored=1)
_DUPLICATE = ImportReport(duplicates=1)
_FORGOTTEN = ImportReport(forgotten=1)
_CONFLICT = ImportReport(conflicts=1)


def texts_to_embed(batch: Sequence[ScopedLine]) -> list[str]:
    return [line.record.content for _, line in batch if isinstance(line, ItemLine)]


def import_lines(batch: Sequence[ScopedLine], vectors: VectorBatch, store: Writing) -> ImportReport:
    """Write lines of several scopes, presets first: what follows may need them."""
    presets = [line for _, line in batch if isinstance(line, PresetLine)]
    report = sum((_import_preset(store, line) for line in presets), ImportReport())
    gone = forgotten_sources(store, batch)
    for scope in dict.fromkeys(scope for scope, _ in batch if scope is not None):
        report += _import_scope(store, scope, [line for owner, line in batch if owner == scope], gone, vectors)
    return report


def _import_scope(
    store: Writing, scope: Scope, lines: Sequence[Line], gone: Set[SourcePlace], vectors: VectorBatch
) -> ImportReport:
    """Write what is new, then the tombstones: those of an export say nothing against its own lines."""
    shown = _without_incognito(store, scope, lines)
    report = ImportReport(forgotten=len(lines) - len(shown))
    if not shown:
        return report
    by_type: defaultdict[type, list[Any]] = defaultdict(list)
    for line in shown:
        by_type[type(line)].append(line)
    for line in by_type[SettingsLine]:
        report += _import_settings(store, scope, line)
    stream, tombstones = store.create_stream(scope), by_type[Tombstone]
    report += _import_records(store, stream, by_type[ItemLine], tombstones, gone, vectors)
    for line in by_type[SessionLine]:
        report += _import_session(store, stream, line)
    for line in by_type[SummaryLine]:
        report += _import_summary(store, stream, line)
    store.add_tombstones(stream.id, tombstones)
    return report + ImportReport(tombstones=len(tombstones))


def _without_incognito(store: Reading, scope: Scope, lines: Sequence[Line]) -> list[Line]:
    if is_incognito(store, scope):
        return []
    sessions = {line.record.session for line in lines if isinstance(line, ItemLine)}
    hidden = {session for session in sessions if session and is_incognito(store, scope, session)}
    return [line for line in lines if not (isinstance(line, ItemLine) and line.record.session in hidden)]


def _import_preset(store: Writing, line: PresetLine) -> ImportReport:
    """A preset that was changed or made here too stays as it is here."""
    here = changed_presets(store).get(line.name)
    if here is not None:
        return _DUPLICATE if here == line.changes else _CONFLICT
    try:
        _check_models(line.changes)
        save_preset(store, line.name, "", line.changes)
    except InputError:  # it fits no preset of this name here
        return _CONFLICT
    return _STORED


def _import_settings(store: Writing, scope: Scope, line: SettingsLine) -> ImportReport:
    """Settings for a stream that has none of its own here."""
    stream = store.stream(scope)
    here = store.load(SettingsRecord, stream=stream.id) if stream else []
    if here:
        return _DUPLICATE if (here[0].preset, here[0].changes) == (line.preset, line.changes) else _CONFLICT
    try:
        _check_models(line.changes)
        configure_stream(store, scope, line.preset, line.changes)
    except (InputError, ScopeError):  # no such preset here, or one whose streams have other scopes
        return _CONFLICT
    return _STORED


def _check_models(changes: Mapping[str, object]) -> None:
    for name in MODEL_SETTINGS:
        if isinstance(spec := changes.get(name, ""), str):
            try:
                check_model_spec(spec)
            except LlmError as error:
                raise InputError(f"{name}: {error}") from error


def _import_session(store: Writing, stream: StreamState, line: SessionLine) -> ImportReport:
    """Users who take part in a conversation though none of its messages says so."""
    session = load_session(store, stream) or SessionState(stream.id)
    users = tuple(dict.fromkeys([*session.users, *line.users]))
    if users == session.users:
        return _DUPLICATE
    store.save([session._replace(users=users)])
    link_users(store, SettingsReader(store), stream, users)
    return _STORED


def _import_records(
    store: Writing,
    stream: StreamState,
    items: Sequence[ItemLine],
    tombstones: Sequence[Tombstone],
    gone: Set[SourcePlace],
    vectors: VectorBatch,
) -> ImportReport:
    records = [without_sources(item.record, stream.scope, gone) for item in items]
    held = {record.id: record for record in store.select(ItemQuery(stream.id, ids=[record.id for record in records]))}
    missing = [(record, item) for record, item in zip(records, items, strict=True) if record.id not in held]
    buried = find_buried(store, stream, [record for record, _ in missing])
    buried |= {record.id: record for record, item in missing if item.record.supports and not record.supports}
    closed = _close_superseded(store, stream, records, held, buried)
    new, forgotten, conflicts = _find_new(store, stream, records, held, buried)
    placed, end = _place_messages(new, stream.position)
    # The places of forgotten messages are not given away again: a replay must find the gaps where they were.
    end = max([end, *_ends_of_gaps(tombstones)])
    if not placed and (end > stream.position or (tombstones and not stream.version)):
        store.advance(stream.id, end - stream.position)
    link_sources(store, stream, placed)
    inserted = {record.id: record for record in insert_records(store, stream, placed, vectors, end - stream.position)}
    _link_past(store, stream, forgotten)
    _import_access(store, items, inserted)
    _import_progress(store, stream, items, inserted, held)
    duplicates = len(records) - len(new) - len(forgotten) - closed - conflicts
    return ImportReport(len(new), duplicates, len(forgotten), 0, closed, conflicts)


def _ends_of_gaps(tombstones: Sequence[Tombstone]) -> list[int]:
    return [tombstone.position + 1 for tombstone in tombstones if tombstone.position is not None]


def _import_access(store: Writing, items: Sequence[ItemLine], inserted: Mapping[str, Record]) -> None:
    counts = ((item.access, inserted.get(item.record.id)) for item in items)
    store.add_access([count._replace(seq=record.seq) for count, record in counts if count and record])


def _close_superseded(
    store: Writing,
    stream: StreamState,
    records: Sequence[Record],
    held: Mapping[str, Record],
    buried: Mapping[str, Record],
) -> int:
    """Close what is still open here and was closed by the time of the export, but not by what was forgotten here."""
    pairs = [(held[record.id], record) for record in records if record.retired is not None and record.id in held]
    ended = [
        (here, record)
        for here, record in pairs
        if here.retired is None and here.text == record.text and not _has_forgotten_end(record, buried)
    ]
    if ended:
        version = store.advance(stream.id).version
        closed = {
            here.id: here._replace(
                version=version, retired=record.retired, valid_to=record.valid_to, superseded_by=record.superseded_by
            )
            for here, record in ended
        }
        store.update(list(closed.values()))
    return len(ended)


def _has_forgotten_end(record: Record, buried: Mapping[str, Record]) -> bool:
    """Whether nothing but forgotten versions closed it."""
    return bool(record.superseded_by) and not next_version(record.superseded_by, buried)


def _link_past(store: Writing, stream: StreamState, forgotten: Sequence[Record]) -> None:
    """Link the versions around those that were refused, as if these had been forgotten after they came."""
    bridged = bridge_gaps(store, stream, forgotten)
    if bridged:
        version = store.advance(stream.id).version
        store.update([record._replace(version=version) for record in bridged])


def _find_new(
    store: Reading, stream: StreamState, records: Sequence[Record], held: Mapping[str, Record], buried: Collection[str]
) -> tuple[list[Record], list[Record], int]:
    """The records that are not here yet, those refused as forgotten, and how many were refused as other words under a
    known id or identity."""
    ids, known = dict(held), _find_open(store, stream, records)
    new, forgotten, conflicts = list[Record](), list[Record](), 0
    for record in records:
        if record.id in ids:
            conflicts += ids[record.id].text != record.text
        elif record.retired is None and record.identity in known:
            same = identity.record_content(known[record.identity]) == identity.record_content(record)
            conflicts += not same
        elif record.id in buried:
            forgotten.append(record)
        else:
            ids[record.id] = record
            if record.retired is None:
                known[record.identity] = record
            new.append(record)
    return new, forgotten, conflicts


def _find_open(store: Reading, stream: StreamState, records: Sequence[Record]) -> dict[bytes, Record]:
    identities = [record.identity for record in records if record.retired is None]
    found = store.select(ItemQuery(stream.id, identities=identities, open=True)) if identities else []
    return {record.identity: record for record in found}


def _place_messages(records: Sequence[Record], end: int) -> tuple[list[Record], int]:
    """Messages at their positions, where these are free; and the next free one."""
    placed = []
    for record in records:
        if record.kind == "message":
            position = max(end, record.position or 0)
            record, end = record._replace(position=position), position + 1
        placed.append(record)
    return placed, end


def _import_progress(
    store: Writing,
    stream: StreamState,
    items: Sequence[ItemLine],
    inserted: Mapping[str, Record],
    held: Mapping[str, Record],
) -> None:
    """Count messages that came or were retracted, and move the cursor past those that were formed elsewhere."""
    messages = [record for record in inserted.values() if record.kind == "message"]
    known = load_session(store, stream)
    session = known or SessionState(stream.id)
    late = _find_late(store, session, items, {**held, **inserted})
    has_retracted = known is not None and any(_is_retracted(item.record, held) for item in items)
    turns, reader = turns_to_form(messages, stream.scope), SettingsReader(store, stream)
    users = join_users(session.users, stream.scope, turns) if turns else session.users
    settings = reader.forming(stream.scope, users)
    if not late and not has_retracted and (not messages or settings is None):
        return
    moments = [session.active, *(record.recorded for record in messages)]
    session = session._replace(active=max(filter(None, moments), default=None), users=users)
    if late:
        session = _pass_formed(store, stream, session, late, settings)
    if late or has_retracted or known is None:
        session = recount(store, stream, session, settings)
    else:
        session = add_turns(session, turns, settings)
    save_session(store, reader, stream, known, session)


def _is_retracted(record: Record, held: Mapping[str, Record]) -> bool:
    """Whether a message that was there was taken back by the import."""
    here = held.get(record.id)
    return record.kind == "message" and record.retired is not None and here is not None and here.retired is None


def _find_late(
    store: Reading, session: SessionState, items: Sequence[ItemLine], here: Mapping[str, Record]
) -> Set[int]:
    """Numbers of messages that were formed elsewhere and are still due here."""
    pairs = [(here[item.record.id], item.record) for item in items if item.formed and item.record.id in here]
    formed = {own.seq for own, record in pairs if own.text == record.text}
    jobs = store.load(Job, stream=session.stream)
    return {seq for seq in formed if seq > session.cursor or any(_is_in(job, seq) for job in jobs)}


def _pass_formed(
    store: Writing, stream: StreamState, session: SessionState, late: Set[int], settings: Settings | None
) -> SessionState:
    """Take messages as formed. Due ones between them become jobs, so that nothing is passed over."""
    for job in store.load(Job, stream=stream.id):
        if any(_is_in(job, seq) for seq in late):
            store.drop(Job, stream=stream.id, start=job.start)
            _cut_around(store, job.start, job_messages(store, job), late, settings)
    cursor = max([session.cursor, *late])
    passed = [record for record in log_after(store, stream.id, session.cursor) if record.seq <= cursor]
    _cut_around(store, session.cursor, passed, late, settings)
    return session._replace(cursor=cursor)


def _is_in(job: Job, seq: int) -> bool:
    return job.start < seq <= job.stop


def _cut_around(
    store: Writing, start: int, records: Sequence[Record], late: Set[int], settings: Settings | None
) -> None:
    for formed, run in groupby(records, key=lambda record: record.seq in late):
        part = list(run)
        for chunk in [part] if formed or settings is None else cut_into_chunks(part, settings):
            if not formed:
                store.save([Job(chunk[0].stream, start, chunk[-1].seq)])
            start = chunk[-1].seq


def _import_summary(store: Writing, stream: StreamState, line: SummaryLine) -> ImportReport:
    """Revisions that are not here yet, if those that are do not contradict them."""
    here = {record.number: record for record in store.load(RevisionRecord, stream=stream.id)}
    summary = load_summary(store, stream)
    records = {record.number: record._replace(stream=stream.id) for record in line.revisions}
    if any(here[number][:-1] != records[number][:-1] for number in here.keys() & records.keys()):
        return _CONFLICT
    refused = _find_refused(store, stream, records.values(), summary, here)
    new = records.keys() - here.keys() - refused
    if not new:
        return _FORGOTTEN if refused else _DUPLICATE
    if here and summary.revision not in records:
        return _CONFLICT
    store.save([records[number] for number in sorted(new)])
    current = nearest_allowed(list(records.values()), refused, line.current)
    note_absorbed(store, stream, current)
    rebuild = (line.rebuild or current != line.current) and unabsorbed_count(store, stream.id) > 0
    store.save([SummaryState(stream.id, current, max(line.last, summary.last), rebuild)])
    store.advance(stream.id)
    return _STORED


def _find_refused(
    store: Reading,
    stream: StreamState,
    records: Collection[RevisionRecord],
    summary: SummaryState,
    here: Collection[int],
) -> set[int]:
    """Numbers of revisions that were taken back here, or that hold an observation which is not here, or forgotten
    words themselves."""
    ids = list(dict.fromkeys(id for record in records for id in record.absorbed))
    known = {record.id for record in store.select(ItemQuery(stream.id, ids=ids))} if ids else set()
    refused: set[int] = set()
    for record in records:
        is_unfounded = record.parent in refused or not known.issuperset(record.absorbed)
        is_new = record.number not in here
        if is_unfounded or (is_new and (record.number <= summary.last or forgotten_parts(store, stream, record.text))):
            refused.add(record.number)
    return refused


LineCheck = Callable[[ScopedLine], ScopedLine]
"""Returns a line as it may be imported, or raises AccessError."""
_BATCH_LINES: Final = 1000


def read_batches(source: str | Path | Iterable[str], check: LineCheck | None) -> Iterator[list[ScopedLine]]:
    """Read lines in batches; those before a bad one come before its error.

    With a check all lines are read once before the first batch is given: one that may not be imported refuses all.
    """
    if check is None:
        with open_lines(source) as texts:
            yield from _in_batches(read_lines(texts))
        return
    kept = source if isinstance(source, str | Path) else list(source)
    with suppress(InputError), open_lines(kept) as texts:  # the second reading comes to the same line, and says so
        for line in read_lines(texts):
            check(line)
    with open_lines(kept) as texts:
        yield from _in_batches(map(check, read_lines(texts)))


@contextmanager
def open_lines(source: str | Path | Iterable[str]) -> Iterator[Iterable[str]]:
    """Open a file, or take lines as they are."""
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        os.stat(source)
    except ValueError as error:
        raise InputError(f"{str(source)!r} names no file: {error}") from error
    except OSError:
        pass  # opening it says what is wrong
    try:
        with Path(source).open(encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason}") from error


def _in_batches(items: Iterable[T], size: int = _BATCH_LINES) -> Iterator[list[T]]:
    """Give items in lists of this size; those before a bad one come before its error."""
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
