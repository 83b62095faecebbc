"""The language model of a node as an author of memories, asked with the node's own prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eunoe.discussion.authors import Author, Prompts, WorkflowAuthor, fence
from eunoe.discussion.workflow.node_call import NodeCall


def find_author(call: NodeCall, defaults: Prompts, material: Sequence[str]) -> Author | None:
    """Who writes for a node; None if it has no language model. `material`: inputs that are given in any case."""
    if call.find_model() is None:
        return None
    return WorkflowAuthor(call.run.workflow.name, lambda name, inputs: _ask(call, defaults, material, inputs))


def _ask(call: NodeCall, defaults: Prompts, material: Sequence[str], inputs: Mapping[str, str]) -> str:
    """Ask with the inputs in the place of their names, in one pass: a name that somebody typed stays a word."""
    values = {name: fence(name, text) for name, text in inputs.items()}
    system, prompt = call.node.get("systemPrompt") or defaults.system, call.node.get("prompt") or defaults.prompt
    missing = [values[name] for name in material if name not in f"{system}{prompt}"]
    return call.ask("\n\n".join([call.render_text(prompt, values), *missing]), call.render_text(system, values))
