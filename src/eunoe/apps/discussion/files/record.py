"""What an import leaves behind that is no memory: how far the other program had come, and where the chat goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Final

from eunoe.apps.discussion.atoms import NEVER, chunk_memories
from eunoe.apps.discussion.files.database import LoggedHash
from eunoe.apps.discussion.files.layout import Part
from eunoe.apps.discussion.model import MemoryKind
from eunoe.memory import Memory
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

IMPORT: Final = "import"
"""The author of what was imported, and the beginning of its ids."""
_ID: Final = "import_record"
_TEXT: Final = "How far the imported memories go."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """What is known about the files that a discussion was imported from."""

    hashes: tuple[LoggedHash, ...] = ()
    """The messages up to which keyword memories had been made, the newest last."""
    summary_hash: str = ""
    summary_digest: str = ""
    """By which the summary is recognised when it is read again."""
    condensed: str = ""
    """The hash of the last chunk memory that had been condensed."""
    state_digest: str = ""
    """By which the state document is recognised when it is read again."""
    is_ascii: bool = True
    is_encrypted: bool = False
    folder: str | None = None
    """The folder of the user in which the files stood; None if nothing was imported."""
    read: Mapping[Part, str] = field(default_factory=dict)
    """A digest of each file as it was read last: what stands in it is known here, or was forgotten."""
    replaced: tuple[str, ...] = ()
    """Ids of imported memories in whose place others were made here, since their messages had changed."""
    settled: Mapping[MemoryKind, Mapping[str, Any]] = field(default_factory=dict)
    """For each kind of memory where the chat goes on, once that is known."""


def read_record(memory: Memory, scope: Scope) -> ImportRecord:
    """The record of a discussion; an empty one if nothing was imported."""
    for item in memory.get_many(scope, [_ID], exact=True):
        if isinstance(item, Atom):
            fields = dict(item.metadata)
            hashes = tuple(LoggedHash(*each) for each in fields.get("hashes", ()))
            return ImportRecord(**{**fields, "hashes": hashes, "replaced": tuple(fields.get("replaced", ()))})
    return ImportRecord()


def record_item(record: ImportRecord) -> dict[str, Any]:
    """What `Memory.remember_many` takes."""
    lists = {"hashes": [list(each) for each in record.hashes], "replaced": list(record.replaced)}
    fields = {**asdict(record), **lists}
    return {"text": _TEXT, "id": _ID, "label": _ID, "valid_to": NEVER, "metadata": fields}


def digest(text: str) -> str:
    """A fingerprint of a text, by which it is recognised."""
    return sha256(text.encode()).hexdigest()


def is_imported(id: str) -> bool:
    """Whether a memory of this id was imported."""
    return id.startswith(f"{IMPORT}:")


def condensed_elsewhere(memory: Memory, scope: Scope) -> frozenset[str]:
    """Ids of imported chunk memories that had been condensed before they were imported."""
    if not (hash := read_record(memory, scope).condensed):
        return frozenset()
    imported = [each for each in chunk_memories(memory, scope) if is_imported(each.id)]
    last = max((place for place, each in enumerate(imported) if each.hash == hash), default=-1)
    return frozenset(each.id for each in imported[: last + 1])
