"""A tool as this server keeps it, who calls it with which arguments, and how much its answer may say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from eunoe.errors import AccessError, InputError, ScopeError
from eunoe.model.arguments import RIGHTS, Right, check_text, show
from eunoe.model.scope import Scope
from eunoe.text.sentences import text_width

if TYPE_CHECKING:
    from eunoe.memory import Memory

Schema = Mapping[str, Any]
STRING: Final = {"type": "string"}
SCOPE: Final = "scope"
"""The argument whose description names the caller's own default."""
DEFAULT_TOKENS: Final = 2000
MIN_TOKENS: Final = 200
MAX_TOKENS: Final = 100_000
_CHARACTERS_PER_TOKEN: Final = 4
"""Fewer than in prose: JSON has many signs."""
_FRAME_CHARACTERS: Final = 360
"""What stands around the memories of an answer: tags, notes, a cursor."""
_TYPES: Final[Mapping[str, Any]] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
_TRUTHS: Final = {"true": True, "false": False}
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}")
_CURSOR: Final = re.compile(r"[0-9]{1,18}(:[0-9]{1,18})*")
_MAX_CHARACTERS: Final = 1_000_000
"""Of a text, as over HTTP: while a longer question is read, everybody else waits."""
LIFETIME_SECONDS: Final = 300
_SIGNATURE_BYTES: Final = 16
_MAX_TOKEN_CHARACTERS: Final = 20_000
_REFUSED: Final = "this token is not valid here or is older than 5 minutes: preview again, nothing was removed"


class Budget:
    """The characters that an answer may still take: all counts, its text and the same again as structured content."""

    def __init__(self, tokens: int) -> None:
        self._room = float(tokens * _CHARACTERS_PER_TOKEN - _FRAME_CHARACTERS)

    def fits(self, *values: Any) -> bool:
        return _width(values) <= self._room

    def take(self, *values: Any) -> bool:
        """Make room for values as JSON writes them; return False, and take nothing, if there is not enough."""
        if not self.fits(*values):
            return False
        self._room -= _width(values)
        return True


def _width(values: tuple[Any, ...]) -> float:
    return sum(text_width(json.dumps(value, ensure_ascii=False)) + 1 for value in values)


def longest_part(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of a text that fits. It is an error if nothing of it does."""
    if fits(text):
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle)
    if low == 0:
        raise InputError("max_tokens leaves no room for a memory: pass more")
    return text[:low]


def parse_cursor(cursor: str, *, parts: int) -> tuple[int, ...]:
    """The numbers of a cursor; zeros for none. It is a place, not a permission, and checked like any other argument.

    >>> parse_cursor("12:3", parts=2), parse_cursor("", parts=1)
    ((12, 3), (0,))
    """
    if not cursor:
        return (0,) * parts
    if not _CURSOR.fullmatch(cursor) or cursor.count(":") != parts - 1:
        raise InputError(f"cannot read on after cursor {show(cursor)}: pass the one of the answer before")
    return tuple(map(int, cursor.split(":")))


def check_arguments(schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a model passed, checked against the tool's own schema, without what is null: models pass that for what they
    leave out. Errors say to the model what to pass."""
    checked: dict[str, Any] = _check("", schema, given)
    return checked


def _check(place: str, schema: Schema, value: Any) -> Any:
    kind = schema["type"]
    if isinstance(value, str):  # numbers and truth values come as text from workflows and from some models
        if kind == "integer" and _NUMBER.fullmatch(value.strip()):
            value = int(value)
        elif kind == "boolean":
            value = _TRUTHS.get(value.strip().lower(), value)
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise InputError(f"{place} is {show(value)}: it must be of type {kind}")
    if kind == "object":
        prefix, properties = f"{place}." if place else "", schema.get("properties", {})
        given = {name: each for name, each in value.items() if each is not None}
        if unknown := sorted(given.keys() - properties.keys()):
            names = f"there are {', '.join(properties)}" if properties else "there is none"
            raise InputError(f"there is no argument {prefix}{show(unknown[0])}: {names}")
        if missing := [name for name in schema.get("required", ()) if name not in given]:
            raise InputError(f"{prefix}{missing[0]} is missing: pass it")
        return {name: _check(f"{prefix}{name}", properties[name], each) for name, each in given.items()}
    if kind == "array":
        if len(value) > (most := schema.get("maxItems", len(value))):
            raise InputError(f"{place} has {len(value)} items: pass at most {most}")
        return [_check(f"{place}[{number}]", schema["items"], each) for number, each in enumerate(value)]
    if kind == "integer":
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not least <= value <= most:
            bound = f", at most {most}" if value > most else ""
            raise InputError(f"{place} is {show(value)}: pass {least} or more{bound}")
    elif kind == "string":
        check_text(value, place)
        choices, most = schema.get("enum"), schema.get("maxLength", _MAX_CHARACTERS)
        if choices and value not in choices:
            raise InputError(f"{place} is {show(value)}: pass one of {', '.join(choices)}")
        if len(value) > most:
            raise InputError(f"{place} has {len(value):,} characters: pass at most {most:,}")
    return value


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """The scope that is meant where none is named, and the scopes that may be named."""

    default: Scope | None = None
    within: Scope | None = None
    """A scope with all these keys may be named; None leaves it to the memory, which may be restricted itself."""

    def may_name(self, scope: Scope) -> bool:
        return self.within is None or self.within.pairs.items() <= scope.pairs.items()

    def parse(self, text: str) -> Scope:
        if not text:
            if self.default is None:
                raise ScopeError("name a scope: whose memory is meant, such as user=anna")
            return self.default
        scope = Scope.parse(text)
        if not self.may_name(scope):
            raise AccessError(f"this server may use only scopes within {self.within}: leave `scope` out, or add to it")
        return scope


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. The memory is opened by the first call that needs it, never before."""

    find_memory: Callable[[], Memory]
    look_again: Callable[[], None] = lambda: None
    """To be called when that memory could not be reached: it may be found elsewhere."""
    rights: frozenset[Right] = frozenset(RIGHTS)
    scopes: ScopeRule = ScopeRule()
    id: str = ""
    """What tells callers apart: a token for forgetting is good only for the one it was given to."""
    tenant: str = ""
    """Whose users they are, if several have a memory in one store."""


class Confirmation:
    """Tokens that allow what a preview showed: signed, for one caller and one scope, for a few minutes.

    Nothing is kept: every process that has the secret can check a token that another one gave.
    """

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
        if len(token) > _MAX_TOKEN_CHARACTERS or not is_signed:
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says: to a reader as text, to a program as data."""

    text: str
    data: Mapping[str, Any]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, its arguments checked."""

    memory: Memory
    caller: Caller
    confirmation: Confirmation
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return str(self.arguments.get(name, ""))

    @property
    def scope(self) -> Scope:
        return self.caller.scopes.parse(self.text(SCOPE))

    @property
    def is_exact(self) -> bool:
        return bool(self.arguments.get("exact"))

    @property
    def max_tokens(self) -> int:
        return int(self.arguments.get("max_tokens", DEFAULT_TOKENS))

    def notes(self, notes: tuple[str, ...]) -> tuple[str, ...]:
        """Notes name near scopes: only who may name every scope is told of them."""
        return notes if self.caller.scopes.within is None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a client is told about a tool, the right that it takes, and what it does."""

    name: str
    title: str
    description: str
    run: Callable[[ToolCall], Answer]
    right: Right
    arguments: Schema = field(default_factory=dict)
    required: tuple[str, ...] = ()
    result: Schema = field(default_factory=dict)
    is_destructive: bool = False
    is_idempotent: bool = True
    changes_graph: bool = False
    """Whether the resource with the whole graph is another after it."""

    def input_schema(self, default: Scope | None = None) -> dict[str, Any]:
        """The schema of the arguments. Where there is no default scope, one must be named."""
        properties, required = dict(self.arguments), self.required
        if SCOPE in properties:
            properties[SCOPE] = {"type": "string", "description": f"default {default}" if default else "user=anna"}
            required = required if default else (*required, SCOPE)
        return object_schema(*required, **properties)


def object_schema(*required: str, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | ({"required": list(required)} if required else {})


def as_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)
