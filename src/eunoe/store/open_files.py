"""The files of a store as they were when it was opened: what becomes of them meanwhile is noticed."""

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.store.file_bytes import FileKey, file_key, file_stat, read_start
from eunoe.store.file_stamp import FileStamp, log_page_numbers, log_path, read_stamp
from eunoe.store.migrations import APPLICATION_ID

_HEADER_BYTES: Final = 100
_MAGIC: Final = b"SQLite format 3\x00"
_PAGE_BYTES_PLACE: Final = slice(16, 18)
_PAGES_PLACE: Final = slice(28, 32)
_LOCK_BYTE: Final = 1 << 30
"""On the page that has it nothing is ever written."""
_LOOKS: Final = 3
"""Another process may make the file smaller, by a VACUUM, between two looks, hardly three times in a row."""
_VERSION_PLACE: Final = slice(60, 64)
_APPLICATION_ID_PLACE: Final = slice(68, 72)


class Companions(NamedTuple):
    """The log and its index in shared memory, as a connection opened them."""

    log: FileKey | None
    shared_memory: FileKey | None


def has_others(found: Companions, opened: Companions) -> bool:
    """Whether a file that is none of those opened has the name of one."""
    return any(now not in (None, then) for now, then in zip(found, opened, strict=True))


class FilesChangedError(Exception):
    """A file of an open store was replaced or taken away."""


class FileReplacedError(FilesChangedError):
    """Another file, or none, has the name of the store."""


class FileOverwrittenError(FilesChangedError):
    """The file has other content than this store wrote into it."""


class FileCutError(FileOverwrittenError):
    """The end of the file is missing."""


class LogRemovedError(FilesChangedError):
    """The log or its index is gone."""


class LogReplacedError(FilesChangedError):
    """Another log or index has the name of the store's."""


class OpenFiles:
    """Compares the files of an open store with those that it opened. A look is three calls of `stat`."""

    def __init__(self, path: Path, key: FileKey) -> None:
        self.path = path
        self.key = key
        self.log = log_path(path)
        self.shared_memory = path.with_name(f"{path.name}-shm")
        self._path = str(path)
        self._companion_paths = str(self.log), str(self.shared_memory)
        self._looking = threading.Lock()
        """A thread must not compare what it read a while ago with what another has read since."""
        self._seen: tuple[int, int] | None = None
        self._stamp: FileStamp | None = None
        self._version = b""

    def companions(self) -> Companions:
        log, shared_memory = self._companion_paths
        return Companions(_file_key(log), _file_key(shared_memory))

    def check(self, companions: Companions) -> None:
        """Raise FilesChangedError if a file is not the one that was opened."""
        try:
            stat = os.stat(self._path)
        except FileNotFoundError:
            raise FileReplacedError from None
        if file_key(stat) != self.key:
            raise FileReplacedError
        seen = (stat.st_mtime_ns, stat.st_size)
        if seen != self._seen:
            with self._looking:
                self._check_content(seen)
        found = self.companions()
        if found != companions:
            raise LogReplacedError if has_others(found, companions) else LogRemovedError

    def _check_content(self, seen: tuple[int, int]) -> None:
        """Only checkpoints write to the file, and what they write is never older than what was there."""
        header, stamp = read_start(self.key, _HEADER_BYTES), None
        with suppress(sqlite3.DatabaseError):
            stamp = read_stamp(self.path)
        if self._stamp and (self._is_foreign(header) or (stamp and not _follows(stamp, self._stamp))):
            raise FileOverwrittenError
        if self._seen and seen[1] < self._seen[1] and self._is_cut():
            raise FileCutError
        # A checkpoint that others interrupt leaves a file that only its log makes whole: it is looked at again.
        if stamp or self._stamp is None:
            self._seen, self._stamp, self._version = seen, stamp, header[_VERSION_PLACE]

    def _is_cut(self) -> bool:
        """Whether pages are missing at its end. Those that no checkpoint has moved into it yet are in the log."""
        for _ in range(_LOOKS):
            header = read_start(self.key, _HEADER_BYTES)
            page_bytes, pages = int.from_bytes(header[_PAGE_BYTES_PLACE]), int.from_bytes(header[_PAGES_PLACE])
            logged = set(log_page_numbers(self.log))
            missing = range(file_stat(self.key).st_size // page_bytes + 1, pages + 1)
            if all(page in logged or page == _LOCK_BYTE // page_bytes + 1 for page in missing):
                return False
            if read_start(self.key, _HEADER_BYTES) == header:
                return True
        return False

    def _is_foreign(self, header: bytes) -> bool:
        """Whether it begins in another way than any checkpoint leaves it."""
        is_store = header.startswith(_MAGIC) and header[_APPLICATION_ID_PLACE] == APPLICATION_ID.to_bytes(4)
        return not is_store or header[_VERSION_PLACE] < self._version


def _follows(stamp: FileStamp, earlier: FileStamp) -> bool:
    return stamp.id == earlier.id and stamp.writes >= earlier.writes


def _file_key(path: str) -> FileKey | None:
    try:
        return file_key(os.stat(path))
    except FileNotFoundError:
        return None
