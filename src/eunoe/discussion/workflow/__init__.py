"""Workflows: nodes in a JSON file that run one after the other."""

from eunoe.discussion.workflow import nodes as nodes
from eunoe.discussion.workflow.document import Workflow
from eunoe.discussion.workflow.environment import Environment
from eunoe.discussion.workflow.models import ModelMap
from eunoe.discussion.workflow.node import node
from eunoe.discussion.workflow.node_call import NodeCall
from eunoe.discussion.workflow.nodes.memory_reading import find_reader, give
from eunoe.discussion.workflow.runner import WorkflowResult, run_workflow
from eunoe.discussion.workflow.trace import NodeTrace

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
