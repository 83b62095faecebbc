"""The file of the store that an assistant works on. Quick to import, like the hooks that need it."""

from pathlib import Path

from eunoe.errors import InputError
from eunoe.store.location import store_path


def store_file(target: str | None) -> Path:
    """The absolute path of the store that the command line names."""
    path = store_path(target)
    if path is None:
        raise InputError("an assistant needs a store in a file, not one in memory")
    return path.absolute()
