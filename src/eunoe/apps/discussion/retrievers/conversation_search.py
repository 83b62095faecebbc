"""Conversation search: what was said about something, in logs and in messages of a request, as one ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from eunoe.apps.discussion.retrievers.escaping import escape_memory
from eunoe.apps.discussion.retrievers.keyword_index import KeywordIndex, find_matches
from eunoe.apps.discussion.retrievers.keyword_terms import split_keywords
from eunoe.apps.discussion.retrievers.views import LogTexts
from eunoe.apps.discussion.stateless import sayings


class RequestTexts(NamedTuple):
    """What a request adds to the log of its discussion."""

    new: tuple[str, ...]
    """Texts of its messages that are not in the log."""
    hidden: frozenset[int]
    """Rows of the log that stand among its last messages, which whoever asks has before them."""


def compare_request(log: LogTexts, messages: Sequence[Mapping[str, Any]], lookback: int) -> RequestTexts:
    """Compare the messages of a request with the log; the last ones, so many, are not searched."""
    said = sayings(messages)
    end = max(0, len(said) - lookback)
    new = [each for each in said[:end] if each not in log.rows and each.words]
    hidden = frozenset(log.rows[each] for each in said[end:] if each in log.rows)
    return RequestTexts(tuple(escape_memory(f"{each.name}: {each.words}") for each in new), hidden)


def last_rows(log: LogTexts, lookback: int) -> RequestTexts:
    """The same where there is no request: the last messages of the log are not searched."""
    size = len(log.texts)
    return RequestTexts((), frozenset(range(max(0, size - lookback), size)))


def search_logs(logs: Sequence[LogTexts], request: RequestTexts, keywords: str, limit: int) -> list[str]:
    """Messages that have any of the keywords, best first. The request belongs to the last log."""
    texts = [*(log.texts for log in logs), request.new]
    indexes = [log.index for log in logs]
    if request.new:
        indexes.append(KeywordIndex(([[text]] for text in request.new), indexes[-1].usual_length))
    matches = find_matches(indexes, split_keywords(keywords), [1.0], limit + len(request.hidden))
    own = len(logs) - 1
    shown = [match for match in matches if match.number != own or match.row not in request.hidden]
    return [texts[match.number][match.row] for match in shown[:limit]]
