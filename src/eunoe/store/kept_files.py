"""Kept files: what was derived from a store and lies beside it for the next process. Losing them loses nothing.

Each is whole or is not read: it appears under its name when it is complete, and ends with a digest that only who has
the store's key can make. Who writes or removes them holds a lock, so that what was forgotten is not written once more
by a process that does not know it yet.
"""

import errno
import hmac
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from eunoe.errors import StoreBusyError, StoreError
from eunoe.store import sqlite_bytes

if sys.platform != "win32":
    import fcntl

ALIGNMENT: Final = 64
"""The content of a file starts at a multiple of so many bytes."""

_MAGIC: Final = b"EUNOEIX2"
_LENGTH_BYTES: Final = 8
_HEAD_BYTES: Final = len(_MAGIC) + 2 * _LENGTH_BYTES
"""The first bytes of a file, how long its stamp is, and how long its content."""
_DIGEST: Final = "sha256"
_DIGEST_BYTES: Final = 32
_MAX_STAMP_BYTES: Final = 1 << 20
_OWN_NAME: Final = re.compile(r"[1-9][0-9]{0,17}\.(index|part)")
"""What has another name is somebody else's, and left alone."""
_FILE_END: Final = ".index"
_PART_END: Final = ".part"
_LOCK_FILE: Final = "lock"
_POLL_SECONDS: Final = 0.01
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""To open a file so that no link is followed, and that a pipe keeps nobody waiting."""

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
        """Every kept file, those included that a killed process left. Raise OSError if the folder cannot be read."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path for path in self.folder.iterdir() if _OWN_NAME.fullmatch(path.name))
        return []

    def read(self, stream: int, key: bytes) -> KeptFile | None:
        """Return the file of a stream if it is there, whole, and written by who had the key."""
        try:
            self._check_folder()
            with _open_plain(self._path(stream), os.O_RDONLY) as file:
                self._share_if_possible(self.folder)
                self._share_if_possible(file.fileno())
                return _read_whole(file, key)
        except (OSError, ValueError, MemoryError, RecursionError):
            return None

    def write(self, stream: int, stamp: Stamp, content: Sequence[Any], key: bytes, lock: int) -> None:
        """Put a file in the place of the one of a stream, under the lock; what fails raises OSError."""
        part = self.folder / f"{stream}{_PART_END}"
        with _open_plain(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY) as file:
            try:
                # If somebody deletes the lock after this, who takes a new one finds the part, and removes it.
                if not self._is_in_place(lock):
                    raise FileNotFoundError(errno.ENOENT, "the lock was deleted", str(self.folder / _LOCK_FILE))
                self._share(file.fileno())
                _write_all(file, (_format_head(stamp, content), *content), key)
                os.replace(part, self._path(stream))
            finally:
                part.unlink(missing_ok=True)

    @contextmanager
    def lock(self, seconds: float) -> Iterator[int]:
        """Keep other processes and threads from writing and removing files, and remove what killed ones left.

        Raise StoreBusyError if another does so for longer than so many seconds, and OSError where there are no locks.
        """
        if sys.platform == "win32":
            raise OSError("no file locks")
        with suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        self._check_folder()
        with self._take_lock(seconds) as file:
            self._share_if_possible(self.folder)
            self._share_if_possible(file.fileno())
            for path in self.paths():
                if path.suffix == _PART_END:
                    path.unlink(missing_ok=True)
            yield file.fileno()

    def drop(self, seconds: float, is_current: Callable[[int, Stamp], bool]) -> None:
        """Remove every file but those of streams whose stamps are current.

        Raise StoreBusyError as `lock` does, and StoreError if something may be left. Where there is no folder nobody
        is about to write: who writes makes the folder first, and looks at the store after that.
        """
        try:
            if self._has_folder():
                self._remove_outdated(seconds, is_current)
        except OSError as error:
            raise StoreError(self._say_left(error)) from error

    def _has_folder(self) -> bool:
        """Raise OSError if there is a link to a folder of kept files: it is not followed, nor is it passed over."""
        try:
            mode = os.lstat(self.folder).st_mode
        except FileNotFoundError:
            return False
        if stat.S_ISLNK(mode) and self.paths():
            raise OSError(errno.ELOOP, "a link is not followed", str(self.folder))
        return stat.S_ISDIR(mode)

    def _remove_outdated(self, seconds: float, is_current: Callable[[int, Stamp], bool]) -> None:
        failures = []
        with self.lock(seconds):
            for path in self.paths():
                try:
                    if not is_current(int(path.stem), _read_stamp(path)):
                        path.unlink(missing_ok=True)
                except OSError as error:
                    failures.append(error)
        if failures:
            raise failures[0]

    def _say_left(self, error: OSError) -> str:
        name = self.folder.name
        place = self._name(Path(error.filename)) if error.filename else name
        return f"{place} cannot be opened or removed ({error.strerror or error}): delete the folder {name}"

    def find(self, texts: Sequence[str | bytes]) -> Iterator[tuple[str | bytes, str]]:
        """The texts that stand in files, and where. For a file that cannot be read the first text stands for all."""
        try:
            paths = self.paths()
        except OSError:
            paths = [self.folder]
        for path in paths:
            place = f"file {self._name(path)}"
            try:
                with _open_plain(path, os.O_RDONLY) as file:
                    found: Iterable[str | bytes] = sqlite_bytes.find_in_blocks(sqlite_bytes.blocks_of(file), texts)
            except FileNotFoundError:
                continue
            except OSError:
                found, place = texts[:1], f"{place}, which cannot be read"
            yield from ((text, place) for text in found)

    def remove(self) -> None:
        """Remove all files of a store that is gone, and the folder if nothing else lies in it."""
        with suppress(OSError):
            self._check_folder()
            for path in (*self.paths(), self.folder / _LOCK_FILE):
                with suppress(OSError):
                    path.unlink()
            self.folder.rmdir()

    def _name(self, path: Path) -> str:
        return path.name if path == self.folder else f"{self.folder.name}/{path.name}"

    def _path(self, stream: int) -> Path:
        return self.folder / f"{stream}{_FILE_END}"

    def _check_folder(self) -> None:
        if not stat.S_ISDIR(os.lstat(self.folder).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder", str(self.folder))

    def _take_lock(self, seconds: float) -> BinaryIO:
        deadline = time.monotonic() + seconds
        while True:
            with ExitStack() as stack:
                file = stack.enter_context(_open_plain(self.folder / _LOCK_FILE, os.O_CREAT | os.O_RDWR))
                if _try_lock(file.fileno()) and self._is_in_place(file.fileno()):
                    stack.pop_all()
                    return file
            if time.monotonic() > deadline:
                name = self._name(self.folder / _LOCK_FILE)
                raise StoreBusyError(f"another process holds {name}, as long as it writes or removes kept indexes")
            time.sleep(_POLL_SECONDS)

    def _is_in_place(self, lock: int) -> bool:
        """Whether an open lock is the one in the folder. Somebody may have deleted it, and another have made a new
        one."""
        with suppress(FileNotFoundError):
            key = sqlite_bytes.file_key
            return key(os.fstat(lock)) == key(os.lstat(self.folder / _LOCK_FILE))
        return False

    def _share_if_possible(self, target: int | Path) -> None:
        with suppress(OSError):
            self._share(target)

    def _share(self, target: int | Path) -> None:
        """Give a file, or the folder, the mode of the store, and its owner and group as far as this process may.

        Who may not read the store may not read it either.
        """
        if sys.platform == "win32":
            return
        store, own = os.stat(self._store), os.stat(target)
        if (own.st_uid, own.st_gid) != (store.st_uid, store.st_gid):
            with suppress(OSError):
                os.chown(target, store.st_uid if os.geteuid() == 0 else -1, store.st_gid)
                own = os.stat(target)
        mode = store.st_mode & (0o666 if own.st_gid == store.st_gid else 0o606)
        if stat.S_ISDIR(own.st_mode):
            mode |= (mode & 0o444) >> 2
        if stat.S_IMODE(own.st_mode) != mode:
            os.chmod(target, mode)


def kept_folder(store: Path) -> Path:
    """The folder of a store's kept files."""
    return store.with_name(f"{store.name}.index")


def _open_plain(path: Path, flags: int) -> BinaryIO:
    """Open a file for its owner alone. Raise OSError if it is anything else than a file, such as a link or a pipe."""
    number = os.open(path, flags | _PLAIN, 0o600)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "it is no file", str(path))
    return cast(BinaryIO, open(number, "wb" if flags & os.O_WRONLY else "rb", buffering=0))


def _read_whole(file: BinaryIO, key: bytes) -> KeptFile:
    size = os.fstat(file.fileno()).st_size
    start, end = _parse_head(file.read(_HEAD_BYTES))
    if end + _DIGEST_BYTES != size:
        raise ValueError("it was cut short, or is no kept file")
    data = memoryview(bytearray(size))
    place = file.seek(0)
    while count := cast(Any, file).readinto(data[place:]):
        place += count
    if not hmac.compare_digest(hmac.digest(key, data[:end], _DIGEST), data[end:]):
        raise ValueError("it is not as it was written")
    return KeptFile(_parse_stamp(bytes(data[_HEAD_BYTES:start])), data[start:end])


def _format_head(stamp: Stamp, content: Sequence[Any]) -> bytes:
    text = json.dumps(stamp).encode()
    text += b" " * (-(_HEAD_BYTES + len(text)) % ALIGNMENT)
    sizes = len(text), sum(memoryview(chunk).nbytes for chunk in content)
    return _MAGIC + b"".join(size.to_bytes(_LENGTH_BYTES) for size in sizes) + text


def _parse_head(head: bytes) -> tuple[int, int]:
    """Where the content of a file starts and ends. Raise ValueError if it is none of these files."""
    lengths = head[len(_MAGIC) :]
    stamp_bytes, content_bytes = int.from_bytes(lengths[:_LENGTH_BYTES]), int.from_bytes(lengths[_LENGTH_BYTES:])
    if len(head) < _HEAD_BYTES or not head.startswith(_MAGIC) or stamp_bytes > _MAX_STAMP_BYTES:
        raise ValueError("no kept file")
    return _HEAD_BYTES + stamp_bytes, _HEAD_BYTES + stamp_bytes + content_bytes


def _parse_stamp(data: bytes) -> Stamp:
    stamp = json.loads(data)
    if not isinstance(stamp, dict):
        raise ValueError("no stamp")
    return stamp


def _read_stamp(path: Path) -> Stamp:
    """The stamp of a file, empty if it has none."""
    with suppress(OSError, ValueError, RecursionError), _open_plain(path, os.O_RDONLY) as file:
        start, _ = _parse_head(file.read(_HEAD_BYTES))
        return _parse_stamp(file.read(start - _HEAD_BYTES))
    return {}


def _write_all(file: BinaryIO, chunks: Sequence[Any], key: bytes) -> None:
    digest = hmac.new(key, digestmod=_DIGEST)
    for chunk in chunks:
        data = memoryview(chunk).cast("B")
        digest.update(data)
        while len(data):
            data = data[file.write(data) :]
    file.write(digest.digest())


if sys.platform != "win32":

    def _try_lock(number: int) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
