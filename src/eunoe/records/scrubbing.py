"""When the bytes of forgotten text are scrubbed: noted with the removal, done as soon as it can be by `Store.scrub`."""

from collections.abc import Sequence

from eunoe.errors import StoreBusyError, StoreError, StoreFullError
from eunoe.store.contract import Store, Writing
from eunoe.store.kept_files import Stamp
from eunoe.store.schema import StreamState
from eunoe.store.sqlite_files import STAMP_VALUE, file_id

_DUE_VALUE = "scrub_due"
_IN_KEPT_FILES = "kept"
"""Takes the place of a mark's token when the store itself is scrubbed, but a kept file could not be removed."""
_KEPT_SECONDS = 10.0
"""How long a process that writes kept files is waited for: it takes a fraction of that."""
_NOT_DONE = "the memories are removed, but their bytes are not yet wiped off the disk"
_DO_LATER = "Forget the same once more {}, or open the store again"


def mark_scrub_due(store: Writing, stream: StreamState, version: int) -> None:
    """Note, in the step that removes, that bytes are to be wiped: the mark outlives a process that is killed."""
    due = store.get_value(_DUE_VALUE) or ""
    store.set_value(_DUE_VALUE, f"{due} {stream.id}.{version}.{store.store.token}".strip())


def scrub_if_due(store: Store, timeout: float | None = None) -> str:
    """Wipe deleted bytes off the disk if that is still due; return what is left to do, or nothing."""
    due = store.read((), lambda store: store.get_value(_DUE_VALUE))
    if not due:
        return ""
    left = _remove_kept(store, due.split(), _KEPT_SECONDS if timeout is None else timeout)

    def note_done(store: Writing) -> None:
        if store.get_value(_DUE_VALUE) == due:  # else something was deleted meanwhile
            store.set_value(_DUE_VALUE, _kept_marks(due.split()) if left else "")

    try:
        _scrub(store, due.split(), timeout)
        store.write((), note_done)
    except StoreBusyError:
        return f"{_NOT_DONE}: another process keeps reading the store. {_DO_LATER.format('when it ends')}"
    except StoreFullError:
        return f"{_NOT_DONE}: there is no room to do it. {_DO_LATER.format('when there is')}"
    return left


def _scrub(store: Store, marks: Sequence[str], timeout: float | None) -> None:
    tokens = {mark.rpartition(".")[2] for mark in marks} - {_IN_KEPT_FILES}
    if tokens - {store.token}:
        store.deleted.clear()  # others deleted as well, and what they did is not known here
    if tokens:
        store.scrub(timeout)


def _kept_marks(marks: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(f"{_stream_of(mark)}.0.{_IN_KEPT_FILES}" for mark in marks))


def _stream_of(mark: str) -> int:
    return int(mark.partition(".")[0])


def _remove_kept(store: Store, marks: Sequence[str], seconds: float) -> str:
    """Remove the kept files in which something deleted may stand; return what is left to do, or nothing.

    Those of streams that lost something go whatever their version: a copy of the store that was put in its place may
    have come to the same version in another way.
    """
    if store.kept_files is None:
        return ""
    streams = set(map(_stream_of, marks))
    try:
        id = file_id(store.read((), lambda store: store.get_value(STAMP_VALUE)))

        def is_current(stream: int, stamp: Stamp) -> bool:
            if stream in streams or (stamp.get("store"), stamp.get("stream")) != (id, stream):
                return False
            states = store.read((), lambda store: store.streams(ids=[stream]))
            return any(state.version == stamp.get("version") for state in states)

        store.kept_files.drop(seconds, is_current)
    except StoreBusyError as error:
        return f"{_NOT_DONE}: {error}. {_DO_LATER.format('when it ends')}"
    except StoreError as error:
        return f"{_NOT_DONE}: {error}. {_DO_LATER.format('after that')}"
    return ""
