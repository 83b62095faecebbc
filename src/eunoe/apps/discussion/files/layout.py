"""The files of a discussion: where they stand in either layout, whose they are, and how they are read and written."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import pbkdf2_hmac, sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from eunoe.apps.discussion.model import DEFAULT_USER
from eunoe.errors import InputError, MissingPackageError
from eunoe.model.arguments import check_text

Layout = Literal["folders", "flat"]
"""`folders`: `[USER/]ID/memories.json` and so on. `flat`: `[USER/]ID_memories.jsonl` and so on."""
LAYOUTS: Final[tuple[Layout, ...]] = ("folders", "flat")
Part = Literal["memories", "summary", "database", "state_document", "written"]

_NAMES: Final[Mapping[str, Part]] = {
    "memories.json": "memories",
    "chat_summary.json": "summary",
    "vector_memory.db": "database",
    "state_document.md": "state_document",
    ".eunoe.json": "written",
}
_SUFFIXES: Final[Mapping[str, Part]] = {
    "_memories.jsonl": "memories",
    "_summary.jsonl": "summary",
    "_vector_memory.db": "database",
    "_state_document.md": "state_document",
    "_eunoe.json": "written",
    "_memories.json": "memories",
    "_chat_summary.json": "summary",
}
"""Of flat files. The last two are older names, which are read and not written."""
_PASSED_OVER: Final = ("-wal", "-shm", "-journal", "state_document.md.bak", "condensation_tracker.json")
"""Files that say nothing that is not known, or not kept."""
_USER_FOLDER: Final = re.compile(r"[0-9a-f]{16}")
_ITERATIONS: Final = 100_000
"""As the application that writes encrypted files has it."""
_KEY_BYTES: Final = 32
_TOKEN_START: Final = b"gAAAA"
"""What every Fernet token starts with: its version and the first bytes of a time."""


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
    return folder.glob(pattern) if _USER_FOLDER.fullmatch(folder.name) else iter(())


def user_folder(user: str) -> str:
    """The folder of a user: none for the default one, the name itself if it is a hash, else a hash of the name."""
    if user == DEFAULT_USER:
        return ""
    return user if _USER_FOLDER.fullmatch(user) else sha256(user.encode()).hexdigest()[:16]


def files_at(path: Path) -> DiscussionFiles:
    """The files of the discussion whose folder, or one of whose flat files, is named."""
    path = path.resolve()
    if path.name in _NAMES and path.is_file():
        path = path.parent
    id = path.name if path.is_dir() else (_flat_name(path) or ("",))[0]
    for each in _of_user(path.parent, path.parent.name):
        if each.id == id:
            return each
    raise InputError(f"{path} holds no discussion: name its folder, or one of its files such as ID_memories.jsonl")


def find_discussions(root: Path) -> list[DiscussionFiles]:
    """All discussions below a folder: of all users, or of the one whose folder it is."""
    users = [each for each in _folders(root) if _USER_FOLDER.fullmatch(each.name)]
    within = [discussion for user in users for discussion in _of_user(user, user.name)]
    found = [*_of_user(root, root.resolve().name), *within]
    if not found:
        raise InputError(f"{root} holds no discussions: name the folder that holds those of all users, or of one")
    return found


def _of_user(folder: Path, name: str) -> list[DiscussionFiles]:
    """Newer files stand in a folder, older ones of the same discussion may still lie beside it."""
    user = name if _USER_FOLDER.fullmatch(name) else ""
    found: list[DiscussionFiles] = []
    for own in _folders(folder):
        files = [file for file in sorted(own.iterdir()) if file.is_file()]
        if parts := {_NAMES[file.name]: file for file in files if file.name in _NAMES}:
            others = (file for file in files if file.name not in _NAMES and not file.name.endswith(_PASSED_OVER))
            found.append(DiscussionFiles(own.name, user, parts, tuple(others)))
    flat = ((_flat_name(file), file) for file in sorted(folder.iterdir()) if file.is_file())
    named = [(name, file) for name, file in flat if name]
    # Those with newer names first.
    found += (
        DiscussionFiles(name[0], user, {name[1]: file}) for name, file in sorted(named, key=lambda each: each[0][2])
    )
    merged: dict[str, DiscussionFiles] = {}
    for each in found:
        first = merged.setdefault(each.id, each)
        if first is not each:
            parts = {**each.parts, **first.parts}
            late = [path for part, path in each.parts.items() if parts[part] != path]
            merged[each.id] = DiscussionFiles(each.id, user, parts, (*first.others, *each.others, *late))
    return list(merged.values())


def _flat_name(file: Path) -> tuple[str, Part, int] | None:
    """The id and the part that the name of a flat file says, and how old such names are."""
    for age, (suffix, part) in enumerate(_SUFFIXES.items()):
        if file.name.endswith(suffix) and file.name != suffix:
            return file.name.removesuffix(suffix), part, age
    return None


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    return [each for each in sorted(folder.iterdir()) if each.is_dir()]


class FileKey:
    """Opens and locks the files of one user: Fernet, with a key derived from an API key and a salt.

    >>> key = FileKey.from_api_key("secret", salt=b"0123456789abcdef")
    >>> key.decrypt(key.encrypt(b"[]"), "memories.json")
    b'[]'
    """

    def __init__(self, key: bytes | str) -> None:
        """Take a Fernet key that is ready: 32 bytes in URL-safe base64."""
        try:
            from cryptography.fernet import Fernet
        except ImportError:
            raise MissingPackageError("encrypted files need a package: pip install 'eunoe[discussion]'") from None
        try:
            self._fernet = Fernet(key)
        except ValueError:
            raise InputError("no Fernet key: give 32 bytes in URL-safe base64, or an API key and a salt") from None

    @classmethod
    def from_api_key(cls, api_key: str, salt: bytes | Path) -> FileKey:
        """Derive the key as the application does. `salt`: the bytes, or the file that holds them."""
        bytes_ = salt.read_bytes() if isinstance(salt, Path) else salt
        if not api_key or not bytes_:
            raise InputError("an API key and a salt are needed to open encrypted files: one of them is empty")
        derived = pbkdf2_hmac("sha256", api_key.encode(), bytes_, _ITERATIONS, _KEY_BYTES)
        return cls(base64.urlsafe_b64encode(derived))

    def encrypt(self, content: bytes) -> bytes:
        return self._fernet.encrypt(content)

    def decrypt(self, content: bytes, name: str) -> bytes:
        """Open a file's content. Raise InputError with its name if the key is another one or the file is damaged."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(content.strip())
        except InvalidToken:
            raise InputError(
                f"{name} cannot be decrypted: the key or the salt is another one, or it is damaged"
            ) from None

    def __repr__(self) -> str:
        return "FileKey(...)"


class TextBlock(NamedTuple):
    """One entry of a file of memories or of a summary."""

    text: str
    hash: str
    """SHA-256 of the message that it ends on."""


def is_encrypted_file(path: Path) -> bool:
    """Whether there is a file whose content is encrypted."""
    return path.is_file() and path.read_bytes().lstrip().startswith(_TOKEN_START)


def read_content(path: Path, key: FileKey | None = None) -> bytes:
    """The content of a file, decrypted if it is encrypted."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if not content.lstrip().startswith(_TOKEN_START):
        return content
    if key is None:
        raise InputError(f"{path} is encrypted: give the API key of its user with the salt, or the Fernet key")
    return key.decrypt(content, str(path))


def decode(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is no UTF-8 text ({error.reason} at byte {error.start})") from None


def parse_json(text: str, place: str) -> Any:
    """Read JSON as it stands in a file; `place` names it in errors."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is damaged or half-written: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def parse_blocks(content: bytes, path: Path) -> tuple[list[TextBlock], list[str]]:
    """Read the entries of a JSON array, or of a file with one entry a line; and notes on what is odd about them."""
    text = decode(content, path)
    if path.suffix == ".jsonl":
        lines = enumerate(text.split("\n"), 1)
        values = [(f"line {n}", parse_json(line, f"{path}, line {n},")) for n, line in lines if line.strip()]
    else:
        array = parse_json(text, str(path))
        if not isinstance(array, list):
            raise InputError(f"{path} is damaged: it holds no list of memories")
        values = [(f"entry {number}", value) for number, value in enumerate(array, 1)]
    blocks, notes = [], dict[str, None]()
    for name, value in values:
        place, hash = f"{path}, {name},", value.get("hash", "") if isinstance(value, dict) else ""
        if not isinstance(value, dict) or not isinstance(value.get("text_block"), str):
            raise InputError(f"{place} is damaged: it has no text_block")
        if not isinstance(hash, str):
            raise InputError(f"{place} is damaged: its hash is no text")
        words = check_text(value["text_block"], f"{place} text_block")
        blocks.append(TextBlock(words, check_text(hash, f"{place} hash")))
        faults = {
            "without a hash": "hash" not in value,
            "with more than text_block and hash: the rest is left out": bool(value.keys() - {"text_block", "hash"}),
            "without words: they are left out": not words.strip(),
        }
        notes |= {f"{path} has entries {fault}": None for fault, is_there in faults.items() if is_there}
    return blocks, list(notes)


def format_blocks(blocks: Iterable[TextBlock], layout: Layout) -> bytes:
    """Entries as the application writes them: as a JSON array, or in the flat layout one a line."""
    values = [{"text_block": block.text, "hash": block.hash} for block in blocks]
    if layout == "folders":
        return json.dumps(values, indent=4).encode()
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


def digest(content: str | bytes) -> str:
    """By which a text or the content of a file is recognised."""
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()
