"""What the memory of a discussion, or of several, gives: fast, and without a write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from eunoe.apps.discussion.keywords import (
    DEFAULT_LIMIT,
    KeywordHit,
    KeywordQuery,
    check_limit,
    search_keyword_memories,
    split_keywords,
)
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import CHUNK_MEMORY, chunk_memories
from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_ids, discussion_scope
from eunoe.apps.discussion.state_document import StateDocument
from eunoe.apps.discussion.summary import current_summary, new_since_summary
from eunoe.apps.discussion.texts import ALL, CHUNK_BREAK, RULE, Retrieval, escape_memory, fit
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
        return _retrieval((_dated(hit) if include_dates else hit.text for hit in hits), _SAY_NO_MATCH, RULE)

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


def _dated(hit: KeywordHit) -> str:
    moment = hit.memory.moment
    return f"[{moment.astimezone(UTC):%Y-%m-%d}] {hit.text}" if moment else hit.text


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
