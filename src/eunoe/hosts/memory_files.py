"""Text files that an agent keeps for itself, under `/memories`: each is one atom of a scope, with all its versions."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import Any, Final, NamedTuple
from uuid import uuid4

from eunoe.errors import EunoeError
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope, ScopeLike

ROOT: Final = "/memories"
LABEL: Final = "memory_file"
_PAGE: Final = 1000
_MAX_PATH_CHARACTERS: Final = 400


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
    ...     files.write(files.find("/memories/tea.md"), "Anna likes black tea.")
    ...     [version.text for version in files.versions("/memories/tea.md")]
    ['Anna likes green tea.', 'Anna likes black tea.']
    """

    def __init__(self, memory: Memory, scope: ScopeLike) -> None:
        self._memory = memory
        self._scope = Scope.of(scope)

    def all(self) -> dict[str, MemoryFile]:
        """Every file by its path, in the order of paths."""
        return dict(sorted((file.path, file) for file in map(_read, self._atoms())))

    def find(self, path: str) -> MemoryFile | None:
        return self.all().get(clean_path(path))

    def create(self, path: str, text: str) -> None:
        """Make a file. Where two make the same one at once, one of them is refused."""
        place, files = clean_path(path), self.all()
        if place == ROOT or place in files or is_folder(files, place):
            raise MemoryFileError(f"File {path} already exists")
        _check_parents(files, place)
        self._put(_free_id(place, files), place, text, path)

    def write(self, file: MemoryFile, text: str, path: str = "") -> None:
        """Give a file another text or another path; the version before stays readable."""
        fields = _fields(path or file.path, text)
        self._memory.remember(self._scope, id=file.id, label=LABEL, replace=True, **fields)

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
        items = [
            {"id": file.id, "label": LABEL, **_fields(new + file.path.removeprefix(old), file.text)} for file in inside
        ]
        self._memory.remember_many(self._scope, items, replace=True)

    def delete(self, path: str) -> None:
        """Forget a file, or a folder with what is in it, with all versions."""
        place = clean_path(path)
        if place == ROOT:
            raise MemoryFileError("Cannot delete the /memories directory itself")
        inside = _inside(self.all(), place)
        if not inside:
            raise MemoryFileError(f"The path {path} does not exist")
        self._memory.forget(self._scope, [file.id for file in inside], may_return=True)

    def clear(self) -> None:
        """Forget all files of the scope, and nothing else of it."""
        if ids := [file.id for file in self.all().values()]:
            self._memory.forget(self._scope, ids, may_return=True)

    def versions(self, path: str) -> list[MemoryFile]:
        """Every version of a file, oldest first."""
        file = self.find(path)
        if file is None:
            raise MemoryFileError(f"The path {path} does not exist")
        return list(map(_read, self._memory.history(self._scope, file.id)))

    def _put(self, id: str, place: str, text: str, path: str) -> None:
        receipt = self._memory.remember(self._scope, id=id, label=LABEL, again=True, **_fields(place, text))
        if receipt.outcome != "stored":
            raise MemoryFileError(f"File {path} already exists")

    def _atoms(self) -> Iterator[Atom]:
        after = ""
        while True:
            page = self._memory.list(self._scope, kinds=["fact"], labels=[LABEL], limit=_PAGE, after=after)
            yield from (item for item in page.items if isinstance(item, Atom))
            if not (after := page.next):
                return


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


def _free_id(place: str, files: dict[str, MemoryFile]) -> str:
    """The path itself, so that two who make it at once meet; another one if a file that was moved away has it."""
    return f"{place}#{uuid4().hex}" if any(file.id == place for file in files.values()) else place


def _fields(place: str, text: str) -> dict[str, Any]:
    """A memory has words: a file without any is kept under its path."""
    if text.strip():
        return {"text": text, "metadata": {"path": place}}
    return {"text": place, "metadata": {"path": place, "blank": text}}


def _read(atom: Atom) -> MemoryFile:
    return MemoryFile(atom.id, atom.metadata["path"], atom.metadata.get("blank", atom.text))
