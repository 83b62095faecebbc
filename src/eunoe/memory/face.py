"""What `Memory` and its groups of verbs have in common: how a verb is done, and who is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from eunoe.engine import Engine
from eunoe.memory.guard import OPEN, Guard
from eunoe.memory.verb import STEPS
from eunoe.model.result import ForgetReport
from eunoe.model.scope import Scope

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Change:
    """One call of a verb that changes something. It holds no text, and ids only of what is forgotten."""

    verb: str
    """Its name, such as "remember" or "streams.configure"."""
    scopes: tuple[Scope, ...] = ()
    count: int = 0
    """How many items were changed."""
    error: BaseException | None = None
    """Why nothing was."""
    forgotten: tuple[str, ...] = ()
    """Ids of what went for good, so that nobody keeps them."""


Watch = Callable[[Change], None]


class Face:
    """An engine, what may be done with it, and who is told of changes. Its methods are verbs: each checks its
    arguments and then runs its steps."""

    def __init__(self, engine: Engine, guard: Guard = OPEN, watches: tuple[Watch, ...] = ()) -> None:
        self._engine = engine
        self._guard = guard
        self._watches = watches

    @property
    def target(self) -> str:
        """The path of the store, or ":memory:". Empty if the memory is restricted to a part of it."""
        return "" if self._guard.bounds.scopes else self._engine.store.target

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.target!r}"

    def _run(self, step: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the steps of a verb if its right is there, and tell of it if it changes something."""
        verb = STEPS[step.__name__]
        self._guard.allow(verb.right)
        if verb.whole:
            self._guard.allow_whole()
        if not (self._watches and verb.changes):
            return self._guard.redact(self._engine.run(step, *args, **kwargs))
        scopes = _find_scopes(args)
        try:
            result = self._engine.run(step, *args, **kwargs)
        except BaseException as error:
            self._tell(Change(verb.name, scopes, error=error))
            raise
        forgotten = (*result.messages, *result.atoms) if isinstance(result, ForgetReport) else ()
        self._tell(Change(verb.name, scopes, _count(result), forgotten=forgotten))
        return self._guard.redact(result)

    def _tell(self, change: Change) -> None:
        for watch in self._watches:
            watch(change)


def _find_scopes(args: Iterable[Any]) -> tuple[Scope, ...]:
    for value in args:
        if isinstance(value, Scope):
            return (value,)
        if isinstance(value, list) and value and all(isinstance(each, Scope) for each in value):
            return tuple(value)
    return ()


def _count(result: Any) -> int:
    """How many items a reply is about that were not there before, or are no longer."""
    if isinstance(result, list):
        return sum(map(_count, result))
    if result is None or isinstance(result, int):
        return int(result or 0)
    if hasattr(result, "outcome"):
        return int(result.outcome in ("stored", "superseded"))
    if getattr(result, "dry_run", False):
        return 0
    counts = (getattr(result, name, 1) for name in ("total", "stored", "archived") if hasattr(result, name))
    count = next(counts, 1)
    return count if isinstance(count, int) else len(count)
