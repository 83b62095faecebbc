"""Whose memory it is: an immutable, validated set of keys with one canonical text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from uuid import UUID

from eunoe.errors import InputError, ScopeError
from eunoe.model.arguments import as_list, check_names, show

ALIASES: Mapping[str, str] = {
    "user_id": "user",
    "agent_id": "agent",
    "session_id": "session",
    "run_id": "session",
    "thread_id": "thread",
}
"""Keys as other memories call them, and what they are here. Taken as they are they would name another scope."""

_WITHIN = "/*"
"""Ends the text of a scope that means everything within, too."""
_KEY = re.compile(r"[a-z][a-z0-9_]{0,31}")
MAX_VALUE_CHARACTERS = 512
_MAX_DIGITS = 100


class Scope(Mapping[str, str]):
    """Names whose memory is meant. Two scopes are the same only if every key and value is.

    >>> Scope(user="anna", session="7")
    Scope(session='7', user='anna')
    >>> str(Scope(user_id="anna", session="7"))
    'session=7/user=anna'
    >>> Scope.parse("user=anna/session=7") == Scope(session="7", user="anna")
    True
    >>> Scope(user="")
    Traceback (most recent call last):
    ...
    eunoe.errors.ScopeError: scope key 'user' is empty: name whose memory is meant

    `/*` after the keys also means everything within: each scope that has these keys and more, but for a tenant.

    >>> Scope.parse("agent=cook/*").covers(Scope(agent="cook", user="anna"))
    True
    """

    __slots__ = ("pairs", "text", "within")

    pairs: Mapping[str, str]
    """The keys and values, sorted by key."""
    text: str
    """The canonical text, by which the store knows the scope."""
    within: bool
    """Whether everything within is meant too, and not this scope alone."""

    def __init__(self, /, **keys: str | int | UUID) -> None:
        if not keys:
            raise ScopeError("the scope is empty: name whose memory is meant, such as Scope(user='anna')")
        self._fill(_without_aliases(keys))

    def _fill(self, pairs: Mapping[str, str], within: bool = False) -> None:
        ordered = {key: pairs[key] for key in sorted(pairs)}
        escaped = [(key, value.replace("%", "%25").replace("/", "%2F")) for key, value in ordered.items()]
        text = "/".join([f"{key}={value}" for key, value in escaped])
        object.__setattr__(self, "pairs", MappingProxyType(ordered))
        object.__setattr__(self, "text", text + _WITHIN if within else text)
        object.__setattr__(self, "within", within)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a scope cannot be changed: make another one")  # it is shared by all who name it

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a scope cannot be changed: make another one")

    @classmethod
    def of_pairs(cls, pairs: Mapping[str, str], within: bool = False) -> Scope:
        """Take keys and values that were checked before, as they are."""
        scope = cls.__new__(cls)
        scope._fill(pairs, within)
        return scope

    @staticmethod
    def parse(text: str) -> Scope:
        """Read the canonical text, or the same with its keys in any order."""
        if not isinstance(text, str):
            raise ScopeError(f"the text of a scope is text, not {type(text).__name__}")
        return _parsed(text)

    @classmethod
    def exact(cls, text: str) -> Scope:
        """Read the text of a scope as another store wrote it, and check it; its keys stay as they are."""
        return cls.of_pairs({key: _check_value(key, value) for key, value in _split(text).items()})

    @classmethod
    def of(cls, value: ScopeLike) -> Scope:
        """Take a Scope, a mapping of keys, or the canonical text."""
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

    @staticmethod
    @lru_cache(maxsize=4096)
    def stored(text: str) -> Scope:
        """Read a scope as the store has it: checked when it was written, its keys as they were then."""
        return Scope.of_pairs(_split(text.removesuffix(_WITHIN)), text.endswith(_WITHIN))

    def extended(self, keys: Mapping[str, str | int | UUID]) -> Scope:
        """Return the scope with more keys; a key that is there already gets the new value."""
        return Scope.of_pairs({**self.pairs, **_without_aliases(keys)}) if keys else self

    def only(self, keys: Iterable[str]) -> Scope:
        """Return the scope with these of its keys; at least one must be there."""
        kept = {key: self.pairs[key] for key in keys if key in self.pairs}
        if not kept:
            raise ScopeError(f"{self} has none of the keys {', '.join(keys)}")
        return self if len(kept) == len(self.pairs) else Scope.of_pairs(kept)

    @property
    def alone(self) -> Scope:
        """This scope and nothing within it."""
        return Scope.of_pairs(self.pairs) if self.within else self

    @property
    def everything(self) -> Scope:
        """This scope and everything within it."""
        return self if self.within else Scope.of_pairs(self.pairs, within=True)

    def covers(self, other: Scope) -> bool:
        """Whether another scope is meant by this one. A tenant is never crossed."""
        if not self.within:
            return self.pairs == other.pairs
        return self.pairs.items() <= other.pairs.items() and self.pairs.get("tenant") == other.pairs.get("tenant")

    def is_near(self, other: Scope) -> bool:
        """Whether one of the two is the other with more keys."""
        mine, theirs = self.pairs.items(), other.pairs.items()
        return self.text != other.text and (mine <= theirs or theirs <= mine)

    def __getitem__(self, key: str) -> str:
        return self.pairs[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scope) and self.text == other.text

    def __reduce__(self) -> tuple[Callable[[str], Scope], tuple[str]]:
        return Scope.stored, (self.text,)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        plain = f"Scope({', '.join(f'{key}={value!r}' for key, value in self.pairs.items())})"
        return f"{plain}.everything" if self.within else plain


ScopeLike = Scope | Mapping[str, str | int | UUID] | str
Scopes = ScopeLike | list[ScopeLike] | tuple[ScopeLike, ...]


def parse_keys(keys: Mapping[str, str]) -> Mapping[str, str]:
    """Read keys and values that scopes are to have; none is fine."""
    return Scope(**keys).pairs if keys else {}


def parse_scopes(value: Scopes) -> list[Scope]:
    """Read one scope or several, each once, in the order given."""
    scopes = value if isinstance(value, list | tuple) else [value]
    if not scopes:
        raise ScopeError("no scope was given: name at least one")
    return list(dict.fromkeys([Scope.of(scope) for scope in scopes]))


def check_users(values: Iterable[str]) -> tuple[str, ...]:
    """Read names of users, each of which could be the user of a scope."""
    users = check_names(as_list(values, "users"), "users")
    for user in users:
        try:
            _check_value("user", user)
        except ScopeError as error:
            raise InputError(f"users: {error}") from None
    return users


def check_key(key: str) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ScopeError(f"scope key {show(key)} is malformed: use lower-case letters, digits and _, at most 32")
    return key


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Scope:
    scope = Scope(**_split(text.removesuffix(_WITHIN)))
    return scope.everything if text.endswith(_WITHIN) else scope


@lru_cache(maxsize=4096)
def _known(pairs: tuple[tuple[str, str], ...]) -> Scope:
    return Scope(**dict(pairs))


def _split(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split("/")]
    if not text or any(not sign for _, sign, _ in pairs):
        raise ScopeError(f"cannot read {show(text)} as a scope: write key=value/key=value, such as user=anna")
    keys = {key: value.replace("%2F", "/").replace("%25", "%") for key, _, value in pairs}
    if len(keys) != len(pairs):
        raise ScopeError(f"scope {show(text)} names a key twice")
    return keys


def _without_aliases(keys: Mapping[str, str | int | UUID]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for key, value in keys.items():
        name = ALIASES.get(key, key)
        if name in pairs:
            raise ScopeError(f"the scope names its {name} twice: once as {key!r}, once under another name")
        pairs[name] = _check_value(key, value)
    return pairs


def _check_value(key: str, value: object) -> str:
    check_key(key)
    if isinstance(value, bool) or not isinstance(value, str | int | UUID):
        raise ScopeError(f"scope key {key!r} must be text, a whole number or a UUID, not {type(value).__name__}")
    if isinstance(value, int) and abs(value) >= 10**_MAX_DIGITS:
        raise ScopeError(f"scope key {key!r} is a number of more than {_MAX_DIGITS} digits")
    text = str(value)
    if not text.strip():
        raise ScopeError(f"scope key {key!r} is empty: name whose memory is meant")
    if text != text.strip() or not text.isprintable():
        raise ScopeError(f"scope key {key!r} has blanks at its ends or unprintable characters: {show(text)}")
    if len(text) > MAX_VALUE_CHARACTERS:
        raise ScopeError(f"scope key {key!r} is longer than {MAX_VALUE_CHARACTERS} characters")
    return text
