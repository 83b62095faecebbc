"""The files of a SQLite store: refused where they are no store, known again by a stamp, watched while they are open,
and saved where they were replaced or taken away. SQLite's errors become those of a store here too.

SQLite replays any sound log over any file that lies beside it. A copy put in the place of a file whose log was left by
a killed process would so become a mixture of both: the stamp, a mark that every write renews, tells them apart.

Of a log that a killed process left, SQLite replays what comes before the first frame that is not as it was written and
drops the rest without a word: so it treats a write that was cut off. A frame is damaged, and not cut off, if one
flipped bit tells it from a sound one, or if a sound frame that ends a transaction follows it. The format:
https://sqlite.org/fileformat2.html#walformat
"""

import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from eunoe.errors import (
    DamagedStoreError,
    NewerStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    ReplacedStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from eunoe.store import sqlite_bytes
from eunoe.store.schema import APPLICATION_ID, SCHEMA
from eunoe.store.sqlite_bytes import FileKey, file_key, file_stat, is_held, read_start

if TYPE_CHECKING:
    import numpy as np

    Words = np.ndarray[Any, np.dtype[np.uint32]]

_FULL_DISK_CODES: Final = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
"""A quota or a limit on file sizes fails a write, a disk that is full at opening fails to grow shared memory."""
DAMAGE_ADVICE: Final = "restore a backup, or run `eunoe check` to see what is lost"
_NO_TEXT: Final = "Could not decode to UTF-8"


def error_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def tells_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite could not read its pages, or Python not a text in them."""
    is_code = error_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
    return is_code or _NO_TEXT in str(error)


def store_error(error: sqlite3.Error, target: str) -> StoreError:
    if _NO_TEXT in str(error):  # what SQLite says further repeats it
        return DamagedStoreError(f"{target} is damaged (a text is none): {DAMAGE_ADVICE}")
    match error_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusyError(f"{target} is held by another writer for too long: try again, or end that process")
        case sqlite3.SQLITE_FULL:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space")
        case sqlite3.SQLITE_IOERR if getattr(error, "sqlite_errorcode", 0) in _FULL_DISK_CODES:
            return StoreFullError(f"no room left for {target}: the write was rolled back; free some space or a quota")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return ReadOnlyStoreError(f"{target} cannot be opened for writing ({error})")
        case sqlite3.SQLITE_NOTADB:
            return NotAStoreError(f"{target} is not a Eunoe store; it was left as it is: name another file")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_TOOBIG:
            return DamagedStoreError(f"{target} is damaged ({error}): {DAMAGE_ADVICE}")
        case _:
            return StoreError(f"{target}: {error}")


_OLDER_APPLICATION_ID: Final = 0x45554E4F
"""Marked stores before there were places."""
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


_HEADER_BYTES: Final = 32
_MAGIC: Final = (0x377F0682, 0x377F0683)
"""Checksums are of little-endian words, or of big-endian ones."""
_USERS_BYTE: Final = 128
"""The byte of the shared memory that every process with the store open has locked."""


def check_replayable(path: Path) -> None:
    """Raise DamagedStoreError if a log that nobody uses holds writes that cannot be replayed."""
    with _unused(path.with_name(path.name.removesuffix("-wal") + "-shm")) as is_unused:
        place = find_damage(_read(path)) if is_unused else None
        if place is None or find_damage(_read(path)) != place:  # another process may just have begun to use it
            return
    raise DamagedStoreError(
        f"{path} is damaged at byte {place}: the writes that stand there and after it cannot be replayed. Restore a "
        f"backup, or go on without them by cutting it off there: truncate -s {place} {path}"
    )


def find_damage(log: bytes) -> int | None:
    """The byte from which on a log holds damaged writes; None if it has none."""
    import numpy as np

    if len(log) <= _HEADER_BYTES or not any(log):
        return None
    big = np.frombuffer(log[:_HEADER_BYTES], ">u4")
    order = ">u4" if big[0] == _MAGIC[1] else "<u4"
    header = np.frombuffer(log[:_HEADER_BYTES], order)
    seed = _checksums(header[None, :6], np.zeros((1, 2), np.uint32))
    if big[0] not in _MAGIC or (seed != big[6:8]).any():
        return 0
    size = _FRAME_HEADER_BYTES + int(big[2])
    count = (len(log) - _HEADER_BYTES) // size
    frames = np.frombuffer(log, np.uint8, count * size, _HEADER_BYTES).reshape(count, size)
    heads = np.ascontiguousarray(frames[:, :_FRAME_HEADER_BYTES]).view(">u4")
    content = np.concatenate((frames[:, :8], frames[:, _FRAME_HEADER_BYTES:]), axis=1).view(order).astype(np.uint32)
    salts, stored = heads[:, 2:4] ^ big[4:6], heads[:, 4:6].astype(np.uint32)
    before = np.concatenate((seed, stored[:-1])) if count else stored
    made = _checksums(content, before)
    is_sound = (made == stored).all(axis=1) & (salts == 0).all(axis=1)
    if is_sound.all():
        return None
    first = int(np.argmin(is_sound))
    ends = is_sound & (heads[:, 1] != 0)
    if ends[first:].any() or _is_one_bit_off(salts[first], made[first], stored[first], content.shape[1]):
        return _HEADER_BYTES + first * size
    return None


def _checksums(content: "Words", before: "Words") -> "Words":
    """The checksum of each row of words, which goes on from the one before it."""
    import numpy as np

    factors, start = _factors(content.shape[1])
    return (content.astype(np.uint32) @ factors + before @ start).astype(np.uint32)


def _factors(words: int) -> tuple["Words", "Words"]:
    """What each word, and the checksum before, counts for in the two sums, modulo 2**32.

    Of two words x and y, the sums s and t become s + x + t, and then t + y + that: both are linear.
    """
    import numpy as np

    s, t = (1, 0), (0, 1)  # what the sums of one moment count for in those at the end: first of the end itself
    factors: list[tuple[int, int]] = []
    for _ in range(words // 2):
        x, y = ((s[0] + t[0]) % 2**32, (s[1] + t[1]) % 2**32), t
        factors += (y, x)
        s, t = x, ((x[0] + y[0]) % 2**32, (x[1] + y[1]) % 2**32)
    return np.array(factors[::-1], np.uint32), np.array([s, t], np.uint32)


def _is_one_bit_off(salts: "Words", made: "Words", stored: "Words", words: int) -> bool:
    """Whether one flipped bit, in its salts, its checksum or its words, makes a frame what it is."""
    import numpy as np

    wrong = [int(value).bit_count() for value in (*salts, *(made ^ stored))]
    if sum(wrong) == 1:
        return True
    difference = stored - made
    steps = (np.uint32(1) << np.arange(32, dtype=np.uint32))[:, None, None] * _factors(words)[0]
    return bool(((steps == difference).all(axis=2) | (-steps == difference).all(axis=2)).any()) and not salts.any()


@contextmanager
def _unused(shared_memory: Path) -> Iterator[bool]:
    """Whether no process has the store open; none can open it until the block ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this platform: the log is read twice
        yield True
        return
    try:
        file = shared_memory.open("r+b")
    except OSError:
        yield True
        return
    with file:
        is_unused = False
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _USERS_BYTE, os.SEEK_SET)
            is_unused = True
        yield is_unused


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


_LOCK_SECONDS: Final = 5


def check_is_store(path: Path) -> None:
    """Refuse what is not ours, or of a newer schema than is known here."""
    if path.is_dir():
        raise NotAStoreError(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist: make it first")
    log_size = file_size(log_path(path))
    if not file_size(path):
        if log_size > LOG_HEADER_BYTES:  # SQLite would delete it
            raise ReplacedStoreError(
                f"{path} is missing or empty, but {log_path(path).name} holds writes to it: put the file back beside "
                "its log, or move the log away to begin anew"
            )
        _check_writable(path.parent if not path.exists() else path)
        return
    # First as if nobody used it, which leaves nothing beside a file that is none of our business.
    _check_header(path, "immutable=1")
    if log_size:
        check_log(path)
        if not is_held(file_key(os.stat(path))):
            check_replayable(log_path(path))
        _check_header(path, "mode=ro")
    _check_writable(path)
    _check_writable(path.parent)


def _check_header(path: Path, mode: str) -> None:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_LOCK_SECONDS)
    try:
        connection.execute("BEGIN")  # one snapshot: another process may be making the file right now
        check_schema(path, connection)
    except sqlite3.DatabaseError as error:
        # Seen while another process moves pages about, a sound file may look damaged: the real opening will tell.
        if error_code(error) == sqlite3.SQLITE_NOTADB:
            raise
    finally:
        connection.close()


def check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database that is another program's, or whose schema is newer than is known here."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == _OLDER_APPLICATION_ID:
        raise NotAStoreError(
            f"{path} was written by an older Eunoe, which this one cannot read; it was left as it is: "
            "`eunoe export` it with that version, and `eunoe import` the export here"
        )
    is_new = not application and not version and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and not is_new:
        raise NotAStoreError(f"{path} is another program's SQLite database; it was left as it is")
    check_version(path, version)


def check_version(path: object, version: int) -> None:
    if version > SCHEMA:
        raise NewerStoreError(
            f"{path} was written by a newer Eunoe (schema {version}, this one knows {SCHEMA}): "
            "upgrade with pip install -U eunoe"
        )


def file_size(path: Path) -> int:
    """0 if there is no such file: another process that ends takes its log with it at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_writable(path: Path) -> None:
    # Root may write anywhere, so the permission bits are asked too: a file marked read-only was marked on purpose.
    is_marked = path.is_file() and not path.stat().st_mode & 0o222
    if is_marked or not os.access(path, os.W_OK):
        raise ReadOnlyStoreError(f"{path} is read-only: make it writable or copy the store elsewhere")


_FILE_HEADER_BYTES: Final = 100
_FILE_MAGIC: Final = b"SQLite format 3\x00"
_PAGE_BYTES_PLACE: Final = slice(16, 18)
_PAGES_PLACE: Final = slice(28, 32)
_LOCK_BYTE: Final = 1 << 30
"""On the page that has it nothing is ever written."""
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
        header, stamp = read_start(self.key, _FILE_HEADER_BYTES), None
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
            header = read_start(self.key, _FILE_HEADER_BYTES)
            page_bytes, pages = int.from_bytes(header[_PAGE_BYTES_PLACE]), int.from_bytes(header[_PAGES_PLACE])
            logged = set(log_page_numbers(self.log))
            missing = range(file_stat(self.key).st_size // page_bytes + 1, pages + 1)
            if all(page in logged or page == _LOCK_BYTE // page_bytes + 1 for page in missing):
                return False
            if read_start(self.key, _FILE_HEADER_BYTES) == header:
                return True
        return False

    def _is_foreign(self, header: bytes) -> bool:
        """Whether it begins in another way than any checkpoint leaves it."""
        is_store = header.startswith(_FILE_MAGIC) and header[_APPLICATION_ID_PLACE] == APPLICATION_ID.to_bytes(4)
        return not is_store or header[_VERSION_PLACE] < self._version


def _follows(stamp: FileStamp, earlier: FileStamp) -> bool:
    return stamp.id == earlier.id and stamp.writes >= earlier.writes


def _file_key(path: str) -> FileKey | None:
    try:
        return file_key(os.stat(path))
    except FileNotFoundError:
        return None


_CHECKPOINT_SECONDS: Final = 5.0
"""How long to wait for readers of this store: they only have to end what they are at."""
_CHECKPOINT_POLL_SECONDS: Final = 0.01
_MAX_NAMES: Final = 1000


def rescue(
    change: FilesChangedError, files: OpenFiles, opened: Companions, connections: Sequence[sqlite3.Connection]
) -> str:
    """Save what the first connection still sees; return what happened, and where everything is."""
    name = files.path.name
    if isinstance(change, FileOverwrittenError):
        what = "was overwritten while it was open"
        if isinstance(change, FileCutError):  # the connection at work has read most of it
            kept = _copy_aside(connections[-1], files.path)
            what = f"was cut short while it was open; what could still be read is kept as {kept}"
        return f"{what}; its log is kept as {_set_log_aside(files.log)}" if file_size(files.log) else what
    if isinstance(change, FileReplacedError):
        is_saved = _empty_log(connections[0], truncate=not has_others(files.companions(), opened))
        what = "was deleted or replaced while it was open"
        if is_saved and sqlite_bytes.file_stat(files.key).st_nlink:  # it was moved, and has everything wherever it lies
            return what
        return f"{what}; what it held is kept as {_copy_aside(connections[0], files.path)}"
    if isinstance(change, LogRemovedError):
        what = f"lost {name}-wal or {name}-shm while it was open"
        if _empty_log(connections[0], truncate=False):
            return f"{what}; nothing is missing in it"
        return f"{what}; what it held is kept as {_copy_aside(connections[0], files.path)}"
    for connection in connections:
        _keep_log_out(connection)
    aside = _copy_aside(connections[0], files.path)
    return f"got another {name}-wal or {name}-shm while it was open; what it held is kept as {aside}"


def _empty_log(connection: sqlite3.Connection, *, truncate: bool) -> bool:
    """Move everything from the log into the file; return whether that worked."""
    deadline = time.monotonic() + _CHECKPOINT_SECONDS
    with suppress(sqlite3.Error):
        while True:
            busy, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and pages == done:
                if truncate:  # nothing is left beside the name that could be taken for another file's log
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_CHECKPOINT_POLL_SECONDS)
    return False


def _copy_aside(connection: sqlite3.Connection, path: Path) -> str:
    """Copy what a connection sees to a file of its own beside the path; return its name."""
    aside = path.with_name(dated_name(path, "rescued"))
    try:
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(aside)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except (OSError, sqlite3.Error) as error:
        return f"nothing, for it could not be read or written ({error})"
    return aside.name if found == "ok" else f"{aside.name}, which is damaged ({found})"


def _set_log_aside(log: Path) -> str:
    """Keep a log under another name, and empty it: closing would write it into a file that it does not belong to."""
    aside = log.with_name(dated_name(log, "rescued"))
    try:
        shutil.copyfile(log, aside)
        shutil.copymode(log, aside)
        os.truncate(log, 0)
    except OSError as error:
        return f"it was ({error})"
    return aside.name


def dated_name(path: Path, word: str) -> str:
    """A name beside a path that is not taken, with the time in it."""
    stem = f"{path.name}.{word}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    names = (stem, *(f"{stem}-{number}" for number in range(2, _MAX_NAMES)))
    return next(name for name in names if not os.path.lexists(path.with_name(name)))


def _keep_log_out(connection: sqlite3.Connection) -> None:
    """Let closing leave the file as it is."""
    if hasattr(connection, "setconfig"):  # since Python 3.12
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
