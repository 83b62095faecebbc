"""Export: streams written line by line, from one snapshot of the store."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from eunoe.errors import DamagedStoreError, ScopeError
from eunoe.model.atom import NO_BOUNDS, Bounds, Record
from eunoe.model.scope import Scope
from eunoe.model.turn import read_turns
from eunoe.records.log import join_users
from eunoe.records.streams import SettingsReader, changed_presets
from eunoe.store.contract import ItemQuery, Reading, Store, streams_of
from eunoe.store.output_file import open_output
from eunoe.store.schema import AccessCount, Job, RevisionRecord, SessionState, SettingsRecord, StreamState, SummaryState
from eunoe.transfer.lines import FORMAT, ItemLine, write_item, write_revision, write_tombstone

_PAGE_SIZE = 1000
# JSON leaves these as they are, and many tools take them for the end of a line.
_LINE_ENDS = re.compile(r"[\x85\u2028\u2029]")

Progress = Callable[[int], None]
T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])
_log = logging.getLogger("eunoe")


def export_scopes(
    store: Store,
    scopes: Sequence[Scope],
    target: str | Path | TextIO,
    progress: Progress | None,
    skip_damaged: bool = False,
    bounds: Bounds = NO_BOUNDS,
) -> int:
    """Write scopes; return the number of lines. A file appears under its name only when it is complete.

    With bounds, sources that are out of them and the store's own presets are left out.
    """
    found = store.read(scopes, lambda store: {scope: streams_of(store, scope) for scope in scopes})
    missing = [scope.alone.text for scope, streams in found.items() if not streams]
    if missing:
        raise ScopeError(f"the store holds nothing of {', '.join(missing)}; nothing was written")
    streams = list({stream.id: stream for own in found.values() for stream in own}.values())

    def write(file: TextIO) -> int:
        # One snapshot for all lines: what is written meanwhile is wholly in it or not at all.
        return store.read(scopes, lambda store: _write(_Reader(store, skip_damaged, bounds), streams, file, progress))

    if not isinstance(target, str | Path):
        return write(target)
    with open_output(target) as file:
        return write(file)


def _write(reader: _Reader, streams: Sequence[StreamState], file: TextIO, progress: Progress | None) -> int:
    count, store = 0, reader.store
    if not reader.skip_damaged:
        _check_undamaged(store, streams)
    file.write(json.dumps({"eunoe": FORMAT}) + "\n")
    presets = () if reader.bounds.scopes else _preset_lines(store, streams)  # they are the store's own
    for line in chain(presets, *(_stream_lines(reader, stream) for stream in streams)):
        text = json.dumps(line, ensure_ascii=False)
        file.write(_LINE_ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", text) + "\n")
        count += 1
        if progress and count % _PAGE_SIZE == 0:
            progress(count)
    return count


def _check_undamaged(store: Reading, streams: Sequence[StreamState]) -> None:
    if damage := [each for stream in streams for each in store.damage(stream.id)]:
        raise DamagedStoreError(
            f"{len(damage)} parts of what is to be exported are damaged, the first is {damage[0]}; nothing was "
            "written: leave them out with --skip-damaged"
        )


class _Reader:
    """Reads a store, without what is damaged if that may be left out, and without what is out of bounds."""

    def __init__(self, store: Reading, skip_damaged: bool, bounds: Bounds) -> None:
        self.store = store
        self.skip_damaged = skip_damaged
        self.bounds = bounds

    def items(self, stream: StreamState, after: int) -> Sequence[Record]:
        query = ItemQuery(stream.id, after=after, limit=_PAGE_SIZE, skip_damaged=self.skip_damaged)
        records = self.store.select(query)
        return [self.bounds.record(each, stream.scope) for each in records] if self.bounds.scopes else records

    def all(self, read: Callable[[Reading], list[T]]) -> list[T]:
        try:
            return read(self.store)
        except DamagedStoreError as error:
            if not self.skip_damaged:
                raise
            _log.warning("left out: %s", error)
            return []

    def load(self, table: type[R], **key: Any) -> list[R]:
        return self.all(lambda store: store.load(table, **key))


def _preset_lines(store: Reading, streams: Sequence[StreamState]) -> Iterator[dict[str, Any]]:
    reader = SettingsReader(store)
    used = {own.preset for stream in streams if (own := reader.of(stream.scope))}
    for name, changes in sorted(changed_presets(store).items()):
        if name in used:
            yield {"kind": "preset", "name": name, "changes": changes}


def _stream_lines(reader: _Reader, stream: StreamState) -> Iterator[dict[str, Any]]:
    """What one scope holds, tombstones last."""
    named = {"scope": stream.scope.text}
    for settings in reader.load(SettingsRecord, stream=stream.id):
        yield {**named, "kind": "settings", "preset": settings.preset, "changes": dict(settings.changes)}
    session = next(iter(reader.load(SessionState, stream=stream.id)), None)
    jobs = reader.load(Job, stream=stream.id)
    users: tuple[str, ...] = ()
    after = 0
    while records := reader.items(stream, after):
        counts = reader.load(AccessCount, seq=[record.seq for record in records])
        access = {count.seq: count for count in counts}
        for record in records:
            formed = record.kind == "message" and _is_formed(record.seq, session, jobs)
            yield write_item(stream.scope, ItemLine(record, formed, access.get(record.seq)))
        if turns := read_turns(records, stream.scope):
            users = join_users(users, stream.scope, turns)
        after = records[-1].seq
    if session and not set(users).issuperset(session.users):
        yield {**named, "kind": "session", "users": list(session.users)}
    yield from _summary_line(reader, stream)
    tombstones = reader.all(lambda store: store.tombstones(stream.id))
    yield from (write_tombstone(stream.scope, tombstone) for tombstone in tombstones)


def _is_formed(seq: int, session: SessionState | None, jobs: Sequence[Job]) -> bool:
    return session is not None and seq <= session.cursor and not any(job.start < seq <= job.stop for job in jobs)


def _summary_line(reader: _Reader, stream: StreamState) -> Iterator[dict[str, Any]]:
    revisions = reader.load(RevisionRecord, stream=stream.id)
    for summary in reader.load(SummaryState, stream=stream.id) if revisions else ():
        yield {
            "scope": stream.scope.text,
            "kind": "summary",
            "current": summary.revision,
            "last": summary.last,
            "rebuild": summary.rebuild,
            "revisions": list(map(write_revision, revisions)),
        }
