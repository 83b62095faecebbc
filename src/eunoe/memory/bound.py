"""What both memories that are bound to a scope have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.scope import Scope, Scopes

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")


class BoundMemory(Generic[M]):
    """A memory and a scope. It is immutable and holds nothing else."""

    __slots__ = ("memory", "scope")

    memory: M
    scope: Scope

    def __init__(self, memory: M, scope: Scope) -> None:
        object.__setattr__(self, "memory", memory)
        object.__setattr__(self, "scope", scope)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a bound memory cannot be changed: bind another one with at()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a bound memory cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.memory is self.memory and other.scope == self.scope

    def __hash__(self) -> int:
        return hash((id(self.memory), self.scope))

    def __copy__(self) -> Self:
        return self

    def at(self, **keys: str | int) -> Self:
        """Bind to the same scope with more keys."""
        return type(self)(self.memory, self.scope.extended(keys))

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> Self:
        """Bind the same scope of a memory that is restricted so; see `Memory.restricted`."""
        memory: Any = self.memory
        return type(self)(memory.restricted(tenant, scopes, rights), self.scope)

    def __repr__(self) -> str:
        return f"{self.memory!r}.at({self.scope.text!r})"


def scoped_verb(verb: Callable[Concatenate[Any, Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return the verb of a memory, plain or async, for one that is bound to a scope."""
    name = verb.__name__

    def call(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast("R", getattr(self.memory, name)(self.scope, *args, **kwargs))

    async def call_async(self: BoundMemory[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await getattr(self.memory, name)(self.scope, *args, **kwargs)

    bound: Any = wraps(verb)(call_async if inspect.iscoroutinefunction(verb) else call)
    signature = inspect.signature(verb)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "scope"]
    bound.__signature__ = signature.replace(parameters=kept)
    return cast("Callable[Concatenate[Any, P], R]", bound)
