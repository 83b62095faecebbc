"""How a workflow runs: its nodes one after the other, each with what those before it gave."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eunoe.apps.discussion.authors import AuthorSources
from eunoe.apps.discussion.documents import new_since_summary
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import DEFAULT_USER, discussion_scope, take_tag
from eunoe.apps.discussion.update import update_discussion
from eunoe.apps.discussion.workflow.document import Environment, NodeTrace, Workflow, find_in_chain
from eunoe.apps.discussion.workflow.node import NodeCall, NodeType, find_type, is_responder
from eunoe.apps.discussion.workflow.texts import ChatMessage, Values, read_messages, render
from eunoe.errors import ConflictError, EunoeError, InputError, LlmError, WorkflowError
from eunoe.llm.contract import Llm
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope
from eunoe.text.dates import describe_age

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
    memory: Memory | None = None,
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
    if id := discussion_id or tag:
        try:
            scope = discussion_scope(id, user)
        except InputError as error:
            run.warn(f"{error}; the workflow runs without persistence")
        else:
            if memory is None:
                raise WorkflowError(f"the discussion {show(id)} needs a memory: pass memory=")
            run.discussion_id, run.intake = id, Intake(DiscussionLog(memory, scope), cleaned)
    try:
        return run.result(run.with_inputs(inputs).execute())
    except NodeFailure as error:
        error.result = None if run.text is None else run.result(run.text)
        raise


@dataclass(slots=True)
class Intake:
    """Takes the messages of a run into the log once, right before the first node that does more than read."""

    log: DiscussionLog
    messages: Sequence[ChatMessage]
    is_done: bool = False
    new: int = 0
    """So many messages were new."""

    def take_in(self) -> tuple[str, ...]:
        """Take the messages in, unless that is done. Return what a person should know."""
        if self.is_done:
            return ()
        report = self.log.take_in(self.messages)
        self.is_done, self.new = True, len(report.new)
        return report.notes


@dataclass(slots=True)
class Run:
    """One workflow that runs, on its own or called by another one."""

    workflow: Workflow
    environment: Environment
    memory: Memory | None
    """Where the discussion is kept."""
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
    """Whether no more nodes of this workflow are run."""
    locks: set[str] = field(default_factory=set)
    """The names of those that it holds, or one that called it."""
    respond: Respond | None = None
    """Is told the text of the result as soon as it is there."""
    text: str | None = None
    """That of the result; None as long as there is none."""

    @property
    def scope(self) -> Scope | None:
        """The scope of the discussion; None if nothing is kept."""
        return discussion_scope(self.discussion_id, self.user) if self.discussion_id else None

    def time_context(self) -> str:
        """When the discussion began and when something was last said in it before this run."""
        times = [each.time for each in self.intake.log.messages() if each.time] if self.intake else []
        earlier = times[: len(times) - self.intake.new] if self.intake else []
        if not earlier:
            return ""
        now = self.environment.now().astimezone()
        began, last = (describe_age(time, now) for time in (earlier[0], earlier[-1]))
        return f"This discussion began {began}. Before now something was last said in it {last}."

    def with_inputs(self, inputs: Mapping[str, str] | Sequence[str]) -> Run:
        """The same with inputs. Those with names may also stand in brackets."""
        named = inputs if isinstance(inputs, Mapping) else {}
        self.inputs, self.bracketed = tuple(named.values() if named else inputs), named
        return self

    def execute(self) -> str:
        """Run all nodes, and return the text of the result."""
        types: list[NodeType] = []
        for number, fields in enumerate(self.workflow.nodes, 1):
            try:
                types.append(find_type(fields))
            except WorkflowError as error:
                raise self._failure(NodeTrace.of(self.chain, number), error) from error
        with self.stack:
            for number, type in enumerate(types, 1):
                if not self.is_ended:
                    self.put(number, self._run_node(number, type))
        if self.text is None:  # a node has ended it: that of the last responder, else of the node before it
            numbers = [number for number in self._responders() if number in self.outputs] or list(self.outputs)[:-1]
            self._respond(self.outputs[numbers[-1]] if numbers else "")
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
        workflow = find_in_chain(self.chain, self.environment.workflows, name, folder)
        if changes:
            first, *others = workflow.nodes
            workflow = replace(workflow, nodes=({**first, **changes}, *others))
        anew: dict[str, Any] = {"outputs": {}, "stack": ExitStack(), "text": None, "respond": respond}
        inner = replace(self, workflow=workflow, chain=(*self.chain, workflow), **anew)
        return inner.with_inputs(inputs).execute()

    def warn(self, text: str) -> None:
        """Say something beside the result."""
        if text not in self.notes:
            self.notes.append(text)
            _logger.warning("%s: %s", self.workflow.title, text)

    def render(self, text: str, node: Mapping[str, Any], values: Mapping[str, str]) -> str:
        """A text of a node with placeholders filled in."""
        return render(text, Values(self, node, values), is_template=node.get("jinja2") is True)

    def _run_node(self, number: int, type: NodeType) -> str:
        trace, start = NodeTrace.of(self.chain, number), time.perf_counter()
        try:
            if type.takes_in and self.intake:
                for note in self.intake.take_in():
                    self.warn(note)
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
        return NodeFailure(f"{trace.place_in(self.chain)}: {reason}", self.traces)

    def _responders(self) -> list[int]:
        return [number for number, fields in enumerate(self.workflow.nodes, 1) if is_responder(fields)]

    def _respond(self, text: str) -> None:
        self.text = text
        if self.respond:
            self.respond(text)


def make_memories(call: NodeCall, *, force: bool = False, is_whole: bool = False) -> None:
    """Take in the messages of a run, and make the memories that are due.

    What goes wrong is noted: it stays due, and no reply is lost for it.
    """
    title = f"the discussion {show(call.run.discussion_id)} of {show(call.run.user)}"
    environment, memory, scope = call.run.environment, call.run.memory, call.run.scope
    if memory is None or scope is None:
        return
    run = replace(call.run, intake=None)  # workflows that make memories take in nothing by themselves
    settings, tool = environment.settings, environment.user_settings.chat_summary_workflow
    if tool:  # it is run in place of the author of the summary
        settings = replace(settings, summary=replace(settings.summary, is_on=False))
    try:
        report = update_discussion(
            memory,
            scope,
            settings,
            messages=call.messages,
            is_whole=is_whole,
            force=force,
            find_model=run.find_model,
            run_workflow=run.call,
            files_dir=environment.files_dir,
            layout=environment.layout,
            key=environment.key,
        )
        if tool and len(new_since_summary(memory, scope)) >= settings.summary.least_memories:
            run.call(tool)
    except (ConflictError, LlmError, WorkflowError) as error:
        call.note(f"{title}: {error}")
        return
    for failure in report.failed:
        call.note(f"{title}: a chunk failed (attempt {failure.attempts}) and stays due: {failure.error}")
    for note in report.notes:
        call.note(f"{title}: {note}")


def check_workflows(environment: Environment) -> None:
    """Raise an error for a workflow that the settings name and that is not there or cannot be read."""
    for author in environment.settings.authors:
        if author.workflow:
            Workflow.load(author.workflow, environment.workflows or Path())


def author_sources(memory: Memory, scope: Scope, environment: Environment) -> AuthorSources:
    """Where the authors that the settings name come from, outside of a run."""

    def run(name: str, inputs: Mapping[str, str]) -> str:
        return run_workflow(
            Workflow.load(name, environment.workflows or Path()),
            memory=memory,
            discussion_id=scope.pairs["discussion"],
            user=scope.pairs["user"],
            inputs=inputs,
            environment=environment,
        ).text

    return AuthorSources(environment.models.find, run)
