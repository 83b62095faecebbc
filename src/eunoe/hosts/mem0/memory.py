"""`Memory` and `AsyncMemory` with mem0's verbs, over the verbs of an Eunoe memory."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import merge
from itertools import islice
from threading import Lock
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Self, TypeVar
from uuid import uuid4

import eunoe.memory
from eunoe.errors import AccessError, ClosedError, InputError, NotFoundError
from eunoe.hosts.mem0.arguments import (
    DEFAULT_THRESHOLD,
    DEFAULT_TOP_K,
    OWNERS,
    PROCEDURAL,
    UNSET,
    MemoryNotFoundError,
    check_older_names,
    check_threshold,
    check_top_k,
    end_of_day,
    parse_expiration,
    parse_messages,
    parse_owner,
    require_owner,
)
from eunoe.hosts.mem0.configuration import Configuration
from eunoe.hosts.mem0.extraction import UNFORMED, Draft, keep_messages, learn, write_procedure
from eunoe.hosts.mem0.filters import own_keys, parse_filters, rest_of
from eunoe.hosts.mem0.results import (
    created_at,
    deletion_rows,
    from_id,
    has_owner,
    history_rows,
    holds_memories,
    mark_deleted,
    parse_metadata,
    scope_of,
    score_details,
    to_id,
    to_result,
)
from eunoe.memory import iterate
from eunoe.memory.twins import Threads
from eunoe.model.arguments import ATOM_KINDS, Kind, TimeLike, parse_optional_time, utc_now
from eunoe.model.atom import Atom, Item, source_place
from eunoe.model.result import Hit
from eunoe.model.scope import Scope, ScopeLike

_KEPT: Final = ("id", "kind", "label", "files", "pages", "people", "source", "time", "pinned")
"""What an update leaves as it is."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOG: Final[tuple[Kind, ...]] = ("message",)
_SAME: Final = 5
"""Memories nearest to a new one, among which the same words would stand."""
_MAX_PAGE: Final = 1000
P = ParamSpec("P")
R = TypeVar("R")


class ScopeGroup(NamedTuple):
    """Scopes for which the same conditions on metadata are left of filters."""

    scopes: list[ScopeLike]
    where: dict[str, Any] | None


class Memory:
    """mem0's `Memory`. Without a configuration it keeps everything in the store that the command line uses.

    >>> with eunoe.open(":memory:", llm="none") as store:
    ...     memory = Memory(memory=store)
    ...     added = memory.add("I am allergic to peanuts.", user_id="anna")
    ...     results = memory.search("What must she not eat?", filters={"user_id": "anna"})["results"]
    >>> added["results"][0]["event"], results[0]["memory"]
    ('ADD', 'I am allergic to peanuts.')
    """

    def __init__(self, config: Any = None, *, memory: eunoe.memory.Memory | None = None) -> None:
        self.config = Configuration.parse(config)
        self._owns_memory = memory is None and self.config.names_store
        self._memory = memory or self.config.open()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        return cls(config_dict)

    def add(
        self,
        /,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        timestamp: TimeLike | None = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        llm: Any = None,
        **older: Any,
    ) -> dict[str, Any]:
        """Remember what messages say: what is worth it, in one sentence each, or with `infer=False` word for word.

        What is learned rests on the messages, which are kept too, also where the language model fails.

        Args:
            timestamp: when it was said; now, if it is not given.
            expiration_date: the last day on which it holds, as YYYY-MM-DD. Afterwards it is not found.
            prompt: what the language model is to look for; without a language model the rules decide.
            llm: writes the procedural memory in place of the memory's own.
        """
        check_older_names(older, "add", "filters")
        owner = require_owner({"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, memory_type)
        fields, time = parse_metadata(metadata, "add()"), parse_optional_time(timestamp, "timestamp")
        expiration = parse_expiration(fields.get("expiration_date") if expiration_date is None else expiration_date)
        fields |= {"expiration_date": expiration} if expiration else {}
        said = parse_messages(messages)
        if agent_id is not None and memory_type == PROCEDURAL:
            sources = keep_messages(self._memory, owner, said, time)
            drafts = write_procedure(self._memory.llm if llm is None else llm, sources, prompt or "")
        elif infer:
            drafts = learn(self._memory, owner, said, prompt or self.config.instructions, time)
            near: dict[str, Any] = {"limit": _SAME, "kinds": ATOM_KINDS, "exact": True}
            drafts = [
                draft
                for draft in drafts
                if all(hit.text != draft["text"] for hit in self._memory.recall(owner, draft["text"], **near))
            ]
        else:  # one for each message, but for instructions to the model; the same may be said twice
            names = {"role": "role", "actor_id": "name"}
            drafts = [
                {
                    "id": str(uuid4()),
                    "text": message["content"],
                    "metadata": {name: message[key] for name, key in names.items() if message.get(key)},
                }
                for message in said
                if message["role"] != "system"
            ]
        return {"results": self._keep(owner, drafts, fields, time)}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        item = self._find(memory_id)
        return to_result(item) if item else None

    def get_all(
        self,
        /,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int | None = DEFAULT_TOP_K,
        show_expired: bool = False,
        **older: Any,
    ) -> dict[str, Any]:
        """Return the memories that filters mean, the latest first."""
        check_older_names(older, "get_all", *OWNERS, "limit")
        most, wanted = check_top_k(older.get("limit", top_k)), parse_filters(filters, older)
        items = self._list_latest(self._groups(wanted), most, show_expired)
        return {"results": [to_result(item, score=False) for item in islice(items, most)]}

    def search(
        self,
        /,
        query: str,
        *,
        top_k: int | None = DEFAULT_TOP_K,
        filters: dict[str, Any] | None = None,
        threshold: float | None = DEFAULT_THRESHOLD,
        rerank: bool = False,
        explain: bool = False,
        reference_date: TimeLike | None = None,
        show_expired: bool = False,
        **older: Any,
    ) -> dict[str, Any]:
        """Return what bears on a question, best first, of the memories that filters mean.

        Args:
            threshold: the least score. Scores are from 0 to 1.
            rerank: read the best ones once more, with the recipe "thorough".
            reference_date: the moment the question is asked, for words such as "yesterday".
        """
        check_older_names(older, "search", *OWNERS, "limit")
        most, least = check_top_k(older.get("limit", top_k)), check_threshold(threshold)
        if not isinstance(query, str) or not query.strip():
            raise InputError("Invalid query: must be a text, and cannot be empty or whitespace-only.")
        text, wanted = query.strip(), parse_filters(filters, older)
        how: dict[str, Any] = {"recipe": "thorough" if rerank else "default", "now": reference_date, "exact": True}
        hits: list[Hit] = []
        for scopes, where in self._groups(wanted) if most else []:
            unformed = {"AND": [UNFORMED, *filter(None, [where])]}  # messages in the log that became no memory
            for kinds, conditions in ((ATOM_KINDS, where), (_LOG, unformed)):
                hits += self._memory.recall(
                    scopes, text, limit=most, kinds=kinds, where=conditions, expired=show_expired, **how
                )
        results = [
            to_result(hit.item) | {"score": hit.score} | (score_details(hit, least) if explain else {})
            for hit in sorted(hits, key=lambda hit: hit.score, reverse=True)[:most]
            if hit.score >= least
        ]
        return {"results": results}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: dict[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory; what it was before stays in its history. None as expiration date: it holds for ever."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise InputError("At least one of text, metadata, or expiration_date must be provided.")
        current = self._find(memory_id)
        if current is None:
            raise MemoryNotFoundError(memory_id)
        if not isinstance(current, Atom):
            raise InputError(f"{memory_id} is a message as it was said, and no memory: add what it should say")
        fields = dict(current.metadata) | parse_metadata(metadata, "update()", to_result(current))
        if expiration_date is not UNSET:
            fields["expiration_date"] = expiration_date
        self._replace(current, current.text if text is None else text, fields)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory with all its versions. Of its history one row without words is left."""
        current = self._find(memory_id)
        if current is None:
            raise MemoryNotFoundError(memory_id)
        self._memory.forget(scope_of(current), current.id, may_return=True, exact=True)
        mark_deleted(self._memory, current)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete all memories that have these ids, with the messages they were learned from. Nothing is left."""
        owner = parse_owner({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if owner is None:
            raise InputError(
                "At least one filter is required to delete all memories. "
                "If you want to delete all memories, use the `reset()` method."
            )
        self._forget(self._memory.scopes(**owner))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what happened to a memory, oldest first."""
        if (current := self._find(memory_id)) is not None:
            is_memory = isinstance(current, Atom)
            versions = self._memory.history(scope_of(current), current.id, exact=True) if is_memory else [current]
            return history_rows(memory_id, versions)
        place = from_id(memory_id) if isinstance(memory_id, str) else None
        return deletion_rows(self._memory, memory_id, *place) if place else []

    def reset(self) -> None:
        """Delete the memories of all users, agents and runs. Others, such as those of a project, stay."""
        self._forget(list(filter(has_owner, self._memory.scopes())))

    def entities(self) -> list[dict[str, Any]]:
        """Return users, agents and runs, with how many memories each has."""
        counts: dict[tuple[str, str], int] = {}
        visible = set(self._owned_scopes())
        for stream in self._memory.streams.list():
            for name, key in OWNERS.items():
                if stream.scope in visible and (value := stream.scope.pairs.get(key)):
                    place = name.removesuffix("_id"), value
                    counts[place] = counts.get(place, 0) + stream.facts + stream.observations
        return [
            {"id": id, "type": type, "total_memories": count} for (type, id), count in sorted(counts.items()) if count
        ]

    def chat(self, query: str) -> Any:
        raise NotImplementedError("Chat function not implemented yet.")

    def close(self) -> None:
        """Close the store, if it was opened here for this object alone."""
        if self._owns_memory:
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self._memory.target!r})"

    def _owned_scopes(self, keys: Mapping[str, str] = {}) -> list[Scope]:
        """Scopes of users, agents and runs that hold memories, or those of them that have these keys."""
        return [scope for scope in self._memory.scopes(**keys) if holds_memories(scope)]

    def _groups(self, filters: Mapping[str, Any]) -> list[ScopeGroup]:
        """Scopes that filters mean. Those that no id of theirs fits are not even looked at."""
        groups: dict[str, ScopeGroup] = {}
        for scope in self._owned_scopes(own_keys(filters)):
            rest = rest_of(filters, scope)
            if rest is not False:
                groups.setdefault(repr(rest), ScopeGroup([], None if rest is True else rest)).scopes.append(scope)
        return list(groups.values())

    def _list_latest(self, groups: Iterable[ScopeGroup], most: int, show_expired: bool) -> Iterator[Atom]:
        """All memories of groups, the latest first, read in pages that hold the `most` that are wanted."""
        how: dict[str, Any] = {"kinds": ATOM_KINDS, "newest": True, "limit": min(max(most, 1), _MAX_PAGE)}
        scopes = ((scope, group.where) for group in groups for scope in group.scopes)
        each = [iterate(self._memory, scope, where=where, exact=True, **how) for scope, where in scopes]
        now = utc_now()
        for item in merge(*each, key=created_at, reverse=True):
            if isinstance(item, Atom) and not item.in_review and (show_expired or not _is_expired(item, now)):
                yield item

    def _keep(
        self, owner: Scope, drafts: list[Draft], fields: Mapping[str, Any], time: datetime | None
    ) -> list[dict[str, Any]]:
        """Keep drafts; of those without an id only what nobody else has said in the meantime."""
        common = {"created_at": (time or utc_now()).isoformat(), **fields}
        common["updated_at"] = common["created_at"]
        end = end_of_day(fields.get("expiration_date"))
        items: list[Draft] = [
            {"time": time, **draft, "valid_to": end, "metadata": common | draft.get("metadata", {})} for draft in drafts
        ]
        receipts = self._memory.remember_many(owner, items) if items else []
        new = [
            (receipt.id, draft)
            for receipt, draft in zip(receipts, items, strict=True)
            if receipt.outcome == "stored" or (receipt and self._renew(owner, receipt.id, draft))
        ]
        scope = scope_of(self._memory.get(owner, new[0][0], exact=True)) if new else owner  # it may have got a tenant
        events = []
        for id, draft in new:
            event = {"id": to_id(scope, id), "memory": draft["text"], "event": "ADD"}
            said_by = draft["metadata"] if "role" in draft["metadata"] else {}
            events.append(event | {name: said_by.get(name) for name in ("actor_id", "role") if said_by})
        return events

    def _renew(self, owner: Scope, id: str, draft: Draft) -> bool:
        """Have a memory that has expired hold again; False if it has not."""
        current = self._get(owner, id)
        if not isinstance(current, Atom) or not _is_expired(current, utc_now()):
            return False
        self._replace(current, draft["text"], {"expiration_date": None, **draft["metadata"]})
        return True

    def _replace(self, current: Atom, text: str, fields: dict[str, Any]) -> None:
        """Put a new version in the place of a memory: other words, other metadata; the rest stays."""
        scope, valid_to = scope_of(current), current.valid_to
        if "expiration_date" in fields:
            fields["expiration_date"] = parse_expiration(fields["expiration_date"])
            valid_to = end_of_day(fields["expiration_date"])
        kept = {name: getattr(current, name) for name in _KEPT}
        times = {"created_at": created_at(current), "updated_at": utc_now().isoformat()}
        self._memory.remember(
            scope,
            text,
            **kept,
            valid_to=valid_to,
            metadata=fields | times,
            source_scopes=[source_place(name, scope)[0] for name in current.source],
            replace=True,
        )

    def _find(self, memory_id: object) -> Item | None:
        if not isinstance(memory_id, str) or not memory_id.strip():
            return None
        if place := from_id(memory_id):
            return self._get(*place)
        # The id that it had in a mem0 store does not say whose it is.
        scopes = self._owned_scopes() if _UUID.fullmatch(memory_id) else []
        found = [atom for scope in scopes if (atom := self._get(scope, memory_id))]
        return found[0] if len(found) == 1 else None

    def _get(self, scope: Scope, id: str) -> Item | None:
        """A memory, or a message that became none."""
        try:
            item = self._memory.get(scope, id, exact=True)
        except (NotFoundError, AccessError, InputError):
            return None
        is_found = isinstance(item, Atom) or UNFORMED.items() <= item.metadata.items()
        return item if is_found and item.retired is None and holds_memories(scope) else None

    def _forget(self, scopes: list[Scope]) -> None:
        every: list[ScopeLike] = [*scopes]
        if every:
            self._memory.forget(every, everything=True, may_return=True, exact=True)


def _is_expired(atom: Atom, now: datetime) -> bool:
    return atom.valid_to is not None and atom.valid_to <= now


def _async_verb(
    verb: Callable[Concatenate[Memory, P], R], slow: bool = False
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    @functools.wraps(verb)
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._threads.is_shut_down:
            raise ClosedError("this memory was closed: open it again")
        pool = self._threads.slow if slow else self._threads.quick
        return await self._threads.run(pool, lambda: verb(self._open(), *args, **kwargs))

    return call


class AsyncMemory:
    """mem0's `AsyncMemory`. The store is opened by the first verb."""

    def __init__(
        self, config: Any = None, *, memory: eunoe.memory.Memory | eunoe.memory.AsyncMemory | None = None
    ) -> None:
        self.config = Configuration.parse(config)
        self._given = memory.blocking if isinstance(memory, eunoe.memory.AsyncMemory) else memory
        self._blocking: Memory | None = None
        self._opening = Lock()
        self._threads = Threads()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Make a memory. To await it, as older programs do, is fine."""
        return cls(config_dict)

    add = _async_verb(Memory.add, slow=True)
    get = _async_verb(Memory.get)
    get_all = _async_verb(Memory.get_all)
    search = _async_verb(Memory.search)
    update = _async_verb(Memory.update)
    delete = _async_verb(Memory.delete)
    delete_all = _async_verb(Memory.delete_all)
    history = _async_verb(Memory.history)
    reset = _async_verb(Memory.reset)
    entities = _async_verb(Memory.entities)

    async def chat(self, query: str) -> Any:
        raise NotImplementedError("Chat function not implemented yet.")

    def close(self) -> None:
        """Close the store, if it was opened here for this object alone."""
        self._threads.shutdown()
        if self._blocking:
            self._blocking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self

    def _open(self) -> Memory:
        with self._opening:
            self._blocking = self._blocking or Memory(self.config, memory=self._given)
            return self._blocking
