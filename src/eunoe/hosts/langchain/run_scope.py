"""Whose memory a run uses: named by the run itself, never kept between runs."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from eunoe.errors import ScopeError
from eunoe.model.scope import MAX_VALUE_CHARACTERS, Scope

_IDS: Final = ("user_id", "agent_id", "session_id", "thread_id")
_NAMES: Final = ("memory_scope", *_IDS)
_CONVERSATION_IDS: Final = frozenset({"session_id", "thread_id"})
_CONVERSATION_KEYS: Final = ("session", "thread")


def run_scope(state: Mapping[str, Any], runtime: Any) -> Scope:
    """Read the scope from a run's context or state.

    A `memory_scope` is taken as it is. Else a `user_id` must be there; without it a ScopeError is raised. The thread
    of the checkpointer is added if neither session nor thread is named. The id of a session or thread goes by its
    fingerprint, if it is too long for a scope. If the context names a user, the state, which may come from outside,
    cannot name another one.
    """
    sources = (runtime.context, state)
    for source in sources:
        if (named := _value(source, "memory_scope")) is not None:
            return Scope.of(named)
        if _value(source, "user_id") is not None:
            break
    ids = {name: value for name in _IDS if (value := _first_value(sources, name)) is not None}
    for name in _CONVERSATION_IDS & ids.keys():
        ids[name] = _short(ids[name])
    if "user_id" not in ids:
        raise ScopeError("the run names no user_id, neither in its context nor in its state")
    scope = Scope.of(ids)
    thread = getattr(runtime.execution_info, "thread_id", None)
    if not thread or any(key in scope for key in _CONVERSATION_KEYS):
        return scope
    return scope.extended({"thread": _short(thread)})


def read_names(state: Mapping[str, Any]) -> dict[str, Any]:
    """What the input of a run says of whose memory it uses."""
    return {name: value for name in _NAMES if (value := state.get(name)) is not None}


def with_names(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of a run with what its input named: no checkpoint has that, so a run that goes on has lost it."""
    kept = state.get("eunoe_names")
    return {**state, **kept} if kept and not read_names(state) else state


def lasting_scope(scope: Scope) -> Scope:
    """The same memory beyond one conversation, where what is stored on purpose belongs."""
    kept = [key for key in scope if key not in _CONVERSATION_KEYS]
    return scope.only(kept) if kept else scope


def _short(id: Any) -> Any:
    if isinstance(id, str) and len(id) > MAX_VALUE_CHARACTERS:
        return sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return id


def _first_value(sources: Iterable[Any], name: str) -> Any:
    return next((value for source in sources if (value := _value(source, name)) is not None), None)


def _value(source: Any, name: str) -> Any:
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)
