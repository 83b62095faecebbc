"""What keeps two runs apart: a lock of the memories of a repository, freed by the end of a process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from eunoe.errors import ConflictError
from eunoe.files import locked


@contextmanager
def locked_repository(store: str, repository_id: str, *, alone: bool) -> Iterator[None]:
    """Hold the memories of a repository in a store, alone or together with others that do not need them alone.

    Raise ConflictError if another run stands against that.
    """
    path = _lock_file(store, repository_id)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, shared=not alone))
        except ConflictError:
            raise ConflictError(
                f"another run is writing a wiki of repository {repository_id}, and one of the two is forced: wait"
            ) from None
        yield
    with suppress(ConflictError), locked(path):  # nobody else holds it
        path.unlink(missing_ok=True)


def _lock_file(store: str, repository_id: str) -> Path:
    """A file beside the store; for a store that is no file, among the temporary ones."""
    if os.path.isfile(store):
        place = Path(store).resolve()
    else:
        place = Path(tempfile.gettempdir(), f"eunoe-{os.getuid()}-{os.getpid()}")
    digest = blake2b(repository_id.encode(), digest_size=8).hexdigest()
    return place.with_name(f"{place.name}-wiki-{digest}.lock")
