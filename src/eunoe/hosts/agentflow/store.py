"""EunoeStore: this memory as Agentflow's long-term store."""

import asyncio
import functools
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import uuid4

from eunoe.errors import ConflictError, NotFoundError
from eunoe.hosts.agentflow.framework import (
    BaseStore,
    DistanceMetric,
    MemorySearchResult,
    MemoryType,
    Message,
    RetrievalStrategy,
)
from eunoe.hosts.agentflow.memories import (
    DEFAULT_CATEGORY,
    Fields,
    MemoryTypes,
    fields_of,
    is_same,
    key_id,
    key_where,
    merge_metadata,
    repeat_updates,
    result_of,
    text_of,
    users_of,
    where_of,
)
from eunoe.hosts.agentflow.scopes import check_config, scope_of, scopes_of_all_users, scopes_of_user
from eunoe.hosts.agentflow.search import KINDS, Search, check_metric, parse_strategy
from eunoe.hosts.default_store import default_memory
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import check_count, check_text
from eunoe.model.atom import Atom
from eunoe.model.result import Receipt
from eunoe.model.scope import Scope

R = TypeVar("R")
Config = dict[str, Any]

_PAGE: Final = 1000
_KEPT_FIELDS: Final = ("kind", "label", "files", "pages", "people", "source", "valid_from", "valid_to", "pinned")
"""What an update leaves as it is."""
_PROMPT_BUILDER: Final = "_build_memory_prompts"


class UnknownMemoryError(NotFoundError, ValueError):
    """There is no such memory. A ValueError too, which is what Agentflow's own stores raise."""

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"Memory {memory_id} not found")


def _async_twin(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """The async twin of a method. It runs in a thread, so that it never blocks the event loop."""

    @functools.wraps(method)
    async def call(self: BaseStore, /, *args: Any, **kwargs: Any) -> R:
        return await asyncio.to_thread(getattr(self, method.__name__), *args, **kwargs)

    call.__name__ = f"a{method.__name__}"
    return call


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
        self._memory = memory.blocking if isinstance(memory, AsyncMemory) else memory
        self._update_lock = threading.Lock()

    @property
    def memory(self) -> Memory:
        """Where everything is kept."""
        return default_memory() if self._memory is None else self._memory

    def setup(self) -> bool:
        """Open the default store, if no memory was given."""
        return bool(self.memory)

    def store(
        self,
        config: Config,
        content: str | Message,
        memory_type: MemoryType = MemoryType.EPISODIC,
        category: str = DEFAULT_CATEGORY,
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
        fields = fields_of(content, memory_type, category, metadata, config.get("thread_id"))
        return self._remember(scope, self._key_id(scope, fields) or str(memory_id or uuid4()), fields)

    def batch_store(
        self,
        config: Config,
        contents: Iterable[str | Message],
        memory_type: MemoryType = MemoryType.EPISODIC,
        category: str = DEFAULT_CATEGORY,
        metadata: dict[str, Any] | None = None,
    ) -> list[str]:
        """Keep several memories, all of them or none, and return their ids."""
        scope = scope_of(config, writing=True)
        fields = [fields_of(each, memory_type, category, metadata, config.get("thread_id")) for each in contents]
        items = [{**each, "id": self._key_id(scope, each) or str(uuid4())} for each in fields]
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
        check_metric(distance_metric)
        options = {"memory_type": memory_type, "category": category, "filters": filters}
        scopes, where = _select(self._scopes(config), options)
        if filters and "memory_key" in filters:  # it names the memory, whatever its words are
            query = ""
        strategy = parse_strategy(retrieval_strategy)
        most = check_count(limit, "limit", least=0)
        search = Search(check_text(query, "query"), where, most, score_threshold, strategy, max_tokens)
        return search.run(self.memory, scopes) if scopes else []

    def get(self, config: Config, memory_id: str, **kwargs: Any) -> MemorySearchResult | None:
        """Return one memory; None if it is not there."""
        atom = self._find(self._scopes(config), memory_id)
        return None if atom is None else result_of(atom)

    def get_all(self, config: Config, limit: int = 100, **kwargs: Any) -> list[MemorySearchResult]:
        """Return all memories, oldest first. `memory_type`, `category` and `filters` narrow them as in `search`."""
        scopes, where = _select(self._scopes(config), kwargs)
        atoms = (atom for scope in scopes for atom in self._list(scope, where, limit))
        return [result_of(atom) for atom in islice(atoms, check_count(limit, "limit", least=0))]

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
            changed = merge_metadata(old.metadata, metadata or {}, replace_metadata)
            if not self._replace(old, {"text": text_of(content), "metadata": changed}):
                self._join_updates(_owner(old), old.id)
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
        return self._forget_all(scopes) if where is None else self._forget_some(scopes[0], where)

    def forget_user(self, config: Config) -> int:
        """Remove all memories and messages of the config's user for good, and return how many memories they were.

        That is every scope that names the user, with sessions and agents, whichever program wrote it. An `app_id` and
        a `collection` are parts of their own: only those that the config names.
        """
        return self._forget_all(scopes_of_user(self.memory, config))

    def release(self) -> None:
        """Nothing: the memory belongs to who has opened it, and other graphs may use it."""

    asetup = _async_twin(setup)
    astore = _async_twin(store)
    abatch_store = _async_twin(batch_store)
    aget = _async_twin(get)
    aget_all = _async_twin(get_all)
    aupdate = _async_twin(update)
    adelete = _async_twin(delete)
    aforget_memory = _async_twin(forget_memory)
    aforget_user = _async_twin(forget_user)
    arelease = _async_twin(release)

    async def asearch(self, *args: Any, **kwargs: Any) -> list[MemorySearchResult]:
        """`search`, awaited."""
        # What an agent puts into its system prompt goes through `str.format` there, which would expand
        # `{context_summary}`, and fail with `{context.x}`. Nothing but its name tells that this is who asks.
        is_template = sys._getframe(1).f_code.co_name == _PROMPT_BUILDER
        results = await asyncio.to_thread(self.search, *args, **kwargs)
        return [_with_inert_braces(result) for result in results] if is_template else results

    def _remember(self, scope: Scope, id: str, fields: Fields) -> str:
        return _stored_id(self.memory.remember(scope, id=id, replace=True, again=True, **fields))

    def _key_id(self, scope: Scope, fields: Fields) -> str | None:
        """The id of the memory with this memory key, there or not; None if there is no key."""
        where = key_where(fields)
        if where is None:
            return None
        atoms = self._list(scope, where, 1)
        return atoms[0].id if atoms else key_id(where)

    def _replace(self, old: Atom, fields: Fields) -> bool:
        """Write the next version of a memory. False if somebody else has written one since the old was read."""
        kept = {name: getattr(old, name) for name in _KEPT_FIELDS}
        receipt = self.memory.remember(_owner(old), id=old.id, replace=True, again=True, **kept, **fields)
        closed = [receipt.closed] if _stored_id(receipt) and receipt.closed else []
        past = self.memory.get_many(_owner(old), closed, exact=True)
        return all(isinstance(item, Atom) and is_same(item, old.text, old.metadata) for item in past)

    def _join_updates(self, scope: Scope, id: str) -> None:
        """Bring together what was written at the same time. Who writes last sees all, so that nothing is lost."""
        while True:
            versions = self.memory.history(scope, id, exact=True)
            fields = repeat_updates(versions)
            if is_same(versions[-1], **fields) or self._replace(versions[-1], fields):
                return

    def _forget_all(self, scopes: list[Scope]) -> int:
        count = sum(len(self._list(scope, None)) for scope in scopes)
        self.memory.forget(tuple(scopes), everything=True, may_return=True, exact=True)
        return count

    def _forget_some(self, scope: Scope, where: Fields) -> int:
        ids = [atom.id for atom in self._list(scope, where)]
        if ids:
            self.memory.forget(scope, ids, may_return=True, exact=True)
        return len(ids)

    def _scopes(self, config: Config, *, writing: bool = False) -> list[Scope]:
        """What a config gives access to: one scope, or those of all users if its policy keeps nobody apart."""
        if self._scope_user_id(dict(check_config(config)), "user") is None:
            return scopes_of_all_users(self.memory, config, writing=writing)
        return [scope_of(config, writing=writing)]

    def _find(self, scopes: Iterable[Scope], memory_id: str) -> Atom | None:
        for scope in scopes:
            for item in self.memory.get_many(scope, [str(memory_id)], exact=True):
                if isinstance(item, Atom) and item.retired is None:
                    return item
        return None

    def _find_own(self, config: Config, memory_id: str) -> Atom:
        """The memory that is to be changed."""
        atom = self._find(self._scopes(config, writing=True), memory_id)
        if atom is None:
            raise UnknownMemoryError(memory_id)
        return atom

    def _list(self, scope: Scope, where: Fields | None, limit: int | None = None) -> list[Atom]:
        atoms: list[Atom] = []
        after = ""
        while limit is None or len(atoms) < limit:
            size = _PAGE if limit is None else min(limit - len(atoms), _PAGE)
            page = self.memory.list(scope, kinds=KINDS, where=where, limit=size, after=after, exact=True)
            atoms += [item for item in page.items if isinstance(item, Atom)]
            after = page.next
            if not after:
                break
        return atoms


def _stored_id(receipt: Receipt) -> str:
    if not receipt:
        raise ConflictError(f"the memory was not stored: {receipt.outcome}")
    return receipt.id


def _select(scopes: list[Scope], options: Mapping[str, Any]) -> tuple[list[Scope], Fields | None]:
    """Those scopes and conditions that the options of a call name."""
    users = users_of(options.get("filters"))
    where = where_of(*(options.get(name) for name in ("memory_type", "category", "filters")))
    return [scope for scope in scopes if users is None or scope.get("user") in users], where


def _owner(atom: Atom) -> Scope:
    assert atom.scope is not None  # every atom that comes from a memory has one
    return atom.scope


def _with_inert_braces(result: MemorySearchResult) -> MemorySearchResult:
    return result.model_copy(update={"content": result.content.replace("{", "{{").replace("}", "}}")})
