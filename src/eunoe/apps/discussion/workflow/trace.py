"""What each node of a run did: its inputs, its output, its time and its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eunoe.apps.discussion.workflow.document import Workflow


@dataclass(slots=True, kw_only=True)
class NodeTrace:
    """What one node did."""

    workflow: str
    """The names of its workflow and of those that called it: `main -> summary`."""
    number: int
    type: str
    title: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Its keys as they were rendered."""
    output: str = ""
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    models: list[str] = field(default_factory=list)
    """The language models that it asked."""
    notes: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def place(self) -> str:
        """The node in words, for errors and progress."""
        title = f' "{self.title}"' if self.title else ""
        return f"node {self.number}{title} ({self.type})"


def new_trace(chain: Sequence[Workflow], number: int) -> NodeTrace:
    """The trace of a node of the last workflow of a chain."""
    fields = chain[-1].nodes[number - 1]
    title = fields.get("title") or fields.get("agentName") or fields.get("id") or ""
    return NodeTrace(
        workflow=" -> ".join(each.name for each in chain),
        number=number,
        type=str(fields.get("type") or "no type"),
        title=str(title),
    )


def node_place(chain: Sequence[Workflow], trace: NodeTrace) -> str:
    """A node in words, with its file."""
    callers = f" (called by {' -> '.join(each.name for each in chain[:-1])})" if chain[1:] else ""
    return f"{chain[-1].title}{callers}: {trace.place}"
