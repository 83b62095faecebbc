"""Nodes that read memories. They write nothing and ask no model, unless `update_first` says so."""

from __future__ import annotations

from typing import Final

from eunoe.apps.discussion.host_messages import NO_MEMORIES, NO_SUMMARY
from eunoe.apps.discussion.retrievers.escaping import CHUNK_BREAK
from eunoe.apps.discussion.stateless import recent_turns
from eunoe.apps.discussion.workflow.creator_run import make_memories
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_keys import (
    ACROSS,
    HOST_MESSAGES,
    MAX_TOKENS,
    UPDATE_FIRST,
    check_keys,
    is_on,
    read_count,
)
from eunoe.apps.discussion.workflow.nodes.memory_reading import find_reader, give

_READER_KEYS: Final = (ACROSS, HOST_MESSAGES)
_DEFAULT_MEMORIES: Final = 3


@node(
    "RecentMemory",
    keys=[*_READER_KEYS, UPDATE_FIRST, MAX_TOKENS],
    check=check_keys,
    workflows=lambda _, environment: [environment.user_settings.recent_memory_workflow],
)
def recent_memory(call: NodeCall) -> str:
    """The latest chunk memories, or what the workflow for them gives."""
    _update_first(call)
    if tool := call.run.environment.user_settings.recent_memory_workflow:
        return call.run.call(tool)
    tokens, reader = read_count(call, MAX_TOKENS, 0), find_reader(call)
    if reader:
        return give(call, reader.recent(tokens=tokens), NO_MEMORIES)
    return recent_turns(call.messages, tokens=tokens)


@node(
    "RecentMemorySummarizerTool",
    required=["maxTurnsToPull", "maxSummaryChunksFromFile"],
    keys=["lookbackStart", "customDelimiter", *_READER_KEYS],
    check=check_keys,
)
def recent_memory_summarizer_tool(call: NodeCall) -> str:
    """The latest chunk memories."""
    turns, lookback = read_count(call, "maxTurnsToPull", 0), read_count(call, "lookbackStart", 0)
    count = read_count(call, "maxSummaryChunksFromFile", 0) or _DEFAULT_MEMORIES
    delimiter = call.render("customDelimiter", CHUNK_BREAK)
    reader = find_reader(call)
    return (
        give(call, reader.recent(count), NO_MEMORIES, delimiter)
        if reader
        else recent_turns(call.messages, turns, lookback)
    )


@node("FullChatSummary", keys=["isManualConfig", *_READER_KEYS, UPDATE_FIRST, MAX_TOKENS], check=check_keys)
def full_chat_summary(call: NodeCall) -> str:
    """The rolling summary, and the chunk memories that came after it."""
    if not call.flag("isManualConfig"):
        _update_first(call)
    tokens, reader = read_count(call, MAX_TOKENS, 0), find_reader(call)
    if reader:
        return give(call, reader.full_summary(tokens), NO_SUMMARY)
    return recent_turns(call.messages, tokens=tokens)


@node("GetCurrentSummaryFromFile", keys=_READER_KEYS, check=check_keys)
def get_current_summary(call: NodeCall) -> str:
    """The rolling summary."""
    reader = find_reader(call)
    return give(call, reader.summary(), NO_SUMMARY) if reader else recent_turns(call.messages)


@node("GetCurrentMemoryFromFile", keys=["customDelimiter", *_READER_KEYS], check=check_keys)
def get_current_memory(call: NodeCall) -> str:
    """All chunk memories."""
    delimiter = call.render("customDelimiter", CHUNK_BREAK)
    reader = find_reader(call)
    return give(call, reader.all(), NO_MEMORIES, delimiter) if reader else recent_turns(call.messages)


@node("GetCurrentStateDocument", keys=[ACROSS], check=check_keys)
def get_current_state_document(call: NodeCall) -> str:
    """The state document. Turns of a chat are none: without a discussion it is empty."""
    reader = find_reader(call)
    return give(call, reader.state_document()) if reader else ""


@node("ChatSummaryMemoryGatheringTool", required=["maxTurnsToPull"], keys=_READER_KEYS, check=check_keys)
def chat_summary_memory_gathering_tool(call: NodeCall) -> str:
    """The chunk memories that the rolling summary does not hold yet."""
    turns = read_count(call, "maxTurnsToPull", 0)
    reader = find_reader(call)
    return give(call, reader.new(), NO_MEMORIES) if reader else recent_turns(call.messages, turns)


def _update_first(call: NodeCall) -> None:
    """Make the memories that are due, where the node, its workflow or the run says so."""
    if call.run.scope and is_on(call, UPDATE_FIRST):
        make_memories(call)
