"""Jobs: which chunks of a conversation are still to be formed, and who works on them."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import pairwise, takewhile
from typing import NamedTuple

from eunoe.model.arguments import utc_now
from eunoe.model.atom import Record
from eunoe.model.stream import Settings
from eunoe.records.log import is_due, load_session, log_after, recount
from eunoe.records.streams import SettingsReader, is_incognito
from eunoe.store.contract import ItemQuery, Reading, Writing
from eunoe.store.schema import Job, SessionState, StreamState
from eunoe.text.sentences import token_count
from eunoe.work import leases

_MAX_MESSAGES = 2000
"""Messages that are cut into chunks in one step: a log of any length is worked off piece by piece."""
_BREAK = timedelta(minutes=30)
"""A pause that ends a chunk, where there is one in its second half."""
_MAX_CHUNK_FACTOR = 4
"""A chunk has at most so many times the messages that make a conversation due."""


def claim_job(
    store: Writing, stream: StreamState, least: int | None, ignore_pause: bool, tried: Collection[int] = ()
) -> Job | None:
    """Lease the next job of a conversation: one that somebody left, else a new one if it is due.

    `least` messages are enough for a new one; None leaves that to the settings. `ignore_pause` also takes what failed
    before and should wait. Jobs whose start is among `tried` are left alone.
    """
    free = _free_job(store, stream, ignore_pause, tried)
    jobs = [free] if free else _cut_jobs(store, stream, least)
    if not jobs:
        return None
    leased = jobs[0]._replace(lease=leases.take(jobs[0].lease))
    store.save([leased, *jobs[1:]])
    return leased


def can_claim(
    store: Reading, stream: StreamState, least: int | None, ignore_pause: bool, tried: Collection[int] = ()
) -> bool:
    """Whether `claim_job` would find something; only reads, so that nobody waits for a look."""
    is_there = _free_job(store, stream, ignore_pause, tried) or _find_due(store, stream, least, limit=1)
    return bool(is_there) and not is_incognito(store, stream.scope)


def _free_job(store: Reading, stream: StreamState, ignore_pause: bool, tried: Collection[int]) -> Job | None:
    jobs = (job for job in store.load(Job, stream=stream.id) if job.start not in tried)
    return next((job for job in jobs if leases.is_free(job.lease, utc_now(), ignore_pause)), None)


def finish_job(store: Writing, job: Job) -> bool:
    """End a job in the step that writes its memories; return False if it is no longer ours: nothing may be written."""
    held = leases.find_held(store, job)
    if held:
        store.drop(Job, stream=job.stream, start=job.start)
    return held is not None


def job_messages(store: Reading, job: Job) -> list[Record]:
    """The messages of a job that are still there."""
    return list(takewhile(lambda record: record.seq <= job.stop, log_after(store, job.stream, job.start)))


def messages_before(store: Reading, job: Job, most: int) -> list[Record]:
    """The last messages of the log before a job."""
    query = ItemQuery(job.stream, kinds=("message",), until=job.start, open=True, order="newest", limit=most)
    return store.select(query)[::-1]


class _Due(NamedTuple):
    """The messages after the cursor that are to be formed, and the settings by which."""

    session: SessionState
    records: list[Record]
    settings: Settings


def _find_due(store: Reading, stream: StreamState, least: int | None, limit: int) -> _Due | None:
    """What is due, if that is enough. Messages that came by import were never counted, so that one message is always
    worth a look."""
    session = load_session(store, stream) or SessionState(stream.id)
    records = list(log_after(store, stream.id, session.cursor, limit))
    settings = SettingsReader(store, stream).forming(stream.scope, session.users) if records else None
    if settings is None:
        return None
    is_enough = is_due(session, settings) if least is None else least <= 1 or session.messages >= least
    return _Due(session, records, settings) if is_enough else None


def _cut_jobs(store: Writing, stream: StreamState, least: int | None) -> list[Job]:
    """Cut what is due into jobs, if that is enough, and move the cursor past them. The jobs are still to be saved."""
    due = _find_due(store, stream, least, _MAX_MESSAGES)
    if due is None:
        return []
    chunks, is_all = cut_into_chunks(due.records, due.settings), len(due.records) < _MAX_MESSAGES
    if not is_all and len(chunks) > 1:
        chunks.pop()  # more may follow that belongs to it
    ends = [due.session.cursor, *(chunk[-1].seq for chunk in chunks)]
    moved = due.session._replace(cursor=ends[-1], active=due.session.active or utc_now(), messages=0, weight=0.0)
    store.save([moved if is_all else recount(store, stream, moved, due.settings)])
    return [Job(stream.id, start, stop) for start, stop in pairwise(ends)]


def cut_into_chunks(records: Sequence[Record], settings: Settings) -> list[list[Record]]:
    """Pieces of a log that are small enough to be formed at once, ended where the talk paused if it did."""
    chunks, start = [], 0
    while start < len(records):
        stop = _latest_end(records, start, settings)
        stop = _end_at_break(records, start, stop) if stop < len(records) else stop
        chunks.append(list(records[start:stop]))
        start = stop
    return chunks


def _latest_end(records: Sequence[Record], start: int, settings: Settings) -> int:
    """Where a chunk that starts here has to end at the latest; it has one message at least."""
    room, most = settings.chunk_tokens, settings.formation_messages * _MAX_CHUNK_FACTOR
    for place in range(start, min(len(records), start + most)):
        room -= token_count(records[place].text)
        if room < 0 and place > start:
            return place
    return min(len(records), start + most)


def _end_at_break(records: Sequence[Record], start: int, stop: int) -> int:
    """The last change of session, or long pause, in the second half of a chunk; its end if there is none."""
    middle = start + (stop - start) // 2
    places = range(stop, max(middle, start), -1)
    return next((place for place in places if _is_break(records[place - 1], records[place])), stop)


def _is_break(before: Record, after: Record) -> bool:
    if before.session != after.session:
        return True
    return before.time is not None and after.time is not None and after.time - before.time >= _BREAK
