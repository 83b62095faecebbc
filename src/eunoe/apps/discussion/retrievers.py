"""What the memory of a discussion, or of several, gives: fast, and without a write.

`DiscussionReader` has the retrievers; `MemoryService` has them under the names and arguments of other chat memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Final

import eunoe
from eunoe.apps.discussion.documents import StateDocument, current_summary, new_since_summary
from eunoe.apps.discussion.keywords import (
    DEFAULT_LIMIT,
    EQUAL_WEIGHTS,
    KeywordQuery,
    SearchMode,
    check_limit,
    search_keyword_memories,
    split_keywords,
)
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import CHUNK_MEMORY, DEFAULT_USER, chunk_memories, discussion_ids, discussion_scope
from eunoe.apps.discussion.texts import ALL, CHUNK_BREAK, RULE, Retrieval, escape_memory, fit, recent_turns
from eunoe.memory import Memory
from eunoe.model.arguments import check_count
from eunoe.model.message import Message
from eunoe.model.result import Hit
from eunoe.model.scope import Scope

NO_ID: Final = "Cannot perform VectorMemorySearch without a discussionId."
NO_MATCH: Final = "No relevant memories found in the vector database for the given keywords."
NO_MEMORIES: Final = "No memories have been generated yet"
NO_SUMMARY: Final = "There is not yet a summary file"
"""The sentences that WilmerAI gives where there is nothing to give, for workflows that test for them."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_SAY_NO_MEMORIES: Final = "There are no chunk memories yet. A creator makes them: run `eunoe discussion update`."
_SAY_NOTHING_NEW: Final = "There are no chunk memories that the summary does not hold already."
_SAY_NO_SUMMARY: Final = "There is no summary yet. A creator writes it: run `eunoe discussion update`."
_SAY_NO_STATE: Final = "There is no state document yet. A creator writes it if the settings ask for one."
_SAY_NO_MATCH: Final = "Nothing has any of these keywords."


class DiscussionReader:
    """Reads discussions. Every method gives a `Retrieval`; one of a discussion that is not there is empty.

    >>> with eunoe.open(":memory:") as memory:
    ...     retrieval = DiscussionReader.of(memory, "trip").recent()
    >>> retrieval.text, retrieval.message
    ('', 'There are no chunk memories yet. A creator makes them: run `eunoe discussion update`.')
    """

    def __init__(self, memory: Memory, scopes: Sequence[Scope]) -> None:
        self._memory = memory
        self._scopes = scopes

    @classmethod
    def of(
        cls, memory: Memory, discussion_id: str, user: str = DEFAULT_USER, *, across_discussions: bool = False
    ) -> DiscussionReader:
        """The reader of one discussion, or of all discussions of its user, the named one last."""
        own = discussion_scope(discussion_id, user)
        others = discussion_ids(memory, user) if across_discussions else []
        return cls(memory, [*(discussion_scope(id, user) for id in others if id != discussion_id), own])

    def recent(self, count: int = 3, tokens: int = 0) -> Retrieval:
        """The latest chunk memories, the latest last; -1 for all. `tokens`: those that fit; 0 for no limit."""
        count = check_count(count, "count", least=ALL)
        texts = self._chunk_texts()
        return _within(texts if count == ALL else texts[max(0, len(texts) - count) :], _SAY_NO_MEMORIES, tokens)

    def first(self, count: int = 5) -> Retrieval:
        """The first chunk memories."""
        return _retrieval(self._chunk_texts()[: check_count(count, "count")], _SAY_NO_MEMORIES)

    def all(self) -> Retrieval:
        """All chunk memories."""
        return self.recent(ALL)

    def new(self) -> Retrieval:
        """The chunk memories that the rolling summary does not hold yet."""
        return _retrieval((text for text, _ in self.new_with_hashes()), _SAY_NOTHING_NEW)

    def new_with_hashes(self) -> list[tuple[str, str]]:
        """The chunk memories that the rolling summary does not hold yet, each with its hash."""
        return [each for scope in self._scopes for each in self._view(scope, _new)]

    def summary(self) -> Retrieval:
        """The rolling summary as it was written last."""
        found = filter(None, (self._view(scope, _summary) for scope in self._scopes))
        return _retrieval(found, _SAY_NO_SUMMARY, RULE)

    def full_summary(self, tokens: int = 0) -> Retrieval:
        """The rolling summary, and the chunk memories that came after it. `tokens`: of these the latest that fit."""
        parts: list[str] = []
        summaries: list[int] = []
        for scope in self._scopes:
            if summary := self._view(scope, _summary):
                summaries.append(len(parts))
                parts.append(summary)
            parts += [text for text, _ in self._view(scope, _new)]
        others = [place for place in range(len(parts)) if place not in summaries]
        return _within(parts, _SAY_NO_SUMMARY, tokens, "\n\n", [*reversed(summaries), *reversed(others)])

    def state_document(self) -> Retrieval:
        """The state document."""
        found = filter(None, (self._view(scope, _state_document) for scope in self._scopes))
        return _retrieval(found, _SAY_NO_STATE, RULE)

    def search_keywords(self, query: KeywordQuery, *, include_dates: bool = False) -> Retrieval:
        """Keyword memories that have any of the keywords, best first."""
        hits = search_keyword_memories(self._memory, self._scopes, query)
        moments = [hit.memory.moment if include_dates else None for hit in hits]
        dates = (f"[{moment.astimezone(UTC):%Y-%m-%d}] " if moment else "" for moment in moments)
        return _retrieval((f"{date}{hit.text}" for date, hit in zip(dates, hits, strict=True)), _SAY_NO_MATCH, RULE)

    def search_conversation(self, keywords: str, limit: int = 5, *, lookback: int = 0) -> Retrieval:
        """Messages that have any of the keywords, with who said them, best first.

        `lookback`: without so many at the end, which whoever asks has before them.
        """
        hidden, count = set[str](), check_count(lookback, "lookback", least=0)
        if count:
            hidden = {each.id for each in DiscussionLog(self._memory, self._scopes[-1]).messages()[-count:]}
        most = check_limit(limit)
        own, hits = self._scopes[-1].pairs["discussion"], self._recall(keywords, most + len(hidden), kinds=["message"])
        shown = [hit for hit in hits if hit.id not in hidden or hit.scope.pairs["discussion"] != own]
        return _retrieval(map(_said, shown[:most]), _SAY_NO_MATCH, RULE)

    def search_chunk_memories(self, keywords: str, limit: int = 5) -> Retrieval:
        """Chunk memories that have any of the keywords, best first."""
        hits = self._recall(keywords, check_limit(limit), kinds=["observation"], labels=[CHUNK_MEMORY])
        return _retrieval((escape_memory(hit.text) for hit in hits), _SAY_NO_MATCH, RULE)

    def _recall(self, keywords: str, limit: int, **wanted: Any) -> Sequence[Hit]:
        """What has any of the keywords: by words alone, rare ones counting for more."""
        if not (query := " ".join(split_keywords(keywords))):
            return []
        return self._memory.recall(list(self._scopes), query, recipe="lexical", limit=limit, exact=True, **wanted)

    def _view(self, scope: Scope, read: Callable[[Memory, Scope], Any]) -> Any:
        """What is read of a discussion, kept until it changes."""
        return self._memory.view(scope, f"discussion{read.__name__}", partial(read, self._memory, scope))

    def _chunk_texts(self) -> tuple[str, ...]:
        """In the order of the discussion; those of several in the order they were made."""
        views = [self._view(scope, _chunks) for scope in self._scopes]
        if len(views) > 1:
            views = [sorted((each for view in views for each in view), key=lambda each: each[1] or _LONG_AGO)]
        return tuple(text for text, _ in views[0])


def _chunks(memory: Memory, scope: Scope) -> list[tuple[str, datetime | None]]:
    return [(escape_memory(each.text), each.recorded) for each in chunk_memories(memory, scope)]


def _new(memory: Memory, scope: Scope) -> list[tuple[str, str]]:
    return [(escape_memory(each.text), each.hash) for each in new_since_summary(memory, scope)]


def _summary(memory: Memory, scope: Scope) -> str:
    return escape_memory(current_summary(memory, scope))


def _state_document(memory: Memory, scope: Scope) -> str:
    return escape_memory(StateDocument(memory, scope).read())


def _retrieval(texts: Iterable[str], message: str, delimiter: str = CHUNK_BREAK) -> Retrieval:
    given = tuple(texts)
    return Retrieval(given, "" if given else message, delimiter)


def _within(
    texts: Sequence[str], message: str, tokens: int, delimiter: str = CHUNK_BREAK, ranking: Iterable[int] | None = None
) -> Retrieval:
    """The texts that fit into so many tokens; if these are not all, a message says so."""
    given = tuple(fit(texts, check_count(tokens, "tokens", least=0), ranking))
    if not texts or given == tuple(texts):
        return _retrieval(given, message, delimiter)
    return Retrieval(given, f"{len(given)} of {len(texts)} texts are given, cut to {tokens:,} tokens", delimiter)


def _said(hit: Hit) -> str:
    name = f"{hit.item.speaker or hit.item.role}: " if isinstance(hit.item, Message) else ""
    return escape_memory(f"{name}{hit.text}", RULE)


Retrieve = Callable[[DiscussionReader, str, int | None], Retrieval]
"""Takes a reader, keywords and the most that is wanted."""
RETRIEVERS: Final[Mapping[str, Retrieve]] = {
    "search": lambda reader, keywords, limit: reader.search_keywords(KeywordQuery(keywords=keywords, limit=limit or 0)),
    "conversation": lambda reader, keywords, limit: reader.search_conversation(keywords, limit or 0),
    "recent": lambda reader, _, limit: reader.recent(limit or 3),
    "first": lambda reader, _, limit: reader.first(limit or DEFAULT_LIMIT),
    "all": lambda reader, _, limit: reader.all(),
    "summary": lambda reader, _, limit: reader.summary(),
    "full_summary": lambda reader, _, limit: reader.full_summary(),
    "state_document": lambda reader, _, limit: reader.state_document(),
}
"""By name, as plug-ins offer them: what reads a discussion. Those in `SEARCHES` need keywords."""
SEARCHES: Final = ("search", "conversation")
HOST_SENTENCES: Final = {
    **dict.fromkeys(SEARCHES, NO_MATCH),
    **dict.fromkeys(("recent", "first", "all"), NO_MEMORIES),
    **dict.fromkeys(("summary", "full_summary"), NO_SUMMARY),
}
"""What WilmerAI says where a retriever finds nothing."""


Messages = Sequence[Mapping[str, Any]]


def _gives(title: str, read: Callable[[DiscussionReader], Retrieval], sentence: str) -> Callable[..., str]:
    """A method that gives what a retriever without arguments gives."""

    def method(
        self: MemoryService,
        discussion_id: str,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return self._or_sentence(read(reader).text, sentence, host_messages)

    method.__doc__ = title
    return method


class MemoryService:
    """Reads the memory of discussions as text for prompts, escaped. It writes nothing and waits for no creator.

    Args:
        memory: where the discussions are kept; without one your own store, which has to be there.
        user: whose discussions they are. `api_key_hash` of a call names another one.
        host_messages: where there is nothing, give the sentences that workflows of WilmerAI test for, instead of
            an empty text.

    A call may also say `across_discussions` and `host_messages`. `encryption_key`, `embedding_endpoint_name` and
    `request_id` are taken and not needed: the store and its embedder know what they need.

    >>> with eunoe.open(":memory:") as memory:
    ...     service = MemoryService(memory, user="anna")
    ...     service.get_current_summary("trip"), service.reader("trip").summary().message
    ('', 'There is no summary yet. A creator writes it: run `eunoe discussion update`.')
    """

    def __init__(self, memory: Memory | None = None, user: str = DEFAULT_USER, *, host_messages: bool = False) -> None:
        self._given = memory
        self._user = user
        self._host_messages = host_messages

    @cached_property
    def memory(self) -> Memory:
        """Where the discussions are kept."""
        return self._given or eunoe.open(create=False)

    def reader(
        self, discussion_id: str, api_key_hash: str | None = None, *, across_discussions: bool = False
    ) -> DiscussionReader:
        """The retrievers of a discussion, each with a message for people where there is nothing."""
        user = api_key_hash or self._user
        return DiscussionReader.of(self.memory, discussion_id, user, across_discussions=across_discussions)

    def search_vector_memories(
        self,
        discussion_id: str | None,
        keywords: str,
        limit: int = 5,
        api_key_hash: str | None = None,
        bm25_weights: Sequence[float] | None = None,
        use_recency: bool = False,
        include_dates: bool = False,
        search_mode: SearchMode = "keyword",
        semantic_query: str | None = None,
        embedding_endpoint_name: str | None = None,
        use_entity_expansion: bool = False,
        request_id: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        """Keyword memories that have any of the keywords (`;` between them), best first."""
        query = KeywordQuery(
            keywords=keywords,
            limit=limit,
            weights=EQUAL_WEIGHTS if bm25_weights is None else bm25_weights,
            use_recency=use_recency,
            mode=search_mode,
            semantic_query=semantic_query or "",
            use_entity_expansion=use_entity_expansion,
        )
        if not discussion_id:
            return self._or_sentence("", NO_ID, host_messages)
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        text = reader.search_keywords(query, include_dates=include_dates).text
        return self._or_sentence(text, NO_MATCH, host_messages)

    def get_recent_memories(
        self,
        messages: Messages,
        discussion_id: str | None,
        max_turns_to_search: int = 0,
        max_summary_chunks_from_file: int = 0,
        lookback_start: int = 0,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        """The latest chunk memories: three, so many, or all (-1). Without a discussion the latest turns."""
        if not discussion_id:
            return escape_memory(recent_turns(messages, max_turns_to_search, lookback_start))
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return self._or_sentence(reader.recent(max_summary_chunks_from_file or 3).text, NO_MEMORIES, host_messages)

    def get_first_five_memories(
        self, discussion_id: str, api_key_hash: str | None = None, *, host_messages: bool | None = None
    ) -> str:
        """The first five chunk memories."""
        return self._or_sentence(self.reader(discussion_id, api_key_hash).first().text, NO_MEMORIES, host_messages)

    def get_chat_summary_memories(
        self,
        messages: Messages,
        discussion_id: str | None,
        max_turns_to_search: int = 0,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        host_messages: bool | None = None,
    ) -> str:
        """The chunk memories that the summary does not hold yet. Without a discussion the latest turns."""
        if not discussion_id:
            return escape_memory(recent_turns(messages, max_turns_to_search))
        return self._or_sentence(self.reader(discussion_id, api_key_hash).new().text, NO_MEMORIES, host_messages)

    get_current_summary = _gives("The rolling summary as it was written last.", DiscussionReader.summary, NO_SUMMARY)
    get_full_chat_summary = _gives(
        "The rolling summary, and the chunk memories that came after it.", DiscussionReader.full_summary, NO_SUMMARY
    )
    get_current_memories = _gives("All chunk memories.", DiscussionReader.all, NO_MEMORIES)
    get_current_state_document = _gives("The state document.", DiscussionReader.state_document, "")

    def search_conversation(
        self,
        discussion_id: str,
        keywords: str,
        limit: int = 5,
        lookback_start: int = 0,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
    ) -> str:
        """Messages that have any of the keywords (`;` between them), best first."""
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return reader.search_conversation(keywords, limit, lookback=lookback_start).text

    def get_latest_memory_chunks_with_hashes_since_last_summary(
        self, discussion_id: str, encryption_key: bytes | None = None, api_key_hash: str | None = None
    ) -> list[tuple[str, str]]:
        """The chunk memories that the summary does not hold yet, each with its hash."""
        return self.reader(discussion_id, api_key_hash).new_with_hashes()

    def find_how_many_new_memories_since_last_summary(
        self, discussion_id: str, encryption_key: bytes | None = None, api_key_hash: str | None = None
    ) -> int:
        """How many chunk memories the summary does not hold yet."""
        return len(self.reader(discussion_id, api_key_hash).new_with_hashes())

    def _or_sentence(self, text: str, sentence: str, host_messages: bool | None) -> str:
        asked = self._host_messages if host_messages is None else host_messages
        return text or (sentence if asked else "")
