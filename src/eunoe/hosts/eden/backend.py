"""Eden's `MemoryBackend` on a memory: the platform changes an import, and its sessions and tools stay as they are."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from eunoe.errors import InputError
from eunoe.hosts.common import default_memory
from eunoe.hosts.eden.migration import AGENT_SHARD
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import RecipeName, as_list, check_choices, check_count
from eunoe.model.scope import Scope, ScopeLike

SearchType = Literal["hybrid", "semantic", "text"]

_RECIPES: Final[Mapping[str, RecipeName]] = {"hybrid": "default", "semantic": "dense", "text": "lexical"}
_FACT_SCOPES: Final = ("user", "agent")
_ROLES: Final = {"eden": "system", "agent": "assistant"}
"""Roles of Eden that have another name here."""


class MemoryBackend:
    """What Eden calls before a reply and after it. Sessions, agents and users are Eden's own objects, or dicts.

    A session of one user belongs to the user: it is `agent=.../session=.../user=...`. One of several users is
    `agent=.../session=...`, and nobody's own memory stands in its context. An incognito session is neither read nor
    kept. An agent whose `user_memory_enabled` is false has every session as one of several users. What an agent learns
    from all its users is `agent=.../shard=agent`; the agent's `agent_memory_enabled` turns
    that on or off.

    Args:
        memory: where it is kept; the store of the command line, if none is given.

    >>> session = {"id": "s1", "users": ["anna"], "messages": [{"role": "user", "content": "I am allergic to nuts."}]}
    >>> with eunoe.open(":memory:") as memory:
    ...     backend = MemoryBackend(memory)
    ...     _ = asyncio.run(backend.form_memories("cook", session))
    ...     "allergic to nuts" in asyncio.run(backend.assemble_memory_context({**session, "id": "s2"}, "cook", "anna"))
    True
    """

    def __init__(self, memory: Memory | AsyncMemory | None = None) -> None:
        self.memory = _blocking(memory)
        self._agents: dict[str, bool] = {}
        """Which agents learn from all their users, as far as Eden has said so."""

    async def assemble_memory_context(
        self,
        session: Any,
        agent: Any,
        user: Any,
        *,
        force_refresh: bool = False,
        reason: str = "unknown",
        skip_save: bool = False,
        instrumentation: Any = None,
    ) -> str:
        """Return what to put into the system message; "" if there is nothing to say.

        The static part of a context is read from the store each time, so `force_refresh`, `reason`, `skip_save` and
        `instrumentation` change nothing.
        """
        if _is_incognito(session):
            return ""
        scope = _scope_of(session, agent, _id_of(agent, "agent"), user)
        said = [each for each in _messages_of(session) if each.get("role", "user") == "user"]
        question = str(said[-1]["content"]) if said else ""
        users = _users_of(session) if _remembers_users(agent) else []
        context = await asyncio.to_thread(self.memory.context, scope, question, users=users)
        return context.text

    async def maybe_form_memories(self, agent_id: Any, session: Any, agent: Any = None) -> bool:
        """Keep the new messages of a session, and form memories if enough was said; return whether it formed any.

        The memory forms by itself too, behind `observe`: then it was faster, and there is nothing left for this call.
        """
        return await self._form(agent_id, session, agent, "", force=False)

    async def form_memories(
        self,
        agent_id: Any,
        session: Any,
        agent: Any = None,
        *,
        conversation_text: str | None = None,
        char_counts_by_source: Mapping[str, int] | None = None,
    ) -> bool:
        """Keep the new messages of a session, or a text in their place, and form memories of them now."""
        return await self._form(agent_id, session, agent, conversation_text or "", force=True)

    async def _form(self, agent_id: Any, session: Any, agent: Any, text: str, *, force: bool) -> bool:
        if _is_incognito(session):
            return False
        name, enabled = _id_of(agent_id, "agent_id"), _field(agent, "agent_memory_enabled")
        if isinstance(enabled, bool) and self._agents.get(name) != enabled:
            shard = Scope(agent=name, shard=AGENT_SHARD)
            await asyncio.to_thread(self.memory.streams.configure, shard, "agent", is_active=enabled)
            self._agents[name] = enabled
        scope = _scope_of(session, agent, name, None)
        messages = [{"role": "user", "content": text}] if text else _messages_of(session)
        await asyncio.to_thread(self.memory.observe, scope, messages)
        report = await asyncio.to_thread(self.memory.form, scope, force=force)
        return bool(report.messages)


async def search_facts(
    query: str | Iterable[str],
    agent_id: Any,
    user_id: Any = None,
    scope_filter: Iterable[str] = _FACT_SCOPES,
    match_count: int = 10,
    search_type: SearchType = "hybrid",
    *,
    memory: Memory | AsyncMemory | None = None,
) -> list[dict[str, Any]]:
    """Return the facts of an agent and of one of its users that answer a question, or several, the best first.

    Without a user only what the agent knows of itself is searched: nobody's own facts are shown to others.

    >>> with eunoe.open(":memory:") as memory:
    ...     _ = memory.remember("agent=cook/user=anna", "Anna is allergic to nuts.")
    ...     found = asyncio.run(search_facts("allergies", "cook", "anna", memory=memory))
    >>> found[0]["content"], found[0]["scope"]
    ('Anna is allergic to nuts.', 'user')
    """
    wanted = check_choices(scope_filter, "scope_filter", _FACT_SCOPES) or _FACT_SCOPES
    if search_type not in _RECIPES:
        raise InputError(f"search_type is {search_type!r}: it is one of {', '.join(_RECIPES)}")
    limit, agent = check_count(match_count, "match_count"), Scope(agent=_id_of(agent_id, "agent_id"))
    scopes: list[ScopeLike] = [agent, agent.extended({"shard": AGENT_SHARD})] if "agent" in wanted else []
    if "user" in wanted and user_id is not None:
        scopes.append(agent.extended({"user": _id_of(user_id, "user_id")}))
    best: dict[tuple[str, str], dict[str, Any]] = {}
    for question in as_list(query, "query") if scopes else ():
        hits = await asyncio.to_thread(
            _blocking(memory).recall, scopes, question, kinds=["fact"], limit=limit, recipe=_RECIPES[search_type]
        )
        for hit in hits:
            found = {
                "_id": hit.id,
                "content": hit.text,
                "scope": "user" if "user" in hit.scope else "agent",
                "agent_id": agent["agent"],
                "user_id": hit.scope.get("user"),
                "formed_at": hit.item.time or hit.item.recorded,
                "score": hit.score,
            }
            known = best.get((str(hit.scope), hit.id))
            if known is None or known["score"] < hit.score:
                best[str(hit.scope), hit.id] = found
    return sorted(best.values(), key=lambda found: -found["score"])[:limit]


def _blocking(memory: Memory | AsyncMemory | None) -> Memory:
    return memory.blocking if isinstance(memory, AsyncMemory) else memory or default_memory()


def _scope_of(session: Any, agent: Any, name: str, user: Any) -> Scope:
    """Whose a session is. `user` is who asks, where the session itself names nobody."""
    users = _users_of(session) or ([_id_of(user, "user")] if user is not None else [])
    keys = {"agent": name, "session": _id_of(session, "session")}
    return Scope(**keys, user=users[0]) if len(users) == 1 and _remembers_users(agent) else Scope(**keys)


def _remembers_users(agent: Any) -> bool:
    return _field(agent, "user_memory_enabled") is not False


def _users_of(session: Any) -> list[str]:
    return [_id_of(user, "user") for user in _field(session, "users") or ()]


def _messages_of(session: Any) -> list[dict[str, Any]]:
    """The messages that a session holds. Eden's sender becomes the user who spoke."""
    return [_message(each) for each in _field(session, "messages") or ()]


def _message(given: Any) -> dict[str, Any]:
    role = str(_field(given, "role") or "user")
    message = {"role": _ROLES.get(role, role), "content": _field(given, "content") or ""}
    for name, field in (("id", "id"), ("time", "createdAt"), ("speaker", "name")):
        if (value := _field(given, field) or (_field(given, "_id") if name == "id" else None)) is not None:
            message[name] = value if name == "time" else str(value)
    if role == "user" and (sender := _field(given, "sender")) is not None:
        message["metadata"] = {"user": _id_of(sender, "sender")}
    return message


def _is_incognito(session: Any) -> bool:
    return bool(_field(_field(session, "extras") or {}, "incognito"))


def _id_of(given: Any, name: str) -> str:
    """An id, or the id of an object that has one."""
    ids = [found for field in ("id", "_id") if (found := _field(given, field)) is not None]
    if ids or isinstance(given, Mapping) or hasattr(given, "id"):
        given = ids[0] if ids else None
    if given is None or not str(given).strip():
        raise InputError(f"{name} has no id: pass Eden's object, or its id")
    return str(given)


def _field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
