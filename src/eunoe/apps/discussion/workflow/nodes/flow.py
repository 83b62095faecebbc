"""Nodes that call other workflows, and choose between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from eunoe.apps.discussion.workflow.condition import condition_texts, parse_condition
from eunoe.apps.discussion.workflow.node import node
from eunoe.apps.discussion.workflow.node_call import NodeCall
from eunoe.apps.discussion.workflow.templates import template_names
from eunoe.apps.discussion.workflow.values import COUNT_KEYS
from eunoe.errors import EunoeError, WorkflowError
from eunoe.model.arguments import show

_DEFAULT: Final = "default"
_DEFAULT_CONTENT_KEY: Final = "UseDefaultContentInsteadOfWorkflow"
_CALL_KEYS: Final = ("scoped_variables", "workflowUserFolderOverride", "folder", *COUNT_KEYS)
_OVERRIDES: Final = {"systemPrompt": "firstNodeSystemPromptOverride", "prompt": "firstNodePromptOverride"}
_ROUTE_OVERRIDES: Final = {"systemPrompt": "systemPromptOverride", "prompt": "promptOverride"}


@node(
    "CustomWorkflow",
    required=["workflowName"],
    keys=[*_CALL_KEYS, *_OVERRIDES.values()],
    workflows=lambda fields, _: [fields.get("workflowName")],
)
def custom_workflow(call: NodeCall) -> str:
    """Run another workflow. Its inputs are the scoped variables."""
    return _call_workflow(call, call.render("workflowName"), _overrides(call.node, _OVERRIDES))


def _routes(fields: Mapping[str, Any], _: object) -> Iterable[Any]:
    routes = fields.get("conditionalWorkflows")
    return routes.values() if isinstance(routes, Mapping) else ()


def _check_routes(fields: Mapping[str, Any], _: object = None) -> Iterator[str]:
    routes = fields.get("conditionalWorkflows")
    if not isinstance(routes, Mapping) or not all(isinstance(each, str) for each in routes.values()):
        yield 'conditionalWorkflows must be an object such as {"Python": "NAME", "Default": "NAME"}'


@node(
    "ConditionalCustomWorkflow",
    required=["conditionalKey", "conditionalWorkflows"],
    keys=[*_CALL_KEYS, "routeOverrides", _DEFAULT_CONTENT_KEY],
    check=_check_routes,
    workflows=_routes,
)
def conditional_custom_workflow(call: NodeCall) -> str:
    """Run the workflow that stands beside the value of a key, else the default one."""
    for problem in _check_routes(call.node):
        raise WorkflowError(problem)
    value = call.render("conditionalKey").strip().casefold()
    routes = {name.strip().casefold(): (name, each) for name, each in call.node["conditionalWorkflows"].items()}
    if value in routes:
        name, workflow = routes[value]
        return _call_workflow(call, call.render_text(workflow), _overrides(_route(call.node, name), _ROUTE_OVERRIDES))
    if call.node.get(_DEFAULT_CONTENT_KEY):
        return call.render(_DEFAULT_CONTENT_KEY)
    if _DEFAULT not in routes:
        raise WorkflowError(f"conditionalWorkflows has neither {show(value)} nor Default")
    name, workflow = routes[_DEFAULT]
    return _call_workflow(call, call.render_text(workflow), _overrides(_route(call.node, name), _ROUTE_OVERRIDES))


def _check_condition(fields: Mapping[str, Any], _: object) -> Iterator[str]:
    is_template = fields.get("jinja2") is True
    try:
        for text in condition_texts(str(fields.get("condition")), is_template):
            if is_template and "{" in text:
                template_names(text)
    except EunoeError as error:
        yield str(error)


@node("Conditional", required=["condition"], keys=COUNT_KEYS, check=_check_condition)
def conditional(call: NodeCall) -> str:
    """Give TRUE or FALSE."""
    text = call.trace.inputs["condition"] = str(call.node["condition"])
    holds = parse_condition(text, is_template=call.node.get("jinja2") is True)
    return "TRUE" if holds(call.render_text) else "FALSE"


def _call_workflow(call: NodeCall, name: str, changes: Mapping[str, str]) -> str:
    call.trace.inputs["workflow"] = name
    inputs = call.texts("scoped_variables") if "scoped_variables" in call.node else []
    folder = call.render("folder") or call.render("workflowUserFolderOverride")
    return call.run.call(name, inputs, folder, call.respond, **changes)


def _overrides(fields: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[key] for name, key in keys.items() if isinstance(fields.get(key), str) and fields[key]}


def _route(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    overrides = fields.get("routeOverrides")
    folded = {key.casefold(): value for key, value in overrides.items()} if isinstance(overrides, Mapping) else {}
    route = folded.get(name.casefold(), {})
    return route if isinstance(route, Mapping) else {}
