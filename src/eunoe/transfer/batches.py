"""The lines of an import in batches, as many as are written in one step."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from eunoe.errors import InputError
from eunoe.transfer.lines import ScopedLine, read_lines

T = TypeVar("T")

LineCheck = Callable[[ScopedLine], ScopedLine]
"""Returns a line as it may be imported, or raises AccessError."""
_BATCH_LINES: Final = 1000


def read_batches(source: str | Path | Iterable[str], check: LineCheck | None) -> Iterator[list[ScopedLine]]:
    """Read lines in batches; those before a bad one come before its error.

    With a check all lines are read once before the first batch is given: one that may not be imported refuses all.
    """
    if check is None:
        with open_lines(source) as texts:
            yield from _in_batches(read_lines(texts))
        return
    kept = source if isinstance(source, str | Path) else list(source)
    with suppress(InputError), open_lines(kept) as texts:  # the second reading comes to the same line, and says so
        for line in read_lines(texts):
            check(line)
    with open_lines(kept) as texts:
        yield from _in_batches(map(check, read_lines(texts)))


@contextmanager
def open_lines(source: str | Path | Iterable[str]) -> Iterator[Iterable[str]]:
    """Open a file, or take lines as they are."""
    if not isinstance(source, str | Path):
        yield source
        return
    try:
        os.stat(source)
    except ValueError as error:
        raise InputError(f"{str(source)!r} names no file: {error}") from error
    except OSError:
        pass  # opening it says what is wrong
    try:
        with Path(source).open(encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text: {error.reason}") from error


def _in_batches(items: Iterable[T], size: int = _BATCH_LINES) -> Iterator[list[T]]:
    """Give items in lists of this size; those before a bad one come before its error."""
    batch: list[T] = []
    try:
        for item in items:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except InputError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
