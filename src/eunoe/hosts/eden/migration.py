"""Moving in from Eden: its memory collections, of the first kind and of memory2, as exported from MongoDB.

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
from eunoe.hosts.common import Problems
from eunoe.hosts.mongo_export import object_id_time, read_time, read_values, unwrap
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.arguments import AtomKind, check_text, utc_now
from eunoe.model.atom import parse_atom, source_name
from eunoe.model.scope import Scope
from eunoe.model.stream import Settings

LineKind = Literal["settings", "summary", "fact", "observation"]

AUTHOR: Final = "eden"
AGENT_SHARD: Final = "agent"
"""The shard in which an agent learns from all its users, where Eden names no subject."""

_MEMORY2: Final = ("memory2_facts", "memory2_reflections", "memory2_consolidated")
_COLLECTIONS: Final = ("memory_user", "memory_agent", "memory_sessions", *_MEMORY2)
_OWNERS: Final[Mapping[str, Sequence[str]]] = {"agent": (), "user": ("user_id",), "session": ("session_id",)}
"""By the `scope` of a document of memory2, the ids beside its agent's that say whose it is."""
_MEMORY_TYPES: Final = ("episode", "directive", "fact", "suggestion")
_SETTINGS: Final = {
    "extraction_prompt": "extraction_prompt",
    "is_active": "is_active",
    "max_facts_per_shard": "fact_buffer_max",
    "max_agent_memories_before_consolidation": "consolidation_trigger",
}
"""Settings as Eden calls them, and what they are here."""
_CREATED: Final = ("formed_at", "created_at", "createdAt")
_UPDATED: Final = ("last_updated_at", "last_consolidated_at", "updatedAt", *_CREATED)


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
    """Read exports of the collections, in any order, and remember what they hold.

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
        self._absorbed = 0
        for document in documents:
            if document.collection in ("memory_sessions", "memory2_reflections"):
                self._memories.setdefault(document.id, document)
            if document.collection == "memory_sessions" and document.memory_type not in _MEMORY_TYPES:
                reason = f"memory_type {document.memory_type!r:.40} is none of {', '.join(_MEMORY_TYPES)}"
                self._problems.add(document.place, reason)
        for document in documents:
            with self._problems.catch(document.place):
                if document.collection == "memory2_consolidated":
                    self._read_consolidated(document, _read_scope(document))
                elif document.collection in ("memory_user", "memory_agent"):
                    self._read_stream(document, _read_scope(document))
        for document in documents:  # what a stream lists as waiting is known by now
            with self._problems.catch(document.place):
                self._read_memory2(document)

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
            absorbed=left_out["directive"] + left_out["suggestion"] + self._absorbed,
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
            for memory in self._listed_in(document, name, scope):
                with self._problems.catch(memory.place):
                    self._add_atom(memory, scope, kind)

    def _listed_in(self, document: EdenDocument, name: str, scope: Scope) -> Iterator[EdenDocument]:
        """The documents that a stream names; those that nobody has are noted."""
        for id in self._read_ids(document, name):
            if id in self._memories:
                self._listed.add(id)
                yield self._memories[id]
            else:
                self._missing.append(f"{scope}: {id}")

    def _read_consolidated(self, document: EdenDocument, scope: Scope) -> None:
        words = unwrap(document.fields.get("word_limit"))
        limit = {"consolidated_max_words": words} if isinstance(words, int) and words > 0 else {}
        if "shard" in scope:
            self._add_line("settings", scope, preset="agent", changes=limit)  # what makes it stand in contexts
        self._add_summary(document, scope, "consolidated_content")
        for _ in self._listed_in(document, "unabsorbed_ids", scope):
            pass  # it is read with the others, into the scope that it names itself

    def _read_memory2(self, document: EdenDocument) -> None:
        if document.collection == "memory2_facts":
            self._add_atom(document, _read_scope(document), "fact")
        elif document.collection == "memory2_reflections":
            if document.fields.get("absorbed") and document.id not in self._listed:
                self._absorbed += 1
            else:
                self._add_atom(document, _read_scope(document), "observation")

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

    def _add_summary(self, document: EdenDocument, scope: Scope, name: str = "content") -> None:
        text = document.fields.get(name)
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
    if "consolidated_content" in value:
        collection = "memory2_consolidated"
    elif "absorbed" in value:
        collection = "memory2_reflections"
    elif "scope" in value and not any(name in path.name for name in _MEMORY2):
        collection = "memory2_facts"
    elif "scope" in value:
        collection = next(name for name in _MEMORY2 if name in path.name)
    elif "memory_type" in value:
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
    if document.collection in _MEMORY2:
        return _read_own_scope(document.fields)
    key, name = ("user", "user_id") if document.collection == "memory_user" else ("shard", "shard_name")
    agent = _read_name(document.fields["agent_id"], "agent_id")
    return Scope(agent=agent, **{key: _read_name(document.fields[name], name)})


def _read_own_scope(fields: Mapping[str, Any]) -> Scope:
    """Whose a document of memory2 is, as its `scope` and its ids say. A session of one user is that user's."""
    scope = unwrap(fields["scope"])
    if not isinstance(scope, str) or scope not in _OWNERS:
        raise InputError(f"scope is {scope!r:.40}: Eden has {', '.join(_OWNERS)}")
    names = ["agent_id", *_OWNERS[scope]]
    if scope == "session" and fields.get("user_id"):
        names.append("user_id")
    shard = {"shard": AGENT_SHARD} if scope == "agent" else {}
    return Scope(**{name: _read_name(fields.get(name), name) for name in names}, **shard)


def _read_sources(fields: Mapping[str, Any], owner: Scope) -> list[str]:
    """The messages it came from, by the scope of their session. They need not be here."""
    name = "session_id" if "scope" in fields else "source_session_id"
    if not fields.get("source_message_ids") or fields.get(name) is None:
        return []
    conversation = Scope(agent=owner["agent"], session=_read_name(fields[name], name))
    if name == "session_id" and fields.get("user_id"):
        conversation = conversation.extended({"user": _read_name(fields["user_id"], "user_id")})
    ids = [_read_name(id, "source_message_ids") for id in fields["source_message_ids"]]
    return [source_name(conversation, id, owner) for id in ids]


def _read_name(value: Any, name: str) -> str:
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"{name} is {value!r:.40}, which names nothing")
    return str(value).strip()
