"""Moving in from mem0: its memories with their ids, times, metadata and earlier versions.

They become lines of an export, which `memory.admin.import_` reads: what is here already stays, what was forgotten here
is refused, and a second run changes nothing.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from eunoe.errors import InputError
from eunoe.hosts.common import Problems
from eunoe.hosts.mem0.arguments import OWNERS, end_of_day, parse_expiration
from eunoe.hosts.mem0.payload import parse_metadata
from eunoe.hosts.mem0.stored_memories import (
    StoredMemory,
    StoredVersion,
    find_folder,
    find_history,
    read_memories,
    read_versions,
)
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import parse_time, utc_now
from eunoe.model.atom import parse_atom
from eunoe.model.result import ImportReport
from eunoe.model.scope import Scope

COLLECTION: Final = "mem0"


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

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


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
    """`migrate` for an async memory."""
    return await asyncio.to_thread(migrate, memory.blocking, folder, history, **more)


class Mem0Reader:
    """Reads a mem0 store into lines of an export."""

    def __init__(self, folder: str | Path, history: str | Path | None, collection: str) -> None:
        place = find_folder(Path(folder))
        self.lines: list[str] = []
        self._history = find_history(Path(folder), Path(history) if history else None)
        self._versions = read_versions(self._history) if self._history else {}
        self._problems = Problems()
        self._now = utc_now().isoformat()
        self._scopes: set[Scope] = set()
        self._times: list[str] = []
        for stored in read_memories(place, collection):
            with self._problems.catch(stored.id):
                self._add(stored)

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

    def _add(self, stored: StoredMemory) -> None:
        scope, text = _read_scope(stored), stored.payload.get("data") or stored.payload.get("memory")
        if not isinstance(text, str):
            raise InputError("it has no words")
        fields = self._read_fields(stored)
        lines = list(_to_lines(stored.id, text, fields, self._read_versions(stored.id, text)))
        self.lines += [json.dumps({"scope": scope.text, "kind": "fact", **line}) for line in lines]
        self._scopes.add(scope)
        self._times.append(fields["created_at"])

    def _read_fields(self, stored: StoredMemory) -> dict[str, Any]:
        payload = stored.payload
        fields = parse_metadata(
            {name: value for name, value in payload.items() if name not in OWNERS}, "migrate()", payload
        )
        fields |= {"actor_id": payload["actor_id"]} if payload.get("actor_id") else {}
        fields["created_at"] = _read_time(payload.get("created_at"), self._now)
        fields["updated_at"] = _read_time(payload.get("updated_at"), fields["created_at"])
        if "expiration_date" in fields:
            fields["expiration_date"] = parse_expiration(fields["expiration_date"])
        return fields

    def _read_versions(self, id: str, text: str) -> list[StoredVersion]:
        """What a memory said before; nothing if its history does not lead to what it says now."""
        versions = self._versions.get(id, [])
        return versions[:-1] if versions and versions[-1].text == text else []


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


def _read_scope(stored: StoredMemory) -> Scope:
    keys = {key: str(value) for name, key in OWNERS.items() if (value := stored.payload.get(name))}
    if not keys:
        raise InputError("it names neither user_id nor agent_id nor run_id")
    return Scope(**keys)


def _read_time(value: Any, otherwise: str) -> str:
    return parse_time(value).isoformat() if value else otherwise
