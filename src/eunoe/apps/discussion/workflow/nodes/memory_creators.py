"""Nodes that make memories. They are slow, and belong behind the reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from eunoe.apps.discussion.authors import Author
from eunoe.apps.discussion.documents.summary import LEASE, PROMPTS, current_summary, update_summary, write_summary
from eunoe.apps.discussion.retrievers.escaping import escape_memory
from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.settings import SummarySettings
from eunoe.apps.discussion.stateless import ALL, recent_turns
from eunoe.apps.discussion.workflow.creator_run import make_memories
from eunoe.apps.discussion.workflow.node import MODEL_KEYS, node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_author import find_author
from eunoe.apps.discussion.workflow.nodes.memory_keys import check_keys, read_count
from eunoe.apps.discussion.workflow.nodes.memory_reading import give
from eunoe.errors import LlmError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.scope import Scope

_SUMMARY_INPUTS: Final = ("CHAT_SUMMARY", "LATEST_MEMORIES")


@node(
    "QualityMemory",
    keys=["force", "whole"],
    takes_in=True,
    check=check_keys,
    workflows=lambda _, environment: [environment.user_settings.chat_summary_workflow],
)
def quality_memory(call: NodeCall) -> str:
    """Take in the messages of the chat, and make the memories that are due. It gives nothing."""
    if call.run.scope:
        make_memories(call, force=call.flag("force"), is_whole=call.flag("whole"))
    return ""


@node(
    "chatSummarySummarizer",
    keys=[*MODEL_KEYS, "minMemoriesPerSummary", "loopIfMemoriesExceed"],
    takes_in=True,
    check=check_keys,
)
def chat_summary_summarizer(call: NodeCall) -> str:
    """Fold new chunk memories into the rolling summary, and give it."""
    settings, author = _summary_settings(call), find_author(call, PROMPTS)
    if not call.run.scope or not call.run.memory:
        return _summarize_turns(call, author)
    try:
        if update_summary(call.run.memory, call.run.scope, settings, author) is None:
            _note_delay(call, call.run.memory, call.run.scope)
    except (LlmError, WorkflowError) as error:
        call.note(f"the summary stays as it is, and what is new stays due: {error}")
    return give(call, DiscussionReader(call.run.memory, [call.run.scope]).summary())


@node("WriteCurrentSummaryToFileAndReturnIt", required=["input"], takes_in=True, check=check_keys)
def write_current_summary(call: NodeCall) -> str:
    """Put a text in place of the rolling summary, and give it. A blank one changes nothing."""
    text = call.render("input")
    if not call.run.scope or not call.run.memory:
        return text
    current = escape_memory(current_summary(call.run.memory, call.run.scope))
    if not text.strip():
        call.note("the input is empty: the summary stays as it is")
        return current
    if text != current:
        write_summary(call.run.memory, call.run.scope, text, author=f"workflow:{call.run.workflow.name}")
    return text


def _note_delay(call: NodeCall, memory: Memory, scope: Scope) -> None:
    """Say why nothing was written though something may be new."""
    for lease in memory.leases.list(scope, LEASE):
        if lease.is_held:
            call.note("the summary stays as it is: somebody else writes it just now")
        elif lease.retry:
            call.note(f"the summary stays as it is until it is tried again at {lease.retry:%H:%M:%S %Z}: {lease.error}")


def _summary_settings(call: NodeCall) -> SummarySettings:
    """Those of the discussion, with what the node says in their place."""
    settings = call.run.environment.settings.summary
    return replace(
        settings,
        is_on=True,
        least_memories=read_count(call, "minMemoriesPerSummary", settings.least_memories),
        most_memories=read_count(call, "loopIfMemoriesExceed", settings.most_memories),
    )


def _summarize_turns(call: NodeCall, author: Author | None) -> str:
    turns = recent_turns(call.messages, ALL)
    if author is None or not turns:
        return turns
    return author.write(dict(zip(_SUMMARY_INPUTS, ("", turns), strict=True)))
