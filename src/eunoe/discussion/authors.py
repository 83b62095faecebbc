"""Who puts memories in words: a workflow, a language model, or nobody, where the words of the chat are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

RunWorkflow = Callable[[str, Sequence[str]], str]
"""Runs the workflow of a name with its inputs (`{agent1Input}` and so on), and returns its result."""


class Author(Protocol):
    """Writes a text out of inputs. Raises LlmError or WorkflowError if it cannot."""

    name: str
    """Who it is, for the record: `workflow:NAME`, or the name of the language model."""

    def write(self, inputs: Mapping[str, str]) -> str:
        """Write a text. `inputs` are the parts by their names in prompts, such as `TextChunk`, in order: a workflow
        gets their values as `{agent1Input}`, `{agent2Input}` and so on."""
