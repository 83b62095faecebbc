"""What a node type is: one decorated function, here or in another package.

@node("FirstFiveMemories")
def first_five_memories(call: NodeCall) -> str:
    return "..."
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from eunoe.errors import WorkflowError

if TYPE_CHECKING:
    from eunoe.apps.discussion.workflow.environment import Environment
    from eunoe.apps.discussion.workflow.node_call import NodeCall

NodeFunction = Callable[["NodeCall"], str]
CheckFunction = Callable[[Mapping[str, Any], "Environment"], Iterable[str]]
"""Yields what is wrong with a node."""
NamesFunction = Callable[[Mapping[str, Any], "Environment"], Iterable[Any]]
"""Yields the names of the workflows that a node may call."""

COMMON_KEYS: Final = ("type", "id", "title", "agentName", "returnToUser", "isResponder", "is_responder", "jinja2")
"""Every node may have these."""
MODEL_KEYS: Final = ("systemPrompt", "prompt", "endpointName", "preset", "maxResponseSizeInTokens")
"""Nodes that ask a language model may have these."""
RESPONDER_KEYS: Final = ("returnToUser", "isResponder", "is_responder")


@dataclass(frozen=True, slots=True)
class NodeType:
    """One kind of node: what it does, and the keys that it reads."""

    name: str
    function: NodeFunction
    required: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Those that may be left out."""
    needs_model: bool = False
    """Whether it cannot do without a language model."""
    takes_in: bool = False
    """Whether the messages are taken into the log of the discussion before it runs."""
    check: CheckFunction | None = None
    workflows: NamesFunction | None = None


NODE_TYPES: Final[dict[str, NodeType]] = {}
"""All node types by name."""


def node(
    name: str,
    *,
    required: Iterable[str] = (),
    keys: Iterable[str] = (),
    needs_model: bool = False,
    takes_in: bool = False,
    check: CheckFunction | None = None,
    workflows: NamesFunction | None = None,
) -> Callable[[NodeFunction], NodeFunction]:
    """Declare a function as a node type. It gets a `NodeCall` and returns the node's output.

    Args:
        name: its `"type"` in a workflow.
        required: keys of the node that must be there.
        keys: keys that may be there. `check` notes all others as unknown.
        needs_model: it cannot do without a language model.
        takes_in: the messages are taken into the log of the discussion before it runs, and its store is made if it is
            not there. What writes to the memory needs it; what only reads does without.
        check: yields what is wrong with a node, for `eunoe workflow check`.
        workflows: yields the names of the workflows that a node may call, for the same.
    """

    def declare(function: NodeFunction) -> NodeFunction:
        other = NODE_TYPES.get(name)
        if other and other.function.__module__ != function.__module__:
            raise WorkflowError(
                f"the node type {name!r} of {function.__module__} is one of {other.function.__module__}"
            )
        NODE_TYPES[name] = NodeType(
            name, function, tuple(required), tuple(keys), needs_model, takes_in, check, workflows
        )
        return function

    return declare


def find_type(fields: Mapping[str, Any]) -> NodeType:
    """The type of a node. Raise WorkflowError if there is none of that name."""
    name = fields.get("type")
    if isinstance(name, str) and name in NODE_TYPES:
        return NODE_TYPES[name]
    if not isinstance(name, str) or not name:
        raise WorkflowError('has no "type"')
    raise WorkflowError(f"the node type {name!r} is not supported; there are: {', '.join(sorted(NODE_TYPES))}")


def missing_keys(type: NodeType, fields: Mapping[str, Any]) -> str:
    """Which required keys a node lacks, in words; empty if none."""
    missing = [key for key in type.required if key not in fields]
    return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""


def is_responder(fields: Mapping[str, Any]) -> bool:
    """Whether the output of a node is the result of its workflow."""
    return any(fields.get(key) is True for key in RESPONDER_KEYS)
