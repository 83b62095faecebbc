"""EunoeStore: this memory as Agentflow's long-term store. The config of a call names whose memory is meant:

| config | scope |
|---|---|
| `user_id` | the user's own memory; an `agent_id` beside it changes nothing |
| `agent_id` and no `user_id` | the agent's memory, which its users share |
| `app_id` | its own part of what the others name; alone, the memory of the app |
| `collection` | its own part of what the others name |

An agent's tools name its memory beside a user, by an `agent_id` and the same `thread_id`. That is for reading only:
who chooses the name of a thread must not write into a memory that all share.
"""

import asyncio
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID, uuid4, uuid5

from tenxgraph.core.authz import SCOPE_NONE, get_authz
from tenxgraph.core.state import Message
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import (
    DistanceMetric,
    MemoryRecord,
    MemorySearchResult,
    MemoryType,
    RetrievalStrategy,
)
from tenxgraph.utils.constants import DEFAULT_ANONYMOUS_USER_ID

from eunoe.errors import AccessError, ConflictError, InputError, NotFoundError, ScopeError
from eunoe.form.statements import is_question
from eunoe.hosts.agentflow.manager import inert_braces
from eunoe.hosts.common import awaited, blocking
from eunoe.memory import AsyncMemory, Memory, iterate_atoms
from eunoe.model.arguments import AtomKind, check_count, check_text, show
from eunoe.model.atom import Atom, Item
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope
from eunoe.text.sentences import token_count

Config = dict[str, Any]
Fields = dict[str, Any]
MemoryTypes = MemoryType | str | Iterable[MemoryType | str] | None

_KINDS: Final[tuple[AtomKind, ...]] = ("fact", "observation")
_PARTS: Final = {"app_id": "app", "collection": "collection"}
_CATEGORY: Final = "general"
_KEY: Final = "memory_key"
_STORED_KEY: Final = "agentflow_key"
"""Where a memory key is kept. The engine has memory keys of its own, which do not look at the memory type."""
_KEYED_IDS: Final = UUID("0b0f3a52-3c52-5b57-9d0a-6f0a5c1d7e11")
_CHANGES: Final = "agentflow_changes"
"""Which fields of the metadata an update has changed; None for a version that brings the changes of others together.
What has no such field was written anew, as a whole."""
_OWN_FIELDS: Final = frozenset({"content", "user_id", "thread_id", "memory_type", "category", "timestamp"})
"""What is no caller's metadata, as in Agentflow's own stores."""
_KEPT_FIELDS: Final = ("kind", "label", "files", "pages", "people", "source", "valid_from", "valid_to", "pinned")
"""What an update leaves as it is."""
_NEWEST_OF: Final = 100
"""Newest first is among so many that fit the query."""
_POOL: Final = 10
"""At least so many are looked at, so that the one with the same words is among them."""
_MOST_UNLESS_SAME: Final = 0.94
"""Agentflow takes a memory with a score of 0.95 for the same one, and does not store the new one. Only what has the
same words may get there: a memory that fits a question well can say something else."""
_METRICS: Final = (DistanceMetric.COSINE, DistanceMetric.DOT_PRODUCT, DistanceMetric.EUCLIDEAN)
"""Vectors have length one, so that these rank alike. The fourth would not."""
_PAGE: Final = 1000
_PROMPT_BUILDER: Final = "_build_memory_prompts"


class UnknownMemoryError(NotFoundError, ValueError):
    """There is no such memory. A ValueError too, which is what Agentflow's own stores raise."""

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"Memory {memory_id} not found")


class EunoeStore(BaseStore):
    """Keeps what Agentflow's agents remember in a Eunoe memory.

    The config of each call says whose memory is meant. One that names nobody raises ScopeError.

    >>> with eunoe.open(":memory:") as memory:
    ...     store = EunoeStore(memory)
    ...     id = store.store({"user_id": "anna"}, "Anna is allergic to peanuts.")
    ...     [result.content for result in store.search({"user_id": "anna"}, "What must Anna not eat?")]
    ['Anna is allergic to peanuts.']
    """

    def __init__(self, memory: Memory | AsyncMemory | None = None) -> None:
        """Take the memory to keep everything in; without one, the command line's default store is used."""
        self._memory = memory
        self._update_lock = threading.Lock()

    @property
    def memory(self) -> Memory:
        return blocking(self._memory)

    def setup(self) -> bool:
        """Open the default store, if no memory was given."""
        return bool(self.memory)

    def store(
        self,
        config: Config,
        content: str | Message,
        memory_type: MemoryType = MemoryType.EPISODIC,
        category: str = _CATEGORY,
        metadata: dict[str, Any] | None = None,
        *,
        memory_id: str | None = None,
        **kwargs: Any,
    ) -> str:
        """Keep a memory and return its id.

        A `memory_id` that is there already gets the new content. With a `memory_key` in its metadata, the memory of
        this key and type gets it, whatever `memory_id` says: one key means one memory, also for two that store it at
        the same time.
        """
        scope = scope_of(config, writing=True)
        fields = self._fields(scope, config, content, memory_type, category, metadata, memory_id)
        return _stored_id(self.memory.remember(scope, replace=True, again=True, **fields))

    def batch_store(
        self,
        config: Config,
        contents: Iterable[str | Message],
        memory_type: MemoryType = MemoryType.EPISODIC,
        category: str = _CATEGORY,
        metadata: dict[str, Any] | None = None,
    ) -> list[str]:
        """Keep several memories, all of them or none, and return their ids."""
        scope = scope_of(config, writing=True)
        items = [self._fields(scope, config, each, memory_type, category, metadata) for each in contents]
        return [_stored_id(receipt) for receipt in self.memory.remember_many(scope, items, replace=True, again=True)]

    def search(
        self,
        config: Config,
        query: str,
        memory_type: MemoryTypes = None,
        category: str | None = None,
        limit: int = 10,
        score_threshold: float | None = None,
        filters: dict[str, Any] | None = None,
        retrieval_strategy: RetrievalStrategy = RetrievalStrategy.SIMILARITY,
        distance_metric: DistanceMetric = DistanceMetric.COSINE,
        max_tokens: int | None = 4000,
        **kwargs: Any,
    ) -> list[MemorySearchResult]:
        """Return the memories that fit a query, best first; with `temporal`, newest first.

        Args:
            memory_type: one type or several.
            score_threshold: on the engine's scale, see docs/recall.md.
            filters: values that metadata must have, one of a list of values, or conditions as `recall` takes them.
            max_tokens: the most that all results together may have. None is cut: one that is too long is left out.
        """
        if distance_metric not in _METRICS:
            raise InputError(f"distance_metric {distance_metric!r:.40} is not supported: use cosine")
        if retrieval_strategy not in RetrievalStrategy:
            names = ", ".join(RetrievalStrategy)
            raise InputError(f"retrieval_strategy {retrieval_strategy!r:.40} is not one of {names}")
        options = {"memory_type": memory_type, "category": category, "filters": filters}
        scopes, where = _select(self._scopes(config), options)
        is_key = bool(filters and _KEY in filters)  # it names the memory, whatever its words are
        asked = "" if is_key else check_text(query, "query").strip()
        if not check_count(limit, "limit", least=0) or not scopes:
            return []
        is_temporal = retrieval_strategy == RetrievalStrategy.TEMPORAL or not asked
        if asked:
            hits = self.memory.recall(
                list(scopes),
                query,
                limit=max(limit, _NEWEST_OF if is_temporal else _POOL),
                kinds=_KINDS,
                where=where,
                recipe="associative" if retrieval_strategy == RetrievalStrategy.GRAPH_TRAVERSAL else "default",
                exact=True,
            )
            words, is_asked = _words(query), is_question(query)
            results = []
            for hit in hits:
                is_same = not is_asked and _words(hit.text) == words
                score = 1.0 if is_same else hit.score - max(hit.score - _MOST_UNLESS_SAME, 0.0) * 0.9
                results.append(_result(hit.item, score))
        else:  # a blank query asks for the newest
            how: Any = {"kinds": _KINDS, "where": where, "limit": limit, "newest": True, "exact": True}
            results = [_result(item) for scope in scopes for item in self.memory.list(scope, **how).items]
        if is_temporal:
            results.sort(key=lambda each: each.timestamp.timestamp() if each.timestamp else 0.0, reverse=True)
        else:
            results.sort(key=lambda each: each.score, reverse=True)
        best = [result for result in results if result.score >= (score_threshold or 0.0)][:limit]
        if max_tokens is None:
            return best
        kept, room = [], max_tokens
        for result in best:  # one that is too long makes room for the next
            if (cost := token_count(result.content)) <= room:
                kept.append(result)
                room -= cost
        return kept

    def get(self, config: Config, memory_id: str, **kwargs: Any) -> MemorySearchResult | None:
        atom = self._find(self._scopes(config), memory_id)
        return None if atom is None else _result(atom)

    def get_all(self, config: Config, limit: int = 100, **kwargs: Any) -> list[MemorySearchResult]:
        """Return all memories, oldest first. `memory_type`, `category` and `filters` narrow them as in `search`."""
        scopes, where = _select(self._scopes(config), kwargs)
        page = min(max(check_count(limit, "limit", least=0), 1), _PAGE)
        atoms = (atom for scope in scopes for atom in self._list(scope, where, page))
        return [_result(atom) for atom in islice(atoms, limit)]

    def update(
        self,
        config: Config,
        memory_id: str,
        content: str | Message,
        metadata: dict[str, Any] | None = None,
        *,
        replace_metadata: bool = False,
        **kwargs: Any,
    ) -> bool:
        """Give a memory new content; its id stays. Raise UnknownMemoryError if it is not there.

        The metadata is added to what is there, or takes its place with `replace_metadata`.
        """
        with self._update_lock:
            old = self._find_own(config, memory_id)
            text = content.text() if isinstance(content, Message) else content
            own = {
                name: old.metadata[name] for name in ("memory_type", "category", "thread_id") if name in old.metadata
            }
            new = _stored_metadata(metadata or {})
            changed = list(new)
            if metadata and "category" in metadata:
                own["category"] = metadata["category"]
                changed.append("category")
            merged = {**new, **own} if replace_metadata else {**old.metadata, **new, **own, _CHANGES: changed}
            is_alone = self._replace(old, text, merged)
            while not is_alone:  # bring together what was written at the same time; who writes last sees all
                versions = self.memory.history(_owner(old), old.id, exact=True)
                said = _repeated(versions)
                is_alone = _says(versions[-1], *said) or self._replace(versions[-1], *said)
        return True

    def delete(self, config: Config, memory_id: str, **kwargs: Any) -> bool:  # type: ignore[override]
        """Remove a memory for good. Raise UnknownMemoryError if it is not there."""
        atom = self._find_own(config, memory_id)
        self.memory.forget(_owner(atom), atom.id, may_return=True, exact=True)
        return True

    def forget_memory(self, config: Config, **kwargs: Any) -> int:
        """Remove all that the config names for good, and return how many memories they were.

        With a `thread_id` only what was stored in that thread. `memory_type`, `category` and `filters` narrow it as in
        `search`. Without any of these, messages that other programs have kept in this scope go too.
        """
        scopes, where = _select([scope_of(config, writing=True)], kwargs)
        thread = config.get("thread_id")
        if not scopes:
            return 0
        if thread is not None and "agent" not in scopes[0]:
            where = {"AND": [{"thread_id": str(thread)}, *([where] if where else [])]}
        if where is None:
            return self._forget_all(scopes)
        ids = [atom.id for atom in self._list(scopes[0], where)]
        if ids:
            self.memory.forget(scopes[0], ids, may_return=True, exact=True)
        return len(ids)

    def forget_user(self, config: Config) -> int:
        """Remove all memories and messages of the config's user for good, and return how many memories they were.

        That is every scope that names the user, with sessions and agents, whichever program wrote it. An `app_id` and
        a `collection` are parts of their own: only those that the config names.
        """
        own = scope_of(config, writing=True)
        if "user" not in own:
            raise ScopeError("the config names no user: pass config={'user_id': ...}")
        others = [
            # The memory adds its own tenant, if it has one. Another tenant's user of this name is somebody else.
            Scope(**{key: value for key, value in scope.items() if key != "tenant"})
            for scope in self.memory.scopes(**own)
            if not (set(_PARTS.values()) - own.keys()) & scope.keys()
        ]
        return self._forget_all(list(dict.fromkeys([own, *others])))

    def release(self) -> None:
        """Nothing: the memory belongs to who has opened it, and other graphs may use it."""

    asetup = awaited(setup)
    astore = awaited(store)
    abatch_store = awaited(batch_store)
    aget = awaited(get)
    aget_all = awaited(get_all)
    aupdate = awaited(update)
    adelete = awaited(delete)
    aforget_memory = awaited(forget_memory)
    aforget_user = awaited(forget_user)
    arelease = awaited(release)

    async def asearch(self, *args: Any, **kwargs: Any) -> list[MemorySearchResult]:
        # What an agent puts into its system prompt goes through `str.format` there, which would expand
        # `{context_summary}`, and fail with `{context.x}`. Nothing but its name tells that this is who asks.
        is_template = sys._getframe(1).f_code.co_name == _PROMPT_BUILDER
        results = await asyncio.to_thread(self.search, *args, **kwargs)
        if not is_template:
            return results
        return [result.model_copy(update={"content": inert_braces(result.content)}) for result in results]

    def _fields(
        self,
        scope: Scope,
        config: Config,
        content: str | Message,
        memory_type: MemoryType | str,
        category: str,
        metadata: Mapping[str, Any] | None,
        memory_id: object = None,
    ) -> Fields:
        """What `remember` takes for a memory. With a memory key, its id is that of the memory with this key and type,
        or always the same, so that all who store it at once write to one memory."""
        given, text, time = dict(metadata or {}), content, None
        if isinstance(content, Message):
            given = MemoryRecord.from_message(content, additional_metadata=given).metadata
            text = content.text()
            time = None if content.timestamp is None else datetime.fromtimestamp(content.timestamp, UTC)
        own = {"memory_type": _parse_type(memory_type), "category": category or _CATEGORY}
        if (thread := config.get("thread_id")) is not None:
            own["thread_id"] = str(thread)
        kept = own | _stored_metadata(given)
        if kept.get(_STORED_KEY):
            where = {name: kept[name] for name in ("memory_type", _STORED_KEY)}
            known = next(iter(self._list(scope, where, page=1)), None)
            memory_id = known.id if known else uuid5(_KEYED_IDS, f"{kept['memory_type']}:{kept[_STORED_KEY]}")
        return {"id": str(memory_id or uuid4()), "text": text, "metadata": kept, "time": time}

    def _replace(self, old: Atom, text: str, metadata: Fields) -> bool:
        """Write the next version of a memory. False if somebody else has written one since the old was read."""
        kept = {name: getattr(old, name) for name in _KEPT_FIELDS}
        receipt = self.memory.remember(
            _owner(old), text, id=old.id, replace=True, again=True, metadata=metadata, **kept
        )
        closed = [receipt.closed] if _stored_id(receipt) and receipt.closed else []
        past = self.memory.get_many(_owner(old), closed, exact=True)
        return all(isinstance(item, Atom) and _says(item, old.text, old.metadata) for item in past)

    def _forget_all(self, scopes: list[Scope]) -> int:
        count = sum(1 for scope in scopes for _ in self._list(scope))
        self.memory.forget(tuple(scopes), everything=True, may_return=True, exact=True)
        return count

    def _scopes(self, config: Config, *, writing: bool = False) -> list[Scope]:
        """What a config gives access to: one scope, or those of all users, the config's own first, if its policy keeps
        nobody apart."""
        is_bound = self._scope_user_id(dict(_check_config(config)), "user") is not None
        if is_bound or _names_agent(config, writing):
            return [scope_of(config, writing=writing)]
        parts = _parts(config)
        own = [] if _user_of(config) is None else [scope_of(config, writing=writing)]
        others = [scope for scope in self.memory.scopes(**parts) if scope.keys() == {*parts, "user"}]
        return list(dict.fromkeys([*own, *others]))

    def _find(self, scopes: Iterable[Scope], memory_id: str) -> Atom | None:
        for scope in scopes:
            for item in self.memory.get_many(scope, [str(memory_id)], exact=True):
                if isinstance(item, Atom) and item.retired is None:
                    return item
        return None

    def _find_own(self, config: Config, memory_id: str) -> Atom:
        atom = self._find(self._scopes(config, writing=True), memory_id)
        if atom is None:
            raise UnknownMemoryError(memory_id)
        return atom

    def _list(self, scope: Scope, where: Fields | None = None, page: int = _PAGE) -> Iterable[Atom]:
        return iterate_atoms(self.memory, scope, kinds=_KINDS, where=where, limit=page, exact=True)


def scope_of(config: Mapping[str, Any], *, writing: bool = False) -> Scope:
    """Return the one scope that a config names. Raise ScopeError if it names nobody.

    >>> scope_of({"user_id": "anna", "thread_id": "7"})
    Scope(user='anna')
    >>> scope_of({"user_id": "anna", "agent_id": "cook", "thread_id": "cook"})
    Scope(agent='cook')
    >>> scope_of({"user_id": "anna", "agent_id": "cook", "thread_id": "cook"}, writing=True)
    Scope(user='anna')
    """
    parts = _parts(_check_config(config))
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


def _check_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
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


def _select(scopes: Sequence[Scope], options: Mapping[str, Any]) -> tuple[list[Scope], Fields | None]:
    """Those scopes, and conditions on metadata, that the options of a call name."""
    where: Fields = {}
    if (types := options.get("memory_type")) is not None:
        names = [_parse_type(each) for each in ([types] if isinstance(types, str) else types)]
        where["memory_type"] = names[0] if len(names) == 1 else {"in": names}
    if (category := options.get("category")) is not None:
        where["category"] = category
    filters = dict(_check_filters(options.get("filters") or {}))
    if "user_id" in filters:  # the owner, who is not part of the metadata
        value = filters.pop("user_id")
        users = list(value) if isinstance(value, list | tuple | set) else [value]
        if any(not isinstance(user, str | int) for user in users):
            raise InputError("filters: user_id must be a user's id, or a list of ids")
        scopes = [scope for scope in scopes if scope.get("user") in set(map(str, users))]
    if filters:
        where["AND"] = [_parse_filters(filters)]
    return list(scopes), where or None


def _parse_filters(filters: Any) -> Fields:
    where: Fields = {}
    for name, value in _check_filters(filters).items():
        if name == "user_id":
            raise InputError("filters: user_id must stand beside other conditions, not inside of AND, OR or NOT")
        if name in ("AND", "OR"):
            if not isinstance(value, list | tuple):
                raise InputError(f"filters: {name} must be a list of conditions, not {show(value)}")
            where[name] = [_parse_filters(each) for each in value]
        elif name == "NOT":
            where[name] = _parse_filters(value)
        else:
            where[_stored_name(name)] = {"in": list(value)} if isinstance(value, list | tuple | set) else value
    return where


def _check_filters(filters: Any) -> Mapping[str, Any]:
    if not isinstance(filters, Mapping):
        raise InputError(f"filters must be conditions such as {{'size': 3}}, not {show(filters)}")
    return filters


def _parse_type(value: MemoryType | str) -> str:
    try:
        return MemoryType(value).value
    except ValueError:
        raise InputError(f"memory_type {value!r:.40} is not one of {', '.join(MemoryType)}") from None


def _stored_name(name: str) -> str:
    return _STORED_KEY if name == _KEY else name


def _stored_metadata(metadata: Mapping[str, Any]) -> Fields:
    """The caller's part of the metadata as it is kept."""
    return {_stored_name(name): value for name, value in metadata.items() if name not in _OWN_FIELDS}


def _repeated(versions: Sequence[Atom]) -> tuple[str, Fields]:
    """Text and metadata as they are if every version changes no more than it was meant to change.

    Who writes at the same time as somebody else puts an older value back, without knowing.
    """
    text, metadata = versions[0].text, dict(versions[0].metadata)
    for version in versions:
        names = version.metadata.get(_CHANGES, version.metadata)
        if names is None:
            continue
        before = metadata if _CHANGES in version.metadata else {}
        text, metadata = version.text, {**before, **{name: version.metadata[name] for name in names}}
    return text, {**metadata, _CHANGES: None}


def _says(one: Atom, text: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a version says this, whoever wrote it."""
    return one.text == text and {**one.metadata, _CHANGES: None} == {**metadata, _CHANGES: None}


def _result(item: Item, score: float = 1.0) -> MemorySearchResult:
    """A memory as Agentflow has it. One that Agentflow did not write counts as a fact."""
    stored = {name: value for name, value in item.metadata.items() if name != _CHANGES}
    memory_type = stored.pop("memory_type", MemoryType.SEMANTIC)
    thread_id = stored.pop("thread_id", None)
    category = stored.pop("category", _CATEGORY)
    given = {_KEY if name == _STORED_KEY else name: value for name, value in stored.items()}
    return MemorySearchResult(
        id=item.id,
        content=item.text,
        score=max(score, 0.0),
        memory_type=memory_type if memory_type in MemoryType else MemoryType.CUSTOM,
        metadata={**given, "category": category},
        user_id=item.scope.get("user") if item.scope else None,
        thread_id=thread_id if isinstance(thread_id, str) else None,
        timestamp=item.time or item.recorded,
    )


def _words(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _stored_id(receipt: Receipt) -> str:
    if not receipt:
        raise ConflictError(f"the memory was not stored: {receipt.outcome}")
    return receipt.id


def _owner(atom: Atom) -> Scope:
    assert atom.scope is not None  # every atom that comes from a memory has one
    return atom.scope
