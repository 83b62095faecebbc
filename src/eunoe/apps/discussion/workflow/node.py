"""What a node type is: one decorated function, here or in another package; and one call of it.

@node("FirstFiveMemories")
def first_five_memories(call: NodeCall) -> str:
    return "..."
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from eunoe.apps.discussion.keywords import FIELDS, SEARCH_MODES, check_weights
from eunoe.apps.discussion.workflow.document import Environment, NodeTrace
from eunoe.apps.discussion.workflow.texts import COUNT_KEYS, ChatMessage, count_problem
from eunoe.errors import InputError, LlmError, WorkflowError
from eunoe.llm.contract import CutAnswerError, Llm, Prompt, Reply
from eunoe.model.arguments import show
from eunoe.text.sentences import token_count

if TYPE_CHECKING:
    from eunoe.apps.discussion.workflow.run import Run

NodeFunction = Callable[["NodeCall"], str]
NamesFunction = Callable[[Mapping[str, Any], Environment], Iterable[Any]]
"""Yields the names of the workflows that a node may call."""

RESPONDER_KEYS: Final = ("returnToUser", "isResponder", "is_responder")
COMMON_KEYS: Final = ("type", "id", "title", "agentName", *RESPONDER_KEYS, "jinja2")
"""Every node may have these."""
MODEL_KEYS: Final = ("systemPrompt", "prompt", "endpointName", "preset", "maxResponseSizeInTokens")
"""Nodes that ask a language model may have these."""
ACROSS: Final = "acrossDiscussions"
"""Lets a node read all discussions of the user."""
HOST_MESSAGES: Final = "host_messages"
UPDATE_FIRST: Final = "update_first"
MAX_TOKENS: Final = "maxEstimatedTokens"
"""How long what a node gives may be; 0 for no limit."""
WEIGHTS: Final = "bm25Weights"
_NO_MODEL: Final = (
    'there is no language model for it: name one as "endpointName" and map it to a model, or set EUNOE_LLM'
)


def _text(key: str, value: Any) -> str:
    return f"{key} must be text, not {show(value)}" if isinstance(value, list | Mapping) else ""


def _texts(key: str, value: Any) -> str:
    is_list = isinstance(value, list) and not any(isinstance(each, list | Mapping) for each in value)
    return "" if is_list else f"{key} must be a list of texts, not {show(value)}"


def _switch(key: str, value: Any) -> str:
    return "" if isinstance(value, bool) else f"{key} must be true or false, not {show(value)}"


def _choice(key: str, value: Any, choices: Sequence[str]) -> str:
    return "" if value in choices else f"{key} must be one of {', '.join(choices)}, not {show(value)}"


def _weights(key: str, value: Any) -> str:
    try:
        check_weights(value)
    except InputError:
        return f"{key} must be {len(FIELDS)} numbers, one each for {', '.join(FIELDS)}, not {show(value)}"
    return ""


def _routes(key: str, value: Any) -> str:
    is_right = isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    return "" if is_right else f'{key} must be an object such as {{"Python": "NAME", "Default": "NAME"}}'


KEYS: Final[Mapping[str, Callable[[str, Any], str]]] = {
    **dict.fromkeys(("strings", "scoped_variables"), _texts),
    **dict.fromkeys(
        (*RESPONDER_KEYS, "jinja2", ACROSS, HOST_MESSAGES, UPDATE_FIRST, "force", "whole", "isManualConfig"), _switch
    ),
    **dict.fromkeys(("includeDates", "useRecencyScoring", "useEntityExpansion"), _switch),
    **dict.fromkeys(
        (*COUNT_KEYS, "lookbackStart", "limit", MAX_TOKENS, "lastMessagesToSendInsteadOfPrompt"), count_problem
    ),
    **dict.fromkeys(("maxTurnsToPull", "maxSummaryChunksFromFile"), partial(count_problem, least=-1)),
    **dict.fromkeys(
        ("minMemoriesPerSummary", "loopIfMemoriesExceed", "maxResponseSizeInTokens"), partial(count_problem, least=1)
    ),
    "searchMode": partial(_choice, choices=SEARCH_MODES),
    WEIGHTS: _weights,
    "conditionalWorkflows": _routes,
    **dict.fromkeys(
        (*MODEL_KEYS[:4], "content", "delimiter", "folder", "workflowName", "workflowUserFolderOverride"), _text
    ),
    **dict.fromkeys(("conditionalKey", "workflowLockId", "input", "customDelimiter", "semanticQuery"), _text),
}
"""What says what is wrong with the value of a key, by its name; empty if nothing is. Others may have any value."""


def key_problem(key: str, value: Any) -> str:
    """What is wrong with the value of a key; null has the default."""
    return KEYS[key](key, value) if key in KEYS and value is not None else ""


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
    workflows: NamesFunction | None = None,
) -> Callable[[NodeFunction], NodeFunction]:
    """Declare a function as a node type. It gets a `NodeCall` and returns the node's output.

    Args:
        name: its `"type"` in a workflow.
        required: keys of the node that must be there.
        keys: keys that may be there. `check` notes all others as unknown.
        needs_model: it cannot do without a language model.
        takes_in: the messages are taken into the log of the discussion before it runs. What writes to the memory needs
            it; what only reads does without.
        workflows: yields the names of the workflows that a node may call, for `eunoe workflow check`.
    """

    def declare(function: NodeFunction) -> NodeFunction:
        other = NODE_TYPES.get(name)
        if other and other.function.__module__ != function.__module__:
            raise WorkflowError(
                f"the node type {name!r} of {function.__module__} is one of {other.function.__module__}"
            )
        NODE_TYPES[name] = NodeType(name, function, tuple(required), tuple(keys), needs_model, takes_in, workflows)
        return function

    return declare


def find_type(fields: Mapping[str, Any], is_complete: bool = True) -> NodeType:
    """The type of a node. Raise WorkflowError if there is none of that name, or if the node lacks a key."""
    name = fields.get("type")
    if not isinstance(name, str) or not name:
        raise WorkflowError('has no "type"')
    if name not in NODE_TYPES:
        raise WorkflowError(f"the node type {name!r} is not supported; there are: {', '.join(sorted(NODE_TYPES))}")
    type = NODE_TYPES[name]
    if missing := [key for key in type.required if key not in fields] if is_complete else []:
        raise WorkflowError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return type


def is_responder(fields: Mapping[str, Any]) -> bool:
    """Whether the output of a node is the result of its workflow."""
    return any(fields.get(key) is True for key in RESPONDER_KEYS)


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
        text = self.render_text(default if value is None else _as_text(value, key), values)
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
        texts = [self.render_text(_as_text(each, key)) for each in value]
        self.trace.inputs[key] = json.dumps(texts, ensure_ascii=False)
        return texts

    def number(self, key: str, default: int) -> int:
        """The whole number of a key. It may be written as text, with placeholders."""
        text = self.render(key, str(default)).strip()
        if problem := key_problem(key, text) or count_problem(key, text, least=-(10**9)):
            raise WorkflowError(problem)
        return int(text)

    def choice(self, key: str, default: str) -> str:
        """The word of a key: one of its choices."""
        word = self.render(key, default)
        if problem := key_problem(key, word):
            raise WorkflowError(problem)
        return word

    def flag(self, key: str, default: bool = False) -> bool:
        """Whether a key is true. Null has the default."""
        value = self.node.get(key)
        if value is None:
            value = default
        if problem := _switch(key, value):
            raise WorkflowError(problem)
        self.trace.inputs[key] = str(value).lower()
        return bool(value)

    def is_on(self, name: str) -> bool:
        """Whether a switch is on: by the node, a variable of its workflow or of one that called it, or for the run."""
        for values in (self.node, *(workflow.variables for workflow in reversed(self.run.chain))):
            if (value := values.get(name)) is not None:
                if problem := _switch(name, value):
                    raise WorkflowError(problem)
                return bool(value)
        return bool(getattr(self.run.environment, name))

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
        return _CountedLlm(llm, self.trace) if llm else None

    def ask(self, prompt: str, system: str = "") -> str:
        """Ask the language model of the node."""
        llm = self.find_model()
        if llm is None:
            raise WorkflowError(_NO_MODEL)
        endpoint = self.trace.inputs.get("endpointName")
        name = f"the endpoint {show(endpoint)}" if endpoint else "the language model"
        limit = self.number("maxResponseSizeInTokens", getattr(llm, "max_tokens", None) or Prompt("", "").max_tokens)
        try:
            return llm.ask(Prompt(system, prompt, max_tokens=limit, operation="workflow")).text
        except LlmError as error:
            reply = error.reply if isinstance(error, CutAnswerError) else None
            if reply is None or not reply.text.strip():
                raise WorkflowError(f"{name} ({llm.name}) failed: {error}") from error
            self.note(f"the answer of {llm.name} was cut off at its limit of tokens")
            return reply.text


class _CountedLlm:
    """A language model whose tokens are counted for a node, estimated where it does not say them."""

    def __init__(self, llm: Llm, trace: NodeTrace) -> None:
        self.name = llm.name
        self.max_tokens: int | None = getattr(llm, "max_tokens", None)
        self._llm = llm
        self._trace = trace

    def ask(self, prompt: Prompt) -> Reply:
        if self.name not in self._trace.models:
            self._trace.models.append(self.name)
        reply: Reply | None = None
        try:
            reply = self._llm.ask(prompt)
            return reply
        except LlmError as error:
            reply = getattr(error, "reply", None)
            raise
        finally:
            if reply is not None:
                asked = token_count(prompt.system) + token_count(prompt.text)
                self._trace.input_tokens += reply.input_tokens or asked
                self._trace.output_tokens += reply.output_tokens or token_count(reply.text)


def _as_text(value: Any, key: str) -> str:
    """A value as a prompt shows it."""
    if problem := _text(key, value):
        raise WorkflowError(problem)
    return value if isinstance(value, str) else json.dumps(value)
