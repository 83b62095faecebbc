"""MemoryService: the retrievers under the names and arguments by which other chat memories have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import eunoe
from eunoe.apps.discussion.keywords import EQUAL_WEIGHTS, KeywordQuery, SearchMode
from eunoe.apps.discussion.retrievers import NO_ID, NO_MATCH, NO_MEMORIES, NO_SUMMARY, DiscussionReader
from eunoe.apps.discussion.scope import DEFAULT_USER
from eunoe.apps.discussion.texts import escape_memory, recent_turns
from eunoe.memory import Memory

Messages = Sequence[Mapping[str, Any]]


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

    def get_current_summary(
        self,
        discussion_id: str,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        """The rolling summary as it was written last."""
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return self._or_sentence(reader.summary().text, NO_SUMMARY, host_messages)

    def get_full_chat_summary(
        self,
        discussion_id: str,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        """The rolling summary, and the chunk memories that came after it."""
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return self._or_sentence(reader.full_summary().text, NO_SUMMARY, host_messages)

    def get_current_memories(
        self,
        discussion_id: str,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
        host_messages: bool | None = None,
    ) -> str:
        """All chunk memories."""
        reader = self.reader(discussion_id, api_key_hash, across_discussions=across_discussions)
        return self._or_sentence(reader.all().text, NO_MEMORIES, host_messages)

    def get_current_state_document(
        self,
        discussion_id: str,
        encryption_key: bytes | None = None,
        api_key_hash: str | None = None,
        *,
        across_discussions: bool = False,
    ) -> str:
        """The state document."""
        return self.reader(discussion_id, api_key_hash, across_discussions=across_discussions).state_document().text

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
