"""Kept files: what was derived from a store and lies beside it for the next process. Losing them loses nothing.

Each is whole or is not read: it appears under its name when it is complete, and ends with a checksum. Who writes or
removes them holds a lock, so that what was forgotten is not written once more by a process that does not know it yet.
"""

import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

from eunoe.errors import StoreBusyError

if sys.platform != "win32":
    import fcntl

ALIGNMENT: Final = 64
"""The content of a file starts at a multiple of so many bytes."""

_MAGIC: Final = b"EUNOEIX1"
_LENGTH_BYTES: Final = 8
_CHECKSUM_BYTES: Final = 4
_MAX_STAMP_BYTES: Final = 1 << 20
_FILE_END: Final = ".index"
_PART_END: Final = ".part"
_LOCK_FILE: Final = "lock"
_POLL_SECONDS: Final = 0.01

Stamp = Mapping[str, Any]


class KeptFile(NamedTuple):
    """A file that was read whole: what is said about its content, and the content."""

    stamp: Stamp
    content: memoryview


class KeptFiles:
    """The folder of kept files beside a store, one for each stream."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self.folder = kept_folder(store)

    def paths(self) -> list[Path]:
        """Every file in the folder, those included that a killed process left."""
        with suppress(OSError):
            return [path for path in sorted(self.folder.iterdir()) if path.name != _LOCK_FILE]
        return []

    def read(self, stream: int) -> KeptFile | None:
        """Return the file of a stream if it is there and whole."""
        try:
            data = _read_whole(self._path(stream))
            stamp, start = _parse_stamp(bytes(data[: _MAX_STAMP_BYTES + ALIGNMENT]))
            end = len(data) - _CHECKSUM_BYTES
            if crc32(data[:end]) != int.from_bytes(data[end:]):
                return None
        except (OSError, ValueError, MemoryError):
            return None
        return KeptFile(stamp, data[start:end])

    def write(self, stream: int, stamp: Stamp, content: Sequence[Any]) -> None:
        """Put a file in the place of the one of a stream. The lock has to be held; what fails raises OSError."""
        part = self.folder / f"{stream}{_PART_END}"
        try:
            number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self._mode())
            with open(number, "wb", buffering=0) as file:
                _write_all(file, (_format_stamp(stamp), *content))
            os.replace(part, self._path(stream))
        finally:
            part.unlink(missing_ok=True)

    @contextmanager
    def lock(self, seconds: float) -> Iterator[None]:
        """Keep other processes and threads from writing and removing files, and remove what killed ones left.

        Raise StoreBusyError if another does so for longer than so many seconds, and OSError where there are no locks.
        """
        if sys.platform == "win32":
            raise OSError("no file locks")
        mode = self._mode()
        self.folder.mkdir(mode=mode | (mode & 0o444) >> 2, exist_ok=True)
        number = os.open(self.folder / _LOCK_FILE, os.O_CREAT | os.O_RDWR, mode)
        try:
            deadline = time.monotonic() + seconds
            while not _try_lock(number):
                if time.monotonic() > deadline:
                    raise StoreBusyError(f"{self.folder} is in use by another process: try again when it ends")
                time.sleep(_POLL_SECONDS)
            for part in self.folder.glob(f"*{_PART_END}"):
                part.unlink(missing_ok=True)
            yield
        finally:
            os.close(number)

    def drop(self, seconds: float, is_current: Callable[[Stamp], bool]) -> None:
        """Remove every file but those whose stamps are current; raise StoreBusyError as `lock` does."""
        if not self.paths():
            return
        with self.lock(seconds):
            for path in self.paths():
                if not is_current(_read_stamp(path)):
                    path.unlink(missing_ok=True)

    def _path(self, stream: int) -> Path:
        return self.folder / f"{stream}{_FILE_END}"

    def _mode(self) -> int:
        return stat.S_IMODE(os.stat(self._store).st_mode) & 0o666


def kept_folder(store: Path) -> Path:
    """The folder of a store's kept files."""
    return store.with_name(f"{store.name}.index")


def remove_kept(store: Path) -> None:
    """Remove all kept files of a store that is gone."""
    shutil.rmtree(kept_folder(store), ignore_errors=True)


def _read_whole(path: Path) -> memoryview:
    with path.open("rb", buffering=0) as file:
        data = memoryview(bytearray(os.fstat(file.fileno()).st_size))
        place = 0
        while count := file.readinto(data[place:]):
            place += count
    if place < len(data):
        raise ValueError("it was cut short")
    return data


def _format_stamp(stamp: Stamp) -> bytes:
    text = json.dumps(stamp).encode()
    room = -(len(_MAGIC) + _LENGTH_BYTES + len(text)) % ALIGNMENT
    text += b" " * room
    return _MAGIC + len(text).to_bytes(_LENGTH_BYTES) + text


def _parse_stamp(data: bytes) -> tuple[Stamp, int]:
    """The stamp at the beginning of a file, and where the content starts."""
    start = len(_MAGIC) + _LENGTH_BYTES
    end = start + int.from_bytes(data[len(_MAGIC) : start])
    if data[: len(_MAGIC)] != _MAGIC or end > len(data):
        raise ValueError("no kept file")
    stamp = json.loads(data[start:end])
    if not isinstance(stamp, dict):
        raise ValueError("no stamp")
    return stamp, end


def _read_stamp(path: Path) -> Stamp:
    """The stamp of a file, empty if it has none."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        return _parse_stamp(file.read(_MAX_STAMP_BYTES))[0]
    return {}


def _write_all(file: BinaryIO, chunks: Sequence[Any]) -> None:
    checksum = 0
    for chunk in chunks:
        data = memoryview(chunk).cast("B")
        checksum = crc32(data, checksum)
        while len(data):
            data = data[file.write(data) :]
    file.write(checksum.to_bytes(_CHECKSUM_BYTES))


if sys.platform != "win32":

    def _try_lock(number: int) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
