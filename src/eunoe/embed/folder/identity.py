"""What a model is known by: the content of its files, wherever they lie.

To read hundreds of megabytes takes a second. So the hash of what was read is cached for the user, and counts as long as
the files are untouched.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.embed.folder.files import unreadable
from eunoe.files import write_file
from eunoe.store.paths import default_path

_NAME_DIGITS: Final = 12

FileState = tuple[str, int, int, int, int]
"""Path, size, times of the last changes, and inode: they differ once a file was written or replaced."""


class Content(NamedTuple):
    """The files of a model as they were read."""

    digest: str
    states: list[FileState]

    @property
    def is_current(self) -> bool:
        """Whether all files are still as they were."""
        return self.states == [_state(Path(state[0])) for state in self.states]


def read_content(files: Sequence[Path]) -> Content:
    """Read all files."""
    states = [_state(path) for path in files]
    total = sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                total.update(file_digest(file, "sha256").digest())
        except OSError as error:
            raise unreadable(path, error) from error
    return Content(total.hexdigest(), states)


def model_name(label: str, content: str, config: str) -> str:
    """Return the name of a model: equal names, comparable vectors.

    >>> model_name("e5-small", "content", "config")
    'e5-small-3b18ff849780'
    """
    return f"{label}-{sha256(f'{content} {config}'.encode()).hexdigest()[:_NAME_DIGITS]}"


def read_cache(files: Sequence[Path]) -> Content | None:
    """Return what was read before of a model whose first file is its graph; None if any file is new or has changed."""
    try:
        entry = json.loads(_cache_path(files[0]).read_text(encoding="utf-8"))
        content = Content(str(entry["digest"]), [tuple(state) for state in entry["states"]])
        is_same = {str(path) for path in files} <= {state[0] for state in content.states} and content.is_current
    except Exception:  # whatever stands there: the files are read anew
        return None
    return content if is_same else None


def write_cache(graph: Path, content: Content) -> None:
    """Keep what was read; where that cannot be, nothing happens."""
    path = _cache_path(graph)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, json.dumps(content._asdict()).encode(), sync=False)


def _state(path: Path) -> FileState:
    try:
        stat = path.stat()
    except OSError as error:
        raise unreadable(path, error) from error
    return str(path), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def _cache_path(graph: Path) -> Path:
    return default_path().with_name("models") / f"{sha256(os.fsencode(graph)).hexdigest()[:32]}.json"
