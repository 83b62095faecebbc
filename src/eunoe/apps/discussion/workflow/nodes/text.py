"""Nodes that give texts as they are."""

from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.values import COUNT_KEYS


@node("StaticResponse", required=["content"], keys=COUNT_KEYS)
def static_response(call: NodeCall) -> str:
    """Give a text."""
    return call.render("content")


@node("StringConcatenator", required=["strings"], keys=["delimiter", *COUNT_KEYS])
def string_concatenator(call: NodeCall) -> str:
    """Join texts."""
    return call.render("delimiter").join(call.texts("strings"))
