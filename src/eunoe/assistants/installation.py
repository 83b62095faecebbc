"""Install Eunoe in an assistant and take it out again.

`install` and `uninstall` only plan: a `Plan` says what would be written, and `write` does it.
"""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self

from eunoe.assistants import hook
from eunoe.assistants.settings_file import (
    ConfigText,
    Document,
    Original,
    Originals,
    fingerprint,
    read_file,
    read_toml,
    table_text,
    with_block,
    with_table,
    without_table,
)
from eunoe.assistants.store_file import store_file
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.files import write_file
from eunoe.model.arguments import show
from eunoe.model.scope import Scope
from eunoe.net.local_server import default_scope

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


Edit = Callable[[str], str]
Say = Callable[[str], object]
_CACHE_MARKS: Final = ("/.cache/", "/caches/", "/uv/cache/", "/pipx/.cache/")
"""Where package runners keep what they have run once."""


class Change(NamedTuple):
    """One file, as it is and as it is to be; None is no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        old, new = (str(self.path) if content is not None else os.devnull for content in (self.before, self.after))
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old, new, n=2)
        return "\n".join(line.rstrip("\r\n") for line in lines)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be written for one assistant. Nothing is until `write` is called."""

    assistant: Assistant
    changes: tuple[Change, ...]
    originals: dict[str, Original]
    """What is kept from then on."""
    notes: tuple[str, ...] = ()
    advice: str = ""
    """What the user does when it is written."""

    @property
    def diff(self) -> str:
        """The changes as people read them; empty if there is nothing to do."""
        return "\n".join(change.diff for change in self.changes)

    def write(self) -> None:
        """Write the files. One that has changed since the plan was made is refused, before anything is written."""
        for change in self.changes:
            if read_file(change.path) != change.before:
                raise ConflictError(f"{change.path} was changed meanwhile: nothing was written, try again")
        kept = Originals(self.assistant.name)
        if self.originals:
            kept.save(self.originals)  # first, so that whatever was written can be taken back
        for change in self.changes:
            if change.after is None:
                change.path.resolve().unlink()
            else:
                write_file(change.path, change.after)
        if not self.originals:
            _remove_made_folders(kept.load())
            kept.save({})


def make_options(
    store: str | None = None, *, scope: str = "", hooks: bool = False, arguments: tuple[str, ...] = ()
) -> Options:
    """The options of an installation for a store as the command line names it; its path becomes absolute."""
    owner = Scope.parse(scope) if scope else default_scope()
    return Options(store=store_file(store), scope=owner.text, hooks=hooks, arguments=arguments)


def install(name: str, options: Options) -> Plan:
    """Plan what is written into an assistant's settings: its MCP server, and its hooks if they are wanted."""
    assistant = find_assistant(name)
    if options.hooks and assistant.hooks is None:
        raise NotFoundError(f"{assistant.title} has no hooks: install it without --hooks")
    edits: dict[Path, list[Edit]] = {assistant.path: [lambda text: _with_server(text, assistant, options)]}
    if options.hooks and assistant.hooks:
        edits.setdefault(assistant.hooks.path, []).append(lambda text: with_hooks(text, assistant, options))
    kept = Originals(assistant.name).load()
    changes = [_change(path, steps) for path, steps in edits.items()]
    for change in changes:
        assert change.after is not None
        kept[str(change.path)] = _original(assistant, change, kept.get(str(change.path)))
    notes = tuple(_cache_notes(options.python))
    changed = tuple(each for each in changes if each.before != each.after)
    return Plan(assistant, changed, kept, notes, assistant.restart)


def uninstall(name: str) -> Plan:
    """Plan how an assistant's files become again what they were.

    A file that has changed since is kept as it is now, without our entries, and with the one that stood there before.
    """
    assistant = find_assistant(name)
    changes, notes = [], []
    kept = Originals(assistant.name).load()
    paths = {assistant.path, *([assistant.hooks.path] if assistant.hooks else []), *map(Path, kept)}
    for path in sorted(paths):
        original, content = kept.get(str(path)), read_file(path)
        if content is None:
            continue
        if original and original.is_unchanged:
            changes.append(Change(path, content, original.before))
            continue
        change = _change(path, _removals(path, assistant, original))
        if change.after != change.before:
            changes.append(change)
            notes.append(f"{path} has changed since it was installed: only the entries of Eunoe are taken out")
        if path == assistant.path and find_server(ConfigText.from_bytes(change.after or b"", path).text, assistant):
            notes.append(f"{path} keeps an entry of the name eunoe that Eunoe did not write")
    return Plan(assistant, tuple(changes), {}, tuple(notes))


def carry_out(plan: Plan, show: Say, say: Say, agrees: Callable[[], bool]) -> bool:
    """Show what a plan changes, and write it if the user agrees. Returns whether it was written."""
    for note in plan.notes:
        say(note)
    if not plan.changes:
        say(f"{plan.assistant.title}: nothing to do")
        return False
    show(plan.diff)
    if not agrees():
        say("nothing was written")
        return False
    plan.write()
    say("; ".join(filter(None, (f"{plan.assistant.title}: done", plan.advice))))
    return True


def _cache_notes(python: str) -> Iterator[str]:
    place = python.replace("\\", "/").lower()
    if any(mark in place for mark in _CACHE_MARKS):
        yield f"{python} lies in a cache that may be emptied: install eunoe for good first (pip, pipx, uv tool install)"


def _with_server(text: str, assistant: Assistant, options: Options) -> str:
    entry = options.server(assistant)
    return text if find_server(text, assistant) == entry else with_server(text, assistant, entry)


def _without_server(text: str, assistant: Assistant, original: Original | None) -> str:
    """The text without the entry that Eunoe wrote; the user's own one, which it replaced, is back."""
    if not has_our_server(text, assistant):
        return text
    if original is None or original.before is None:
        return without_server(text, assistant)
    earlier = ConfigText.from_bytes(original.before, Path(original.path)).text
    return with_server_of(text, assistant, earlier)


def _removals(path: Path, assistant: Assistant, original: Original | None) -> list[Edit]:
    """How our entries are taken out of a file. By its name it is that of the servers, that of the hooks, or both."""
    edits: list[Edit] = []
    if path.name == assistant.path.name:
        edits.append(lambda text: _without_server(text, assistant, original))
    if assistant.hooks and path.name == assistant.hooks.path.name:
        edits.append(lambda text: without_hooks(text, assistant))
    return edits


def _change(path: Path, edits: list[Edit]) -> Change:
    before = read_file(path)
    config = ConfigText.from_bytes(before or b"", path)
    try:
        for edit in edits:
            config = config._replace(text=edit(config.text))
    except InputError as error:
        raise InputError(f"cannot change {path}: {error}; it was not touched") from error
    return Change(path, before, config.to_bytes() if before is not None or config.text else None)


def _original(assistant: Assistant, change: Change, known: Original | None) -> Original:
    """What to go back to: the file before the first installation, or as others changed it since, without us."""
    assert change.after is not None
    written = fingerprint(change.after)
    if known and known.is_unchanged:
        return replace(known, written=written)
    before = None if change.before is None else _change(change.path, _removals(change.path, assistant, known)).after
    return Original(str(change.path), written, before, _first_missing_folder(change.path))


def _first_missing_folder(path: Path) -> str:
    missing = [parent for parent in path.parents if not parent.exists()]
    return str(missing[-1]) if missing else ""


def _remove_made_folders(originals: dict[str, Original]) -> None:
    """Remove the folders that were made for a file, as far as they are empty."""
    for path, original in originals.items():
        for folder in Path(path).parents if original.folder else ():
            with suppress(OSError):
                folder.rmdir()
            if str(folder) == original.folder:
                break


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode(errors="replace").splitlines(keepends=True)
