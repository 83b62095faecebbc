"""When the bytes of forgotten text are scrubbed: noted with the removal, done as soon as it can be by `Store.scrub`."""

from eunoe.errors import StoreBusyError, StoreFullError
from eunoe.store.contract import Store, Writing
from eunoe.store.schema import StreamState

_DUE_VALUE = "scrub_due"
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

    def note_done(store: Writing) -> None:
        if store.get_value(_DUE_VALUE) == due:  # else something was deleted meanwhile
            store.set_value(_DUE_VALUE, "")

    try:
        if any(not mark.endswith(f".{store.token}") for mark in due.split()):
            store.deleted.clear()  # others deleted as well, and what they did is not known here
        store.scrub(timeout)
        store.write((), note_done)
    except StoreBusyError:
        return f"{_NOT_DONE}: another process keeps reading the store. {_DO_LATER.format('when it ends')}"
    except StoreFullError:
        return f"{_NOT_DONE}: there is no room to do it. {_DO_LATER.format('when there is')}"
    return ""
