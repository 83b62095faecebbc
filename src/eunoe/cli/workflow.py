"""`eunoe workflow`: checks workflows and runs them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Final

import typer

import eunoe
from eunoe.apps.discussion.files import FileKey, Layout
from eunoe.apps.discussion.model import DEFAULT_USER, check_discussion_id, take_tag
from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, UserSettings, read_settings, read_user_settings
from eunoe.apps.discussion.workflow import NodeTrace, Workflow, run_workflow
from eunoe.apps.discussion.workflow.check import check_workflow
from eunoe.apps.discussion.workflow.document import ANY, Environment, ModelMap, Preset
from eunoe.apps.discussion.workflow.run import NodeFailure
from eunoe.apps.discussion.workflow.texts import read_messages
from eunoe.cli import display
from eunoe.cli.command import Call, MisuseError, Reply, command
from eunoe.cli.display import one_line, quantity, shorten
from eunoe.cli.inputs import argument, choice_option, open_text, repeatable_option
from eunoe.errors import InputError, NotFoundError, StoreError
from eunoe.llm import load_llm
from eunoe.llm.contract import Llm
from eunoe.model.arguments import show

_API_KEY_HELP: Final = "Encrypted files: a file with the API key; with --salt."
_KEY_HELP: Final = "Encrypted files: a file with their Fernet key."
_LAYOUT_HELP: Final = "folders (ID/memories.json) or flat (ID_memories.jsonl)."

LayoutOption = Annotated[Layout, choice_option("--layout", _LAYOUT_HELP)]


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """What opens and locks encrypted files. Keys are read from files, since others may see a command line."""

    key_file: Annotated[str | None, typer.Option("--key-file", metavar="FILE", help=_KEY_HELP)] = None
    api_key_file: Annotated[str | None, typer.Option("--api-key-file", metavar="FILE", help=_API_KEY_HELP)] = None
    salt: Annotated[Path | None, typer.Option("--salt", metavar="FILE", help="The file with the user's salt.")] = None

    def key(self) -> FileKey | None:
        if bool(self.api_key_file) != bool(self.salt) or (self.api_key_file and self.key_file):
            raise MisuseError("name --api-key-file and --salt, or --key-file")
        if self.key_file:
            return FileKey(_read_secret(self.key_file))
        if self.api_key_file and self.salt:
            return FileKey.from_api_key(_read_secret(self.api_key_file), self.salt)
        return None


def _read_secret(name: str) -> str:
    with open_text(name) as file:
        return file.read().strip()


_FOLDER_HELP: Final = "Where workflows are found by name; else the folder of FILE."
_MODELS_HELP: Final = 'What endpoints and presets mean: {"endpoints": {NAME: SPEC}, "presets": {NAME: {...}}}.'
_MODEL_HELP: Final = "The model of all endpoints and presets that are not mapped."
_ENDPOINT_HELP: Final = "The model of an endpoint, such as openai:MODEL@http://host:port/v1."
_PRESET_HELP: Final = 'What a preset means: {} or {"temperature": 0.7}.'
_USER_SETTINGS_HELP: Final = "WilmerAI's settings of a user: they name workflows that memory nodes run."
_FILES_DIR_HELP: Final = "Where the files of the discussion are written in the end, as WilmerAI has them."
_PLUGIN_HELP: Final = "A Python module, or a file, with more node types."


@dataclass(frozen=True, slots=True)
class WorkflowOptions(KeyOptions):
    """What a workflow runs with."""

    workflows: Annotated[Path | None, typer.Option("--workflows", metavar="DIR", help=_FOLDER_HELP)] = None
    models: Annotated[Path | None, typer.Option("--models", metavar="FILE", help=_MODELS_HELP)] = None
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="SPEC", help=_MODEL_HELP)] = None
    endpoint: Annotated[list[str] | None, repeatable_option("--endpoint", "NAME=SPEC", _ENDPOINT_HELP)] = None
    preset: Annotated[list[str] | None, repeatable_option("--preset", "NAME=JSON", _PRESET_HELP)] = None
    settings: Annotated[
        Path | None, typer.Option("--settings", metavar="FILE", help="Settings of discussions, as WilmerAI has them.")
    ] = None
    user_settings: Annotated[Path | None, typer.Option("--user-settings", metavar="FILE", help=_USER_SETTINGS_HELP)] = (
        None
    )
    files_dir: Annotated[Path | None, typer.Option("--files-dir", metavar="DIR", help=_FILES_DIR_HELP)] = None
    layout: LayoutOption = "folders"
    plugin: Annotated[list[str] | None, repeatable_option("--plugin", "MODULE", _PLUGIN_HELP)] = None
    host_messages: Annotated[
        bool, typer.Option("--host-messages", help="Nodes that find nothing say so in WilmerAI's own sentences.")
    ] = False
    update_first: Annotated[
        bool, typer.Option("--update-first", help="RecentMemory and FullChatSummary make memories before they read.")
    ] = False

    def environment(self, default: Llm | None) -> Environment:
        """What a workflow runs with. `default` is the model of nodes that name no endpoint."""
        load_plugins(self.plugin or ())
        if self.workflows and not self.workflows.is_dir():
            raise InputError(f"--workflows {self.workflows} is no folder")
        return Environment(
            models=self._model_map(default),
            settings=read_settings(self.settings) if self.settings else DEFAULT_SETTINGS,
            user_settings=read_user_settings(self.user_settings) if self.user_settings else UserSettings(),
            files_dir=self.files_dir,
            layout=self.layout,
            key=self.key(),
            workflows=self.workflows.resolve() if self.workflows else None,
            host_messages=self.host_messages,
            update_first=self.update_first,
        )

    def _model_map(self, default: Llm | None) -> ModelMap:
        models = ModelMap.read(self.models) if self.models else ModelMap()
        every: dict[str, Any] = {ANY: self.model} if self.model else {}
        any_preset = {ANY: Preset()} if self.model else {}
        endpoints = dict(split_pair(each, "--endpoint", "NAME=SPEC") for each in self.endpoint or ())
        presets = (split_pair(each, "--preset", "NAME=JSON") for each in self.preset or ())
        own = {name: _read_preset(name, text) for name, text in presets}
        return ModelMap(
            endpoints={**every, **models.endpoints, **endpoints},
            presets={**any_preset, **models.presets, **own},
            default=default,
        )


def load_plugins(names: Iterable[str]) -> None:
    """Import modules with more node types, by name or from files."""
    for name in names:
        try:
            if not name.endswith(".py"):
                importlib.import_module(name)
                continue
            spec = importlib.util.spec_from_file_location(f"workflow_plugin_{Path(name).stem}", name)
            if spec is None or spec.loader is None or not Path(name).is_file():
                raise NotFoundError(f"there is no file {name}")
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise InputError(f"--plugin {show(name)} cannot be imported: {type(error).__name__}: {error}") from error


def split_pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise MisuseError(f"{option} {text}: write {form}")
    return name, value


def _read_preset(name: str, text: str) -> Preset:
    try:
        return Preset.of(json.loads(text), f"--preset {name}")
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f'--preset {name}: {show(text)} is no JSON: write {{}} or {{"temperature": 0.7}}') from error


_COLUMNS: Final = 80


def trace_text(traces: Iterable[NodeTrace]) -> str:
    """Inputs, output, time and tokens of nodes, each on a line that is cut where a narrow terminal ends."""

    def cut(text: str) -> str:
        return f"  {shorten(text, _COLUMNS - 2)}"

    def whole(text: str) -> str:
        return fill(one_line(text), _COLUMNS, initial_indent="  ", subsequent_indent="    ")

    def lines(trace: NodeTrace) -> Iterator[str]:
        yield shorten(f"{trace.workflow}: {trace.place}", _COLUMNS)
        tokens = f"{trace.input_tokens} tokens in, {trace.output_tokens} out"
        yield cut(", ".join((f"{trace.seconds:.3f} s", tokens, *trace.models)))
        yield from (cut(f"{key}: {text}") for key, text in trace.inputs.items() if text)
        yield from (whole(f"note: {note}") for note in trace.notes)
        yield whole(f"error: {trace.error}") if trace.error else cut(f"output: {trace.output}")

    return "\n\n".join("\n".join(lines(trace)) for trace in traces)


_DISCUSSION_HELP: Final = (
    "The id of the discussion; else a [DiscussionId] tag in a message. Without one nothing is kept."
)
_MESSAGES_HELP: Final = "The chat: a JSON list, or JSON Lines, of messages with role and content; - for standard input."

FileArgument = Annotated[str, argument("FILE", "A workflow: a JSON file, or its name in --workflows.")]


@command("eunoe workflow check main.json --models models.json", asks_llm=True, without=("store", "embedder"))
def check(call: Call, file: FileArgument, options_: WorkflowOptions) -> Reply:
    """Find all that is wrong with a workflow and those that it calls. The exit code is 1 if something is."""
    environment = options_.environment(load_llm(call.options.llm or "auto"))
    report = check_workflow(Workflow.load(file, options_.workflows or Path()), environment)
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
    workflow, chat = Workflow.load(file, options_.workflows or Path()), _read_chat(messages, prompt)
    environment = options_.environment(None)
    memory = _open(call, discussion or take_tag(chat)[0])
    if memory is None:  # which has the model of nodes that name none
        models = replace(environment.models, default=load_llm(call.options.llm or "auto"))
        environment = replace(environment, models=models)
    with ExitStack() as bar:
        advance, done = bar.enter_context(display.progress("nodes")), count(1)

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


def _open(call: Call, discussion: str) -> eunoe.Memory | None:
    """Only a discussion makes a store; without one it is used if it is there. The run warns of an id that is none."""
    is_id = False
    with suppress(InputError):
        is_id = bool(check_discussion_id(discussion))
    with suppress(*(() if is_id else (StoreError,))):
        return call.open(create=is_id)
    return None


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
        document = json.loads(text)
    except (ValueError, RecursionError):
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            raise InputError(f"{title} holds no messages: due is a JSON list, or JSON Lines ({error})") from error
    if isinstance(document, dict):
        document = document.get("messages", [document])
    return document if isinstance(document, list) else [document]
