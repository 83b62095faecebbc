"""The file stamp: a mark in the store that every write renews. By it a file and its log are known to belong together.

SQLite replays any sound log over any file that lies beside it. A copy put in the place of a file whose log was left by
a killed process would so become a mixture of both.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, Self

from eunoe.errors import ReplacedStoreError

STAMP_VALUE: Final = "file_stamp"
"""The name of the value that holds it."""
BACKUP_VALUE: Final = "backup"
"""The name of the value that says since when a file is a backup; the first write takes it away."""

LOG_HEADER_BYTES: Final = 32
"""A log that is no longer holds nothing."""
_TOKEN_BYTES: Final = 8
_NO_TOKEN: Final = "0" * 2 * _TOKEN_BYTES
_STAMP: Final = re.compile(r"stamp:([0-9a-f]{16})\.([0-9]{15})\.([0-9a-f]{16})\.([0-9a-f]{16})")
_STAMP_BYTES: Final = re.compile(_STAMP.pattern.encode())
_FRAME_HEADER_BYTES: Final = 24
_LOOKS: Final = 3
"""A process that uses the file may move its log on between two looks, hardly three times in a row."""


class FileStamp(NamedTuple):
    """Which file it is, how often it was written, and the marks of the last two writes."""

    id: str
    writes: int
    previous: str
    token: str

    @classmethod
    def first(cls) -> Self:
        return cls(_new_token(), 1, _NO_TOKEN, _new_token())

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _STAMP.fullmatch(text)
        return cls(match[1], int(match[2]), match[3], match[4]) if match else None

    @property
    def text(self) -> str:
        return f"stamp:{self.id}.{self.writes:015d}.{self.previous}.{self.token}"

    def next(self) -> Self:
        return self._replace(writes=self.writes + 1, previous=self.token, token=_new_token())


def renewed(text: str | None) -> str:
    """The stamp of the next write, or the first one of a file that has none."""
    stamp = FileStamp.parse(text or "")
    return (stamp.next() if stamp else FileStamp.first()).text


def file_id(text: str | None) -> str:
    """Which file a stamp is of; empty if it is none. A copy that is made by a backup or a restore has another one."""
    stamp = FileStamp.parse(text or "")
    return stamp.id if stamp else ""


def read_stamp(path: Path) -> FileStamp | None:
    """The stamp in the file itself, whatever its log holds. Raise sqlite3.Error if it cannot be read just now."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone():
            return None
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (STAMP_VALUE,)).fetchone()
    return FileStamp.parse(row[0]) if row and isinstance(row[0], str) else None


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def check_log(path: Path) -> None:
    """Refuse a file beside which the log of another one lies, before SQLite mixes the two."""
    log = log_path(path)
    for _ in range(_LOOKS):
        try:
            header = _log_header(log)
            stamp = read_stamp(path)
            stamps = [stamp for _, page in _log_pages(log) for stamp in _stamps_in(page)]
        except (FileNotFoundError, sqlite3.DatabaseError):
            return  # opening it will tell
        if not stamps or _continues(stamps, stamp):
            return
        if _log_header(log) == header:
            break
    else:
        return
    raise ReplacedStoreError(
        f"{path} was replaced while the log of another file lay beside it: to use the file as it is, move {log.name} "
        "away (it may hold the last writes of the other file); to use the other file, put it back beside its log"
    )


def _continues(stamps: Sequence[FileStamp], stamp: FileStamp | None) -> bool:
    """Whether a log goes on from a file, or from what a checkpoint has moved into it so far."""
    if stamp is None:
        return any(each.previous == _NO_TOKEN for each in stamps)
    # Stored text may look like a stamp, but nobody can guess the id of a file.
    own = [each for each in stamps if each.id == stamp.id]
    return bool(own) and stamp.token in {own[0].previous, *(each.token for each in own)}


def _log_header(log: Path) -> bytes:
    with log.open("rb") as file:
        return file.read(LOG_HEADER_BYTES)


def log_page_numbers(log: Path) -> list[int]:
    """Which pages of the file a log holds; none if it is gone."""
    try:
        return [number for number, _ in _log_pages(log)]
    except FileNotFoundError:
        return []


def _log_pages(log: Path) -> Iterator[tuple[int, bytes]]:
    """The pages in a log that were written since it was last begun anew, each with its number."""
    with log.open("rb") as file:
        header = file.read(LOG_HEADER_BYTES)
        page_bytes, salt = int.from_bytes(header[8:12]), header[16:24]
        while frame := file.read(_FRAME_HEADER_BYTES):
            if frame[8:16] != salt:
                return
            yield int.from_bytes(frame[:4]), file.read(page_bytes)


def _stamps_in(page: bytes) -> Iterator[FileStamp]:
    for match in _STAMP_BYTES.finditer(page):
        stamp = FileStamp.parse(match[0].decode())
        if stamp:
            yield stamp


def _new_token() -> str:
    return os.urandom(_TOKEN_BYTES).hex()
