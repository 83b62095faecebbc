"""The settings file of an assistant, read strictly."""

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
