"""Tokens that allow what a preview showed: signed, for one caller and one scope, for a few minutes.

Nothing is kept: every process that has the secret can check a token that another one gave.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.model.scope import Scope

LIFETIME_SECONDS: Final = 300
_SIGNATURE_BYTES: Final = 16
_MAX_CHARACTERS: Final = 20_000
_REFUSED: Final = "this token is not valid here or is older than 5 minutes: preview again, nothing was removed"


class Confirmation:
    """Gives tokens and takes them back."""

    def __init__(self, secret: bytes, now: Callable[[], float] = time.time) -> None:
        self._key = hashlib.sha256(b"eunoe-confirmation\0" + secret).digest()
        self._now = now

    def create(self, caller: str, scope: Scope, selection: Any, count: int = 1) -> str:
        """A token for a selection, which JSON can carry. It begins with the number of what is selected."""
        data = json.dumps([int(self._now()) + LIFETIME_SECONDS, selection], separators=(",", ":"))
        payload = f"{count}-{_encode(data.encode())}"
        return f"{payload}.{self._sign(caller, scope, payload)}"

    def read(self, caller: str, scope: Scope, token: str) -> Any:
        """The selection that a token is for."""
        signed, _, signature = token.partition(".")
        expected = self._sign(caller, scope, signed)
        is_signed = hmac.compare_digest(signature.encode(errors="replace"), expected.encode())
        if len(token) > _MAX_CHARACTERS or not is_signed:
            raise InputError(_REFUSED)
        payload = signed.partition("-")[2]
        expires, selection = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        if self._now() > expires:
            raise InputError(_REFUSED)
        return selection

    def _sign(self, caller: str, scope: Scope, payload: str) -> str:
        signed = json.dumps([caller, scope.text, payload]).encode()
        return _encode(hmac.digest(self._key, signed, "sha256")[:_SIGNATURE_BYTES])


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
