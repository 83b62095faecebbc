"""One call of a node: its keys with placeholders filled in, and all that it may use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from eunoe.apps.discussion.workflow.chat import ChatMessage
from eunoe.apps.discussion.workflow.trace import NodeTrace
from eunoe.errors import LlmError, WorkflowError
from eunoe.llm.contract import CutAnswerError, Llm, Prompt, Reply
from eunoe.model.arguments import show
from eunoe.text.sentences import token_count

if TYPE_CHECKING:
    from eunoe.apps.discussion.workflow.runner import Run

_NO_MODEL: Final = (
    'there is no language model for it: name one as "endpointName" and map it to a model, or set EUNOE_LLM'
)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """What the function of a node type gets."""

    node: Mapping[str, Any]
    """The node as the workflow has it."""
    run: Run
    """The workflow that it runs in: memory, settings, models, outputs so far."""
    trace: NodeTrace

    @property
    def messages(self) -> Sequence[ChatMessage]:
        """The messages of the chat."""
        return self.run.messages

    def render(self, key: str, default: str = "", values: Mapping[str, str] | None = None) -> str:
        """The text of a key with placeholders filled in. `values` are more of them, by name, also in brackets."""
        value = self.node.get(key)
        text = self.render_text(default if value is None else as_text(value, key), values)
        self.trace.inputs[key] = text
        return text

    def render_text(self, text: str, values: Mapping[str, str] | None = None) -> str:
        """A text with placeholders filled in."""
        return self.run.render(text, self.node, values or {})

    def texts(self, key: str) -> list[str]:
        """The texts of a key that holds a list, with placeholders filled in."""
        value = self.node.get(key, [])
        if not isinstance(value, list):
            raise WorkflowError(f"{key} must be a list, not {show(value)}")
        texts = [self.render_text(as_text(each, key)) for each in value]
        self.trace.inputs[key] = json.dumps(texts, ensure_ascii=False)
        return texts

    def number(self, key: str, default: int) -> int:
        """The whole number of a key. It may be written as text, with placeholders."""
        text = self.render(key, str(default)).strip()
        try:
            return int(text)
        except ValueError:
            raise WorkflowError(f"{key} must be a whole number, not {show(text)}") from None

    def flag(self, key: str, default: bool = False) -> bool:
        """Whether a key is true. Null has the default."""
        value = self.node.get(key)
        if value is None:
            value = default
        if not isinstance(value, bool):
            raise WorkflowError(f"{key} must be true or false, not {show(value)}")
        self.trace.inputs[key] = str(value).lower()
        return value

    def respond(self, output: str) -> None:
        """Give the output before the node has ended: whatever it still does, this stands."""
        self.run.put(self.trace.number, output)

    def note(self, text: str) -> None:
        """Say something about this call; the trace shows it, and the run gives it as a warning."""
        self.trace.notes.append(text)
        self.run.warn(f"{self.trace.place}: {text}")

    def find_model(self) -> Llm | None:
        """The language model of the node's endpoint and preset; None if it names none and there is no default."""
        llm = self.run.find_model(self.render("endpointName"), self.render("preset"))
        return CountedLlm(llm, self.trace) if llm else None

    def ask(self, prompt: str, system: str = "") -> str:
        """Ask the language model of the node."""
        llm = self.find_model()
        if llm is None:
            raise WorkflowError(_NO_MODEL)
        try:
            return llm.ask(Prompt(system, prompt, max_tokens=self._max_tokens(llm), operation="workflow")).text
        except CutAnswerError as error:
            if error.reply is None or not error.reply.text.strip():
                raise self._failure(llm, error) from error
            self.note(f"the answer of {llm.name} was cut off at its limit of tokens")
            return error.reply.text
        except LlmError as error:
            raise self._failure(llm, error) from error

    def _max_tokens(self, llm: Llm) -> int:
        default = getattr(llm, "max_tokens", None) or Prompt("", "").max_tokens
        limit = self.number("maxResponseSizeInTokens", default)
        if limit < 1:
            raise WorkflowError(f"maxResponseSizeInTokens must be 1 or more, not {limit}")
        return limit

    def _failure(self, llm: Llm, error: LlmError) -> WorkflowError:
        endpoint = self.trace.inputs.get("endpointName")
        name = f"the endpoint {show(endpoint)}" if endpoint else "the language model"
        return WorkflowError(f"{name} ({llm.name}) failed: {error}")


class CountedLlm:
    """A language model whose tokens are counted for a node, estimated where it does not say them."""

    def __init__(self, llm: Llm, trace: NodeTrace) -> None:
        self.name = llm.name
        self.max_tokens: int | None = getattr(llm, "max_tokens", None)
        self._llm = llm
        self._trace = trace

    def ask(self, prompt: Prompt) -> Reply:
        if self.name not in self._trace.models:
            self._trace.models.append(self.name)
        try:
            reply = self._llm.ask(prompt)
        except LlmError as error:
            self._count(prompt, getattr(error, "reply", None))
            raise
        self._count(prompt, reply)
        return reply

    def _count(self, prompt: Prompt, reply: Reply | None) -> None:
        if reply is not None:
            self._trace.input_tokens += reply.input_tokens or token_count(prompt.system) + token_count(prompt.text)
            self._trace.output_tokens += reply.output_tokens or token_count(reply.text)


def as_text(value: Any, key: str) -> str:
    """A value as a prompt shows it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | Mapping):
        raise WorkflowError(f"{key} must be text, not {show(value)}")
    return json.dumps(value)
