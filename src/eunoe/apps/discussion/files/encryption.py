"""The key of encrypted files: Fernet, with a key derived from an API key and a salt."""

from __future__ import annotations

import base64
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eunoe.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_ITERATIONS: Final = 100_000
"""As the application that writes such files has it."""
_KEY_BYTES: Final = 32
_TOKEN_START: Final = b"gAAAA"
"""What every Fernet token starts with: its version and the first bytes of a time."""


class FileKey:
    """Opens and locks the files of one user.

    >>> key = FileKey.from_api_key("secret", salt=b"0123456789abcdef")
    >>> key.decrypt(key.encrypt(b"[]"), "memories.json")
    b'[]'
    """

    def __init__(self, key: bytes | str) -> None:
        """Take a Fernet key that is ready: 32 bytes in URL-safe base64."""
        self._fernet = _load_fernet(key)

    @classmethod
    def from_api_key(cls, api_key: str, salt: bytes | Path) -> FileKey:
        """Derive the key as the application does. `salt`: the bytes, or the file that holds them."""
        bytes_ = salt.read_bytes() if isinstance(salt, Path) else salt
        if not api_key or not bytes_:
            raise InputError("an API key and a salt are needed to open encrypted files: one of them is empty")
        derived = pbkdf2_hmac("sha256", api_key.encode(), bytes_, _ITERATIONS, _KEY_BYTES)
        return cls(base64.urlsafe_b64encode(derived))

    def encrypt(self, content: bytes) -> bytes:
        return self._fernet.encrypt(content)

    def decrypt(self, content: bytes, name: str) -> bytes:
        """Open a file's content. Raise InputError with its name if the key is another one or the file is damaged."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(content.strip())
        except InvalidToken:
            raise InputError(
                f"{name} cannot be decrypted: the key or the salt is another one, or it is damaged"
            ) from None

    def __repr__(self) -> str:
        return "FileKey(...)"


def is_encrypted(content: bytes) -> bool:
    """Whether a file's content is a Fernet token."""
    return content.lstrip().startswith(_TOKEN_START)


def _load_fernet(key: bytes | str) -> Fernet:
    try:
        from cryptography.fernet import Fernet
    except ImportError:
        raise MissingPackageError("encrypted files need a package: pip install 'eunoe[discussion]'") from None
    try:
        return Fernet(key)
    except ValueError:
        raise InputError("this is no Fernet key: give 32 bytes in URL-safe base64, or an API key and a salt") from None
