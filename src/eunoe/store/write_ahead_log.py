"""The write-ahead log that a process left behind when it was killed, and whether all of it can be replayed.

SQLite replays a log up to the first frame that is not as it was written and drops the rest without a word: so it treats
a write that was cut off. A frame is damaged, and not cut off, if one flipped bit tells it from a sound one, or if a
sound frame that ends a transaction follows it. The format: https://sqlite.org/fileformat2.html#walformat
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eunoe.errors import DamagedStoreError

if TYPE_CHECKING:
    import numpy as np

    Words = np.ndarray[Any, np.dtype[np.uint32]]

_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
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
