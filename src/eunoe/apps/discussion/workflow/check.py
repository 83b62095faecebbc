"""What is wrong with a workflow and with those that it calls, found before they run, all at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eunoe.apps.discussion.workflow.document import Environment, NodeTrace, Workflow, find_in_chain, node_ids
from eunoe.apps.discussion.workflow.node import (
    COMMON_KEYS,
    UPDATE_FIRST,
    NodeType,
    find_type,
    is_responder,
    key_problem,
)
from eunoe.apps.discussion.workflow.texts import (
    NAME,
    VALUES,
    output_number,
    parse_agent_name,
    placeholder_names,
    substitute,
    template_names,
    unknown_placeholder,
    variable_text,
)
from eunoe.errors import EunoeError, WorkflowError
from eunoe.model.arguments import show

_MAKER: Final = "QualityMemory"
_READERS: Final = frozenset(("RecentMemory", "FullChatSummary"))
"""In WilmerAI these two make memories before they read."""
_MESSAGES: Final = "messages"
"""What templates can use beside placeholders."""


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
            _extend(self.report.notes, workflow.title, _variable_notes(workflow))
        for number, fields in enumerate(workflow.nodes, 1):
            place = NodeTrace.of(chain, number).place_in(chain)
            try:
                type = find_type(fields, is_complete=False)
            except WorkflowError as error:
                _extend(self.report.problems, place, [str(error)])
                continue
            self._types.add(type.name if fields.get(UPDATE_FIRST) is not True else _MAKER)
            _extend(self.report.problems, place, self._node_problems(workflow, number, type, inputs))
            known = {*COMMON_KEYS, *type.required, *type.keys}
            others = (f"{key} is not read by nodes of this type" for key in fields if key not in known)
            _extend(self.report.notes, place, others)
            variables = fields.get("scoped_variables")
            folder = fields.get("folder") or fields.get("workflowUserFolderOverride") or ""
            for name in type.workflows(fields, self._environment) if type.workflows else ():
                called, known_folder = _fill_in(name, workflow), _fill_in(folder, workflow)
                if called is None or known_folder is None:
                    note = f"which workflow {show(name)} is, is known only when it runs"
                    _extend(self.report.notes, place, [note])
                elif called:
                    count = len(variables) if isinstance(variables, list) else 0
                    self._check_call(chain, place, called, known_folder, count)

    def check_settings(self, workflow: Workflow) -> None:
        """Check the workflows and models that settings name; note that nothing makes the memories that nodes read, as
        far as these workflows tell."""
        settings, user = self._environment.settings, self._environment.user_settings
        parts = (settings.chunk_memory, settings.keyword_memory, settings.summary, settings.state_document)
        for author in [each.author for each in parts]:
            problems = self._environment.models.problems(author.endpoint, author.preset)
            _extend(self.report.problems, "the settings", problems)
            if author.workflow:
                self._check_call((workflow,), "the settings", author.workflow, "", None)
        for name in filter(None, (user.recent_memory_workflow, user.chat_summary_workflow)):
            self._check_call((workflow,), "the settings of the user", name, "", 0)
        is_on = self._environment.update_first or workflow.variables.get(UPDATE_FIRST) is True
        if not is_on and _MAKER not in self._types and self._types & _READERS:
            note = f"{', '.join(sorted(self._types & _READERS))} only read: add {_MAKER} behind the reply, or set "
            note += f"{UPDATE_FIRST} to true, unless memories are made elsewhere"
            _extend(self.report.notes, workflow.title, [note])

    def _node_problems(self, workflow: Workflow, number: int, type: NodeType, inputs: int | None) -> Iterator[str]:
        fields = workflow.nodes[number - 1]
        try:
            find_type(fields)
        except WorkflowError as error:
            yield str(error)
        for key, value in fields.items():
            if not isinstance(value, str) or not any(placeholder_names(value)):  # else known only when it runs
                yield from filter(None, [key_problem(key, value)])
        if isinstance(id := fields.get("id"), str) and node_ids(workflow.nodes)[id] != number:
            yield f"its id {show(id)} is that of another node too"
        agent = parse_agent_name(f"{fields.get('id')}Output")
        if agent and agent[0] != number and agent[0] <= len(workflow.nodes):
            yield f"its id {show(fields['id'])} is what node {agent[0]} is called by its place: give it another id"
        names = [_fill_in(fields.get(key), workflow) if key in type.keys else "" for key in ("endpointName", "preset")]
        if None not in names:
            yield from self._environment.models.problems(names[0] or "", names[1] or "", type.needs_model)
        for key in (*type.required, *type.keys):
            for text in _texts(fields.get(key)):
                yield from (f"{key}: {each}" for each in _text_problems(text, workflow, number, inputs))

    def _check_call(self, chain: tuple[Workflow, ...], place: str, name: str, folder: str, inputs: int | None) -> None:
        try:
            called = find_in_chain(chain, self._environment.workflows, name, folder)
        except EunoeError as error:
            _extend(self.report.problems, place, [str(error)])
        else:
            self.check((*chain, called), inputs)


def _extend(lines: list[str], place: str, texts: Iterable[str]) -> None:
    found = (f"{place}: {text}" for text in texts)
    lines.extend(line for line in dict.fromkeys(found) if line not in lines)


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
        output, agent = output_number(name, workflow.nodes), parse_agent_name(name)
        if output is not None:
            if output >= number:
                yield f"{{{name}}} has no value yet: node {output} does not run before node {number}"
        elif agent and agent[1]:
            yield f"{{{name}}} has no value: the workflow has {len(workflow.nodes)} nodes"
        elif agent:
            if inputs is not None and agent[0] > inputs:
                yield f"{{{name}}} has no value: it is called with {inputs} scoped variables"
        elif name not in workflow.variables and name not in VALUES:
            yield unknown_placeholder(name, is_template)


def _fill_in(value: Any, workflow: Workflow) -> str | None:
    """A text with the variables of its workflow; None if it holds anything else that is known only at run time."""
    if value is None or isinstance(value, list | Mapping):
        return ""
    value, variables = variable_text(value), workflow.variables
    if not all(name in variables for name in placeholder_names(value)):
        return None
    return substitute(value, lambda name: variable_text(variables[name]), "[{}]".format)
