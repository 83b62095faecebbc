"""Whose memory the config of a call names.

| config | scope |
|---|---|
| `user_id` | the user's own memory; an `agent_id` beside it changes nothing |
| `agent_id` and no `user_id` | the agent's memory, which its users share |
| `app_id` | its own part of what the others name; alone, the memory of the app |
| `collection` | its own part of what the others name |

An agent's tools name its memory beside a user, by an `agent_id` and the same `thread_id`. That is for reading only:
who chooses the name of a thread must not write into a memory that all share.
"""

from collections.abc import Mapping
from typing import Any, Final

from eunoe.errors import AccessError, ScopeError
from eunoe.hosts.agentflow.framework import DEFAULT_ANONYMOUS_USER_ID, SCOPE_NONE, get_authz
from eunoe.memory import Memory
from eunoe.model.scope import Scope

_PARTS: Final = {"app_id": "app", "collection": "collection"}
_PART_NAMES: Final = set(_PARTS.values())


def scope_of(config: Mapping[str, Any], *, writing: bool = False) -> Scope:
    """Return the one scope that a config names. Raise ScopeError if it names nobody.

    >>> scope_of({"user_id": "anna", "thread_id": "7"})
    Scope(user='anna')
    >>> scope_of({"user_id": "anna", "agent_id": "cook", "thread_id": "cook"})
    Scope(agent='cook')
    >>> scope_of({"user_id": "anna", "agent_id": "cook", "thread_id": "cook"}, writing=True)
    Scope(user='anna')
    """
    parts = _parts(check_config(config))
    if _names_agent(config, writing):
        return Scope(agent=config["agent_id"], **parts)
    user = _user_of(config)
    if user is not None:
        return Scope(user=user, **parts)
    if "app" in parts and "user_id" not in config:
        return Scope(**parts)
    raise ScopeError(
        "the config has no user_id, so that nobody's memory is meant: pass config={'user_id': ...} to the run, "
        "or UserMemoryConfig(user_id=...)"
    )


def scopes_of_all_users(memory: Memory, config: Mapping[str, Any], *, writing: bool = False) -> list[Scope]:
    """Return the scopes of all users, the config's own first: for a policy that keeps nobody apart."""
    if _names_agent(config, writing):
        return [scope_of(config, writing=writing)]
    parts = _parts(config)
    own = [] if _user_of(config) is None else [scope_of(config, writing=writing)]
    others = [scope for scope in memory.scopes(**parts) if scope.keys() == {*parts, "user"}]
    return list(dict.fromkeys([*own, *others]))


def scopes_of_user(memory: Memory, config: Mapping[str, Any]) -> list[Scope]:
    """Return all scopes of the config's user, those of sessions and agents too, within its app and its collection."""
    own = scope_of(config, writing=True)
    if "user" not in own:
        raise ScopeError("the config names no user: pass config={'user_id': ...}")
    others = [scope for scope in memory.scopes(**own) if not (_PART_NAMES - own.keys()) & scope.keys()]
    # The memory adds its own tenant, if it has one. Another tenant's user of this name is somebody else.
    return list(dict.fromkeys([own, *map(_without_tenant, others)]))


def _without_tenant(scope: Scope) -> Scope:
    return Scope(**{key: value for key, value in scope.items() if key != "tenant"})


def check_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config if it is one."""
    if not isinstance(config, Mapping):
        raise ScopeError(f"the config must be a dict such as {{'user_id': ...}}, not {type(config).__name__}")
    return config


def _parts(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: config[key] for key, name in _PARTS.items() if config.get(key) is not None}


def _names_agent(config: Mapping[str, Any], writing: bool) -> bool:
    agent = config.get("agent_id")
    has_mark = not writing and config.get("thread_id") == agent
    return agent is not None and (has_mark or "user_id" not in config)


def _user_of(config: Mapping[str, Any]) -> Any:
    """The user, or None. A run without one is `anonymous`, a name that all such runs share: it counts as none."""
    user = config.get("user_id")
    if user == DEFAULT_ANONYMOUS_USER_ID:
        user = None
    policy = get_authz(config) or {}
    owner = policy.get("user_id")
    if owner is None or user is None:
        return owner if user is None else user
    if str(owner) != str(user) and policy.get("scope") != SCOPE_NONE:
        raise AccessError("config['user_id'] is not the user that the authz block allows")
    return user
