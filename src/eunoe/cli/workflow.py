"""`eunoe workflow`: checks workflows and runs them."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import eunoe
from eunoe.apps.discussion.model import DEFAULT_USER, check_discussion_id, take_tag
from eunoe.apps.discussion.workflow import Environment, Workflow, run_workflow
from eunoe.apps.discussion.workflow.check import check_workflow
from eunoe.apps.discussion.workflow.run import NodeFailure
from eunoe.apps.discussion.workflow.texts import read_messages
from eunoe.cli.command import Call, Reply, command
from eunoe.cli.display import output
from eunoe.cli.display.output import quantity
from eunoe.cli.inputs import open_text
from eunoe.cli.options import argument, repeatable_option
from eunoe.cli.workflow_options import WorkflowOptions
from eunoe.cli.workflow_trace import trace_text
from eunoe.errors import InputError, StoreError
from eunoe.llm import load_llm

_DISCUSSION_HELP: Final = (
    "The id of the discussion; else a [DiscussionId] tag in a message. Without one nothing is kept."
)
_MESSAGES_HELP: Final = "The chat: a JSON list, or JSON Lines, of messages with role and content; - for standard input."

FileArgument = Annotated[str, argument("FILE", "A workflow: a JSON file, or its name in --workflows.")]


@command("eunoe workflow check main.json --models models.json", asks_llm=True, without=("store", "embedder"))
def check(call: Call, file: FileArgument, options_: WorkflowOptions) -> Reply:
    """Find all that is wrong with a workflow and those that it calls. The exit code is 1 if something is."""
    environment = options_.environment(load_llm(call.options.llm or "auto"))
    report = check_workflow(_load(file, options_), environment)
    notes = [*report.notes, *environment.settings.notes]
    size = f"{quantity(len(report.workflows), 'workflow')}, {quantity(report.nodes, 'node')}"
    text = "\n".join(report.problems) or f"nothing is wrong: {size}"
    document = {**asdict(report), "notes": notes}
    return Reply(document, text, notes=[f"note: {note}" for note in notes], code=1 if report.problems else 0)


@command("eunoe workflow run main.json --discussion trip --messages chat.json --model openai:gpt-5", asks_llm=True)
def run(
    call: Call,
    file: FileArgument,
    options_: WorkflowOptions,
    discussion: Annotated[str, typer.Option("--discussion", "-d", metavar="ID", help=_DISCUSSION_HELP)] = "",
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose discussion it is.")] = DEFAULT_USER,
    messages: Annotated[str | None, typer.Option("--messages", metavar="FILE", help=_MESSAGES_HELP)] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="What the user says now.")] = None,
    inputs: Annotated[
        list[str] | None, repeatable_option("--input", "TEXT", "{agent1Input}, {agent2Input} and so on.")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show what each node did.")] = False,
) -> Reply | None:
    """Run a workflow and print its result, as soon as it is there.

    With the id of a discussion its messages are kept, and nodes behind the result may make memories.
    """
    workflow, chat = _load(file, options_), _read_chat(messages, prompt)
    environment = options_.environment(None)
    memory = _open(call, discussion or take_tag(chat)[0])
    environment = _with_model(call, environment, memory)
    with ExitStack() as bar:
        advance, done = bar.enter_context(output.progress("nodes")), count(1)

        def respond(text: str) -> None:
            bar.close()  # it writes to the same terminal
            if not call.json:
                call.show(Reply(None, text, empty="the workflow gave an empty text"))
                sys.stdout.flush()

        try:
            result = run_workflow(
                workflow,
                memory=memory,
                messages=chat,
                discussion_id=discussion,
                user=user,
                inputs=inputs or (),
                environment=replace(environment, progress=lambda _: advance(next(done))),
                respond=respond,
            )
        except NodeFailure as error:
            if not trace and not call.json:
                raise
            text = error.result.text if error.result else None
            document = {"text": text, "trace": error.traces, "error": str(error)}
            return Reply(document, trace_text(error.traces), notes=[str(error)], code=1)
    everything = {"text": result.text, "trace": result.trace, "notes": result.notes}
    return Reply(everything, trace_text(result.trace)) if trace or call.json else None


def _load(file: str, options: WorkflowOptions) -> Workflow:
    return Workflow.load(file, options.workflows or Path())


def _open(call: Call, discussion: str) -> eunoe.Memory | None:
    """Only a discussion makes a store; without one it is used if it is there."""
    if _is_id(discussion):
        return call.open(create=True)
    with suppress(StoreError):
        return call.open()
    return None


def _is_id(discussion: str) -> bool:
    """Whether it is an id. The run warns of one that is none."""
    with suppress(InputError):
        return bool(check_discussion_id(discussion))
    return False


def _with_model(call: Call, environment: Environment, memory: object) -> Environment:
    """Add the model of nodes that name none where there is no memory."""
    default = None if memory else load_llm(call.options.llm or "auto")
    return replace(environment, models=replace(environment.models, default=default))


def _read_chat(file: str | None, prompt: str | None) -> list[dict[str, Any]]:
    """The messages of a file or of standard input, and after them what the user says now."""
    chat: list[Any] = []
    if file is not None:
        with open_text(file) as stream:
            chat = _parse_chat(stream.read(), "standard input" if file == "-" else file)
    elif prompt is None and not sys.stdin.isatty():
        with open_text("-") as stream:
            text = stream.read().strip()
        chat = _parse_chat(text, "standard input") if text[:1] in ("[", "{") else [text] if text else []
    return read_messages([*chat, *([prompt] if prompt else [])])


def _parse_chat(text: str, title: str) -> list[Any]:
    try:
        return _messages_of(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise InputError(f"{title} holds no messages: due is a JSON list, or JSON Lines ({error})") from error


def _messages_of(document: Any) -> list[Any]:
    if isinstance(document, dict):
        document = document.get("messages", [document])
    return document if isinstance(document, list) else [document]
