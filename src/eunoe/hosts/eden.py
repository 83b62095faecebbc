"""Moving in from Eden: its collections `memory_user`, `memory_agent` and `memory_sessions`, as exported from MongoDB.

Documents become lines of an export, which `memory.admin.import_` reads: what is here already stays, what was forgotten
here is refused, and a second run changes nothing.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from eunoe.errors import InputError
from eunoe.hosts.mongo_export import object_id_time, read_time, read_values, unwrap
from eunoe.hosts.problems import Problems
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.atom import parse_atom
from eunoe.model.choices import AtomKind
from eunoe.model.scope import Scope
from eunoe.model.settings import Settings
from eunoe.model.source import source_name
from eunoe.model.time import utc_now
from eunoe.model.validation import check_text

LineKind = Literal["settings", "summary", "fact", "observation"]

AUTHOR: Final = "eden"

_COLLECTIONS: Final = ("memory_user", "memory_agent", "memory_sessions")
_MEMORY_TYPES: Final = ("episode", "directive", "fact", "suggestion")
_SETTINGS: Final = {
    "extraction_prompt": "extraction_prompt",
    "is_active": "is_active",
    "max_facts_per_shard": "fact_buffer_max",
    "max_agent_memories_before_consolidation": "consolidation_trigger",
}
"""Settings as Eden calls them, and what they are here."""
_CREATED: Final = ("formed_at", "created_at", "createdAt")
_UPDATED: Final = ("last_updated_at", "updatedAt", *_CREATED)


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What became of one kind of thing."""

    stored: int = 0
    known: int = 0
    """It was here already, as itself or in the same words."""
    forgotten: int = 0
    """It was forgotten here, and stays so."""
    conflicts: int = 0
    """Something else stands in its place here, and stays."""


@dataclass(frozen=True, slots=True)
class EdenReport:
    """What came, what did not, and why."""

    documents: int = 0
    settings: ImportCounts = field(default_factory=ImportCounts)
    summaries: ImportCounts = field(default_factory=ImportCounts)
    facts: ImportCounts = field(default_factory=ImportCounts)
    observations: ImportCounts = field(default_factory=ImportCounts)
    episodes: int = 0
    """Left out: the session's own memory is written anew from its messages."""
    absorbed: int = 0
    """Directives and suggestions left out because nothing waits for them: a summary has taken them in."""
    unlisted: int = 0
    """Facts left out because no shard lists them any more."""
    missing: tuple[str, ...] = ()
    """Ids that a stream names and no document has, with the scope that names them."""
    problems: tuple[str, ...] = ()
    """Documents, or parts of them, that make no sense, each with its file and line."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def migrate(memory: Memory, *paths: str | Path, progress: Callable[[int], None] | None = None) -> EdenReport:
    """Read exports of the three collections, in any order, and remember what they hold.

    >>> import eunoe, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "memory_user.json"
    >>> _ = file.write_text('[{"_id": "1", "agent_id": "a", "user_id": "u", "content": "Likes tea."}]')
    >>> with eunoe.open(":memory:") as memory:
    ...     migrate(memory, file).summaries.stored, memory.summaries.revisions("agent=a/user=u")[0].text
    (1, 'Likes tea.')
    """
    reader = EdenReader(paths)
    counts: dict[LineKind, ImportCounts] = {}
    done = 0

    def advance(lines: int) -> None:
        if progress:
            progress(done + lines)

    for kind, lines in reader.lines.items():
        report = memory.admin.import_(lines, progress=advance)
        counts[kind] = ImportCounts(report.stored, report.duplicates, report.forgotten, report.conflicts)
        done += report.lines
    return reader.report(counts)


async def amigrate(
    memory: AsyncMemory, *paths: str | Path, progress: Callable[[int], None] | None = None
) -> EdenReport:
    """`migrate` for an async memory."""
    return await asyncio.to_thread(migrate, memory.blocking, *paths, progress=progress)


class EdenDocument(NamedTuple):
    """One document, and where it stands."""

    place: str
    collection: str
    fields: Mapping[str, Any]

    @property
    def id(self) -> str:
        return _read_name(self.fields["_id"], "_id")

    @property
    def memory_type(self) -> str:
        return str(self.fields.get("memory_type", "")).lower()


class EdenReader:
    """Reads documents into lines of an export, by kind in the order in which they are to be imported."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        if not paths:
            raise InputError(f"name the exported files: {', '.join(_COLLECTIONS)}, as JSON or JSON Lines")
        self.lines: dict[LineKind, list[str]] = {"settings": [], "summary": [], "fact": [], "observation": []}
        self._problems = Problems()
        self._missing: list[str] = []
        self._now = utc_now()
        documents = [document for path in paths for document in self._read_documents(Path(path))]
        self._documents = len(documents)
        self._memories: dict[str, EdenDocument] = {}
        self._listed: set[str] = set()
        for document in documents:
            if document.collection == "memory_sessions":
                self._memories.setdefault(document.id, document)
                if document.memory_type not in _MEMORY_TYPES:
                    reason = f"memory_type {document.memory_type!r:.40} is none of {', '.join(_MEMORY_TYPES)}"
                    self._problems.add(document.place, reason)
        for document in documents:
            if document.collection != "memory_sessions":
                with self._problems.catch(document.place):
                    self._read_stream(document, _read_scope(document))

    def report(self, counts: Mapping[LineKind, ImportCounts]) -> EdenReport:
        left_out = Counter(
            memory.memory_type
            for id, memory in self._memories.items()
            if id not in self._listed or memory.memory_type == "episode"
        )
        return EdenReport(
            documents=self._documents,
            settings=counts["settings"],
            summaries=counts["summary"],
            facts=counts["fact"],
            observations=counts["observation"],
            episodes=left_out["episode"],
            absorbed=left_out["directive"] + left_out["suggestion"],
            unlisted=left_out["fact"],
            missing=tuple(self._missing),
            problems=self._problems.lines,
        )

    def _read_documents(self, path: Path) -> Iterator[EdenDocument]:
        for place, value in read_values(path, self._problems):
            with self._problems.catch(place):
                yield _read_document(place, path, value)

    def _read_stream(self, document: EdenDocument, scope: Scope) -> None:
        if "shard" in scope:
            self._add_line("settings", scope, preset="agent", changes=self._read_settings(document))
        with self._problems.catch(document.place):
            self._add_summary(document, scope)
        lists: dict[str, AtomKind] = {"facts": "fact", "unabsorbed_memory_ids": "observation"}
        for name, kind in lists.items():
            for id in self._read_ids(document, name):
                memory = self._memories.get(id)
                if memory is None:
                    self._missing.append(f"{scope}: {id}")
                    continue
                self._listed.add(id)
                with self._problems.catch(memory.place):
                    self._add_atom(memory, scope, kind)

    def _read_settings(self, document: EdenDocument) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for old, name in _SETTINGS.items():
            if document.fields.get(old) not in (None, ""):
                with self._problems.catch(document.place, f"{old} is left out: "):
                    value = unwrap(document.fields[old])
                    value = int(value) if isinstance(value, float) and value.is_integer() else value
                    Settings(owner=("agent", "shard")).changed(**{name: value})
                    changes[name] = value
        return changes

    def _add_summary(self, document: EdenDocument, scope: Scope) -> None:
        text = document.fields.get("content")
        if text is None or (isinstance(text, str) and not text.strip()):
            return
        recorded = (self._find_time(document, _UPDATED) or self._now).isoformat()
        revision = {"number": 1, "parent": 0, "text": check_text(text), "author": AUTHOR, "absorbed": []}
        self._add_line("summary", scope, current=1, last=1, revisions=[revision | {"recorded": recorded}])

    def _add_atom(self, memory: EdenDocument, scope: Scope, kind: AtomKind) -> None:
        if memory.memory_type == "episode":
            return
        fields = memory.fields
        agent = _read_name(fields["agent_id"], "agent_id") if "agent_id" in fields else scope["agent"]
        if agent != scope["agent"]:
            raise InputError(f"{memory.id} belongs to agent {agent}, but {scope} lists it: left out")
        time = self._find_time(memory, _CREATED)
        people = [_read_name(user, "related_users") for user in fields.get("related_users") or ()]
        source = _read_sources(fields, scope)
        atom = parse_atom(fields["content"], kind=kind, id=memory.id, people=people, source=source, time=time)
        values = {"id": atom.id, "text": atom.text, "people": atom.people, "source": atom.source}
        values |= {"time": time.isoformat()} if time else {}
        self._add_line(kind, scope, recorded=self._now.isoformat(), **values)

    def _find_time(self, document: EdenDocument, names: Sequence[str]) -> datetime | None:
        """The first of these times that can be read, else the one that a MongoDB id carries."""
        for name in names:
            value = document.fields.get(name)
            if value in (None, ""):
                continue
            if (time := read_time(value)) is not None:
                return time
            self._problems.add(document.place, f"{name} is left out: {unwrap(value)!r:.40} is no time")
        return object_id_time(document.id)

    def _read_ids(self, document: EdenDocument, name: str) -> list[str]:
        ids: dict[str, None] = {}
        values = document.fields.get(name)
        if values is not None and not isinstance(values, list):
            self._problems.add(document.place, f"{name} is no list")
            return []
        for value in values or ():
            with self._problems.catch(document.place):
                ids[_read_name(value, name)] = None
        return list(ids)

    def _add_line(self, kind: LineKind, scope: Scope, **values: Any) -> None:
        self.lines[kind].append(json.dumps({"scope": scope.text, "kind": kind, **values}))


def _read_document(place: str, path: Path, value: Any) -> EdenDocument:
    """A document, and its collection: by its fields, else by the name of its file."""
    if not isinstance(value, dict):
        raise InputError(f"a document is a JSON object, not {type(value).__name__}")
    if "memory_type" in value:
        collection = "memory_sessions"
    elif "shard_name" in value:
        collection = "memory_agent"
    elif "user_id" in value and "agent_id" in value:
        collection = "memory_user"
    else:
        collection = next((name for name in _COLLECTIONS if name in path.name), "")
    if not collection:
        raise InputError(f"this is no document of {', '.join(_COLLECTIONS)}")
    document = EdenDocument(place, collection, value)
    _ = document.id  # raises if there is none
    return document


def _read_scope(document: EdenDocument) -> Scope:
    key, name = ("user", "user_id") if document.collection == "memory_user" else ("shard", "shard_name")
    agent = _read_name(document.fields["agent_id"], "agent_id")
    return Scope(agent=agent, **{key: _read_name(document.fields[name], name)})


def _read_sources(fields: Mapping[str, Any], owner: Scope) -> list[str]:
    """The messages it came from, by the scope of their session. They need not be here."""
    if not fields.get("source_message_ids") or fields.get("source_session_id") is None:
        return []
    conversation = Scope(agent=owner["agent"], session=_read_name(fields["source_session_id"], "source_session_id"))
    ids = [_read_name(id, "source_message_ids") for id in fields["source_message_ids"]]
    return [source_name(conversation, id, owner) for id in ids]


def _read_name(value: Any, name: str) -> str:
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"{name} is {value!r:.40}, which names nothing")
    return str(value).strip()
