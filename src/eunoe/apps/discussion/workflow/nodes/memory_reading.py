"""What nodes that read memories have in common."""

from __future__ import annotations

from eunoe.apps.discussion.retrievers.reader import DiscussionReader
from eunoe.apps.discussion.retrievers.retrieval import Retrieval
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_keys import ACROSS, HOST_MESSAGES, is_on


def find_reader(call: NodeCall) -> DiscussionReader | None:
    """What reads the discussion of a node; None if there is none."""
    run, is_across = call.run, call.flag(ACROSS)
    if not run.memory or not run.discussion_id:
        return None
    return DiscussionReader.of(run.memory, run.discussion_id, run.user, across_discussions=is_across)


def give(call: NodeCall, retrieval: Retrieval, host_message: str = "", delimiter: str = "") -> str:
    """What a node gives of a retrieval. Why it is empty or cut stands in the trace; the first may be said as
    WilmerAI says it."""
    if retrieval.message:
        call.trace.notes.append(retrieval.message)
    if retrieval.texts:
        return retrieval.joined(delimiter)
    return host_message if is_on(call, HOST_MESSAGES) else ""
