"""The settings file of an assistant: read strictly, written at once and as a whole."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.errors import InputError

_BOM: Final = "\ufeff"
_MAX_BYTES: Final = 64 * 1024 * 1024


class ConfigText(NamedTuple):
    """The text of a settings file, and whether a byte order mark stands before it."""

    text: str
    has_bom: bool = False

    @classmethod
    def from_bytes(cls, content: bytes, path: Path) -> "ConfigText":
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path} is not UTF-8: save it as UTF-8, then install again; it was not touched"
            ) from error
        return cls(text.removeprefix(_BOM), text.startswith(_BOM))

    def to_bytes(self) -> bytes:
        return (_BOM * self.has_bom + self.text).encode()


def read_file(path: Path) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is too large for a settings file; it was not touched")
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put a file in place at once, with the permissions of the one that was there. A link keeps pointing to it."""
    path = path.resolve()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        found = path.stat()
        mode = found.st_mode & 0o7777
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
