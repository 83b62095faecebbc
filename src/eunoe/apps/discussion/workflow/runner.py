"""How a workflow runs: its nodes one after the other, each with what those before it gave."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from eunoe.apps.discussion.scope import DEFAULT_USER, discussion_scope, take_tag
from eunoe.apps.discussion.workflow.chat import ChatMessage, read_messages
from eunoe.apps.discussion.workflow.document import Workflow, WorkflowFolder
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.intake import Intake
from eunoe.apps.discussion.workflow.late_memory import LateMemory
from eunoe.apps.discussion.workflow.node import NodeType, find_type, is_responder, missing_keys
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.rendering import Values, render
from eunoe.apps.discussion.workflow.trace import NodeTrace, new_trace, node_place
from eunoe.errors import EunoeError, InputError, WorkflowError
from eunoe.llm.contract import Llm
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

MAX_DEPTH: Final = 20
"""Workflows that call each other in a chain; more are a mistake."""
_logger = logging.getLogger(__name__)
Respond = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """What a workflow gave, and what its nodes did."""

    text: str
    trace: tuple[NodeTrace, ...]
    notes: tuple[str, ...] = ()


class NodeFailure(WorkflowError):
    """A node failed. The message names the file, the node and what is wrong."""

    def __init__(self, message: str, traces: list[NodeTrace]) -> None:
        super().__init__(message)
        self.traces = traces
        """Of the nodes that had run, and of this one."""
        self.result: WorkflowResult | None = None
        """What the workflow gave before; None if its result was not there yet."""


def run_workflow(
    workflow: Workflow,
    *,
    memory: Memory | LateMemory | None = None,
    messages: Iterable[Any] = (),
    discussion_id: str = "",
    user: str = DEFAULT_USER,
    inputs: Mapping[str, str] | Sequence[str] = (),
    environment: Environment | None = None,
    respond: Respond | None = None,
) -> WorkflowResult:
    """Run a workflow.

    Args:
        memory: where the discussion is kept; without one nothing is.
        messages: of the chat, each with role and content. A `[DiscussionId]` tag in one names the discussion.
        discussion_id: turns persistence on. One that is no id is warned of, and nothing is kept.
        user: whose discussion it is.
        inputs: `{agent1Input}` and so on.
        environment: models, settings and folders. Nodes that name no model ask that of the memory.
        respond: is told the result as soon as it is there. Later nodes still run; where one of them fails, the
            `NodeFailure` has the result too.

    >>> hello = Workflow.of([{"type": "StaticResponse", "content": "Hello {agent1Input}"}])
    >>> run_workflow(hello, inputs=["{Anna}"]).text
    'Hello {Anna}'
    """
    tag, cleaned = take_tag(read_messages(messages))
    run = Run(workflow, environment or Environment(), memory, cleaned, user, chain=(workflow,), respond=respond)
    run.open_discussion(discussion_id or tag)
    try:
        return run.result(run.with_inputs(inputs).execute())
    except NodeFailure as error:
        error.result = None if run.text is None else run.result(run.text)
        raise


@dataclass(slots=True)
class Run:
    """One workflow that runs, on its own or called by another one."""

    workflow: Workflow
    environment: Environment
    source: Memory | LateMemory | None
    messages: Sequence[ChatMessage]
    user: str = DEFAULT_USER
    discussion_id: str = ""
    """Empty if nothing is kept."""
    intake: Intake | None = None
    """None if the messages are not to be taken in."""
    chain: tuple[Workflow, ...] = ()
    """It, after those that called it."""
    inputs: tuple[str, ...] = ()
    bracketed: Mapping[str, str] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    """By the number of the node."""
    traces: list[NodeTrace] = field(default_factory=list)
    """Of all nodes that have ended, those of called workflows before the node that called them."""
    notes: list[str] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)
    """What is to be done when the workflow ends."""
    is_ended: bool = False
    locks: set[str] = field(default_factory=set)
    """The names of those that it holds, or one that called it."""
    respond: Respond | None = None
    """Is told the text of the result as soon as it is there."""
    text: str | None = None
    """That of the result; None as long as there is none."""

    @property
    def memory(self) -> Memory | None:
        """Where the discussion is kept, to read it."""
        return self.source.memory if isinstance(self.source, LateMemory) else self.source

    def make_store(self) -> Memory | None:
        """Where the discussion is kept, to write to it."""
        if isinstance(self.source, LateMemory):
            self.source.make()
        return self.memory

    @property
    def scope(self) -> Scope | None:
        """The scope of the discussion; None if nothing is kept."""
        return discussion_scope(self.discussion_id, self.user) if self.discussion_id else None

    def open_discussion(self, id: str) -> None:
        """Turn persistence on, if the id is one."""
        if not id:
            return
        try:
            scope = discussion_scope(id, self.user)
        except InputError as error:
            self.warn(f"{error}; the workflow runs without persistence")
            return
        if self.memory is None:
            raise WorkflowError(f"the discussion {show(id)} needs a memory: pass memory=")
        self.discussion_id, self.intake = id, Intake(scope, self.messages)

    def time_context(self) -> str:
        """When the discussion began and when something was last said in it."""
        return self.intake.time_context(self.memory, self.environment.now()) if self.intake and self.memory else ""

    def take_in(self) -> None:
        """Take the messages into the log of the discussion, unless that is done."""
        if self.intake and (memory := self.make_store()):
            for note in self.intake.take_in(memory):
                self.warn(note)

    def with_inputs(self, inputs: Mapping[str, str] | Sequence[str]) -> Run:
        """The same with inputs. Those with names may also stand in brackets."""
        named = inputs if isinstance(inputs, Mapping) else {}
        self.inputs, self.bracketed = tuple(named.values() if named else inputs), named
        return self

    def execute(self) -> str:
        """Run all nodes, and return the text of the result."""
        types = [self._find_type(number) for number in range(1, len(self.workflow.nodes) + 1)]
        with self.stack:
            for number, type in enumerate(types, 1):
                if not self.is_ended:
                    self.put(number, self._run_node(number, type))
        if self.text is None:
            self._respond(self._text_at_end())
        return self.text or ""

    def put(self, number: int, output: str) -> None:
        """Note the output of a node. That of the last responder, else of the last node, is the result."""
        self.outputs[number] = output
        if number == max(self._responders() or [len(self.workflow.nodes)]) and self.text is None:
            self._respond(output)

    def result(self, text: str) -> WorkflowResult:
        """A text as the result, with what nodes did so far."""
        return WorkflowResult(text, tuple(self.traces), tuple(self.notes))

    def find_model(self, endpoint: str = "", preset: str = "") -> Llm | None:
        """The language model of an endpoint and a preset; the memory's own if no endpoint is named."""
        models = self.environment.models
        if models.default is None and self.memory:
            models = replace(models, default=self.memory.llm)
        return models.find(endpoint, preset)

    def call(
        self,
        name: str,
        inputs: Mapping[str, str] | Sequence[str] = (),
        folder: str = "",
        respond: Respond | None = None,
        **changes: Any,
    ) -> str:
        """Run the workflow of a name, and return its result. `changes` are put into its first node."""
        workflow = self.find_workflow(name, folder)
        if changes:
            first, *others = workflow.nodes
            workflow = replace(workflow, nodes=({**first, **changes}, *others))
        inner = self.anew(workflow=workflow, chain=(*self.chain, workflow), respond=respond)
        return inner.with_inputs(inputs).execute()

    def anew(self, **changes: Any) -> Run:
        """The same before its first node, with other values."""
        return replace(self, **{"outputs": {}, "stack": ExitStack(), "respond": None, "text": None, **changes})

    def find_workflow(self, name: str, folder: str = "") -> Workflow:
        """Read the workflow of a name. Raise WorkflowError if it is missing, or is running already."""
        return find_in_chain(self.chain, self.environment.workflows, name, folder)

    def end(self) -> None:
        """Run no more nodes of this workflow."""
        self.is_ended = True

    def warn(self, text: str) -> None:
        """Say something beside the result."""
        if text not in self.notes:
            self.notes.append(text)
            _logger.warning("%s: %s", self.workflow.title, text)

    def render(self, text: str, node: Mapping[str, Any], values: Mapping[str, str]) -> str:
        """A text of a node with placeholders filled in."""
        return render(text, Values(self, node, values), is_template=node.get("jinja2") is True)

    def _find_type(self, number: int) -> NodeType:
        fields = self.workflow.nodes[number - 1]
        try:
            type = find_type(fields)
            if missing := missing_keys(type, fields):
                raise WorkflowError(missing)
            return type
        except WorkflowError as error:
            raise self._failure(new_trace(self.chain, number), error) from error

    def _run_node(self, number: int, type: NodeType) -> str:
        trace, start = new_trace(self.chain, number), time.perf_counter()
        try:
            if type.takes_in:
                self.take_in()
            output = type.function(NodeCall(self.workflow.nodes[number - 1], self, trace))
            if not isinstance(output, str):
                raise WorkflowError(f"gave {show(output)}, which is no text")
            trace.output = output
            return output
        except NodeFailure as error:
            trace.error = str(error)
            raise
        except Exception as error:
            trace.error = str(error) or error.__class__.__name__
            raise self._failure(trace, error) from error
        finally:
            trace.seconds = time.perf_counter() - start
            self.traces.append(trace)
            if self.environment.progress:
                self.environment.progress(trace)

    def _failure(self, trace: NodeTrace, error: Exception) -> NodeFailure:
        reason = str(error) if isinstance(error, EunoeError) else f"{error.__class__.__name__}: {error}"
        return NodeFailure(f"{node_place(self.chain, trace)}: {reason}", self.traces)

    def _responders(self) -> list[int]:
        return [number for number, fields in enumerate(self.workflow.nodes, 1) if is_responder(fields)]

    def _respond(self, text: str) -> None:
        self.text = text
        if self.respond:
            self.respond(text)

    def _text_at_end(self) -> str:
        """The result of a workflow that a node has ended: that of the last responder, else of the node before it."""
        numbers = [number for number in self._responders() if number in self.outputs] or list(self.outputs)[:-1]
        return self.outputs[numbers[-1]] if numbers else ""


def find_in_chain(chain: Sequence[Workflow], folder: Path | None, name: str, sub_folder: str = "") -> Workflow:
    """Read the workflow that the last one of a chain names. One that is in the chain already is an error."""
    own = chain[-1].path
    top = folder or (chain[0].path.parent if chain[0].path else None)
    names = " -> ".join([*(each.name for each in chain), name])
    if top is None:
        raise WorkflowError(f"no folder to find the workflow {show(name)} in: {names}; name one with --workflows")
    try:
        path = WorkflowFolder(top).find(name, sub_folder, own)
    except WorkflowError as error:
        raise WorkflowError(f"{error}: {names}") from error
    names = " -> ".join([*(each.name for each in chain), path.stem])
    if any(each.path and each.path.resolve() == path for each in chain):
        raise WorkflowError(f"the workflow {show(name)} calls itself: {names}")
    if len(chain) >= MAX_DEPTH:
        raise WorkflowError(f"more than {MAX_DEPTH} workflows call each other: {names}")
    return Workflow.load(path)
