"""A tool as this server keeps it, a call of it, and its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from eunoe.model.arguments import Right
from eunoe.model.scope import Scope
from eunoe.server.mcp.budget import DEFAULT_TOKENS, Budget

if TYPE_CHECKING:
    from eunoe.memory import Memory
    from eunoe.server.mcp.caller import Caller
    from eunoe.server.mcp.confirmation import Confirmation

Schema = Mapping[str, Any]
SCOPE: Final = "scope"
"""The argument whose description names the caller's own default."""
EXACT: Final = "exact"


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
        return bool(self.arguments.get(EXACT))

    @property
    def max_tokens(self) -> int:
        return int(self.arguments.get("max_tokens", DEFAULT_TOKENS))

    def budget(self) -> Budget:
        return Budget(self.max_tokens)

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

    @property
    def is_read_only(self) -> bool:
        return self.right == "read"

    @property
    def can_repeat(self) -> bool:
        """Whether a call may be made again where it is not known if the first one did its work."""
        return self.is_idempotent and not self.is_destructive

    def input_schema(self, default: Scope | None = None) -> dict[str, Any]:
        """The schema of the arguments. Where there is no default scope, one must be named."""
        properties, required = dict(self.arguments), self.required
        if SCOPE in properties:
            properties[SCOPE] = {"type": "string", "description": f"default {default}" if default else "user=anna"}
            required = required if default else (*required, SCOPE)
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        return schema | ({"required": list(required)} if required else {})


def as_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)
