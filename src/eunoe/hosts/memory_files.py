"""Text files that an agent keeps for itself, under `/memories`: each is one atom of a scope, with all its versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from posixpath import normpath
from typing import Any, Final, NamedTuple

from eunoe.errors import ConflictError, EunoeError, NotFoundError
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope, ScopeLike
from eunoe.text.normalize import replace_surrogates

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
    ...     _ = files.edit("/memories/tea.md", lambda text: text.replace("green", "black"))
    ...     [version.text for version in files.versions("/memories/tea.md")]
    ['Anna likes green tea.', 'Anna likes black tea.']
    """

    def __init__(self, memory: Memory, scope: ScopeLike) -> None:
        self._memory = memory
        self._scope = Scope.of(scope)

    def all(self) -> dict[str, MemoryFile]:
        """Every file by its path, in the order of paths."""
        return dict(sorted((file.path, file) for file in _read(self._atoms())))

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
        id, files = self._free_id(place), self.all()  # in this order: who comes later sees the file or has its id
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
            self._move(file, new + file.path.removeprefix(old))

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

    def _move(self, file: MemoryFile, place: str) -> None:
        latest: MemoryFile | None = file
        while latest and not self._replace(latest, place, latest.text):
            latest = self.all().get(file.path)

    def _forget(self, files: Iterable[MemoryFile]) -> bool:
        """Forget these files, or none of them: return False if somebody else has forgotten one."""
        try:
            if ids := [file.id for file in files]:
                self._memory.forget(self._scope, ids, may_return=True, exact=True)
        except NotFoundError:
            return False
        return True

    def _free_id(self, place: str) -> str:
        """The path itself, so that two who make it at once meet; with a number if a file that was moved away has it."""
        ids = (f"{place}//{number}" if number else place for number in count())
        return next(id for id in ids if not self._memory.get_many(self._scope, [id], exact=True))

    def _atoms(self) -> Iterator[Atom]:
        after = ""
        while True:
            page = self._memory.list(self._scope, kinds=["fact"], labels=[LABEL], limit=_PAGE, after=after, exact=True)
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
