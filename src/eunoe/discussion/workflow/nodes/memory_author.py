"""The language model of a node as an author of memories, asked with the node's own prompts."""

from __future__ import annotations

from collections.abc import Mapping

from eunoe.discussion.authors import Author, Prompts, WorkflowAuthor, fence
from eunoe.discussion.workflow.node_call import NodeCall


def find_author(call: NodeCall, defaults: Prompts) -> Author | None:
    """Who writes for a node; None if it has no language model."""
    if call.find_model() is None:
        return None
    return WorkflowAuthor(call.run.workflow.name, lambda name, inputs: _ask(call, defaults, inputs))


def _ask(call: NodeCall, defaults: Prompts, inputs: Mapping[str, str]) -> str:
    """Ask with the inputs in the place of their names, in one pass: a name that somebody typed stays a word."""
    values = {name: fence(name, text) for name, text in inputs.items()}
    system, prompt = (
        call.node.get(key) or default for key, default in zip(("systemPrompt", "prompt"), defaults, strict=True)
    )
    material = next(iter(inputs))
    if material not in f"{system}{prompt}":
        prompt = f"{prompt}\n\n[{material}]"
    return call.ask(call.render_text(prompt, values), call.render_text(system, values))
