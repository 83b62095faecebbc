"""Nodes that ask a language model, give texts, call other workflows, and hold locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from eunoe.apps.discussion.workflow.node import MODEL_KEYS, NodeCall, key_problem, node
from eunoe.apps.discussion.workflow.texts import COUNT_KEYS, conversation, plain_text, system_text, transcript
from eunoe.errors import AccessError, WorkflowError
from eunoe.memory import Memory
from eunoe.model.arguments import show
from eunoe.model.scope import Scope

_LAST_MESSAGES_KEY: Final = "lastMessagesToSendInsteadOfPrompt"
_LAST_MESSAGES: Final = 5
_DEFAULT: Final = "default"
_DEFAULT_CONTENT_KEY: Final = "UseDefaultContentInsteadOfWorkflow"
_CALL_KEYS: Final = ("scoped_variables", "workflowUserFolderOverride", "folder", *COUNT_KEYS)
_OVERRIDES: Final = {"systemPrompt": "firstNodeSystemPromptOverride", "prompt": "firstNodePromptOverride"}
_ROUTE_OVERRIDES: Final = {"systemPrompt": "systemPromptOverride", "prompt": "promptOverride"}
_LOCK_SECONDS: Final = 600


@node("Standard", keys=(*MODEL_KEYS, *COUNT_KEYS, _LAST_MESSAGES_KEY), needs_model=True, takes_in=True)
def standard(call: NodeCall) -> str:
    """Ask a language model with the prompt, or without one with the last messages of the chat."""
    prompt, system = call.render("prompt"), call.render("systemPrompt")
    if prompt.strip():
        return call.ask(prompt, system)
    count = call.number(_LAST_MESSAGES_KEY, _LAST_MESSAGES)
    messages = conversation(call.messages)[-count:] if count > 0 else []
    if not messages:
        raise WorkflowError("it has no prompt, and there are no messages to send in its place")
    text = plain_text(messages) if len(messages) == 1 else transcript(messages)
    return call.ask(text, system or system_text(call.messages))


@node("StaticResponse", required=["content"], keys=COUNT_KEYS)
def static_response(call: NodeCall) -> str:
    """Give a text."""
    return call.render("content")


@node("StringConcatenator", required=["strings"], keys=["delimiter", *COUNT_KEYS])
def string_concatenator(call: NodeCall) -> str:
    """Join texts."""
    return call.render("delimiter").join(call.texts("strings"))


@node(
    "CustomWorkflow",
    required=["workflowName"],
    keys=[*_CALL_KEYS, *_OVERRIDES.values()],
    workflows=lambda fields, _: [fields.get("workflowName")],
)
def custom_workflow(call: NodeCall) -> str:
    """Run another workflow. Its inputs are the scoped variables."""
    return _call_workflow(call, call.render("workflowName"), call.node, _OVERRIDES)


def _routes(fields: Mapping[str, Any], _: object) -> Iterable[Any]:
    routes = fields.get("conditionalWorkflows")
    return routes.values() if isinstance(routes, Mapping) else ()


@node(
    "ConditionalCustomWorkflow",
    required=["conditionalKey", "conditionalWorkflows"],
    keys=[*_CALL_KEYS, "routeOverrides", _DEFAULT_CONTENT_KEY],
    workflows=_routes,
)
def conditional_custom_workflow(call: NodeCall) -> str:
    """Run the workflow that stands beside the value of a key, else the default one."""
    given = call.node["conditionalWorkflows"]
    if problem := key_problem("conditionalWorkflows", given):
        raise WorkflowError(problem)
    value = call.render("conditionalKey").strip().casefold()
    routes = {name.strip().casefold(): (name, each) for name, each in given.items()}
    if value not in routes and call.node.get(_DEFAULT_CONTENT_KEY):
        return call.render(_DEFAULT_CONTENT_KEY)
    if value not in routes and _DEFAULT not in routes:
        raise WorkflowError(f"conditionalWorkflows has neither {show(value)} nor Default")
    name, workflow = routes.get(value) or routes[_DEFAULT]
    overrides = call.node.get("routeOverrides")
    folded = {key.casefold(): each for key, each in overrides.items()} if isinstance(overrides, Mapping) else {}
    route = folded.get(name.casefold(), {})
    fields = route if isinstance(route, Mapping) else {}
    return _call_workflow(call, call.render_text(workflow), fields, _ROUTE_OVERRIDES)


def _call_workflow(call: NodeCall, name: str, fields: Mapping[str, Any], overrides: Mapping[str, str]) -> str:
    """Run a workflow, with prompts of its first node that some fields override."""
    call.trace.inputs["workflow"] = name
    inputs = call.texts("scoped_variables") if "scoped_variables" in call.node else []
    folder = call.render("folder") or call.render("workflowUserFolderOverride")
    changes = {to: fields[key] for to, key in overrides.items() if isinstance(fields.get(key), str) and fields[key]}
    return call.run.call(name, inputs, folder, call.respond, **changes)


@node("WorkflowLock", required=["workflowLockId"])
def workflow_lock(call: NodeCall) -> str:
    """Hold a lock until the workflow ends, ten minutes at most. End the workflow if somebody else holds it."""
    run, id = call.run, call.render("workflowLockId").strip()
    if not id:
        raise WorkflowError("workflowLockId is empty")
    if run.memory is None:
        call.note("there is no store to keep the lock in: the workflow goes on without it")
    elif id not in run.locks and not _acquire(call, run.memory, id):
        call.note(f"the lock {show(id)} is held: the workflow ends here")
        run.is_ended = True
    return ""


def _acquire(call: NodeCall, memory: Memory, id: str) -> bool:
    run, scope, name = call.run, Scope(user=call.run.user), f"workflow_lock:{id}"
    try:
        lease = memory.leases.acquire(scope, name, seconds=_LOCK_SECONDS)
    except AccessError:
        if run.scope is None:
            raise
        call.note("other discussions are out of reach: the lock is one of the discussion, and not of the user")
        scope = run.scope
        lease = memory.leases.acquire(scope, name, seconds=_LOCK_SECONDS)
    if lease is None:
        return False
    run.locks.add(id)
    run.stack.callback(memory.leases.release, scope, lease)
    run.stack.callback(run.locks.discard, id)
    return True
