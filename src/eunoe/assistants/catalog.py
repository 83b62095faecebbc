"""The assistants that Eunoe can be installed in: where their files lie and how they are written."""

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, Self

from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import show

Format = Literal["json", "toml"]
_PLATFORMS: Final = {"win32": "windows", "darwin": "macos"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of an assistant: their file, and its own name for each event."""

    paths: Mapping[str, list[str]]
    events: Mapping[str, str]
    nested: bool = False
    """Whether an event has groups of commands rather than commands."""
    timeout: int = 0
    """In the unit of the assistant; 0 where its file has none."""
    start_with: Mapping[str, Any] = field(default_factory=dict)
    """What a new file has beside the hooks."""

    @property
    def path(self) -> Path:
        return _find_path(self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """One assistant: the file that lists its MCP servers, and its hooks if it has any."""

    name: str
    title: str
    key: tuple[str, ...]
    paths: Mapping[str, list[str]]
    restart: str
    format: Format = "json"
    extra: Mapping[str, Any] = field(default_factory=dict)
    hooks: Hooks | None = None

    @property
    def path(self) -> Path:
        return _find_path(self.paths)

    @classmethod
    def from_table(cls, name: str, table: dict[str, Any]) -> Self:
        hooks = table.pop("hooks", None)
        return cls(
            name=name,
            key=tuple(table.pop("key")),
            paths=_pop_paths(table),
            hooks=Hooks(paths=_pop_paths(hooks), **hooks) if hooks else None,
            **table,
        )


@cache
def load_assistants() -> Mapping[str, Assistant]:
    """All assistants, by their names."""
    tables = tomllib.loads((files(__package__) / "catalog.toml").read_text(encoding="utf-8"))
    return {name: Assistant.from_table(name, table) for name, table in tables.items()}


def find_assistant(name: str) -> Assistant:
    """The assistant of a name, however it is spelled.

    >>> find_assistant("VS Code").name
    'vscode'
    """
    if not isinstance(name, str):
        raise InputError(f"the name of an assistant is a text, not {show(name)}")
    wanted = _plain(name)
    for assistant in load_assistants().values():
        if wanted in (_plain(assistant.name), _plain(assistant.title)):
            return assistant
    raise NotFoundError(f"no assistant {show(name)}: there are {', '.join(load_assistants())}")


def _plain(name: str) -> str:
    return "".join(name.lower().split()).replace("-", "").replace("_", "")


def _pop_paths(table: dict[str, Any]) -> dict[str, list[str]]:
    return {platform: table.pop(platform) for platform in ("linux", "macos", "windows") if platform in table}


def _find_path(paths: Mapping[str, list[str]]) -> Path:
    """The path on this platform; one that is the same everywhere stands under `linux` alone."""
    return _first_path(paths.get(_PLATFORMS.get(sys.platform, "linux")) or paths["linux"])


def _first_path(candidates: Iterable[str]) -> Path:
    for candidate in candidates:
        root, _, rest = candidate.partition("/")
        if root == "~":
            return Path.home() / rest
        if folder := os.environ.get(root.removeprefix("$")):
            return Path(folder) / rest
    raise NotFoundError(f"cannot tell where {candidates} lies: the variables in it are not set")
