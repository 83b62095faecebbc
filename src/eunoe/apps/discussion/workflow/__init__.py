"""Workflows: nodes in a JSON file that run one after the other."""

from eunoe.apps.discussion.workflow import nodes as nodes
from eunoe.apps.discussion.workflow.document import Workflow
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.models import ModelMap
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.nodes.memory_reading import find_reader, give
from eunoe.apps.discussion.workflow.runner import WorkflowResult, run_workflow
from eunoe.apps.discussion.workflow.trace import NodeTrace

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
