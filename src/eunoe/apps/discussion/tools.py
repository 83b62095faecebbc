"""The retrievers of a discussion by name, as plug-ins offer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eunoe.apps.discussion import host_messages
from eunoe.apps.discussion.retrievers.keyword_search import DEFAULT_LIMIT, KeywordQuery
from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.retrievers.retrieval import Retrieval

_RECENT: Final = 3

Retrieve = Callable[[DiscussionReader, str, int | None], Retrieval]
"""Takes a reader, keywords and the most that is wanted."""

RETRIEVERS: Final[Mapping[str, Retrieve]] = {
    "search": lambda reader, keywords, limit: reader.search_keywords(KeywordQuery(keywords=keywords, limit=limit or 0)),
    "conversation": lambda reader, keywords, limit: reader.search_conversation(keywords, limit or 0),
    "recent": lambda reader, _, limit: reader.recent(limit or _RECENT),
    "first": lambda reader, _, limit: reader.first(limit or DEFAULT_LIMIT),
    "all": lambda reader, _, limit: reader.all(),
    "summary": lambda reader, _, limit: reader.summary(),
    "full_summary": lambda reader, _, limit: reader.full_summary(),
    "state_document": lambda reader, _, limit: reader.state_document(),
}
"""By name: what reads a discussion. Those in `SEARCHES` need keywords."""
SEARCHES: Final = ("search", "conversation")
HOST_SENTENCES: Final = {
    "search": host_messages.NO_MATCH,
    "conversation": host_messages.NO_MATCH,
    "recent": host_messages.NO_MEMORIES,
    "first": host_messages.NO_MEMORIES,
    "all": host_messages.NO_MEMORIES,
    "summary": host_messages.NO_SUMMARY,
    "full_summary": host_messages.NO_SUMMARY,
}
"""What WilmerAI says where a retriever finds nothing."""
