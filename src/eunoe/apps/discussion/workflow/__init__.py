"""Workflows: nodes in a JSON file that run one after the other."""

from eunoe.apps.discussion.workflow import nodes as nodes
from eunoe.apps.discussion.workflow.document import Environment, ModelMap, NodeTrace, Workflow
from eunoe.apps.discussion.workflow.node import NodeCall, node
from eunoe.apps.discussion.workflow.nodes import find_reader, give
from eunoe.apps.discussion.workflow.run import WorkflowResult, run_workflow

__all__ = [
    "Environment",
    "ModelMap",
    "NodeCall",
    "NodeTrace",
    "Workflow",
    "WorkflowResult",
    "find_reader",
    "give",
    "node",
    "run_workflow",
]
