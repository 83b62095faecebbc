"""The language model of a node as an author of memories, asked with the node's own prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eunoe.apps.discussion.authors import Author, Prompts, check_answer, fence
from eunoe.apps.discussion.workflow.node_call import NodeCall


@dataclass(frozen=True, slots=True)
class NodeAuthor:
    """Asks the language model of a node."""

    call: NodeCall
    name: str
    prompts: Prompts

    def reads(self, name: str) -> bool:
        return name in f"{self.prompts.system}{self.prompts.prompt}" or name in self.prompts.material

    def write(self, inputs: Mapping[str, str]) -> str:
        """Ask with the inputs in the place of their names, in one pass: a name that somebody typed stays a word."""
        values = {name: fence(name, text) for name, text in inputs.items()}
        system, prompt, material = self.prompts
        missing = [values[name] for name in material if name not in f"{system}{prompt}"]
        text = "\n\n".join([self.call.render_text(prompt, values), *missing])
        return check_answer(self.call.ask(text, self.call.render_text(system, values)), self.name)


def find_author(call: NodeCall, defaults: Prompts) -> Author | None:
    """Who writes for a node; None if it has no language model."""
    llm = call.find_model()
    if llm is None:
        return None
    system, prompt = call.node.get("systemPrompt") or defaults.system, call.node.get("prompt") or defaults.prompt
    return NodeAuthor(call, llm.name, defaults._replace(system=system, prompt=prompt))
