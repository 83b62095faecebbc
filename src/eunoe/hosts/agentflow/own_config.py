"""Whose memories a call is about: the user of its config, or one thread of that user."""

from collections.abc import Mapping
from typing import Any, Literal

from eunoe.errors import ScopeError
from eunoe.hosts.agentflow.framework import DEFAULT_ANONYMOUS_USER_ID, MemorySearchResult, get_authz
from eunoe.hosts.agentflow.scopes import check_config

MemoryScope = Literal["user", "thread"]


def own_config(config: Mapping[str, Any], scope: MemoryScope) -> dict[str, Any]:
    """The config as a store is given it: without the thread where memories belong to the user.

    >>> own_config({"user_id": "anna", "thread_id": "t1"}, "user")
    {'user_id': 'anna'}
    """
    user = check_config(config).get("user_id")
    # Agentflow fills in one name for all who give none: their memories would be everybody's.
    if str(user or "").strip() in ("", DEFAULT_ANONYMOUS_USER_ID):
        user = (get_authz(dict(config)) or {}).get("user_id")
    if not str(user or "").strip():
        raise ScopeError('the config names no user: pass config={"user_id": ...}')
    if scope == "user":
        return {key: value for key, value in config.items() if key != "thread_id"} | {"user_id": user}
    if not str(config.get("thread_id") or "").strip():
        raise ScopeError('memories belong to threads here, and the config names none: pass config={"thread_id": ...}')
    return {**config, "user_id": user}


def is_own(memory: MemorySearchResult, config: Mapping[str, Any]) -> bool:
    """Whether a memory belongs to the user, and the thread if there is one, of a scoped config.

    Not every store looks at both.
    """
    if memory.user_id is not None and str(memory.user_id) != str(config["user_id"]):
        return False
    thread = config.get("thread_id")
    return thread is None or str(memory.metadata.get("session") or memory.thread_id) == str(thread)


def is_within(memory: MemorySearchResult, config: Mapping[str, Any]) -> bool:
    """Whether a memory may be recalled with an own config: what was stored for a thread only in that thread."""
    is_for_thread = memory.metadata.get("memory_scope") == "thread"
    return is_own(memory, config) and (config.get("thread_id") is not None or not is_for_thread)
