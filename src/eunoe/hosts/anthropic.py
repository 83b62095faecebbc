"""Anthropic's memory tool (`memory_20250818`) over a scope: the model's own notes, kept with all their versions."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from eunoe.errors import EunoeError, InputError, MissingPackageError
from eunoe.hosts.memory_files import MemoryFile, MemoryFileError, MemoryFiles, clean_path, is_folder
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.scope import ScopeLike
from eunoe.text.normalize import replace_surrogates

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.anthropic needs the SDK: pip install 'eunoe[anthropic]'") from error

_LINE_NUMBER_WIDTH: Final = 6
_MAX_LINES: Final = 999_999
_FOLDER_SIZE: Final = "4K"
"""What file systems say of a folder."""
_UNITS: Final = "BKMG"
_log = logging.getLogger("eunoe")


class EunoeMemoryTool(BetaAbstractMemoryTool):
    """The tool for one scope; pass it to `client.beta.messages.tool_runner(tools=[...])`.

    Replies and errors are those of the SDK's own tool for files.
    """

    def __init__(self, memory: Memory | AsyncMemory, scope: ScopeLike, **options: Any) -> None:
        super().__init__(**options)
        self.files = MemoryFiles(memory.blocking if isinstance(memory, AsyncMemory) else memory, scope)

    def execute(self, command: Any) -> Any:
        try:
            return super().execute(command)
        except MemoryFileError as error:
            raise ToolError(replace_surrogates(str(error))) from None
        except InputError as error:
            raise ToolError(f"The text cannot be kept: {error}") from None
        except (AttributeError, TypeError, NotImplementedError) as error:  # the SDK does not check what a model sends
            raise ToolError("The command is not one of the memory tool, or lacks an argument.") from error
        except EunoeError as error:
            _log.warning("the memory tool failed: %s", type(error).__name__)
            raise ToolError(f"The memory cannot be used at the moment ({type(error).__name__}).") from error

    def view(self, command: Any) -> str:
        files, place = self.files.all(), clean_path(command.path)
        if place in files:
            return _show_file(command.path, files[place].text, getattr(command, "view_range", None))
        if not is_folder(files, place):
            raise MemoryFileError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _show_folder(command.path, place, files)

    def create(self, command: Any) -> str:
        self.files.create(command.path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        old, new = command.old_str, command.new_str or ""
        before, text = self.files.edit(command.path, lambda text: _replace_once(text, old, new, command.path))
        lines, line = text.split("\n"), before.count("\n", 0, before.find(old))
        first = max(0, line - 2)
        shown = _number(lines[first : line + 3], first + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def insert(self, command: Any) -> str:
        self.files.edit(command.path, lambda text: _insert(text, command.insert_line, command.insert_text))
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        self.files.delete(command.path)
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        self.files.move(command.old_path, command.new_path)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        self.files.clear()
        return "All memory cleared"


class AsyncEunoeMemoryTool(BetaAsyncAbstractMemoryTool):
    """`EunoeMemoryTool` for the async client; it never blocks the event loop."""

    def __init__(self, memory: Memory | AsyncMemory, scope: ScopeLike, **options: Any) -> None:
        super().__init__(**options)
        self._tool = EunoeMemoryTool(memory, scope)
        self.files = self._tool.files

    async def execute(self, command: Any) -> Any:
        return await asyncio.to_thread(self._tool.execute, command)

    async def view(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: Any) -> str:
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _show_folder(path: str, place: str, files: dict[str, MemoryFile]) -> str:
    """Two levels, folders before what is in them, without what begins with a dot."""
    sizes: dict[str, str] = {}
    for file in files.values():
        if not file.path.startswith(f"{place}/"):
            continue
        parts = file.path.removeprefix(f"{place}/").split("/")
        for depth in range(1, min(len(parts), 3)):
            sizes["/".join(parts[:depth]) + "/"] = _FOLDER_SIZE
        if len(parts) <= 2:
            sizes["/".join(parts)] = _size(len(file.text.encode()))
    shown = (name for name in sizes if not any(part.startswith(".") for part in name.split("/")))
    names = sorted(shown, key=lambda name: name.rstrip("/").split("/"))
    lines = [f"{_FOLDER_SIZE}\t{path}", *(f"{sizes[name]}\t{path}/{name}" for name in names)]
    header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([header, *lines])


def _show_file(path: str, text: str, span: list[int] | None) -> str:
    lines, first = text.split("\n"), 1
    if len(lines) > _MAX_LINES:
        raise MemoryFileError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    if span and len(span) == 2:
        first = max(1, span[0])
        lines = lines[first - 1 : len(lines) if span[1] == -1 else span[1]]
    return f"Here's the content of {path} with line numbers:\n{_number(lines, first)}"


def _number(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_LINE_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _insert(text: str, line: int, new: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= line <= len(lines):
        raise MemoryFileError(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, new.rstrip("\n"))
    inserted = "\n".join(lines)
    return inserted if inserted.endswith("\n") else f"{inserted}\n"


def _replace_once(text: str, wanted: str, new: str, path: str) -> str:
    if not wanted or wanted not in text:
        raise MemoryFileError(f"No replacement was performed, old_str `{wanted}` did not appear verbatim in {path}.")
    if text.count(wanted) > 1:
        raise MemoryFileError(
            f"No replacement was performed. Multiple occurrences of old_str `{wanted}` in lines: "
            f"{', '.join(map(str, _lines_with(text, wanted)))}. Please ensure it is unique"
        )
    return text.replace(wanted, new)


def _lines_with(text: str, wanted: str) -> list[int]:
    lines, place = [], text.find(wanted)
    while place >= 0:
        lines.append(text.count("\n", 0, place) + 1)
        place = text.find(wanted, place + 1)
    return lines


def _size(count: int) -> str:
    """Bytes as the SDK shows them, such as 1.5K."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    size = count / 1024**power
    return f"{int(size)}{_UNITS[power]}" if size == int(size) else f"{size:.1f}{_UNITS[power]}"
