"""What other programs may ask of a discussion by name: its retrievers, and an update. All arguments are texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from eunoe.discussion import host_messages
from eunoe.discussion.report import UpdateReport
from eunoe.discussion.retrievers.keyword_search import KeywordQuery
from eunoe.discussion.retrievers.reader import DiscussionReader
from eunoe.discussion.retrievers.retrieval import Retrieval
from eunoe.errors import InputError

DEFAULT_LIMIT: Final = 5
_RECENT: Final = 3

Retrieve = Callable[[DiscussionReader, str, int | None], Retrieval]
"""Takes a reader, keywords and the most that is wanted."""

RETRIEVERS: Final[Mapping[str, Retrieve]] = {
    "search": lambda reader, keywords, limit: reader.search_keywords(
        KeywordQuery(keywords=keywords, limit=limit or DEFAULT_LIMIT)
    ),
    "conversation": lambda reader, keywords, limit: reader.search_conversation(keywords, limit or DEFAULT_LIMIT),
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
"""What the real application says where a retriever finds nothing."""


def read_turns(
    messages: str = "", user_message: str = "", assistant_message: str = ""
) -> list[Mapping[str, Any]] | None:
    """The messages that an update is given: a JSON list of them, or what was said last; None if there are none.

    >>> read_turns(user_message="Hello", assistant_message="Hi")
    [{'role': 'user', 'content': 'Hello'}, {'role': 'assistant', 'content': 'Hi'}]
    """
    if messages.strip():
        if user_message or assistant_message:
            raise InputError("give messages, or user_message and assistant_message, not both")
        return _parse_messages(messages)
    last = {"user": user_message, "assistant": assistant_message}
    return [{"role": role, "content": text} for role, text in last.items() if text.strip()] or None


def tell_update(report: UpdateReport) -> str:
    """What an update did, in a line."""
    counts = {"made": report.made, "made again": report.redone, "failed": len(report.failed)}
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    text = f"Chunks: {', '.join(parts)}." if parts else "No chunk was due."
    return f"{text} Summary: revision {report.summary}." if report.summary else text


def _parse_messages(text: str) -> list[Mapping[str, Any]]:
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"messages must be a JSON list of messages with role and content: {error}") from None
    if not isinstance(messages, list):
        raise InputError("messages must be a JSON list of messages with role and content")
    return messages
