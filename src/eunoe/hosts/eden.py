"""Eden: its `MemoryBackend` on a memory, and moving in with what it has kept.

The platform changes an import; its sessions and tools stay as they are. Its memory collections, of the first kind and
of memory2, come as MongoDB exports them: documents become lines of an export, which `memory.admin.import_` reads. So
what is here already stays, what was forgotten here is refused, and a second run changes nothing.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from eunoe.errors import InputError
from eunoe.hosts.common import Problems, blocking
from eunoe.hosts.mongo_export import object_id_time, read_time, read_values, unwrap
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import AtomKind, RecipeName, as_list, check_choices, check_count, check_text, utc_now
from eunoe.model.atom import parse_atom, source_name
from eunoe.model.scope import Scope, ScopeLike
from eunoe.model.stream import Settings

SearchType = Literal["hybrid", "semantic", "text"]

_RECIPES: Final[Mapping[str, RecipeName]] = {"hybrid": "default", "semantic": "dense", "text": "lexical"}
_FACT_SCOPES: Final = ("user", "agent")
_ROLES: Final = {"eden": "system", "agent": "assistant"}
"""Roles of Eden that have another name here."""

LineKind = Literal["settings", "summary", "fact", "observation"]

AUTHOR: Final = "eden"
AGENT_SHARD: Final = "agent"
"""The shard in which an agent learns from all its users, where Eden names no subject."""

_MEMORY2: Final = ("memory2_facts", "memory2_reflections", "memory2_consolidated")
_COLLECTIONS: Final = ("memory_user", "memory_agent", "memory_sessions", *_MEMORY2)
_OWNERS: Final[Mapping[str, Sequence[str]]] = {"agent": (), "user": ("user_id",), "session": ("session_id",)}
"""By the `scope` of a document of memory2, the ids beside its agent's that say whose it is."""
_MEMORY_TYPES: Final = ("episode", "directive", "fact", "suggestion")
_SETTINGS: Final = {
    "extraction_prompt": "extraction_prompt",
    "is_active": "is_active",
    "max_facts_per_shard": "fact_buffer_max",
    "max_agent_memories_before_consolidation": "consolidation_trigger",
}
"""Settings as Eden calls them, and what they are here."""
_CREATED: Final = ("formed_at", "created_at", "createdAt")
_UPDATED: Final = ("last_updated_at", "last_consolidated_at", "updatedAt", *_CREATED)


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
        self.memory = blocking(memory)
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
        users = [] if _field(agent, "user_memory_enabled") is False else _users_of(session)
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
            blocking(memory).recall, scopes, question, kinds=["fact"], limit=limit, recipe=_RECIPES[search_type]
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


def _scope_of(session: Any, agent: Any, name: str, user: Any) -> Scope:
    """Whose a session is. `user` is who asks, where the session itself names nobody."""
    users = _users_of(session) or ([_id_of(user, "user")] if user is not None else [])
    keys = {"agent": name, "session": _id_of(session, "session")}
    is_own = len(users) == 1 and _field(agent, "user_memory_enabled") is not False
    return Scope(**keys, user=users[0]) if is_own else Scope(**keys)


def _users_of(session: Any) -> list[str]:
    return [_id_of(user, "user") for user in _field(session, "users") or ()]


def _messages_of(session: Any) -> list[dict[str, Any]]:
    """The messages that a session holds. Eden's sender becomes the user who spoke."""
    messages = []
    for given in _field(session, "messages") or ():
        role = str(_field(given, "role") or "user")
        message = {"role": _ROLES.get(role, role), "content": _field(given, "content") or ""}
        if (id := _field(given, "id") or _field(given, "_id")) is not None:
            message["id"] = str(id)
        if (time := _field(given, "createdAt")) is not None:
            message["time"] = time
        if (name := _field(given, "name")) is not None:
            message["speaker"] = str(name)
        if role == "user" and (sender := _field(given, "sender")) is not None:
            message["metadata"] = {"user": _id_of(sender, "sender")}
        messages.append(message)
    return messages


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


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What became of one kind of thing."""

    stored: int = 0
    known: int = 0
    """It was here already, as itself or in the same words."""
    forgotten: int = 0
    """It was forgotten here, and stays so."""
    conflicts: int = 0
    """Something else stands in its place here, and stays."""


@dataclass(frozen=True, slots=True)
class EdenReport:
    """What came, what did not, and why."""

    documents: int = 0
    settings: ImportCounts = field(default_factory=ImportCounts)
    summaries: ImportCounts = field(default_factory=ImportCounts)
    facts: ImportCounts = field(default_factory=ImportCounts)
    observations: ImportCounts = field(default_factory=ImportCounts)
    episodes: int = 0
    """Left out: the session's own memory is written anew from its messages."""
    absorbed: int = 0
    """Directives and suggestions left out because nothing waits for them: a summary has taken them in."""
    unlisted: int = 0
    """Facts left out because no shard lists them any more."""
    missing: tuple[str, ...] = ()
    """Ids that a stream names and no document has, with the scope that names them."""
    problems: tuple[str, ...] = ()
    """Documents, or parts of them, that make no sense, each with its file and line."""


def migrate(memory: Memory, *paths: str | Path, progress: Callable[[int], None] | None = None) -> EdenReport:
    """Read exports of the collections, in any order, and remember what they hold.

    >>> import eunoe, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "memory_user.json"
    >>> _ = file.write_text('[{"_id": "1", "agent_id": "a", "user_id": "u", "content": "Likes tea."}]')
    >>> with eunoe.open(":memory:") as memory:
    ...     migrate(memory, file).summaries.stored, memory.summaries.revisions("agent=a/user=u")[0].text
    (1, 'Likes tea.')
    """
    reader = EdenReader(paths)
    counts: dict[LineKind, ImportCounts] = {}
    done = 0

    def advance(lines: int) -> None:
        if progress:
            progress(done + lines)

    for kind, lines in reader.lines.items():
        report = memory.admin.import_(lines, progress=advance)
        counts[kind] = ImportCounts(report.stored, report.duplicates, report.forgotten, report.conflicts)
        done += report.lines
    return reader.report(counts)


async def amigrate(
    memory: AsyncMemory, *paths: str | Path, progress: Callable[[int], None] | None = None
) -> EdenReport:
    return await asyncio.to_thread(migrate, memory.blocking, *paths, progress=progress)


class EdenDocument(NamedTuple):
    """One document, and where it stands."""

    place: str
    collection: str
    fields: Mapping[str, Any]

    @property
    def id(self) -> str:
        return _read_name(self.fields["_id"], "_id")

    @property
    def memory_type(self) -> str:
        return str(self.fields.get("memory_type", "")).lower()


class EdenReader:
    """Reads documents into lines of an export, by kind in the order in which they are to be imported."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        if not paths:
            raise InputError(f"name the exported files: {', '.join(_COLLECTIONS)}, as JSON or JSON Lines")
        self.lines: dict[LineKind, list[str]] = {"settings": [], "summary": [], "fact": [], "observation": []}
        self._problems = Problems()
        self._missing: list[str] = []
        self._now = utc_now()
        documents: list[EdenDocument] = []
        for path in map(Path, paths):
            for place, value in read_values(path, self._problems):
                with self._problems.catch(place):
                    documents.append(_read_document(place, path, value))
        self._documents = len(documents)
        self._memories: dict[str, EdenDocument] = {}
        self._listed: set[str] = set()
        self._absorbed = 0
        for document in documents:
            if document.collection in ("memory_sessions", "memory2_reflections"):
                self._memories.setdefault(document.id, document)
            if document.collection == "memory_sessions" and document.memory_type not in _MEMORY_TYPES:
                reason = f"memory_type {document.memory_type!r:.40} is none of {', '.join(_MEMORY_TYPES)}"
                self._problems.add(document.place, reason)
        for document in documents:
            with self._problems.catch(document.place):
                if document.collection == "memory2_consolidated":
                    self._read_consolidated(document, _read_scope(document))
                elif document.collection in ("memory_user", "memory_agent"):
                    self._read_stream(document, _read_scope(document))
        for document in documents:  # what a stream lists as waiting is known by now
            with self._problems.catch(document.place):
                if document.collection == "memory2_facts":
                    self._add_atom(document, _read_scope(document), "fact")
                elif document.collection == "memory2_reflections":
                    if document.fields.get("absorbed") and document.id not in self._listed:
                        self._absorbed += 1
                    else:
                        self._add_atom(document, _read_scope(document), "observation")

    def report(self, counts: Mapping[LineKind, ImportCounts]) -> EdenReport:
        left_out = Counter(
            memory.memory_type
            for id, memory in self._memories.items()
            if id not in self._listed or memory.memory_type == "episode"
        )
        return EdenReport(
            documents=self._documents,
            settings=counts["settings"],
            summaries=counts["summary"],
            facts=counts["fact"],
            observations=counts["observation"],
            episodes=left_out["episode"],
            absorbed=left_out["directive"] + left_out["suggestion"] + self._absorbed,
            unlisted=left_out["fact"],
            missing=tuple(self._missing),
            problems=self._problems.lines,
        )

    def _read_stream(self, document: EdenDocument, scope: Scope) -> None:
        if "shard" in scope:
            changes: dict[str, Any] = {}
            for old, new in _SETTINGS.items():
                if document.fields.get(old) not in (None, ""):
                    with self._problems.catch(document.place, f"{old} is left out: "):
                        value = unwrap(document.fields[old])
                        value = int(value) if isinstance(value, float) and value.is_integer() else value
                        Settings(owner=("agent", "shard")).changed(**{new: value})
                        changes[new] = value
            self._add_line("settings", scope, preset="agent", changes=changes)
        with self._problems.catch(document.place):
            self._add_summary(document, scope)
        lists: dict[str, AtomKind] = {"facts": "fact", "unabsorbed_memory_ids": "observation"}
        for name, kind in lists.items():
            for memory in self._listed_in(document, name, scope):
                with self._problems.catch(memory.place):
                    self._add_atom(memory, scope, kind)

    def _listed_in(self, document: EdenDocument, name: str, scope: Scope) -> Iterator[EdenDocument]:
        """The documents that a stream names; those that nobody has are noted."""
        values = document.fields.get(name)
        if values is not None and not isinstance(values, list):
            self._problems.add(document.place, f"{name} is no list")
            return
        ids: dict[str, None] = {}
        for value in values or ():
            with self._problems.catch(document.place):
                ids[_read_name(value, name)] = None
        for id in ids:
            if id in self._memories:
                self._listed.add(id)
                yield self._memories[id]
            else:
                self._missing.append(f"{scope}: {id}")

    def _read_consolidated(self, document: EdenDocument, scope: Scope) -> None:
        words = unwrap(document.fields.get("word_limit"))
        limit = {"consolidated_max_words": words} if isinstance(words, int) and words > 0 else {}
        if "shard" in scope:
            self._add_line("settings", scope, preset="agent", changes=limit)  # what makes it stand in contexts
        self._add_summary(document, scope, "consolidated_content")
        for _ in self._listed_in(document, "unabsorbed_ids", scope):
            pass  # it is read with the others, into the scope that it names itself

    def _add_summary(self, document: EdenDocument, scope: Scope, name: str = "content") -> None:
        text = document.fields.get(name)
        if text is None or (isinstance(text, str) and not text.strip()):
            return
        recorded = (self._find_time(document, _UPDATED) or self._now).isoformat()
        revision = {"number": 1, "parent": 0, "text": check_text(text), "author": AUTHOR, "absorbed": []}
        self._add_line("summary", scope, current=1, last=1, revisions=[revision | {"recorded": recorded}])

    def _add_atom(self, memory: EdenDocument, scope: Scope, kind: AtomKind) -> None:
        if memory.memory_type == "episode":
            return
        fields = memory.fields
        agent = _read_name(fields["agent_id"], "agent_id") if "agent_id" in fields else scope["agent"]
        if agent != scope["agent"]:
            raise InputError(f"{memory.id} belongs to agent {agent}, but {scope} lists it: left out")
        time = self._find_time(memory, _CREATED)
        people = [_read_name(user, "related_users") for user in fields.get("related_users") or ()]
        source = _read_sources(fields, scope)
        atom = parse_atom(fields["content"], kind=kind, id=memory.id, people=people, source=source, time=time)
        values = {"id": atom.id, "text": atom.text, "people": atom.people, "source": atom.source}
        values |= {"time": time.isoformat()} if time else {}
        self._add_line(kind, scope, recorded=self._now.isoformat(), **values)

    def _find_time(self, document: EdenDocument, names: Sequence[str]) -> datetime | None:
        """The first of these times that can be read, else the one that a MongoDB id carries."""
        for name in names:
            value = document.fields.get(name)
            if value in (None, ""):
                continue
            if (time := read_time(value)) is not None:
                return time
            self._problems.add(document.place, f"{name} is left out: {unwrap(value)!r:.40} is no time")
        return object_id_time(document.id)

    def _add_line(self, kind: LineKind, scope: Scope, **values: Any) -> None:
        self.lines[kind].append(json.dumps({"scope": scope.text, "kind": kind, **values}))


def _read_document(place: str, path: Path, value: Any) -> EdenDocument:
    """A document, and its collection: by its fields, else by the name of its file."""
    if not isinstance(value, dict):
        raise InputError(f"a document is a JSON object, not {type(value).__name__}")
    named = next((name for name in _COLLECTIONS if name in path.name), "")
    told = {
        "memory2_consolidated": "consolidated_content" in value,
        "memory2_reflections": "absorbed" in value,
        named if named in _MEMORY2 else "memory2_facts": "scope" in value,
        "memory_sessions": "memory_type" in value,
        "memory_agent": "shard_name" in value,
        "memory_user": "user_id" in value and "agent_id" in value,
    }
    collection = next((name for name, is_so in told.items() if is_so), named)
    if not collection:
        raise InputError(f"this is no document of {', '.join(_COLLECTIONS)}")
    document = EdenDocument(place, collection, value)
    _ = document.id  # raises if there is none
    return document


def _read_scope(document: EdenDocument) -> Scope:
    """Whose a document is. A session of one user is that user's."""
    fields = document.fields
    if document.collection in _MEMORY2:
        scope = unwrap(fields["scope"])
        if not isinstance(scope, str) or scope not in _OWNERS:
            raise InputError(f"scope is {scope!r:.40}: Eden has {', '.join(_OWNERS)}")
        names = ["agent_id", *_OWNERS[scope]]
        if scope == "session" and fields.get("user_id"):
            names.append("user_id")
        shard = {"shard": AGENT_SHARD} if scope == "agent" else {}
        return Scope(**{name: _read_name(fields.get(name), name) for name in names}, **shard)
    key, name = ("user", "user_id") if document.collection == "memory_user" else ("shard", "shard_name")
    return Scope(agent=_read_name(fields["agent_id"], "agent_id"), **{key: _read_name(fields[name], name)})


def _read_sources(fields: Mapping[str, Any], owner: Scope) -> list[str]:
    """The messages it came from, by the scope of their session. They need not be here."""
    name = "session_id" if "scope" in fields else "source_session_id"
    if not fields.get("source_message_ids") or fields.get(name) is None:
        return []
    conversation = Scope(agent=owner["agent"], session=_read_name(fields[name], name))
    if name == "session_id" and fields.get("user_id"):
        conversation = conversation.extended({"user": _read_name(fields["user_id"], "user_id")})
    ids = [_read_name(id, "source_message_ids") for id in fields["source_message_ids"]]
    return [source_name(conversation, id, owner) for id in ids]


def _read_name(value: Any, name: str) -> str:
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"{name} is {value!r:.40}, which names nothing")
    return str(value).strip()
