"""Who calls a tool: their memory, what they may do with it, and which scopes they may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eunoe.errors import AccessError, ScopeError
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    from eunoe.memory import Memory


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
