"""The texts of a node with placeholders filled in, by braces or as a Jinja template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from eunoe.apps.discussion.workflow.placeholders import (
    parse_agent_name,
    placeholder_names,
    substitute,
    substitute_brackets,
)
from eunoe.apps.discussion.workflow.templates import render_template
from eunoe.apps.discussion.workflow.values import VALUES, Surroundings
from eunoe.errors import WorkflowError

if TYPE_CHECKING:
    from eunoe.apps.discussion.workflow.runner import Run


class Values:
    """What placeholders stand for in one node of a run."""

    def __init__(self, run: Run, node: Mapping[str, Any], extra: Mapping[str, str]) -> None:
        self._run = run
        self._extra = extra
        self._around = Surroundings(
            run.messages, node, run.environment.now(), run.discussion_id, run.time_context, self._fill_in
        )

    def __getitem__(self, name: str) -> str:
        """The value of a name in braces. Raise WorkflowError if there is none."""
        if name in self._extra:
            return self._extra[name]
        if (value := self._of_workflow(name)) is not None:
            return value
        if name in VALUES:
            return VALUES[name](self._around)
        raise WorkflowError(unknown_placeholder(name))

    def bracketed(self, name: str) -> str:
        """The value of a name in brackets. Raise WorkflowError if there is none."""
        for values in (self._extra, self._run.bracketed):
            if name in values:
                return values[name]
        raise WorkflowError(f"[{name}] has no value here: only prompts that make memories can use it")

    def as_mapping(self) -> dict[str, Any]:
        """All that have a value now, for templates: variables with their types, and the messages of the chat."""
        run = self._run
        outputs = [f"agent{number}Output" for number in run.outputs]
        outputs += [f"{id}Output" for id, number in node_ids(run.workflow.nodes).items() if number in run.outputs]
        inputs = [f"agent{number}Input" for number in range(1, len(run.inputs) + 1)]
        return {
            "messages": [dict(each) for each in run.messages],
            **{name: value(self._around) for name, value in VALUES.items()},
            **run.workflow.variables,
            **{name: self[name] for name in (*inputs, *outputs)},
            **self._extra,
        }

    def _fill_in(self, text: str) -> str:
        """A number that other values depend on, so that these have no place in it."""
        known = {name: self._of_workflow(name) for name in placeholder_names(text)}
        return substitute(text, lambda name: f"{{{name}}}" if (value := known[name]) is None else value, self.bracketed)

    def _of_workflow(self, name: str) -> str | None:
        if (value := self._of_node(name)) is not None:
            return value
        variables = self._run.workflow.variables
        return variable_text(variables[name]) if name in variables else None

    def _of_node(self, name: str) -> str | None:
        number = output_number(name, self._run.workflow.nodes)
        if number is not None:
            if number not in self._run.outputs:
                raise WorkflowError(f"{{{name}}} has no value yet: node {number} has not run before this one")
            return self._run.outputs[number]
        agent = parse_agent_name(name)
        if agent is None:
            return None
        if agent.is_output or agent.number > len(self._run.inputs):
            nodes, inputs = len(self._run.workflow.nodes), len(self._run.inputs)
            count = f"has {nodes} nodes" if agent.is_output else f"got {inputs} inputs"
            raise WorkflowError(f"{{{name}}} has no value: the workflow {count}")
        return self._run.inputs[agent.number - 1]


def render(text: str, values: Values, is_template: bool) -> str:
    """Fill in placeholders."""
    if not is_template:
        return substitute(text, values.__getitem__, values.bracketed)
    return _render_template(text, values)


def _render_template(text: str, values: Values) -> str:
    """Names in brackets are filled in last, at marks that nobody can guess: what is put in is never read again."""
    mark = token_hex(8)
    source = substitute_brackets(text, lambda name: f"{mark}{name}.")
    result = render_template(source, values.as_mapping()) if "{" in source else source
    return re.sub(rf"{mark}(\w+)\.", lambda match: values.bracketed(match[1]), result)


def node_ids(nodes: tuple[Mapping[str, Any], ...]) -> dict[str, int]:
    """The numbers of nodes by their ids."""
    return {each["id"]: number for number, each in enumerate(nodes, 1) if isinstance(each.get("id"), str)}


def output_number(name: str, nodes: tuple[Mapping[str, Any], ...]) -> int | None:
    """The number of the node whose output a name means: that with the id before `Output`, else the Nth."""
    agent = parse_agent_name(name)
    if not name.endswith("Output"):
        return None
    by_place = agent.number if agent and agent.number <= len(nodes) else None
    return node_ids(nodes).get(name.removesuffix("Output"), by_place)


def variable_text(value: Any) -> str:
    """A variable of a workflow as prompts show it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def unknown_placeholder(name: str, is_template: bool = False) -> str:
    """What is said of a placeholder that nothing is known of."""
    if is_template:
        return f"{{{{ {name} }}}} has no value; put {{% raw %}} and {{% endraw %}} around braces meant as they are"
    return f"{{{name}}} is no placeholder; write {{{{{name}}}}} if the braces are meant as they are"
