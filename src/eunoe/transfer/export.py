"""Export: streams written line by line, from one snapshot of the store."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from eunoe.model.turn import read_turns
from eunoe.records.sessions import join_users, load_session
from eunoe.records.streams import SettingsReader, changed_presets
from eunoe.store.contract import Store
from eunoe.store.output_file import open_output
from eunoe.store.query import ItemQuery
from eunoe.store.tables import AccessCount, Job, RevisionRecord, SessionState, SettingsRecord, StreamState, SummaryState
from eunoe.transfer.lines import FORMAT, ItemLine, write_item, write_revision, write_tombstone

_PAGE_SIZE = 1000
# JSON leaves these as they are, and many tools take them for the end of a line.
_LINE_ENDS = re.compile(r"[\x85\u2028\u2029]")

Progress = Callable[[int], None]


def export_streams(
    store: Store, streams: Sequence[StreamState], target: str | Path | TextIO, progress: Progress | None
) -> int:
    """Write streams; return the number of lines. A file appears under its name only when it is complete."""
    if not isinstance(target, str | Path):
        return _write(store, streams, target, progress)
    with open_output(target) as file:
        return _write(store, streams, file, progress)


def _write(store: Store, streams: Sequence[StreamState], file: TextIO, progress: Progress | None) -> int:
    file.write(json.dumps({"eunoe": FORMAT}) + "\n")
    count = 0
    with store.reading():  # one snapshot for all lines: what is written meanwhile is wholly in it or not at all
        for line in chain(_preset_lines(store, streams), *(_stream_lines(store, stream) for stream in streams)):
            text = json.dumps(line, ensure_ascii=False)
            file.write(_LINE_ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", text) + "\n")
            count += 1
            if progress and count % _PAGE_SIZE == 0:
                progress(count)
    return count


def _preset_lines(store: Store, streams: Sequence[StreamState]) -> Iterator[dict[str, Any]]:
    reader = SettingsReader(store)
    used = {own.preset for stream in streams if (own := reader.of(stream.scope))}
    for name, changes in sorted(changed_presets(store).items()):
        if name in used:
            yield {"kind": "preset", "name": name, "changes": changes}


def _stream_lines(store: Store, stream: StreamState) -> Iterator[dict[str, Any]]:
    """What one scope holds, tombstones last."""
    named = {"scope": stream.scope.text}
    for settings in store.load(SettingsRecord, stream=stream.id):
        yield {**named, "kind": "settings", "preset": settings.preset, "changes": dict(settings.changes)}
    session, jobs = load_session(store, stream), store.load(Job, stream=stream.id)
    users: tuple[str, ...] = ()
    after = 0
    while records := store.select(ItemQuery(stream.id, after=after, limit=_PAGE_SIZE)):
        counts = store.load(AccessCount, seq=[record.seq for record in records])
        access = {count.seq: count for count in counts}
        for record in records:
            formed = record.kind == "message" and _is_formed(record.seq, session, jobs)
            yield write_item(stream.scope, ItemLine(record, formed, access.get(record.seq)))
        if turns := read_turns(records, stream.scope):
            users = join_users(users, stream.scope, turns)
        after = records[-1].seq
    if session and not set(users).issuperset(session.users):
        yield {**named, "kind": "session", "users": list(session.users)}
    yield from _summary_line(store, stream)
    yield from (write_tombstone(stream.scope, tombstone) for tombstone in store.tombstones(stream.id))


def _is_formed(seq: int, session: SessionState | None, jobs: Sequence[Job]) -> bool:
    return session is not None and seq <= session.cursor and not any(job.start < seq <= job.stop for job in jobs)


def _summary_line(store: Store, stream: StreamState) -> Iterator[dict[str, Any]]:
    revisions = store.load(RevisionRecord, stream=stream.id)
    for summary in store.load(SummaryState, stream=stream.id) if revisions else ():
        yield {
            "scope": stream.scope.text,
            "kind": "summary",
            "current": summary.revision,
            "last": summary.last,
            "rebuild": summary.rebuild,
            "revisions": list(map(write_revision, revisions)),
        }
