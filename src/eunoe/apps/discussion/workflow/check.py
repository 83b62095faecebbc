"""What is wrong with a workflow and with those that it calls, found before they run, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eunoe.apps.discussion.workflow.document import Workflow
from eunoe.apps.discussion.workflow.environment import Environment
from eunoe.apps.discussion.workflow.node import (
    COMMON_KEYS,
    RESPONDER_KEYS,
    NodeType,
    find_type,
    is_responder,
    missing_keys,
)
from eunoe.apps.discussion.workflow.nodes.memory_keys import UPDATE_FIRST
from eunoe.apps.discussion.workflow.placeholders import NAME, parse_agent_name, placeholder_names, substitute
from eunoe.apps.discussion.workflow.rendering import node_ids, output_number, unknown_placeholder, variable_text
from eunoe.apps.discussion.workflow.runner import find_in_chain
from eunoe.apps.discussion.workflow.templates import template_names
from eunoe.apps.discussion.workflow.trace import new_trace, node_place
from eunoe.apps.discussion.workflow.values import COUNT_KEYS, VALUES, count_problem
from eunoe.errors import EunoeError, WorkflowError
from eunoe.model.arguments import show

_MAKER: Final = "QualityMemory"
_READERS: Final = frozenset(("RecentMemory", "FullChatSummary"))
"""In WilmerAI these two make memories before they read."""
_MESSAGES: Final = "messages"
"""What templates can use beside placeholders."""
_LISTS: Final = ("strings", "scoped_variables")
_TEXTS: Final = (
    *("prompt", "systemPrompt", "endpointName", "preset", "maxResponseSizeInTokens", "content", "delimiter", "folder"),
    *("workflowName", "workflowUserFolderOverride", "conditionalKey", "condition", "workflowLockId"),
    *("filepath", "customReturnDelimiter", "module_path"),
)


@dataclass(slots=True)
class CheckReport:
    """What was found."""

    problems: list[str] = field(default_factory=list)
    """What keeps the workflow from running."""
    notes: list[str] = field(default_factory=list)
    """What is worth knowing: keys that are not read, names that are known only when it runs."""
    workflows: list[str] = field(default_factory=list)
    """The files that were read."""
    nodes: int = 0


def check_workflow(workflow: Workflow, environment: Environment | None = None) -> CheckReport:
    """Find all that is wrong with a workflow and those that it calls.

    >>> check_workflow(Workflow.of([{"type": "Telepathy"}])).problems[0][:70]
    "the workflow: node 1 (Telepathy): the node type 'Telepathy' is not sup"
    """
    checker = _Checker(environment or Environment())
    checker.check((workflow,), None)
    checker.check_settings(workflow)
    checker.check_makers(workflow)
    return checker.report


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.report = CheckReport()
        self._environment = environment
        self._checked: set[tuple[str, int | None]] = set()
        self._types: set[str] = set()

    def check(self, chain: tuple[Workflow, ...], inputs: int | None) -> None:
        """Check the last workflow of a chain, which gets so many inputs; None if nobody knows how many."""
        workflow = chain[-1]
        if (workflow.title, inputs) in self._checked:
            return
        self._checked.add((workflow.title, inputs))
        if workflow.title not in self.report.workflows:
            self.report.workflows.append(workflow.title)
            self.report.nodes += len(workflow.nodes)
            self._add_notes(workflow.title, _variable_notes(workflow))
        for number, fields in enumerate(workflow.nodes, 1):
            place = node_place(chain, new_trace(chain, number))
            try:
                type = find_type(fields)
            except WorkflowError as error:
                self._add_problems(place, [str(error)])
                continue
            self._types.add(type.name if fields.get(UPDATE_FIRST) is not True else _MAKER)
            self._add_problems(place, self._node_problems(workflow, number, type, inputs))
            self._add_notes(place, _key_notes(type, fields))
            self._check_calls(chain, place, type, fields)

    def check_settings(self, workflow: Workflow) -> None:
        """Check the workflows and models that the settings of discussions name."""
        settings = self._environment.settings
        parts = (settings.chunk_memory, settings.keyword_memory, settings.summary, settings.condensation)
        for author in [each.author for each in (*parts, settings.state_document)]:
            self._add_problems("the settings", self._environment.models.problems(author.endpoint, author.preset))
            if author.workflow:
                self._check_call((workflow,), "the settings", author.workflow, "", None)
        user = self._environment.user_settings
        for name in (user.recent_memory_workflow, user.conversation_memory_workflow, user.chat_summary_workflow):
            if name:
                self._check_call((workflow,), "the settings of the user", name, "", 0)

    def check_makers(self, workflow: Workflow) -> None:
        """Note that nothing makes the memories that nodes read, as far as these workflows tell."""
        is_on = self._environment.update_first or workflow.variables.get(UPDATE_FIRST) is True
        if not is_on and _MAKER not in self._types and self._types & _READERS:
            note = f"{', '.join(sorted(self._types & _READERS))} only read: add {_MAKER} behind the reply, or set "
            self._add_notes(workflow.title, [f"{note}{UPDATE_FIRST} to true, unless memories are made elsewhere"])

    def _node_problems(self, workflow: Workflow, number: int, type: NodeType, inputs: int | None) -> Iterator[str]:
        fields = workflow.nodes[number - 1]
        if missing := missing_keys(type, fields):
            yield missing
        yield from _flag_problems(fields)
        yield from _shape_problems(fields)
        yield from _count_problems(type, fields)
        if isinstance(id := fields.get("id"), str) and node_ids(workflow.nodes)[id] != number:
            yield f"its id {show(id)} is that of another node too"
        agent = parse_agent_name(f"{fields.get('id')}Output")
        if agent and agent.number != number and agent.number <= len(workflow.nodes):
            yield f"its id {show(fields['id'])} is what node {agent.number} is called by its place: give it another id"
        if type.check:
            yield from type.check(fields, self._environment)
        yield from self._model_problems(workflow, type, fields)
        for key in (*type.required, *type.keys):
            for text in _texts(fields.get(key)):
                yield from (f"{key}: {each}" for each in _text_problems(text, workflow, number, inputs))

    def _model_problems(self, workflow: Workflow, type: NodeType, fields: Mapping[str, Any]) -> Iterator[str]:
        names = {key: _fill_in(fields.get(key), workflow) for key in ("endpointName", "preset") if key in type.keys}
        if None in names.values():
            return
        endpoint, preset = names.get("endpointName") or "", names.get("preset") or ""
        yield from self._environment.models.problems(endpoint, preset)
        yield from self._environment.models.spec_problems(endpoint, preset)
        if type.needs_model and not endpoint and not self._environment.models.has_default(preset):
            yield "there is no language model for it: it names no endpointName, and EUNOE_LLM is not set"

    def _check_calls(self, chain: tuple[Workflow, ...], place: str, type: NodeType, fields: Mapping[str, Any]) -> None:
        variables = fields.get("scoped_variables")
        inputs = len(variables) if isinstance(variables, list) else 0
        folder = fields.get("folder") or fields.get("workflowUserFolderOverride") or ""
        for name in type.workflows(fields, self._environment) if type.workflows else ():
            known, known_folder = _fill_in(name, chain[-1]), _fill_in(folder, chain[-1])
            if known is None or known_folder is None:
                self._add_notes(place, [f"which workflow {show(name)} is, is known only when it runs"])
            elif known:
                self._check_call(chain, place, known, known_folder, inputs)

    def _check_call(self, chain: tuple[Workflow, ...], place: str, name: str, folder: str, inputs: int | None) -> None:
        try:
            called = find_in_chain(chain, self._environment.workflows, name, folder)
        except EunoeError as error:
            self._add_problems(place, [str(error)])
        else:
            self.check((*chain, called), inputs)

    def _add_problems(self, place: str, problems: Iterable[str]) -> None:
        _extend(self.report.problems, place, problems)

    def _add_notes(self, place: str, notes: Iterable[str]) -> None:
        _extend(self.report.notes, place, notes)


def _extend(lines: list[str], place: str, texts: Iterable[str]) -> None:
    found = (f"{place}: {text}" for text in texts)
    lines.extend(line for line in dict.fromkeys(found) if line not in lines)


def _flag_problems(fields: Mapping[str, Any]) -> Iterator[str]:
    for key in (*RESPONDER_KEYS, "jinja2"):
        if not isinstance(fields.get(key, False), bool | None):
            yield f"{key} must be true or false, not {show(fields[key])}"


def _key_notes(type: NodeType, fields: Mapping[str, Any]) -> Iterator[str]:
    known = {*COMMON_KEYS, *type.required, *type.keys}
    yield from (f"{key} is not read by nodes of this type" for key in fields if key not in known)


def _variable_notes(workflow: Workflow) -> Iterator[str]:
    for name in workflow.variables:
        if not NAME.fullmatch(name):
            yield f"the variable {show(name)} can stand in no placeholder: its name must be one word"
        elif name in VALUES:
            yield f"the variable {name} takes the place of the placeholder of that name"
        elif parse_agent_name(name):
            yield f"the variable {name} is not read: {{{name}}} means something else"
    if sum(map(is_responder, workflow.nodes)) > 1:
        yield "several nodes are marked as the one that responds: the last one counts"


def _shape_problems(fields: Mapping[str, Any]) -> Iterator[str]:
    for key, value in fields.items():
        if key in _LISTS and (not isinstance(value, list) or any(isinstance(each, list | Mapping) for each in value)):
            yield f"{key} must be a list of texts, not {show(value)}"
        elif key in _TEXTS and isinstance(value, list | Mapping):
            yield f"{key} must be text, not {show(value)}"


def _count_problems(type: NodeType, fields: Mapping[str, Any]) -> Iterator[str]:
    for key in COUNT_KEYS:
        value = fields.get(key) if key in type.keys else None
        if not isinstance(value, str) or not any(placeholder_names(value)):
            yield from filter(None, [count_problem(key, value)])


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list | Mapping):
            waiting += reversed(list(each.values() if isinstance(each, Mapping) else each))


def _text_problems(text: str, workflow: Workflow, number: int, inputs: int | None) -> Iterator[str]:
    is_template = workflow.nodes[number - 1].get("jinja2") is True
    if is_template and "{" not in text:
        return
    try:
        names = sorted(template_names(text) - {_MESSAGES}) if is_template else dict.fromkeys(placeholder_names(text))
    except EunoeError as error:
        yield str(error)
        return
    for name in names:
        yield from _name_problems(name, workflow, number, inputs)


def _name_problems(name: str, workflow: Workflow, number: int, inputs: int | None) -> Iterator[str]:
    output, agent = output_number(name, workflow.nodes), parse_agent_name(name)
    if output is not None:
        if output >= number:
            yield f"{{{name}}} has no value yet: node {output} does not run before node {number}"
    elif agent and agent.is_output:
        yield f"{{{name}}} has no value: the workflow has {len(workflow.nodes)} nodes"
    elif agent:
        if inputs is not None and agent.number > inputs:
            yield f"{{{name}}} has no value: it is called with {inputs} scoped variables"
    elif name not in workflow.variables and name not in VALUES:
        yield unknown_placeholder(name, workflow.nodes[number - 1].get("jinja2") is True)


def _fill_in(value: Any, workflow: Workflow) -> str | None:
    """A text with the variables of its workflow; None if it holds anything else that is known only at run time."""
    if value is None or isinstance(value, list | Mapping):
        return ""
    value, variables = variable_text(value), workflow.variables
    names: Sequence[str] = list(placeholder_names(value))
    if not all(name in variables for name in names):
        return None
    return substitute(value, lambda name: variable_text(variables[name]), "[{}]".format)
