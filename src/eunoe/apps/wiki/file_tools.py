"""The tools by which wiki agents read a repository. Each takes the repository from the state of its run."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, Literal

from eunoe.apps.wiki.repository_files import MAX_READ_BYTES, RepositoryFiles, printable
from eunoe.errors import InputError, MissingPackageError

try:
    from langchain.tools import ToolRuntime
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ImportError as error:
    raise MissingPackageError("eunoe.apps.wiki needs LangChain and LangGraph: pip install 'eunoe[wiki]'") from error

_MAX_FILES: Final = 20
"""Of one call: more would push everything else out of a model's context."""
_MAX_ENTRIES: Final = 500


def read_text_file(path: str, runtime: ToolRuntime, head: int | None = None, tail: int | None = None) -> str:
    """Read a text file of the repository; `head` or `tail` give only its first or last lines.

    Paths are relative to the root of the repository.
    """
    return _text(_files(runtime), path, head, tail)


def read_multiple_files(paths: list[str], runtime: ToolRuntime) -> str:
    """Read several text files of the repository at once. One that cannot be read does not spoil the others."""
    if not 0 < len(paths) <= _MAX_FILES:
        raise InputError(f"name between 1 and {_MAX_FILES} files")
    files = _files(runtime)
    texts, room = [], MAX_READ_BYTES
    for path in dict.fromkeys(map(os.path.normpath, paths)):
        text = _text_or_reason(files, path)
        if len(text) > room:
            text = f"Error: no room is left in this answer: read {printable(path)} in another call"
        room -= len(text)
        texts.append(f"{printable(path)}:\n{text}")
    return "\n---\n".join(texts)


def list_directory_with_sizes(runtime: ToolRuntime, path: str = ".", sort_by: Literal["name", "size"] = "name") -> str:
    """List a folder of the repository: each file with its size in bytes, each folder with its number of files."""
    entries = _files(runtime).entries(path)
    if sort_by == "size":
        entries.sort(key=lambda entry: (not entry.is_folder, -entry.size))
    lines = [_line(*entry) for entry in entries[:_MAX_ENTRIES]]
    if len(entries) > _MAX_ENTRIES:
        lines.append(f"... and {len(entries) - _MAX_ENTRIES} more")
    return "\n".join(lines)


def _refusals_as_answers(function: Callable[..., str]) -> Callable[..., str]:
    """What is refused is an answer for the model, marked as an error; it ends no run."""

    @wraps(function)
    def call(*args: Any, **values: Any) -> str:
        try:
            return function(*args, **values)
        except InputError as error:
            raise ToolException(f"Error: {error}") from error

    return call


def _tool(function: Callable[..., str]) -> BaseTool:
    return StructuredTool.from_function(_refusals_as_answers(function), handle_tool_error=True)


FILE_TOOLS: Final[tuple[BaseTool, ...]] = (
    _tool(read_text_file),
    _tool(read_multiple_files),
    _tool(list_directory_with_sizes),
)
"""For any agent whose state has `repo_dir`, and `wiki_dir` where a folder is to be left out."""


def _files(runtime: ToolRuntime) -> RepositoryFiles:
    root = runtime.state.get("repo_dir") or runtime.state.get("clone_path")
    if not root:
        raise InputError("the run has no repository: pass repo_dir in its input")
    return RepositoryFiles(root, runtime.state.get("wiki_dir"))


def _text(files: RepositoryFiles, path: str, head: int | None = None, tail: int | None = None) -> str:
    if head is not None and tail is not None:
        raise InputError("give head or tail, not both")
    if any(lines is not None and lines < 1 for lines in (head, tail)):
        raise InputError("head and tail count lines, 1 or more")
    text, size = files.read(path, from_end=tail is not None)
    part = "last" if tail is not None else "first"
    note = f"[{size} bytes; this is from the {part} {MAX_READ_BYTES}]\n" if size > MAX_READ_BYTES else ""
    lines = text.splitlines(keepends=True)
    return note + "".join(lines[-tail:] if tail else lines[:head])


def _text_or_reason(files: RepositoryFiles, path: str) -> str:
    try:
        return _text(files, path)
    except InputError as error:
        return f"Error: {error}"


def _line(name: str, size: int, is_folder: bool) -> str:
    return f"[DIR] {printable(name)}/ ({size} files)" if is_folder else f"[FILE] {printable(name)} ({size} bytes)"
