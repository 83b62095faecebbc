"""Cursors: where a page ended, sealed. Records are numbered throughout a store: a plain number would tell a tenant how
much others write."""

from hashlib import blake2b
from typing import Final

from eunoe.errors import InputError
from eunoe.model.arguments import MAX_INTEGER, show
from eunoe.store.contract import Store

CURSOR_KEY: Final = "cursor_key"
"""The value of the store that holds the secret, random and the same for all its processes."""
_ROUNDS: Final = 4
_HALF_BYTES: Final = 4
_DIGITS: Final = 16


def seal_number(store: Store, seq: int) -> str:
    """The number as a text that says nothing about it."""
    key, (left, right) = _key(store), divmod(seq, 1 << 32)
    for turn in range(_ROUNDS):
        left, right = right, left ^ _mix(key, turn, right)
    return f"{left << 32 | right:0{_DIGITS}x}"


def open_number(store: Store, text: str) -> int:
    """The number that `seal_number` made the text of."""
    key, (left, right) = _key(store), divmod(int(text, 16), 1 << 32)
    for turn in reversed(range(_ROUNDS)):
        left, right = right ^ _mix(key, turn, left), left
    number = left << 32 | right
    if number > MAX_INTEGER:  # somebody made it up
        raise bad_cursor(text)
    return number


def parse_cursor(store: Store, after: str) -> int | None:
    """The number that a page ended with; None where it is the first one."""
    if after == "":
        return None
    if not is_sealed(after):
        raise bad_cursor(after)
    return open_number(store, after)


def is_sealed(text: object) -> bool:
    return isinstance(text, str) and len(text) == _DIGITS and set(text) <= set("0123456789abcdef")


def bad_cursor(after: object) -> InputError:
    return InputError(f"cannot read on after {show(after)}: pass the `next` of the page before")


def _key(store: Store) -> bytes:
    return (store.get_value(CURSOR_KEY) or "").encode()


def _mix(key: bytes, turn: int, half: int) -> int:
    return int.from_bytes(blake2b(half.to_bytes(_HALF_BYTES), key=key, salt=bytes([turn]), digest_size=4).digest())
