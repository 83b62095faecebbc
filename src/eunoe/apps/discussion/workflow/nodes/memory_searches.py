"""Nodes that search in memories and in what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from eunoe.apps.discussion.host_messages import NO_ID, NO_MATCH
from eunoe.apps.discussion.retrievers.escaping import RULE
from eunoe.apps.discussion.retrievers.keyword_search import KeywordQuery, SearchMode
from eunoe.apps.discussion.stateless import MATCHES, find_turns, is_spoken, message_text
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_keys import (
    ACROSS,
    HOST_MESSAGES,
    WEIGHTS,
    check_keys,
    is_on,
    read_choice,
    read_count,
    read_weights,
)
from eunoe.apps.discussion.workflow.nodes.memory_reading import find_reader, give

_SEARCH_KEYS: Final = (
    "limit",
    WEIGHTS,
    "useRecencyScoring",
    "includeDates",
    "searchMode",
    "semanticQuery",
    "embeddingEndpointName",
    "useEntityExpansion",
    ACROSS,
    HOST_MESSAGES,
)


@node("VectorMemorySearch", required=["input"], keys=_SEARCH_KEYS, check=check_keys)
def vector_memory_search(call: NodeCall) -> str:
    """The keyword memories that have any of the keywords, best first."""
    query = _keyword_query(call)
    include_dates = call.flag("includeDates")
    if reader := find_reader(call):
        return give(call, reader.search_keywords(query, include_dates=include_dates), NO_MATCH)
    return NO_ID if is_on(call, HOST_MESSAGES) else ""


@node(
    "ConversationMemory",
    keys=[ACROSS],
    check=check_keys,
    workflows=lambda _, environment: [environment.user_settings.conversation_memory_workflow],
)
def conversation_memory(call: NodeCall) -> str:
    """What was said earlier about what the user says now, or what the workflow for that gives."""
    if tool := call.run.environment.user_settings.conversation_memory_workflow:
        return call.run.call(tool)
    keywords, later = _last_words(call.messages)
    return _search_conversation(call, keywords, later)


@node(
    "ConversationalKeywordSearchPerformerTool",
    required=["keywords"],
    keys=["lookbackStartTurn", ACROSS],
    check=check_keys,
)
def conversational_keyword_search(call: NodeCall) -> str:
    """The messages that have any of the keywords, best first."""
    return _search_conversation(call, call.render("keywords"), read_count(call, "lookbackStartTurn", 0))


@node("MemoryKeywordSearchPerformerTool", required=["keywords"], keys=["lookbackStartTurn", ACROSS], check=check_keys)
def memory_keyword_search(call: NodeCall) -> str:
    """The chunk memories that have any of the keywords, best first."""
    keywords, lookback = call.render("keywords"), read_count(call, "lookbackStartTurn", 0)
    if reader := find_reader(call):
        return give(call, reader.search_chunk_memories(keywords))
    return RULE.join(find_turns(call.messages, keywords, lookback))


def _keyword_query(call: NodeCall) -> KeywordQuery:
    return KeywordQuery(
        keywords=call.render("input"),
        limit=read_count(call, "limit", 0),
        weights=read_weights(call),
        use_recency=call.flag("useRecencyScoring"),
        mode=cast("SearchMode", read_choice(call, "searchMode")),
        semantic_query=call.render("semanticQuery"),
        use_entity_expansion=call.flag("useEntityExpansion"),
    )


def _search_conversation(call: NodeCall, keywords: str, lookback: int) -> str:
    """Search in the log, and in messages that no creator has taken in yet."""
    if reader := find_reader(call):
        return give(call, reader.search_conversation(keywords, MATCHES, lookback=lookback, messages=call.messages))
    return RULE.join(find_turns(call.messages, keywords, lookback))


def _last_words(messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """What the user said last, as one keyword, and how many messages stand from there on."""
    for count, message in enumerate(reversed(list(filter(is_spoken, messages))), 1):
        if message.get("role") == "user" and (text := message_text(message)):
            return text.replace(";", " "), count
    return "", 0
