"""Long-term memory for the agents of a graph: what they recall before they answer, and what stays of the answer."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from eunoe.errors import InputError, LlmError
from eunoe.form.likeness import similarity
from eunoe.hosts.agentflow.extractors import ExtractiveExtractor, FactExtractor, fact_list
from eunoe.hosts.agentflow.formatting import format_memories
from eunoe.hosts.agentflow.framework import AgentState, BaseStore, MemorySearchResult, MemoryType, Message
from eunoe.hosts.agentflow.own_config import MemoryScope, is_within, own_config
from eunoe.hosts.agentflow.retention import apply_age, is_archived, is_summary, surplus
from eunoe.hosts.agentflow.summarizers import (
    ExtractiveSummarizer,
    Summarizer,
    interaction_text,
    without_repeated_questions,
)
from eunoe.hosts.agentflow.turn_cache import TurnCache
from eunoe.hosts.agentflow.turns import Turn, id_of
from eunoe.model.arguments import check_count, check_flag, check_seconds, show, utc_now

_MAX_MEMORIES: Final = 10_000
"""As many as are read to clean up, or to find some that are not archived."""
_MAX_QUERY_CHARACTERS: Final = 2000
_FADING_ROOM: Final = 4
"""Where scores fade, so many times more are searched: those that come next may be younger."""
_log = logging.getLogger("eunoe")


class MemoryManager:
    """Recalls and stores memories in any Agentflow store. Whose they are, each call's config says.

    Args:
        store: Where memories are kept. Without one nothing is recalled and nothing stored.
        auto_retrieve: Whether callbacks and mixin recall by themselves.
        auto_store: Whether callbacks store by themselves.
        relevance_threshold: The least score of a memory that is recalled.
        max_memories: How many are recalled at most.
        scope: Whether memories belong to the user, or to one thread of the user.
        extractor: What finds facts in a message.
        summarizer: What makes a summary of interactions.
        dedup_threshold: How similar a text must be to a stored one to count as the same; None: store every text.
        max_per_user: How many memories a user may have before the least valuable are archived; None: any number.
        half_life_days: After how many days scores have apply_age half the way; None: they do not fade.
        timeout_seconds: How long callbacks and mixin wait for the store, each time.
    """

    def __init__(
        self,
        store: BaseStore | None = None,
        auto_retrieve: bool = True,
        auto_store: bool = True,
        relevance_threshold: float = 0.7,
        max_memories: int = 5,
        *,
        scope: MemoryScope = "user",
        extractor: FactExtractor | None = None,
        summarizer: Summarizer | None = None,
        dedup_threshold: float | None = 0.95,
        max_per_user: int | None = None,
        half_life_days: float | None = None,
        timeout_seconds: float = 5.0,
    ) -> None:
        if scope not in ("user", "thread"):
            raise InputError('scope must be "user" or "thread"')
        if store is None:
            _log.warning("a MemoryManager without a store recalls nothing and stores nothing: pass store=EunoeStore()")
        self.store = store
        self.auto_retrieve = check_flag(auto_retrieve, "auto_retrieve")
        self.auto_store = check_flag(auto_store, "auto_store")
        self.relevance_threshold = _check_share(relevance_threshold, "relevance_threshold")
        self.max_memories = check_count(max_memories, "max_memories")
        self.scope = scope
        self.extractor = extractor or ExtractiveExtractor()
        self.summarizer = summarizer or ExtractiveSummarizer()
        self.dedup_threshold = None if dedup_threshold is None else _check_share(dedup_threshold, "dedup_threshold")
        self.max_per_user = None if max_per_user is None else check_count(max_per_user, "max_per_user")
        self.half_life_days = None if half_life_days is None else _check_half_life(half_life_days)
        self.timeout_seconds = check_seconds(timeout_seconds, "timeout_seconds")
        self._turn_memories = TurnCache[list[MemorySearchResult]]()
        self._turn_ids = TurnCache[str]()

    async def retrieve_context(
        self, config: Mapping[str, Any], query: str, memory_types: Sequence[MemoryType] | None = None
    ) -> list[MemorySearchResult]:
        """The memories that fit a query, the best first. Several types are searched one by one and merged."""
        if self.store is None or not query.strip():
            return []
        own = own_config(config, self.scope)
        wanted = self.max_memories * (_FADING_ROOM if self.half_life_days else 1)
        hits = [
            hit
            for memory_type in memory_types or (None,)
            for hit in await self._search(self.store, own, query, memory_type, wanted, self.relevance_threshold)
        ]
        now = utc_now()
        best = {hit.id: apply_age(hit, self.half_life_days, now) for hit in sorted(hits, key=lambda hit: hit.score)}
        relevant = [hit for hit in best.values() if hit.score >= self.relevance_threshold]
        return sorted(relevant, key=lambda hit: -hit.score)[: self.max_memories]

    async def retrieve_for_turn(self, state: AgentState, config: Mapping[str, Any]) -> list[MemorySearchResult]:
        """The memories for the last thing the user said: searched once in a run, however many nodes ask.

        A store that fails, or takes too long, gives none; that is logged.
        """
        message = last_user_message(state)
        if message is None:
            return []
        ids = [str(config.get(key) or "") for key in ("run_id", "user_id", "thread_id")]
        turn = (*ids, str(message.message_id))
        recalled = self._turn_memories.get(turn)
        if recalled is None:
            recalled = await self._try_to_retrieve(config, message.text())
            if config.get("run_id"):
                self._turn_memories.keep(turn, recalled)
        return recalled

    async def store_interaction(
        self,
        config: Mapping[str, Any],
        user_message: Message,
        assistant_message: Message,
        memory_type: MemoryType = MemoryType.EPISODIC,
    ) -> str:
        """Store a question with its answer, once: a later answer to the same question takes the place of the first.

        Gives the id, or "" where there is no store, or one of the two says nothing.
        """
        question, answer = user_message.text().strip(), assistant_message.text().strip()
        if self.store is None or not question or not answer:
            return ""
        own = own_config(config, self.scope)
        metadata = self._origin(config) | {
            "user_message_id": str(user_message.message_id),
            "assistant_message_id": str(assistant_message.message_id),
        }
        turn = Turn(str(own["user_id"]), self.scope, metadata["session"], metadata["user_message_id"], question)
        text = interaction_text(question, answer)
        if memory := await self._find_turn(self.store, own, turn, memory_type):
            if memory.content != text:
                await self.store.aupdate(own, memory.id, text, metadata={**memory.metadata, **metadata})
            return memory.id
        # Of long interactions that differ in a word both are wanted: that word may be the answer.
        if same := await self._find_same(self.store, own, text, memory_type, 1.0):
            return same.id
        stored = await self._store_new(self.store, own, text, memory_type, metadata=metadata, memory_id=turn.id)
        self._turn_ids.keep(turn, stored)
        return stored

    async def extract_and_store_facts(
        self, config: Mapping[str, Any], message: Message, facts: Any = None
    ) -> list[str]:
        """Store facts from a message, and give their ids. Without `facts` the extractor finds them.

        `facts` is a list of texts, or an object with such a list as `facts`, as LLMs answer; or the JSON of one.
        """
        if self.store is None:
            return []
        own = own_config(config, self.scope)
        texts = await self.extractor.extract([message]) if facts is None else fact_list(facts)
        metadata = self._origin(config) | {"source_message_id": str(message.message_id)}
        return [await self._store_fact(self.store, own, text, metadata) for text in texts]

    async def summarize(self, config: Mapping[str, Any]) -> str:
        """Take all interactions since the last time, of all sessions, into one summary, and give its id.

        The interactions stay; the summary's metadata names them as its `sources`. "" if there is nothing to say.
        """
        if self.store is None:
            return ""
        own = own_config(config, self.scope)
        memories = await self._all(self.store, own)
        summary = next((memory for memory in memories if is_summary(memory)), None)
        new = [memory for memory in memories if _is_new_interaction(memory)]
        if not new:
            return summary.id if summary else ""
        text = await self.summarizer.summarize(summary.content if summary else "", new)
        if not text.strip():
            return summary.id if summary else ""
        summary_id = await self._store_summary(self.store, own, summary, text, new)
        for memory in new:
            await self._mark(self.store, own, memory, consolidated_into=summary_id)
        return summary_id

    async def pin(self, config: Mapping[str, Any], memory_id: str, *, pinned: bool = True) -> bool:
        """Say that a memory is never archived and does not fade. False if there is no such memory."""
        return await self._mark_one(config, memory_id, pinned=pinned)

    async def archive(self, config: Mapping[str, Any], memory_id: str, *, archived: bool = True) -> bool:
        """Take a memory out of what is recalled, or bring it back. False if there is no such memory."""
        return await self._mark_one(config, memory_id, archived=archived)

    async def forget_memory(self, config: Mapping[str, Any], memory_id: str) -> bool:
        """Delete a memory and what was made of it: facts, and the part that a summary has of it.

        False if there is no such memory.
        """
        if self.store is None:
            return False
        own = own_config(config, self.scope)
        memory = await self.store.aget(own, memory_id)
        if memory is None or not is_within(memory, own):
            return False
        memories = await self._all(self.store, own)
        for one in [memory, *(other for other in memories if _rests_on(other, memory))]:
            await self.store.adelete(own, one.id)
        self._forget_turns(own)
        for summary in memories:
            if memory.id in summary.metadata.get("sources", ()):
                await self._renew_summary(self.store, own, summary)
        return True

    async def forget_user(self, config: Mapping[str, Any]) -> None:
        """Delete all memories of the config's user, of every thread.

        With `EunoeStore` also what other programs have stored of that user, messages too.
        """
        if self.store is None:
            return
        own = own_config(config, "user")
        forget = getattr(self.store, "aforget_user", self.store.aforget_memory)
        await forget(own)
        self._forget_turns(own)

    def format_memories(self, memories: Sequence[MemorySearchResult], *, double_braces: bool = True) -> str:
        """Memories as text for a prompt; see `eunoe.hosts.agentflow.formatting`."""
        return format_memories(memories, double_braces=double_braces)

    async def _try_to_retrieve(self, config: Mapping[str, Any], query: str) -> list[MemorySearchResult]:
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self.retrieve_context(config, query)
        except Exception as error:
            _log.warning("no memories for this turn: %s", type(error).__name__)
            return []

    async def _search(
        self,
        store: BaseStore,
        own: dict[str, Any],
        query: str,
        memory_type: MemoryType | None,
        wanted: int,
        threshold: float | None,
    ) -> list[MemorySearchResult]:
        """As many as are wanted that are the user's own and not archived, if there are so many."""
        limit = wanted
        while True:
            hits = await store.asearch(
                own, query[:_MAX_QUERY_CHARACTERS], memory_type=memory_type, limit=limit, score_threshold=threshold
            )
            usable = without_repeated_questions([hit for hit in hits if is_within(hit, own) and not is_archived(hit)])
            if len(usable) >= wanted or len(hits) < limit or limit >= _MAX_MEMORIES:
                return usable
            limit = min(limit * 8, _MAX_MEMORIES)

    async def _store_new(
        self, store: BaseStore, own: dict[str, Any], text: str, memory_type: MemoryType, **fields: Any
    ) -> str:
        """Store a text, and archive what is too much. The same words get the same id, unless duplicates are wanted."""
        if self.dedup_threshold is not None:
            words_id = self._words_id(own, text, memory_type)
            memory = await store.aget(own, words_id)
            if memory is not None and memory.content == text and not is_archived(memory):
                return words_id  # somebody else has stored it just now
            if memory is None or memory.content == text:
                fields["memory_id"] = words_id
        stored = await store.astore(own, text, memory_type=memory_type, **fields)
        if self.max_per_user is not None:
            for memory in surplus(await self._all(store, own), self.max_per_user):
                await self._mark(store, own, memory, archived=True)
        return stored

    def _words_id(self, own: dict[str, Any], text: str, memory_type: MemoryType) -> str:
        thread = str(own.get("thread_id") or "")
        return id_of(str(own["user_id"]), self.scope, thread, memory_type.value, " ".join(text.split()))

    async def _store_fact(self, store: BaseStore, own: dict[str, Any], text: str, metadata: dict[str, Any]) -> str:
        same = await self._find_same(store, own, text, MemoryType.SEMANTIC, self.dedup_threshold or 0.0)
        return same.id if same else await self._store_new(store, own, text, MemoryType.SEMANTIC, metadata=metadata)

    async def _find_turn(
        self, store: BaseStore, own: dict[str, Any], turn: Turn, memory_type: MemoryType
    ) -> MemorySearchResult | None:
        """What was stored of a turn already, in this process or in another."""
        memory = await store.aget(own, self._turn_ids.get(turn) or turn.id)
        if memory is not None or self.dedup_threshold is None:
            return memory if memory and turn.is_of(memory) else None
        query, limit = turn.question[:_MAX_QUERY_CHARACTERS], self.max_memories
        hits = await store.asearch(own, query, memory_type=memory_type, limit=limit, filters=turn.filters)
        return next((hit for hit in hits if is_within(hit, own) and turn.is_of(hit)), None)

    async def _find_same(
        self, store: BaseStore, own: dict[str, Any], text: str, memory_type: MemoryType, threshold: float
    ) -> MemorySearchResult | None:
        """The memory that says the same, if one does. Scores mean something else in every store; words do not."""
        if self.dedup_threshold is None:
            return None
        hits = await self._search(store, own, text, memory_type, self.max_memories, None)
        return await asyncio.to_thread(_first_similar, text, hits, threshold)

    async def _store_summary(
        self,
        store: BaseStore,
        own: dict[str, Any],
        summary: MemorySearchResult | None,
        text: str,
        sources: Sequence[MemorySearchResult],
    ) -> str:
        ids = [source.id for source in sources]
        if summary:
            metadata = {**summary.metadata, "sources": [*summary.metadata.get("sources", []), *ids]}
            await store.aupdate(own, summary.id, text, metadata=metadata)
            return summary.id
        metadata = self._origin(own) | {"summary": True, "sources": ids}
        summary_id = id_of("summary", str(own["user_id"]), metadata["session"])
        return await store.astore(own, text, memory_type=MemoryType.SEMANTIC, metadata=metadata, memory_id=summary_id)

    async def _renew_summary(self, store: BaseStore, own: dict[str, Any], summary: MemorySearchResult) -> None:
        """Write a summary anew from what is left of its sources."""
        await store.adelete(own, summary.id)
        for memory in await self._all(store, own):
            if memory.id in summary.metadata["sources"]:
                await self._mark(store, own, memory, consolidated_into=None)
        try:
            await self.summarize(own)
        except LlmError as error:
            _log.warning("the summary waits for the next time: %s", type(error).__name__)

    async def _all(self, store: BaseStore, own: dict[str, Any]) -> list[MemorySearchResult]:
        return [memory for memory in await store.aget_all(own, limit=_MAX_MEMORIES) if is_within(memory, own)]

    async def _mark_one(self, config: Mapping[str, Any], memory_id: str, **marks: Any) -> bool:
        if self.store is None:
            return False
        own = own_config(config, self.scope)
        memory = await self.store.aget(own, memory_id)
        if memory is None or not is_within(memory, own):
            return False
        await self._mark(self.store, own, memory, **marks)
        return True

    async def _mark(self, store: BaseStore, own: dict[str, Any], memory: MemorySearchResult, **marks: Any) -> None:
        await store.aupdate(own, memory.id, memory.content, metadata={**memory.metadata, **marks})

    def _origin(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Where a memory comes from; in the memory of a user it tells the sessions apart."""
        return {"session": str(config.get("thread_id") or ""), "memory_scope": self.scope}

    def _forget_turns(self, own: Mapping[str, Any]) -> None:
        """Keep nothing of a user in this process either."""
        self._turn_memories.drop(str(own["user_id"]))
        self._turn_ids.drop(str(own["user_id"]))


def _check_share(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"{name} is {show(value)}: it must be a number from 0 to 1")
    return value


def _check_half_life(days: object) -> float:
    if isinstance(days, bool) or not isinstance(days, int | float) or not days > 0:
        raise InputError(f"half_life_days is {show(days)}: it must be a number of more than 0, or None")
    return days


def last_user_message(state: AgentState) -> Message | None:
    """What the user said last, if that is a text."""
    message = next((message for message in reversed(state.context or []) if message.role == "user"), None)
    return message if message and message.text().strip() else None


def _first_similar(text: str, memories: Sequence[MemorySearchResult], threshold: float) -> MemorySearchResult | None:
    return next((memory for memory in memories if similarity(text, memory.content) >= threshold), None)


def _is_new_interaction(memory: MemorySearchResult) -> bool:
    return memory.memory_type == MemoryType.EPISODIC and not memory.metadata.get("consolidated_into")


def _rests_on(fact: MemorySearchResult, memory: MemorySearchResult) -> bool:
    """Whether a fact was taken from one of the messages of an interaction."""
    messages = {memory.metadata.get("user_message_id"), memory.metadata.get("assistant_message_id")} - {None}
    return fact.metadata.get("source_message_id") in messages
