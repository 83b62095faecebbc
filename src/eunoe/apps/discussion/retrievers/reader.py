"""What the memory of a discussion, or of several, gives: fast, and without a write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from eunoe.apps.discussion.retrievers.combined_search import search_discussions
from eunoe.apps.discussion.retrievers.conversation_search import compare_request, last_rows, search_logs
from eunoe.apps.discussion.retrievers.escaping import CHUNK_BREAK, RULE
from eunoe.apps.discussion.retrievers.keyword_index import find_matches
from eunoe.apps.discussion.retrievers.keyword_search import (
    KeywordHit,
    KeywordQuery,
    check_limit,
    search_keyword_memories,
)
from eunoe.apps.discussion.retrievers.keyword_terms import split_keywords
from eunoe.apps.discussion.retrievers.retrieval import Retrieval
from eunoe.apps.discussion.retrievers.views import (
    chunk_texts,
    log_texts,
    new_texts,
    state_document_text,
    summary_text,
)
from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_ids, discussion_scope
from eunoe.apps.discussion.token_limit import fit
from eunoe.memory import Memory
from eunoe.model.arguments import check_count
from eunoe.model.scope import Scope

ALL: Final = -1
"""As a number of memories: all of them."""
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_NO_MEMORIES: Final = "There are no chunk memories yet. A creator makes them: run `eunoe discussion update`."
_NO_NEW_MEMORIES: Final = "There are no chunk memories that the summary does not hold already."
_NO_SUMMARY: Final = "There is no summary yet. A creator writes it: run `eunoe discussion update`."
_NO_STATE_DOCUMENT: Final = "There is no state document yet. A creator writes it if the settings ask for one."
_NO_MATCH: Final = "Nothing has any of these keywords."
_NO_ANSWER: Final = "Nothing that was said bears on this."


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
        return _within(texts if count == ALL else texts[max(0, len(texts) - count) :], _NO_MEMORIES, tokens)

    def first(self, count: int = 5) -> Retrieval:
        """The first chunk memories."""
        return _retrieval(self._chunk_texts()[: check_count(count, "count")], _NO_MEMORIES)

    def all(self) -> Retrieval:
        """All chunk memories."""
        return self.recent(ALL)

    def new(self) -> Retrieval:
        """The chunk memories that the rolling summary does not hold yet."""
        return _retrieval((text for text, _ in self.new_with_hashes()), _NO_NEW_MEMORIES)

    def new_with_hashes(self) -> list[tuple[str, str]]:
        """The chunk memories that the rolling summary does not hold yet, each with its hash."""
        return [each for scope in self._scopes for each in new_texts(self._memory, scope)]

    def summary(self) -> Retrieval:
        """The rolling summary as it was written last."""
        return self._documents(summary_text, _NO_SUMMARY)

    def full_summary(self, tokens: int = 0) -> Retrieval:
        """The rolling summary, and the chunk memories that came after it. `tokens`: of these the latest that fit."""
        parts: list[str] = []
        summaries: list[int] = []
        for scope in self._scopes:
            if summary := summary_text(self._memory, scope):
                summaries.append(len(parts))
                parts.append(summary)
            parts += [text for text, _ in new_texts(self._memory, scope)]
        others = [place for place in range(len(parts)) if place not in summaries]
        return _within(parts, _NO_SUMMARY, tokens, "\n\n", [*reversed(summaries), *reversed(others)])

    def state_document(self) -> Retrieval:
        """The state document."""
        return self._documents(state_document_text, _NO_STATE_DOCUMENT)

    def search_keywords(self, query: KeywordQuery, *, include_dates: bool = False) -> Retrieval:
        """Keyword memories that have any of the keywords, best first."""
        hits = search_keyword_memories(self._memory, self._scopes, query)
        texts = [_dated(hit) if include_dates else hit.text for hit in hits]
        return _retrieval(texts, _NO_MATCH, RULE)

    def search_conversation(
        self, keywords: str, limit: int = 5, *, lookback: int = 0, messages: Sequence[Mapping[str, Any]] = ()
    ) -> Retrieval:
        """Messages that have any of the keywords, with who said them, best first.

        Args:
            lookback: without so many at the end, which whoever asks has before them.
            messages: the request that is being answered: what is not in the log yet is found too, and `lookback` counts
                from its end, not from that of the log.
        """
        logs = [log_texts(self._memory, scope) for scope in self._scopes]
        most, hidden = check_limit(limit), check_count(lookback, "lookback", least=0)
        request = compare_request(logs[-1], messages, hidden) if messages else last_rows(logs[-1], hidden)
        return _retrieval(search_logs(logs, request, keywords, most), _NO_MATCH, RULE)

    def search_chunk_memories(self, keywords: str, limit: int = 5) -> Retrieval:
        """Chunk memories that have any of the keywords, best first."""
        views = [chunk_texts(self._memory, scope) for scope in self._scopes]
        most = check_limit(limit)
        matches = find_matches([view.index for view in views], split_keywords(keywords), [1.0], most)
        return _retrieval((views[match.number].texts[match.row] for match in matches), _NO_MATCH, RULE)

    def search(self, query: str, limit: int = 10) -> Retrieval:
        """What bears on a question, in the log and in the keyword memories: at most so many turns; best first.

        Unlike the others it counts what it recalls, as every recall does.
        """
        hits = search_discussions(self._memory, self._scopes, query, limit)
        return _retrieval((hit.text for hit in hits), _NO_ANSWER, RULE)

    def _chunk_texts(self) -> tuple[str, ...]:
        """In the order of the discussion; those of several in the order they were made."""
        views = [chunk_texts(self._memory, scope) for scope in self._scopes]
        if len(views) == 1:
            return views[0].texts
        dated = [pair for view in views for pair in zip(view.times, view.texts, strict=True)]
        return tuple(text for _, text in sorted(dated, key=lambda pair: pair[0] or _LONG_AGO))

    def _documents(self, read: Callable[[Memory, Scope], str], message: str) -> Retrieval:
        return _retrieval(filter(None, (read(self._memory, scope) for scope in self._scopes)), message, RULE)


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
