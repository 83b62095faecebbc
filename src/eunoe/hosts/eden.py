"""Moving in from Eden: its collections `memory_user`, `memory_agent` and `memory_sessions`, as exported from MongoDB.

Documents become lines of an export, which `import_` reads: what is here already stays, what was forgotten here is
refused, and a second run changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from eunoe.errors import InputError
from eunoe.memory import AsyncMemory, Memory
from eunoe.model.scope import Scope
from eunoe.model.source import source_name
from eunoe.model.time import utc_now
from eunoe.transfer.lines import check_changes, read_line

AUTHOR = "eden"

_COLLECTIONS = ("memory_user", "memory_agent", "memory_sessions")
_KINDS = ("episode", "directive", "fact", "suggestion")
_SETTINGS = {
    "extraction_prompt": "extraction_prompt",
    "is_active": "is_active",
    "max_facts_per_shard": "fact_buffer_max",
    "max_agent_memories_before_consolidation": "consolidation_trigger",
}
_TIMES = ("formed_at", "created_at", "createdAt")
_UPDATED = ("last_updated_at", "updatedAt", *_TIMES)
_NUMBERS = {"$numberInt": int, "$numberLong": int, "$numberDouble": float}
_BETWEEN = re.compile(r"[\s,\[\]]*")
_NEXT = re.compile(r"\n[ \t,]{0,4}(?=\{)")
_OBJECT_ID = re.compile(r"[0-9a-f]{24}")
_ODD = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Came:
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
    settings: Came = field(default_factory=Came)
    """Shards with their settings."""
    summaries: Came = field(default_factory=Came)
    facts: Came = field(default_factory=Came)
    observations: Came = field(default_factory=Came)
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
        return asdict(self) | {"missing": list(self.missing), "problems": list(self.problems)}


class Document(NamedTuple):
    """One document, and where it stands."""

    place: str
    collection: str
    fields: Mapping[str, Any]

    @property
    def id(self) -> str:
        return _name(self.fields, "_id")


def migrate(memory: Memory, *paths: str | Path, progress: Callable[[int], None] | None = None) -> EdenReport:
    """Reads exports of the three collections, in any order, and remembers what they hold.

    >>> import eunoe, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "memory_user.json"
    >>> _ = file.write_text('[{"_id": "1", "agent_id": "a", "user_id": "u", "content": "Likes tea."}]')
    >>> with eunoe.open(":memory:") as memory:
    ...     migrate(memory, file).summaries.stored, memory.summaries.revisions("agent=a/user=u")[0].text
    (1, 'Likes tea.')
    """
    plan = Plan(paths)
    came = {}
    done = 0
    for kind in ("settings", "summary", "fact", "observation"):
        report = memory.admin.import_(plan.lines(kind), progress=_onward(progress, done))
        came[kind] = Came(report.stored, report.duplicates, report.forgotten, report.conflicts)
        done += report.lines
    return plan.report(came)


async def amigrate(
    memory: AsyncMemory, *paths: str | Path, progress: Callable[[int], None] | None = None
) -> EdenReport:
    """`migrate` for an async memory."""
    return await asyncio.to_thread(migrate, memory.blocking, *paths, progress=progress)


class Plan:
    """What the documents ask for, as lines of an export, and what they leave open."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        if not paths:
            raise InputError(f"name the exported files: {', '.join(_COLLECTIONS)}, as JSON or JSON Lines")
        self._problems: list[str] = []
        self._missing: list[str] = []
        self._unread: set[tuple[str, str]] = set()
        self._lines: dict[str, list[str]] = {}
        self._now = utc_now()
        documents = [document for path in paths for document in self._read(Path(path))]
        self._documents = len(documents)
        self._sessions = self._by_id(documents)
        self._listed: set[str] = set()
        for document in documents:
            if document.collection != "memory_sessions":
                self._stream(document)

    def lines(self, kind: str) -> list[str]:
        return self._lines.get(kind, [])

    def report(self, came: Mapping[str, Came]) -> EdenReport:
        kinds = Counter(
            _kind(session) for id, session in self._sessions.items() if id not in self._listed or _is_episode(session)
        )
        return EdenReport(
            documents=self._documents,
            settings=came["settings"],
            summaries=came["summary"],
            facts=came["fact"],
            observations=came["observation"],
            episodes=kinds["episode"],
            absorbed=kinds["directive"] + kinds["suggestion"],
            unlisted=kinds["fact"],
            missing=tuple(self._missing),
            problems=tuple(self._problems),
        )

    def _read(self, path: Path) -> Iterator[Document]:
        for place, value in self._values(path):
            try:
                yield _document(place, path, value)
            except _ODD as error:
                self._complain(place, error)

    def _values(self, path: Path) -> Iterator[tuple[str, Any]]:
        """JSON values one after the other, in an array or not, on a line each or not; after a broken one the reading
        goes on where the next document seems to begin."""
        text = _text(path)
        at, line, counted = 0, 1, 0
        while (at := _end(_BETWEEN.match(text, at))) < len(text):
            line += text.count("\n", counted, at)
            counted, place = at, f"{path.name}:{line}"
            try:
                value, at = _DECODER.raw_decode(text, at)
                yield place, value
            except _ODD as error:
                self._complain(place, f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else error)
                found = _NEXT.search(text, at)
                at = found.end() if found else len(text)

    def _by_id(self, documents: Sequence[Document]) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for document in documents:
            if document.collection == "memory_sessions":
                found.setdefault(document.id, document)
                if _kind(document) not in _KINDS:
                    self._complain(
                        document.place, f"memory_type {_kind(document)!r:.40} is none of {', '.join(_KINDS)}"
                    )
        return found

    def _stream(self, document: Document) -> None:
        try:
            scope = _scope(document)
        except _ODD as error:
            self._complain(document.place, error)
            return
        if "shard" in scope:
            self._settings(document, scope)
        self._summary(document, scope)
        for name, kind in (("facts", "fact"), ("unabsorbed_memory_ids", "observation")):
            for id in self._ids(document, name):
                self._atom(scope, kind, id)

    def _settings(self, document: Document, scope: Scope) -> None:
        changes: dict[str, Any] = {}
        for old, name in _SETTINGS.items():
            if document.fields.get(old) in (None, ""):
                continue
            try:
                changes |= check_changes({name: _whole(_plain(document.fields[old]))})
            except _ODD as error:
                self._complain(document.place, f"{old} is left out: {error}")
        self._add(document.place, {"scope": str(scope), "kind": "settings", "preset": "agent", "changes": changes})

    def _summary(self, document: Document, scope: Scope) -> None:
        text = document.fields.get("content")
        if text is None or (isinstance(text, str) and not text.strip()):
            return
        recorded = (self._moment(document, _UPDATED) or self._now).isoformat()
        revision = {"number": 1, "parent": 0, "text": text, "author": AUTHOR, "absorbed": [], "recorded": recorded}
        line = {"scope": str(scope), "kind": "summary", "current": 1, "last": 1, "revisions": [revision]}
        self._add(document.place, line)

    def _atom(self, scope: Scope, kind: str, id: str) -> None:
        session = self._sessions.get(id)
        if session is None:
            self._missing.append(f"{scope}: {id}")
            return
        self._listed.add(id)
        if _is_episode(session):
            return
        try:
            agent = _name(session.fields, "agent_id") if "agent_id" in session.fields else scope["agent"]
            if agent != scope["agent"]:
                raise InputError(f"{id} belongs to agent {agent}, but {scope} lists it: left out")
            time = self._moment(session, _TIMES)
            self._add(session.place, _atom_line(session, scope, kind, time, self._now))
        except _ODD as error:
            self._complain(session.place, error)

    def _moment(self, document: Document, names: Sequence[str]) -> datetime | None:
        """The first of these times that can be read, else the one that a MongoDB id carries."""
        given = {name: value for name in names if (value := document.fields.get(name)) not in (None, "")}
        for name, value in given.items():
            if (found := _date(value)) is not None:
                return found
            if (document.place, name) not in self._unread:
                self._unread.add((document.place, name))
                self._complain(document.place, f"{name} is left out: {_plain(value)!r:.40} is no time")
        return _born(str(_plain(document.fields.get("_id"))))

    def _ids(self, document: Document, name: str) -> list[str]:
        values = document.fields.get(name)
        if values is not None and not isinstance(values, list):
            self._complain(document.place, f"{name} is no list")
        found = []
        for value in values if isinstance(values, list) else ():
            try:
                found.append(_name({name: value}, name))
            except _ODD as error:
                self._complain(document.place, error)
        return list(dict.fromkeys(found))

    def _add(self, place: str, line: dict[str, Any]) -> None:
        try:
            read_line(line)
            self._lines.setdefault(line["kind"], []).append(json.dumps(line))
        except _ODD as error:
            self._complain(place, error)

    def _complain(self, place: str, reason: object) -> None:
        said = f"{reason.args[0]} is missing" if isinstance(reason, KeyError) else str(reason)
        self._problems.append(f"{place}: {' '.join(said.split())}")


def _document(place: str, path: Path, value: Any) -> Document:
    if not isinstance(value, dict):
        raise InputError(f"a document is a JSON object, not {type(value).__name__}")
    document = Document(place, _collection(path, value), value)
    if not document.id:
        raise InputError("the document has no _id")
    return document


def _collection(path: Path, fields: Mapping[str, Any]) -> str:
    if "memory_type" in fields:
        return "memory_sessions"
    if "shard_name" in fields:
        return "memory_agent"
    if "user_id" in fields and "agent_id" in fields:
        return "memory_user"
    named = [name for name in _COLLECTIONS if name in path.name]
    if not named:
        raise InputError(f"this is no document of {', '.join(_COLLECTIONS)}")
    return named[0]


def _scope(document: Document) -> Scope:
    agent = _name(document.fields, "agent_id")
    if document.collection == "memory_user":
        return Scope(agent=agent, user=_name(document.fields, "user_id"))
    return Scope(agent=agent, shard=_name(document.fields, "shard_name"))


def _atom_line(session: Document, scope: Scope, kind: str, time: datetime | None, recorded: datetime) -> dict[str, Any]:
    fields = session.fields
    people = [_name({"related_users": user}, "related_users") for user in fields.get("related_users") or ()]
    line = {
        "scope": str(scope),
        "kind": kind,
        "id": session.id,
        "text": fields["content"],
        "people": people,
        "source": _sources(fields, scope),
        "recorded": recorded.isoformat(),
    }
    return line | ({"time": time.isoformat()} if time else {})


def _sources(fields: Mapping[str, Any], owner: Scope) -> list[str]:
    """The messages it came from, by the scope of their session. They need not be here."""
    if not fields.get("source_message_ids") or fields.get("source_session_id") is None:
        return []
    conversation = Scope(agent=owner["agent"], session=_name(fields, "source_session_id"))
    ids = [_name({"source_message_ids": id}, "source_message_ids") for id in fields["source_message_ids"]]
    return [source_name(conversation, id, owner) for id in ids]


def _kind(session: Document) -> str:
    return str(session.fields.get("memory_type", "")).lower()


def _is_episode(session: Document) -> bool:
    return _kind(session) == "episode"


def _name(fields: Mapping[str, Any], name: str) -> str:
    value = _plain(fields[name])
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise InputError(f"{name} is {value!r:.40}, which names nothing")
    return str(value).strip()


def _plain(value: Any) -> Any:
    """A value out of MongoDB's extended JSON."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    sign, inner = next(iter(value.items()))
    if sign in ("$oid", "$uuid"):
        return inner
    return _NUMBERS[sign](inner) if sign in _NUMBERS else value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _born(id: str) -> datetime | None:
    """The time that a MongoDB id carries."""
    return _EPOCH + timedelta(seconds=int(id[:8], 16)) if _OBJECT_ID.fullmatch(id) else None


def _date(value: Any) -> datetime | None:
    """An ISO text, or `$date` with a text, a number of milliseconds, or such a number in a text."""
    try:
        inner = _plain(value["$date"]) if isinstance(value, dict) and "$date" in value else _plain(value)
        if isinstance(inner, str):
            found = datetime.fromisoformat(inner)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return _EPOCH + timedelta(milliseconds=inner) if isinstance(inner, int | float) else None
    except (ValueError, TypeError, OverflowError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason}") from error


def _end(match: re.Match[str] | None) -> int:
    assert match is not None  # the pattern matches nothing as well
    return match.end()


def _onward(progress: Callable[[int], None] | None, done: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda count: progress(done + count)
