"""Moving in from mem0: its memories with their ids, times, metadata and earlier versions.

Read are the local folder of its vector store and its history database; nothing is changed there. Memories become lines
of an export, which `memory.admin.import_` reads: what is here already stays, what was forgotten here is refused, and a
second run changes nothing.
"""

import asyncio
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError, MissingPackageError
from eunoe.hosts.common import Problems
from eunoe.hosts.mem0.arguments import OWNERS, end_of_day, parse_expiration
from eunoe.hosts.mem0.results import parse_metadata
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import parse_time, utc_now
from eunoe.model.atom import parse_atom
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope

COLLECTION: Final = "mem0"
_PAGE: Final = 256
_META: Final = "meta.json"


class StoredVersion(NamedTuple):
    """A row of the history: the words that a memory got, and when."""

    id: str
    text: str
    time: str


@dataclass(frozen=True, slots=True)
class Mem0Report:
    """What a mem0 store holds, and what became of it."""

    memories: int = 0
    versions: int = 0
    """What memories said before they were changed."""
    scopes: int = 0
    """Combinations of user, agent and run."""
    first: str = ""
    last: str = ""
    """When the oldest and the latest was created."""
    stored: int = 0
    """Memories and versions that are new here."""
    known: int = 0
    forgotten: int = 0
    """They were forgotten here, and stay so."""
    conflicts: int = 0
    """Something else has their id here, and stays."""
    problems: tuple[str, ...] = ()
    """Memories that make no sense, each with its id."""
    history: str = ""
    """The history database that was read, if there was one."""


def migrate(
    memory: Memory,
    folder: str | Path,
    history: str | Path | None = None,
    *,
    collection: str = COLLECTION,
    progress: Callable[[int], None] | None = None,
) -> Mem0Report:
    """Read the local folder of a mem0 store, and remember what it holds.

    Args:
        folder: the `path` of its vector store (qdrant).
        history: its `history_db_path`; without one `history.db` in the folder, if it is there.
    """
    reader = Mem0Reader(folder, history, collection)
    return reader.report(memory.admin.import_(reader.lines, progress=progress) if reader.lines else ImportReport())


def describe(folder: str | Path, history: str | Path | None = None, *, collection: str = COLLECTION) -> Mem0Report:
    """Say what `migrate` would read. Nothing is written."""
    return Mem0Reader(folder, history, collection).report(ImportReport())


async def amigrate(
    memory: AsyncMemory, folder: str | Path, history: str | Path | None = None, **more: Any
) -> Mem0Report:
    return await asyncio.to_thread(migrate, memory.blocking, folder, history, **more)


class Mem0Reader:
    """Reads a mem0 store into lines of an export."""

    def __init__(self, folder: str | Path, history: str | Path | None, collection: str) -> None:
        place, given = find_folder(Path(folder)), Path(history) if history else None
        if given is not None and not given.is_file():
            raise InputError(f"there is no history database {given}")
        beside = Path(folder) / "history.db"
        self.lines: list[str] = []
        self._history = given or (beside if beside.is_file() else None)
        self._versions = _read_versions(self._history) if self._history else {}
        self._problems = Problems()
        self._now = utc_now().isoformat()
        self._scopes: set[Scope] = set()
        self._times: list[str] = []
        for id, payload in _read_points(place, collection):
            with self._problems.catch(id):
                self._add(id, payload)

    def report(self, done: ImportReport) -> Mem0Report:
        return Mem0Report(
            memories=len(self._times),
            versions=len(self.lines) - len(self._times),
            scopes=len(self._scopes),
            first=min(self._times, default=""),
            last=max(self._times, default=""),
            stored=done.stored,
            known=done.duplicates,
            forgotten=done.forgotten,
            conflicts=done.conflicts,
            problems=self._problems.lines,
            history=str(self._history or ""),
        )

    def _add(self, id: str, payload: Mapping[str, Any]) -> None:
        keys = {key: str(value) for name, key in OWNERS.items() if (value := payload.get(name))}
        if not keys:
            raise InputError("it names neither user_id nor agent_id nor run_id")
        scope, text = Scope(**keys), payload.get("data") or payload.get("memory")
        if not isinstance(text, str):
            raise InputError("it has no words")
        own = {name: value for name, value in payload.items() if name not in OWNERS}
        fields = parse_metadata(own, "migrate()", payload)
        fields |= {"actor_id": payload["actor_id"]} if payload.get("actor_id") else {}
        fields["created_at"] = _read_time(payload.get("created_at"), self._now)
        fields["updated_at"] = _read_time(payload.get("updated_at"), fields["created_at"])
        if "expiration_date" in fields:
            fields["expiration_date"] = parse_expiration(fields["expiration_date"])
        versions = self._versions.get(id, [])
        before = versions[:-1] if versions and versions[-1].text == text else []  # a history that leads here
        lines = list(_to_lines(id, text, fields, before))
        self.lines += [json.dumps({"scope": scope.text, "kind": "fact", **line}) for line in lines]
        self._scopes.add(scope)
        self._times.append(fields["created_at"])


def _to_lines(id: str, text: str, fields: dict[str, Any], before: list[StoredVersion]) -> Iterator[dict[str, Any]]:
    """The lines of a memory: its versions, each linked to the next, and what it says now."""
    times = [*(_read_time(version.time, fields["created_at"]) for version in before), fields["updated_at"]]
    ids = ["", *(version.id for version in before), id, ""]
    ends = [*times[1:], None]
    for place, words in enumerate([*(version.text for version in before), text]):
        end, is_closed = ends[place], place < len(before)
        expires = end_of_day(fields.get("expiration_date"))
        values = {
            "id": ids[place + 1],
            "text": parse_atom(words).text,
            "recorded": times[place],
            "valid_to": end if is_closed else expires and expires.isoformat(),
            "retired": end,
            "supersedes": ids[place],
            "superseded_by": ids[place + 2],
            "metadata": fields | {"updated_at": times[place]},
        }
        yield {name: value for name, value in values.items() if value}


def _read_time(value: Any, otherwise: str) -> str:
    return parse_time(value).isoformat() if value else otherwise


def find_folder(folder: Path) -> Path:
    """The folder of the vector store, or the one that holds it under its usual name."""
    for place in (folder, folder / "qdrant"):
        if (place / _META).is_file():
            return place
    raise InputError(
        f"{folder} is no local folder of a mem0 store: it has no {_META}. Name the `path` of its vector store (qdrant)"
    )


def _read_points(folder: Path, collection: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All points of a collection, with their payloads."""
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
        with closing(client):
            names = [each.name for each in client.get_collections().collections]
            if collection not in names:
                known = ", ".join(sorted(names)) or "none"
                raise InputError(f"{folder} has no collection {collection!r}; it has {known}")
            offset: Any = None
            while True:
                points, offset = client.scroll(collection, limit=_PAGE, offset=offset, with_payload=True)
                yield from ((str(point.id), point.payload or {}) for point in points)
                if offset is None:
                    return


def _read_versions(history: Path) -> dict[str, list[StoredVersion]]:
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
