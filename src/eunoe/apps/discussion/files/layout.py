"""Where the files of a discussion stand, in either layout, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from eunoe.apps.discussion.scope import DEFAULT_USER
from eunoe.errors import InputError

Layout = Literal["folders", "flat"]
"""`folders`: `[USER/]ID/memories.json` and so on. `flat`: `[USER/]ID_memories.jsonl` and so on."""
LAYOUTS: Final[tuple[Layout, ...]] = ("folders", "flat")
Part = Literal["memories", "summary", "database", "state_document", "backup", "condensation", "written"]

_NAMES: Final[Mapping[str, Part]] = {
    "memories.json": "memories",
    "chat_summary.json": "summary",
    "vector_memory.db": "database",
    "state_document.md": "state_document",
    "state_document.md.bak": "backup",
    "condensation_tracker.json": "condensation",
    ".eunoe.json": "written",
}
_SUFFIXES: Final[Mapping[str, Part]] = {
    "_memories.jsonl": "memories",
    "_summary.jsonl": "summary",
    "_vector_memory.db": "database",
    "_state_document.md": "state_document",
    "_state_document.md.bak": "backup",
    "_condensation_tracker.json": "condensation",
    "_eunoe.json": "written",
    "_memories.json": "memories",
    "_chat_summary.json": "summary",
}
"""Of flat files. The last two are older names, which are read and not written."""
_COMPANIONS: Final = ("-wal", "-shm", "-journal")
_USER_FOLDER: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class DiscussionFiles:
    """The files of one discussion that are there."""

    id: str
    """As the files name it. It may be none that is allowed here."""
    user: str
    """The folder of its user; empty if it stands in none."""
    parts: Mapping[Part, Path] = field(default_factory=dict)
    others: tuple[Path, ...] = ()
    """Files that are not read: of another kind, or an older one beside a newer."""

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.user}/{self.id}" if self.user else self.id


def part_paths(root: Path, id: str, folder: str, layout: Layout) -> dict[Part, Path]:
    """Where each file of a discussion is written; `folder` is that of its user."""
    if layout == "folders":
        return {part: root / folder / id / name for name, part in _NAMES.items()}
    names = {part: f"{id}{suffix}" for suffix, part in reversed(list(_SUFFIXES.items()))}
    return {part: root / folder / name for part, name in names.items()}


def files_of_user(memories: Path, layout: Layout) -> Iterator[Path]:
    """The files of memories of all discussions of a user, where one of them is named; none if it is in no folder."""
    folder, pattern = (
        (memories.parent.parent, f"*/{memories.name}") if layout == "folders" else (memories.parent, "*_memories.jsonl")
    )
    return folder.glob(pattern) if is_user_folder(folder.name) else iter(())


def user_folder(user: str) -> str:
    """The folder of a user: none for the default one, the name itself if it is a hash, else a hash of the name."""
    if user == DEFAULT_USER:
        return ""
    return user if is_user_folder(user) else sha256(user.encode()).hexdigest()[:16]


def is_user_folder(name: str) -> bool:
    """Whether a folder is named as those of users are: by 16 hexadecimal digits."""
    return bool(_USER_FOLDER.fullmatch(name))


def files_at(path: Path) -> DiscussionFiles:
    """The files of the discussion whose folder, or one of whose flat files, is named."""
    path = path.resolve()
    if path.name in _NAMES and path.is_file():
        path = path.parent
    id, _ = (path.name, "") if path.is_dir() else _flat_name(path) or ("", "")
    for each in _of_user(path.parent, path.parent.name):
        if each.id == id:
            return each
    raise InputError(f"{path} holds no discussion: name its folder, or one of its files such as ID_memories.jsonl")


def find_discussions(root: Path) -> list[DiscussionFiles]:
    """All discussions below a folder: of all users, or of the one whose folder it is."""
    users = [each for each in _folders(root) if is_user_folder(each.name)]
    within = [discussion for user in users for discussion in _of_user(user, user.name)]
    found = [*_of_user(root, root.resolve().name), *within]
    if not found:
        raise InputError(f"{root} holds no discussions: name the folder that holds those of all users, or of one")
    return found


def _of_user(folder: Path, name: str) -> list[DiscussionFiles]:
    """Newer files stand in a folder, older ones of the same discussion may still lie beside it."""
    merged: dict[str, DiscussionFiles] = {}
    for each in [*_in_folder(folder, name), *_flat_files(folder, name)]:
        merged[each.id] = _merge(merged[each.id], each) if each.id in merged else each
    return list(merged.values())


def _in_folder(folder: Path, user: str) -> Iterator[DiscussionFiles]:
    for each in _folders(folder):
        files = [file for file in sorted(each.iterdir()) if file.is_file()]
        parts = {_NAMES[file.name]: file for file in files if file.name in _NAMES}
        if parts:
            yield DiscussionFiles(each.name, _user_name(user), parts, _others(files, parts.values()))


def _flat_files(folder: Path, user: str) -> Iterator[DiscussionFiles]:
    found: dict[str, DiscussionFiles] = {}
    for file in sorted(folder.iterdir(), key=_newest_name_first):
        if file.is_file() and (name := _flat_name(file)):
            id, part = name
            each = DiscussionFiles(id, _user_name(user), {part: file})
            found[id] = _merge(found[id], each) if id in found else each
    yield from found.values()


def _merge(first: DiscussionFiles, second: DiscussionFiles) -> DiscussionFiles:
    parts = {**second.parts, **first.parts}
    late = [path for part, path in second.parts.items() if parts[part] != path]
    return DiscussionFiles(first.id, first.user, parts, (*first.others, *second.others, *late))


def _flat_name(file: Path) -> tuple[str, Part] | None:
    for suffix, part in _SUFFIXES.items():
        if file.name.endswith(suffix) and file.name != suffix:
            return file.name.removesuffix(suffix), part
    return None


def _newest_name_first(file: Path) -> tuple[int, str]:
    places = [place for place, suffix in enumerate(_SUFFIXES) if file.name.endswith(suffix)]
    return (places[0] if places else 0), file.name


def _others(files: Iterable[Path], known: Iterable[Path]) -> tuple[Path, ...]:
    named = set(known)
    return tuple(file for file in files if file not in named and not file.name.endswith(_COMPANIONS))


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    return [each for each in sorted(folder.iterdir()) if each.is_dir()]


def _user_name(name: str) -> str:
    return name if is_user_folder(name) else ""
