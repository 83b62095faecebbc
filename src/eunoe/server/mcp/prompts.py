"""Prompts: what a person picks from a menu to begin with what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import mcp_types as types

from eunoe.errors import InputError
from eunoe.server.mcp import reading
from eunoe.server.mcp.tool import ToolCall
from eunoe.text.markup import neutralize


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """A prompt, its arguments and the words it stands for."""

    name: str
    title: str
    description: str
    write: Callable[[ToolCall], str]
    tool: str
    """Whoever may not call this tool is not shown the prompt."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Name and description. All must be given."""

    def definition(self) -> types.Prompt:
        arguments = [
            types.PromptArgument(name=name, description=text, required=True) for name, text in self.arguments.items()
        ]
        return types.Prompt(name=self.name, title=self.title, description=self.description, arguments=arguments)

    def messages(self, call: ToolCall) -> types.GetPromptResult:
        content = types.TextContent(type="text", text=self.write(call))
        return types.GetPromptResult(
            description=self.description, messages=[types.PromptMessage(role="user", content=content)]
        )


def _recall(call: ToolCall) -> str:
    topic = " ".join(neutralize(call.text("query")).split())
    return f"{reading.recall(call).text}\n\nTell me what you remember about this: {topic}"


def _about_me(call: ToolCall) -> str:
    return f"{reading.context(call).text}\n\nTell me what you know about me, and how sure you are of each point."


def _review(call: ToolCall) -> str:
    return (
        f"Go through what you remember in {call.scope} with the tool `list`, a page at a time. Show me what looks "
        "wrong, doubled, outdated or private. Change it with `update` or `forget` only after I agreed to each point."
    )


_TOPIC: Final = {"query": "A topic or a question."}

PROMPTS: Final = {
    prompt.name: prompt
    for prompt in (
        MemoryPrompt("recall", "Recall", "What is remembered about a topic.", _recall, "recall", _TOPIC),
        MemoryPrompt("about_me", "About me", "What is known about you.", _about_me, "context"),
        MemoryPrompt("review", "Review", "Look through the memories and put them right.", _review, "update"),
    )
}


def check_prompt_arguments(prompt: MemoryPrompt, given: Mapping[str, str]) -> dict[str, str]:
    if missing := [name for name in prompt.arguments if not given.get(name, "").strip()]:
        raise InputError(f"{missing[0]} is missing: {prompt.arguments[missing[0]]}")
    return {name: given[name] for name in prompt.arguments}
