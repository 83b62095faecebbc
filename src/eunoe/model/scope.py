"""Who a memory belongs to: an immutable, validated set of keys with one canonical form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from uuid import UUID

from eunoe.errors import ScopeError

_KEY = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MAX_VALUE = 512
_MAX_DIGITS = 100
_ESCAPE = re.compile(r"[%/]")
_UNESCAPE = re.compile(r"%(25|2F)")


class Scope(Mapping[str, str]):
    """Names whose memory is meant. Two scopes are the same only if every key and value is.

    >>> Scope(user="anna", session="7")
    Scope(session='7', user='anna')
    >>> str(Scope(user="anna", session="7"))
    'session=7/user=anna'
    >>> Scope.parse("user=anna/session=7") == Scope(session="7", user="anna")
    True
    >>> Scope(user="")
    Traceback (most recent call last):
    ...
    eunoe.errors.ScopeError: scope key 'user' is empty: name whose memory is meant
    """

    __slots__ = ("_pairs", "_text")

    def __init__(self, /, **keys: str | int | UUID) -> None:
        if not keys:
            raise ScopeError("the scope is empty: name whose memory is meant, such as Scope(user='anna')")
        self._pairs = {key: _value(key, keys[key]) for key in sorted(keys)}
        self._text = "/".join(f"{key}={_ESCAPE.sub(_escape, value)}" for key, value in self._pairs.items())

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Reads the canonical form, or the same with its keys in any order."""
        pairs = [part.partition("=") for part in text.split("/")]
        if not text or any(not sign for _, sign, _ in pairs):
            raise ScopeError(f"cannot read {text!r} as a scope: write key=value/key=value, such as user=anna")
        keys = {key: _UNESCAPE.sub(_unescape, value) for key, _, value in pairs}
        if len(keys) != len(pairs):
            raise ScopeError(f"scope {text!r} names a key twice")
        return cls(**keys)

    @classmethod
    def of(cls, value: ScopeLike) -> Scope:
        """Takes a Scope, a mapping of keys, or the canonical text."""
        if isinstance(value, Scope):
            return value
        if isinstance(value, str):
            return _parsed(value)
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) for key in value):
                raise ScopeError("scope keys must be text")
            pairs = tuple(value.items())
            # Only exact texts are looked up: 1 and True would be taken for one another.
            return _known(pairs) if all(type(each) is str for _, each in pairs) else cls(**value)
        raise ScopeError(f"a scope is a mapping such as {{'user': 'anna'}}, not {type(value).__name__}")

    def __getitem__(self, key: str) -> str:
        return self._pairs[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scope) and self._text == other._text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Scope({', '.join(f'{key}={value!r}' for key, value in self._pairs.items())})"


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Scope:
    return Scope.parse(text)


@lru_cache(maxsize=4096)
def _known(pairs: tuple[tuple[str, str], ...]) -> Scope:
    return Scope(**dict(pairs))


ScopeLike = Scope | Mapping[str, str | int | UUID] | str


def scopes_of(value: ScopeLike | list[ScopeLike] | tuple[ScopeLike, ...]) -> list[Scope]:
    """One scope or several, each once, in the order given."""
    many = value if isinstance(value, list | tuple) else [value]
    if not many:
        raise ScopeError("no scope was given: name at least one")
    return list(dict.fromkeys(Scope.of(one) for one in many))


def check_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ScopeError(f"scope key {key!r} is malformed: use lower-case letters, digits and _, at most 32")
    return key


def _value(key: str, value: object) -> str:
    check_key(key)
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise ScopeError(f"scope key {key!r} must be text, a whole number or a UUID, not {type(value).__name__}")
    if isinstance(value, int) and abs(value) >= 10**_MAX_DIGITS:
        raise ScopeError(f"scope key {key!r} is a number of more than {_MAX_DIGITS} digits")
    text = str(value)
    if not text.strip():
        raise ScopeError(f"scope key {key!r} is empty: name whose memory is meant")
    if text != text.strip() or not text.isprintable():
        raise ScopeError(f"scope key {key!r} has blanks at its ends or unprintable characters: {text!r}")
    if len(text) > _MAX_VALUE:
        raise ScopeError(f"scope key {key!r} is longer than {_MAX_VALUE} characters")
    return text


def _escape(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))
