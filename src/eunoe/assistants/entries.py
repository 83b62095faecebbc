"""What Eunoe writes into settings: its MCP server and its hooks, put into a text and taken out of it."""

import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from eunoe.assistants import hook
from eunoe.assistants.catalog import Assistant
from eunoe.assistants.jsonc import Document
from eunoe.assistants.toml_text import read_toml, table_text, with_block, with_table, without_table
from eunoe.errors import InputError

SERVER_NAME: Final = "eunoe"
_HOOK_MARK: Final = "assistants/hook.py"
_SAFE_PATH: Final = "-P"
"""Python must not look for modules in the folder where the assistant works."""
_ARGUMENTS: Final = [_SAFE_PATH, "-m", "eunoe", "mcp"]
"""How the arguments of every entry that Eunoe writes begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is installed: for which store and scope, with hooks or without."""

    store: Path
    scope: str
    hooks: bool = False
    arguments: tuple[str, ...] = ()
    """More arguments of `eunoe mcp`."""
    python: str = field(default=sys.executable)

    def server(self, assistant: Assistant) -> dict[str, Any]:
        """The entry of the MCP server."""
        arguments = [*_ARGUMENTS, "--store", str(self.store), "--scope", self.scope]
        return {**assistant.extra, "command": self.python, "args": [*arguments, *self.arguments]}

    def hook_command(self, assistant: Assistant, event: str) -> str:
        """The command line of a hook: a file that needs nothing but the standard library, so that it starts at once."""
        words = [self.python, _SAFE_PATH, str(Path(hook.__file__).resolve()), event, "--assistant", assistant.name]
        words += ["--store", str(self.store), "--scope", self.scope]
        return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def find_server(text: str, assistant: Assistant) -> dict[str, Any] | None:
    """Our entry among the servers of a settings file."""
    data: Any = read_toml(text) if assistant.format == "toml" else Document(text).data
    for key in (*assistant.key, SERVER_NAME):
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, dict) else None


def has_our_server(text: str, assistant: Assistant) -> bool:
    """Whether the entry in a settings file is one that Eunoe wrote; people write entries of that name too."""
    arguments = (find_server(text, assistant) or {}).get("args")
    return isinstance(arguments, list) and arguments[: len(_ARGUMENTS)] == _ARGUMENTS


def with_server(text: str, assistant: Assistant, entry: Mapping[str, Any]) -> str:
    path = (*assistant.key, SERVER_NAME)
    if assistant.format == "toml":
        return _checked_toml(text, with_table(text, path, entry), path, entry)
    new = Document(text).with_value(path, entry)
    return _checked(new, _with_data(Document(text).data, path, entry))


def without_server(text: str, assistant: Assistant) -> str:
    if find_server(text, assistant) is None:
        return text
    path = (*assistant.key, SERVER_NAME)
    if assistant.format == "toml":
        return _checked_toml(text, without_table(text, path), path, None)
    return _checked(Document(text).without(path), _with_data(Document(text).data, path, None))


def with_server_of(text: str, assistant: Assistant, earlier: str) -> str:
    """The text with the entry of an earlier text in the place of its own, letter for letter; without one if that has
    none."""
    path = (*assistant.key, SERVER_NAME)
    if assistant.format == "toml":
        block = table_text(earlier, path)
        if not block:
            return without_server(text, assistant)
        return _checked_toml(text, with_block(text, path, block), path, find_server(earlier, assistant))
    old, new = Document(earlier).find(path), Document(text).find(path)
    if old is None or new is None:
        return without_server(text, assistant)
    changed = text[: new.start] + earlier[old.start : old.end] + text[new.end :]
    return _checked(changed, _with_data(Document(text).data, path, old.data))


def find_hooks(text: str, assistant: Assistant) -> dict[str, str]:
    """Our hooks in a settings file: the command of each event."""
    assert assistant.hooks
    found = {}
    for event, name in assistant.hooks.events.items():
        for item in _items(Document(text), name):
            if command := _our_command(item):
                found[event] = command
    return found


def with_hooks(text: str, assistant: Assistant, options: Options) -> str:
    """The text with our hooks; those that others put there stay."""
    assert assistant.hooks
    text = without_hooks(text, assistant)
    if not text.strip():
        for key, value in assistant.hooks.start_with.items():
            text = Document(text).with_value((key,), value)
    for event, name in assistant.hooks.events.items():
        before = Document(text).data
        item = _hook_item(assistant, options.hook_command(assistant, event))
        text = Document(text).with_item(("hooks", name), item)
        _checked(text, _with_data(before, ("hooks", name), [*_items_of(before, name), item]))
    return text


def without_hooks(text: str, assistant: Assistant) -> str:
    assert assistant.hooks
    for name in assistant.hooks.events.values():
        items = _items(Document(text), name)
        for place in reversed(range(len(items))):
            if _our_command(items[place]):
                text = Document(text).without(("hooks", name), place)
        expected = [item for item in items if not _our_command(item)]
        if len(expected) < len(items) and _items(Document(text), name) != expected:
            raise InputError(f"cannot take the hooks out of hooks.{name}")
        if items and not expected:
            text = Document(text).without(("hooks", name))
    return text


def _hook_item(assistant: Assistant, command: str) -> dict[str, Any]:
    assert assistant.hooks
    if not assistant.hooks.nested:
        return {"command": command}
    return {"hooks": [{"type": "command", "command": command, "timeout": assistant.hooks.timeout}]}


def _items(document: Document, name: str) -> list[Any]:
    return _items_of(document.data, name)


def _items_of(data: Any, name: str) -> list[Any]:
    hooks = data.get("hooks") if isinstance(data, dict) else None
    items = hooks.get(name) if isinstance(hooks, dict) else None
    return items if isinstance(items, list) else []


def _our_command(item: Any) -> str:
    """The command of an item if it is one of our hooks. An item that has other commands too belongs to somebody."""
    commands = item.get("hooks", [item]) if isinstance(item, dict) else []
    if not isinstance(commands, list) or len(commands) != 1 or not isinstance(commands[0], dict):
        return ""
    command = commands[0].get("command")
    return command if isinstance(command, str) and _HOOK_MARK in command.replace("\\", "/") else ""


def _with_data(data: Any, path: tuple[str, ...], value: object) -> Any:
    """The data with a value at a path; None takes it out."""
    first, *rest = path
    data = dict(data)
    if rest:
        data[first] = _with_data(data.get(first, {}), tuple(rest), value)
    elif value is None:
        data.pop(first, None)
    else:
        data[first] = value
    return data


def _checked(text: str, expected: Any) -> str:
    """A text that says what it should; nothing else is ever written."""
    if Document(text).data != expected:
        raise InputError("the entry cannot be put there without changing something else")
    return text


def _checked_toml(old: str, new: str, path: tuple[str, ...], value: object) -> str:
    expected = _with_data(read_toml(old), path, value)
    known = read_toml(new)
    if value is None and not expected.get(path[0]):  # a table of tables is there only with them
        expected.pop(path[0], None)
    if repr(known) != repr(expected):
        raise InputError(f"{'.'.join(path)} is written in a way that cannot be changed safely: take it out by hand")
    return new
