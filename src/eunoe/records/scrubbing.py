"""When the bytes of forgotten text are scrubbed: noted with the removal, done as soon as it can be by `Store.scrub`."""

from eunoe.errors import StoreBusyError, StoreFullError
from eunoe.store.contract import Store
from eunoe.store.file_stamp import STAMP_VALUE, file_id
from eunoe.store.kept_files import Stamp
from eunoe.store.tables import StreamState

_DUE_VALUE = "scrub_due"
_KEPT_SECONDS = 10.0
"""How long a process that writes kept files is waited for: it takes a fraction of that."""
_NOT_DONE = "the memories are removed, but their bytes are not yet wiped off the disk"
_DO_LATER = "Forget the same once more {}, or open the store again"


def mark_scrub_due(store: Store, stream: StreamState, version: int) -> None:
    """Note, in the step that removes, that bytes are to be wiped: the mark outlives a process that is killed."""
    due = store.get_value(_DUE_VALUE) or ""
    store.set_value(_DUE_VALUE, f"{due} {stream.id}.{version}.{store.token}".strip())


def scrub_if_due(store: Store, timeout: float | None = None) -> str:
    """Wipe deleted bytes off the disk if that is still due; return what is left to do, or nothing."""
    with store.reading():
        due = store.get_value(_DUE_VALUE)
    if not due:
        return ""
    if any(not mark.endswith(store.token) for mark in due.split()):
        store.deleted.clear()  # others deleted as well, and what they did is not known here
    try:
        drop_outdated(store, _KEPT_SECONDS if timeout is None else timeout)
        store.scrub(timeout)
        with store.writing():
            if store.get_value(_DUE_VALUE) == due:  # else something was deleted meanwhile
                store.set_value(_DUE_VALUE, "")
    except StoreBusyError:
        return f"{_NOT_DONE}: another process keeps reading the store. {_DO_LATER.format('when it ends')}"
    except StoreFullError:
        return f"{_NOT_DONE}: there is no room to do it. {_DO_LATER.format('when there is')}"
    return ""


def drop_outdated(store: Store, seconds: float) -> None:
    """Remove the kept files that are not of the present version of their streams: what was deleted stands in them."""
    if store.kept_files is None:
        return
    with store.reading():
        id = file_id(store.get_value(STAMP_VALUE))

    def is_current(stamp: Stamp) -> bool:
        with store.reading():
            streams = store.streams(ids=[stamp.get("stream", 0)])
        return stamp.get("store") == id and any(stream.version == stamp["version"] for stream in streams)

    store.kept_files.drop(seconds, is_current)
