"""A mem0 store on disk: the local folder of its vector store, and its history database. Nothing is changed there."""

import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError, MissingPackageError

_PAGE: Final = 256
_META: Final = "meta.json"
_HISTORY: Final = "history.db"


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One point of the vector store."""

    id: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A row of the history: the words that a memory got, and when."""

    id: str
    text: str
    time: str


def find_folder(folder: Path) -> Path:
    """The folder of the vector store, or the one that holds it under its usual name."""
    for place in (folder, folder / "qdrant"):
        if (place / _META).is_file():
            return place
    raise InputError(
        f"{folder} is no local folder of a mem0 store: it has no {_META}. Name the `path` of its vector store (qdrant)"
    )


def find_history(folder: Path, history: Path | None) -> Path | None:
    if history is not None and not history.is_file():
        raise InputError(f"there is no history database {history}")
    beside = folder / _HISTORY
    return history or (beside if beside.is_file() else None)


def read_memories(folder: Path, collection: str) -> Iterator[StoredMemory]:
    """All points of a collection."""
    with _qdrant(folder) as client:
        names = [each.name for each in client.get_collections().collections]
        if collection not in names:
            raise InputError(f"{folder} has no collection {collection!r}; it has {', '.join(sorted(names)) or 'none'}")
        offset = None
        while True:
            points, offset = client.scroll(collection, limit=_PAGE, offset=offset, with_payload=True)
            yield from (StoredMemory(str(point.id), point.payload or {}) for point in points)
            if offset is None:
                return


def read_versions(history: Path) -> dict[str, list[StoredVersion]]:
    """The versions of each memory, oldest first. Those of deleted memories are left out."""
    versions: dict[str, list[StoredVersion]] = {}
    query = (
        "SELECT memory_id, id, new_memory, event, updated_at, created_at FROM history ORDER BY created_at, updated_at"
    )
    try:
        with closing(sqlite3.connect(f"{history.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            for memory_id, id, text, event, updated, created in connection.execute(query):
                if event == "DELETE":
                    versions.pop(memory_id, None)
                elif text:
                    time = (created if event == "ADD" else updated) or created
                    versions.setdefault(memory_id, []).append(StoredVersion(str(id), text, time or ""))
    except sqlite3.Error as error:
        raise InputError(f"{history} is no history database of mem0: {error}") from None
    return versions


@contextmanager
def _qdrant(folder: Path) -> Iterator[Any]:
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingPackageError("to read a mem0 store takes qdrant-client: pip install 'eunoe[mem0]'") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of many points, and of what it will no longer do
        try:
            client = QdrantClient(path=str(folder))
        except (RuntimeError, OSError, ValueError) as error:
            raise InputError(f"cannot read {folder}: {error}") from None
        try:
            yield client
        finally:
            client.close()
