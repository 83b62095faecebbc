"""Anthropic's memory tool (`memory_20250818`) over a scope: text files under `/memories`, which an agent keeps itself.

Each file is one atom of the scope, with all its versions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from posixpath import normpath
from typing import Any, Final, NamedTuple

from eunoe.errors import ConflictError, EunoeError, InputError, MissingPackageError, NotFoundError
from eunoe.hosts.common import awaited, blocking
from eunoe.memory import AsyncMemory, Memory, iterate
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope, ScopeLike
from eunoe.text.normalize import replace_surrogates

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise MissingPackageError("eunoe.hosts.anthropic needs the SDK: pip install 'eunoe[anthropic]'") from error

ROOT: Final = "/memories"
LABEL: Final = "memory_file"
_MAX_PATH_CHARACTERS: Final = 400
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
        self.files = MemoryFiles(blocking(memory), scope)

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

    execute = awaited(EunoeMemoryTool.execute, on="_tool")
    view = awaited(EunoeMemoryTool.view, on="_tool")
    create = awaited(EunoeMemoryTool.create, on="_tool")
    str_replace = awaited(EunoeMemoryTool.str_replace, on="_tool")
    insert = awaited(EunoeMemoryTool.insert, on="_tool")
    delete = awaited(EunoeMemoryTool.delete, on="_tool")
    rename = awaited(EunoeMemoryTool.rename, on="_tool")
    clear_all_memory = awaited(EunoeMemoryTool.clear_all_memory, on="_tool")


class MemoryFileError(EunoeError):
    """A file cannot be read or written as asked; the message is for the agent."""


class MemoryFile(NamedTuple):
    """One file as it is now."""

    id: str
    path: str
    text: str


class MemoryFiles:
    """The files of one scope. Folders are there as long as something is in them.

    >>> with eunoe.open(":memory:") as memory:
    ...     files = MemoryFiles(memory, "user=anna")
    ...     files.create("/memories/tea.md", "Anna likes green tea.")
    ...     _ = files.edit("/memories/tea.md", lambda text: text.replace("green", "black"))
    ...     [version.text for version in files.versions("/memories/tea.md")]
    ['Anna likes green tea.', 'Anna likes black tea.']
    """

    def __init__(self, memory: Memory, scope: ScopeLike) -> None:
        self._memory = memory
        self._scope = Scope.of(scope)

    def all(self) -> dict[str, MemoryFile]:
        """Every file by its path, in the order of paths."""
        items = iterate(self._memory, self._scope, kinds=["fact"], labels=[LABEL], exact=True)
        return dict(sorted((file.path, file) for file in _read(items)))

    def get(self, path: str) -> MemoryFile:
        files, place = self.all(), clean_path(path)
        if place in files:
            return files[place]
        if is_folder(files, place):
            raise MemoryFileError(f"The path {path} is not a file.")
        raise MemoryFileError(f"The path {path} does not exist. Please provide a valid path.")

    def create(self, path: str, text: str) -> None:
        """Make a file. Where two make the same one at once, one of them is refused."""
        place = clean_path(path)
        # The path is the id, so that two who make it at once meet; with a number if a file that was moved away has it.
        ids = (f"{place}//{number}" if number else place for number in count())
        id = next(id for id in ids if not self._memory.get_many(self._scope, [id], exact=True))
        files = self.all()  # after the id: who comes later sees the file, or has its id
        if place == ROOT or place in files or is_folder(files, place):
            raise MemoryFileError(f"File {path} already exists")
        _check_parents(files, place)
        receipt = self._memory.remember(self._scope, id=id, label=LABEL, again=True, **_fields(place, text))
        if receipt.outcome == "ignored":
            raise MemoryFileError("Nothing is kept of this conversation")
        if receipt.outcome != "stored":
            raise MemoryFileError(f"File {path} already exists")

    def edit(self, path: str, change: Callable[[str], str]) -> tuple[str, str]:
        """Change the text of a file; return it as it was and as it is. The version before stays readable.

        If somebody else writes the file meanwhile, the change is made again in what they wrote.
        """
        while True:
            file = self.get(path)
            text = replace_surrogates(change(file.text))
            if self._replace(file, file.path, text):
                return file.text, text

    def move(self, old_path: str, new_path: str) -> None:
        """Move a file, or a folder with what is in it."""
        old, new, files = clean_path(old_path), clean_path(new_path), self.all()
        if old == ROOT:
            raise MemoryFileError("Cannot rename the /memories directory itself")
        if new == ROOT or new in files or is_folder(files, new):
            raise MemoryFileError(f"The destination {new_path} already exists")
        if new.startswith(f"{old}/"):
            raise MemoryFileError(f"{old_path} cannot be moved into itself")
        inside = _inside(files, old)
        if not inside:
            raise MemoryFileError(f"The path {old_path} does not exist")
        _check_parents(files, new)
        for file in inside:
            latest: MemoryFile | None
            place, latest = new + file.path.removeprefix(old), file
            while latest and not self._replace(latest, place, latest.text):
                latest = self.all().get(file.path)

    def delete(self, path: str) -> None:
        """Forget a file, or a folder with what is in it, with all versions."""
        place = clean_path(path)
        if place == ROOT:
            raise MemoryFileError("Cannot delete the /memories directory itself")
        inside = _inside(self.all(), place)
        if not inside:
            raise MemoryFileError(f"The path {path} does not exist")
        if not self._forget(inside):
            self.delete(path)

    def clear(self) -> None:
        """Forget all files of the scope, and nothing else of it."""
        while not self._forget(self.all().values()):
            pass

    def versions(self, path: str) -> list[MemoryFile]:
        """Every version of a file, oldest first."""
        return list(_read(self._memory.history(self._scope, self.get(path).id, exact=True)))

    def _replace(self, file: MemoryFile, place: str, text: str) -> bool:
        """Put a new version in the place of the one that was read. Return False if another one took it meanwhile."""
        try:
            receipt = self._memory.update(self._scope, file.id, **_fields(place, text))
        except (ConflictError, NotFoundError):
            return False
        if receipt.outcome == "forgotten":
            raise MemoryFileError("This text was forgotten on purpose, and is not kept again")
        return receipt.closed == file.id or (place, text) == (file.path, file.text)

    def _forget(self, files: Iterable[MemoryFile]) -> bool:
        """Forget these files, or none of them: return False if somebody else has forgotten one."""
        try:
            if ids := [file.id for file in files]:
                self._memory.forget(self._scope, ids, may_return=True, exact=True)
        except NotFoundError:
            return False
        return True


def clean_path(path: str) -> str:
    """The one way to write a path. Raise MemoryFileError for one that is not under `/memories`.

    >>> clean_path("/memories/a/../b.md/")
    '/memories/b.md'
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise MemoryFileError(f"Path must start with /memories, got: {path}")
    if len(path) > _MAX_PATH_CHARACTERS or not path.isprintable():
        raise MemoryFileError(f"Path must have at most {_MAX_PATH_CHARACTERS} characters, all of them printable")
    place = normpath(path)
    if place != ROOT and not place.startswith(f"{ROOT}/"):
        raise MemoryFileError(f"Path {path} would escape /memories directory")
    return place


def is_folder(files: dict[str, MemoryFile], place: str) -> bool:
    return place == ROOT or any(path.startswith(f"{place}/") for path in files)


def _inside(files: dict[str, MemoryFile], place: str) -> list[MemoryFile]:
    return [file for path, file in files.items() if path == place or path.startswith(f"{place}/")]


def _check_parents(files: dict[str, MemoryFile], place: str) -> None:
    parts = place.split("/")
    for end in range(3, len(parts)):
        if (parent := "/".join(parts[:end])) in files:
            raise MemoryFileError(f"{parent} is a file, not a directory")


def _fields(place: str, text: str) -> dict[str, Any]:
    """A memory has words: a file without any is kept under its path."""
    if text.strip():
        return {"text": replace_surrogates(text), "metadata": {"path": place}}
    return {"text": place, "metadata": {"path": place, "blank": text}}


def _read(items: Iterable[object]) -> Iterator[MemoryFile]:
    """The files among them. Others may use the label too."""
    for atom in items:
        if isinstance(atom, Atom):
            path, text = atom.metadata.get("path"), atom.metadata.get("blank", atom.text)
            if isinstance(path, str) and isinstance(text, str) and path.startswith(f"{ROOT}/"):
                yield MemoryFile(atom.id, path, text)


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
        places = [place for place in range(len(text)) if text.startswith(wanted, place)]
        lines = [str(text.count("\n", 0, place) + 1) for place in places]
        raise MemoryFileError(
            f"No replacement was performed. Multiple occurrences of old_str `{wanted}` in lines: "
            f"{', '.join(lines)}. Please ensure it is unique"
        )
    return text.replace(wanted, new)


def _size(count: int) -> str:
    """Bytes as the SDK shows them, such as 1.5K."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    size = count / 1024**power
    return f"{int(size)}{_UNITS[power]}" if size == int(size) else f"{size:.1f}{_UNITS[power]}"
