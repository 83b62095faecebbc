"""Install Eunoe in an assistant and take it out again.

`install` and `uninstall` only plan: a `Plan` says what would be written, and `write` does it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from eunoe.assistants.catalog import Assistant, find_assistant
from eunoe.assistants.config_file import ConfigText, read_file
from eunoe.assistants.entries import (
    Options,
    find_server,
    has_our_server,
    with_hooks,
    with_server,
    with_server_of,
    without_hooks,
    without_server,
)
from eunoe.assistants.originals import Original, Originals, fingerprint
from eunoe.assistants.store_file import store_file
from eunoe.errors import ConflictError, InputError, NotFoundError
from eunoe.files import write_file
from eunoe.model.scope import Scope
from eunoe.net.local_server import default_scope

__all__ = ["Change", "Options", "Plan", "carry_out", "install", "make_options", "uninstall"]

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
