"""Changes of a memory, told to whoever keeps a log of them. They hold no text, and ids only of what is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from eunoe.model.result import ForgetReport
from eunoe.model.scope import Scope

if TYPE_CHECKING:
    from eunoe.engine import Engine

T = TypeVar("T")

_READS: Final = frozenset(
    {
        *(
            "recall",
            "build",
            "look_up",
            "find_item",
            "find_items",
            "find_history",
            "find_place",
            "list_page",
            "recent_page",
        ),
        *("by_files", "find_place", "scopes", "status", "view"),
        *("streams", "presets", "read_revisions", "find_neighbourhood", "measure_graph", "counts", "check", "flush"),
        *("calls", "test_llm", "preview", "list_corrections"),
        *("acquire_lease", "renew_lease", "release_lease", "fail_lease", "list_leases", "drop_lease"),
    }
)
"""What changes nothing that is remembered, as the engine calls it. All else is told: a verb that comes later cannot be
forgotten."""
_NAMES: Final = {
    "import_": "import",
    "expire_atoms": "expire",
    "retract_messages": "retract",
    "extract_graph": "extract",
    "form_idle_sessions": "process_cold_sessions",
    "add_correction": "correct",
    "write_summary": "write",
    "restore_summary": "restore",
}
"""Verbs that the engine calls otherwise than the memory."""


@dataclass(frozen=True, slots=True)
class Change:
    """One call of a verb that changes something."""

    verb: str
    scopes: tuple[Scope, ...] = ()
    count: int = 0
    """How many items were changed."""
    error: BaseException | None = None
    """Why nothing was."""
    forgotten: tuple[str, ...] = ()
    """Ids of what went for good, so that nobody keeps them."""


Watch = Callable[[Change], None]


class WatchedEngine:
    """An engine that tells of every change that a memory has it make."""

    def __init__(self, engine: Engine, watch: Watch) -> None:
        self._engine = engine
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """The memory without a watch closes it."""

    def run(self, verb: Callable[..., T], *args: Any) -> T:
        if verb.__name__ in _READS:
            return self._engine.run(verb, *args)
        name, scopes = _NAMES.get(verb.__name__, verb.__name__), _find_scopes(args)
        try:
            result = self._engine.run(verb, *args)
        except BaseException as error:
            self._watch(Change(name, scopes, error=error))
            raise
        forgotten = (*result.messages, *result.atoms) if isinstance(result, ForgetReport) else ()
        self._watch(Change(name, scopes, _count(result), forgotten=forgotten))
        return result


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
