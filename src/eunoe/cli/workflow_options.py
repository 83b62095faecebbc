"""Options of the commands that run workflows: which models they mean, and what they may touch."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from eunoe.apps.discussion.settings import DEFAULT_SETTINGS, UserSettings, read_settings, read_user_settings
from eunoe.apps.discussion.workflow.document import ANY, Environment, ModelMap, Preset
from eunoe.cli.command import MisuseError
from eunoe.cli.file_options import KeyOptions, LayoutOption
from eunoe.cli.options import repeatable_option
from eunoe.errors import InputError, NotFoundError
from eunoe.llm.contract import Llm
from eunoe.model.arguments import show

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
        return Environment(
            models=self._model_map(default),
            settings=read_settings(self.settings) if self.settings else DEFAULT_SETTINGS,
            user_settings=read_user_settings(self.user_settings) if self.user_settings else UserSettings(),
            files_dir=self.files_dir,
            layout=self.layout,
            key=self.key(),
            workflows=_check_folder(self.workflows, "--workflows"),
            host_messages=self.host_messages,
            update_first=self.update_first,
        )

    def _model_map(self, default: Llm | None) -> ModelMap:
        models = ModelMap.read(self.models) if self.models else ModelMap()
        every: dict[str, Any] = {ANY: self.model} if self.model else {}
        any_preset = {ANY: Preset()} if self.model else {}
        endpoints = dict(_split(each, "--endpoint") for each in self.endpoint or ())
        presets = (_split(each, "--preset") for each in self.preset or ())
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
            _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise InputError(f"--plugin {show(name)} cannot be imported: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> None:
    name = f"workflow_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise NotFoundError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _check_folder(path: Path | None, option: str) -> Path | None:
    if path is not None and not path.is_dir():
        raise InputError(f"{option} {path} is no folder")
    return path.resolve() if path else None


def _split(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise MisuseError(f"{option} {text}: write NAME={'SPEC' if option == '--endpoint' else 'JSON'}")
    return name, value


def _read_preset(name: str, text: str) -> Preset:
    try:
        return Preset.of(json.loads(text), f"--preset {name}")
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f'--preset {name}: {show(text)} is no JSON: write {{}} or {{"temperature": 0.7}}') from error
