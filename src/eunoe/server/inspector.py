"""The routes of the page: its files, and the few things that only it needs. All else it asks of /v1."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Memory
from eunoe.memory.verb import VERBS
from eunoe.model.atom import Atom, Item, source_name, source_place
from eunoe.model.json import json_value
from eunoe.model.result import Context, FormReport, Neighbourhood
from eunoe.model.scope import Scope as Scope_of_scope
from eunoe.server.common import CallerParam, ServicesParam, reply
from eunoe.server.keys import OWNER
from eunoe.server.verbs import body_of

HEADER: Final = "eunoe-text-limit"
"""A request with this header wants no text longer than so many characters."""
MAX_REPLY_BYTES: Final = 200_000
_MAX_ITEMS: Final = 500
"""A list has at most so many."""
_FEWEST: Final = 8
"""Below so many characters or items a reply is not cut any further."""


class AbridgementMiddleware:
    """Cuts JSON replies to requests that ask for it. All others pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = Headers(scope=scope).get(HEADER, "") if scope["type"] == "http" else ""
        if not (limit.isascii() and limit.isdecimal() and len(limit) <= 9):
            return await self._app(scope, receive, send)
        return await self._app(scope, receive, _Abridged(send, int(limit)))


class _Abridged:
    """Holds a JSON reply back until it is complete, then sends what is left of it."""

    def __init__(self, send: Send, limit: int) -> None:
        self._send = send
        self._limit = limit
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        body = abridge(bytes(self._body), self._limit)
        MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _is_json(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith("application/json")


def abridge(body: bytes, characters: int) -> bytes:
    """A JSON document with its texts and lists cut until it is small enough.

    >>> abridge(b'{"text": "abcdefghijkl", "ids": [1, 2]}', 10)
    b'{"text": {"cut": "abcdefghij", "length": 12}, "ids": [1, 2]}'
    """
    value, items = json.loads(body), _MAX_ITEMS
    while True:
        shorter = json.dumps(_cut(value, characters, items), ensure_ascii=False).encode(errors="replace")
        if len(shorter) <= MAX_REPLY_BYTES or (characters <= _FEWEST and items <= _FEWEST):
            return shorter
        characters, items = max(characters // 2, _FEWEST), max(items // 2, _FEWEST)


def _cut(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return {"cut": value[:characters], "length": len(value)}
    if isinstance(value, list):
        shown = [_cut(each, characters, items) for each in value[:items]]
        return {"cut": shown, "length": len(value)} if len(value) > items else shown
    if isinstance(value, dict):
        return {key[:characters]: _cut(each, characters, items) for key, each in list(value.items())[:items]}
    return value


_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_CACHING: Final = "no-cache"
"""Kept, but asked about each time: an update is seen at once."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str

    def response(self, known_etags: str = "") -> Response:
        """The file, or that it is still the one the browser has."""
        headers = {"Cache-Control": _CACHING, "ETag": self.etag}
        if self.etag in known_etags:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.media_type, headers=headers)


@cache
def page_files() -> dict[str, PageFile]:
    """Every file by its path below `static/`. No other path can be asked for."""
    return dict(_read(resources.files("eunoe.server") / "static", PurePosixPath()))


def _read(folder: Traversable, below: PurePosixPath) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = below / entry.name
        if entry.is_dir():
            found += _read(entry, path)
        elif media_type := _TYPES.get(path.suffix):
            content = entry.read_bytes()
            found.append((str(path), PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:20]}"')))
    return found


_MAX_ATOMS: Final = 2_000
"""So many of the latest are looked through for what is pinned and for the chart."""
_SHOWN: Final = 10
_MAX_SCOPES: Final = 50
_MAX_BINS: Final = 48
_SHORTEST_BIN: Final = 60.0
"""Seconds: below that nobody asks when something was learned."""


def glance_at(memory: Memory, scope: Scope_of_scope) -> dict[str, Any]:
    page = memory.recent(retired=True, limit=_MAX_ATOMS, within=scope)
    atoms = [item for item in page.items if isinstance(item, Atom)]
    is_open = [atom for atom in atoms if not atom.retired]
    bound = memory.guard.scope(scope.alone)
    within = memory.streams.list(**scope.pairs)
    return {
        "stream": next((stream for stream in within if stream.scope == bound), None),
        "pinned": [atom for atom in is_open if atom.pinned][:_SHOWN],
        "latest": [atom for atom in is_open if not atom.pinned][:_SHOWN],
        "activity": {"bins": _bins(atoms), "counted": len(atoms), "complete": not page.next},
        "scopes": [each.scope for each in within if each.scope != bound][:_MAX_SCOPES],
        "notes": page.notes,
    }


def _bins(atoms: Sequence[Atom]) -> list[dict[str, Any]]:
    """How many were learned and retired, in equal steps of time."""
    learned = [atom.recorded.timestamp() for atom in atoms if atom.recorded]
    retired = [atom.retired.timestamp() for atom in atoms if atom.retired]
    if not learned:
        return []
    start, end = min(learned), max(learned + retired)
    width = max((end - start) / _MAX_BINS, _SHORTEST_BIN)
    count = min(int((end - start) / width) + 1, _MAX_BINS)

    def counted(moments: list[float]) -> Counter[int]:
        return Counter(min(int((moment - start) / width), count - 1) for moment in moments)

    by_name = {"learned": counted(learned), "retired": counted(retired)}
    starts = [datetime.fromtimestamp(start + width * place, UTC) for place in range(count)]
    return [
        {"start": begin} | {name: counts[place] for name, counts in by_name.items()}
        for place, begin in enumerate(starts)
    ]


_OLD_PLAN: Final = "launch"
_NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
_CHANGED: Final = "2025-03-08"


def load_sample(memory: Memory, tenant: str = "") -> dict[str, Any]:
    """Put the sample in and form it. Doing so twice changes nothing."""
    owner = Scope_of_scope(agent="pilot", user="sample").extended({"tenant": tenant} if tenant else {})
    sessions = _observe(memory, owner)
    _remember(memory, owner)
    report = sum((memory.form(session) for session in sessions), FormReport())
    memory.flush(30)
    if not memory.get(owner, _OLD_PLAN).retired:
        memory.update(owner, _OLD_PLAN, _NEW_PLAN, valid_from=_CHANGED, time=_CHANGED)
    return {"scope": owner.text, "sessions": len(sessions), "stored": len(report.stored)}


def _observe(memory: Memory, owner: Scope_of_scope) -> list[Scope_of_scope]:
    talks = groupby(_lines("conversation.jsonl"), key=lambda line: str(line["session"]))
    messages = {owner.extended({"session": name}): list(talk) for name, talk in talks}
    messages[owner.extended({"session": "talk"})] = _lines("talk.jsonl")
    for session, talk in messages.items():
        memory.observe(session, talk)
    return list(messages)


def _remember(memory: Memory, owner: Scope_of_scope) -> None:
    sessions: set[Scope_of_scope] = set()
    facts = _lines("facts.jsonl")
    for fact in facts:
        places = [(owner.extended({"session": id.partition(".")[0]}), id) for id in fact["source"]]
        sessions |= {session for session, _ in places}
        fact["source"] = [source_name(session, id, owner) for session, id in places]
    memory.remember_many(owner, facts, source_scopes=[*sorted(sessions, key=str)])


def _lines(name: str) -> list[dict[str, Any]]:
    text = (resources.files("eunoe") / "cli" / "demo" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


_MAX_SOURCES: Final = 50
_MAX_PASSAGES: Final = 20
_MAX_LINKS: Final = 600
"""Among a hundred names there can be thousands of links; more than this nobody can tell apart."""
_MAX_REVISIONS: Final = 200
_MAX_ABSORBED: Final = 40
_MAX_HIT_CHARACTERS: Final = 800


def describe_item(memory: Memory, scope: Scope_of_scope, id: str) -> dict[str, Any]:
    """A memory with its versions, what it rests on word for word, and how often it was recalled."""
    item = memory.get(scope, id)
    is_atom, owner = isinstance(item, Atom), item.scope or scope
    sources = find_sources(memory, item) if isinstance(item, Atom) else []
    return {
        "item": item,
        "versions": memory.history(owner, id, exact=True) if is_atom else [],
        "sources": sources,
        "access": memory.admin.access_counts(owner, [id], exact=True)[id],
    }


def find_sources(memory: Memory, atom: Atom) -> list[dict[str, Any]]:
    """The messages that an atom rests on; None for one that is gone or out of the caller's reach."""
    assert atom.scope
    places = [source_place(name, atom.scope) for name in atom.source[:_MAX_SOURCES]]
    return [{"scope": scope, "id": id, "item": _find(memory, scope, id)} for scope, id in places]


def _find(memory: Memory, scope: Scope_of_scope, id: str) -> Item | None:
    try:
        return memory.get(scope, id, exact=True)
    except (NotFoundError, AccessError):
        return None


def strongest_links(near: Neighbourhood) -> Neighbourhood:
    """The same with the links and passages that a picture has room for. Those of the name asked about come first."""
    links = sorted(near.links, key=lambda link: (near.entity not in (link.a, link.b), -link.weight))
    return replace(near, links=tuple(links[:_MAX_LINKS]), passages=near.passages[:_MAX_PASSAGES], relations=())


def latest_revisions(memory: Memory, scope: Scope_of_scope) -> list[dict[str, Any]]:
    """Revisions of a summary, the latest first, without their texts."""
    revisions = memory.summaries.revisions(scope)[::-1][:_MAX_REVISIONS]
    fields = ("number", "parent", "author", "recorded", "current")
    return [
        {name: getattr(revision, name) for name in fields} | {"absorbed": len(revision.absorbed)}
        for revision in revisions
    ]


def absorbed_items(memory: Memory, scope: Scope_of_scope, number: int) -> list[dict[str, Any]]:
    """The atoms that a revision absorbed, each with the messages it came from."""
    ids = next((each.absorbed for each in memory.summaries.revisions(scope) if each.number == number), ())
    found = (_find(memory, scope, id) for id in ids[:_MAX_ABSORBED])
    return [{"item": atom, "sources": find_sources(memory, atom)} for atom in found if isinstance(atom, Atom)]


def summary_scope(memory: Memory) -> str:
    """A scope whose summary has been written, or nothing."""
    return next((stream.scope.text for stream in memory.streams.list() if stream.revision), "")


def context_summary(context: Context) -> dict[str, Any]:
    """A context whole, and of its hits as much as a list shows."""
    hits = json_value(context.hits)
    for hit in hits:
        if len(hit["text"]) > _MAX_HIT_CHARACTERS:
            hit["text"] = {"cut": hit["text"][:_MAX_HIT_CHARACTERS], "length": len(hit["text"])}
        hit["metadata"] = {}
    names = ("text", "tokens", "query", "faults", "notes")
    static_length = len(context.static) if context.text.startswith(context.static) else 0
    return {name: getattr(context, name) for name in names} | {"static_length": static_length, "hits": hits}


router = APIRouter(include_in_schema=False)
_PIECE: Final = 40_000
"""Characters of a long text that are sent at once."""
_MAX_NODES: Final = 100


def install(app: FastAPI) -> None:
    """Add the page to an application."""
    app.include_router(router)
    app.add_middleware(AbridgementMiddleware)


@router.get("/")
async def page(request: Request) -> Response:
    return _file(request, "index.html")


@router.get("/favicon.ico")
async def icon(request: Request) -> Response:
    return _file(request, "icon.svg")


@router.get("/static/{path:path}")
async def file(request: Request, path: str) -> Response:
    return _file(request, path)


def _file(request: Request, path: str) -> Response:
    found = page_files().get(path)
    if found is None:
        raise HTTPException(404, "the page has no such file")
    return found.response(request.headers.get("if-none-match", ""))


@router.get("/inspector/item")
def item(caller: CallerParam, scope: str, id: str) -> Response:
    return reply(describe_item(caller.memory, Scope_of_scope.of(scope), id))


@router.get("/inspector/text")
def text(caller: CallerParam, scope: str, id: str, start: Annotated[int, Query(ge=0)] = 0) -> Response:
    """A piece of a long text, and where the next one starts."""
    whole = caller.memory.get(Scope_of_scope.of(scope), id).text
    end = start + _PIECE
    return reply({"text": whole[start:end], "next": end if end < len(whole) else None, "length": len(whole)})


@router.get("/inspector/scopes")
def scopes(
    caller: CallerParam, contains: str = "", after: str = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> Response:
    """Scopes by their text, a page at a time."""
    words = contains.lower().split()
    names = sorted(each.text for each in caller.memory.scopes())
    found = [name for name in names if name > after and all(word in name.lower() for word in words)]
    return reply({"scopes": found[:limit], "next": found[limit - 1] if len(found) > limit else "", "total": len(names)})


@router.get("/inspector/graph")
def graph(
    caller: CallerParam, scope: str, entity: str = "", limit: Annotated[int, Query(ge=1, le=_MAX_NODES)] = 40
) -> Response:
    near = caller.memory.graph.neighbours(Scope_of_scope.of(scope), entity, limit=limit)
    return reply(strongest_links(near))


@router.get("/inspector/glance")
def glance(caller: CallerParam, scope: str) -> Response:
    return reply(glance_at(caller.memory, Scope_of_scope.of(scope)))


@router.get("/inspector/revisions")
def revisions(caller: CallerParam, scope: str) -> Response:
    return reply({"revisions": latest_revisions(caller.memory, Scope_of_scope.of(scope))})


@router.get("/inspector/summary-scope")
def find_summary_scope(caller: CallerParam) -> Response:
    """Where there is a summary to look at."""
    return reply({"scope": summary_scope(caller.memory)})


@router.get("/inspector/absorbed")
def absorbed(caller: CallerParam, scope: str, number: int) -> Response:
    return reply({"items": absorbed_items(caller.memory, Scope_of_scope.of(scope), number)})


ContextBody: Any = body_of(VERBS["context"])


@router.post("/inspector/context")
def context(body: ContextBody, caller: CallerParam) -> Response:
    return reply(context_summary(caller.memory.context(**body.given())))


@router.get("/inspector/token-file")
def token_file(caller: CallerParam, services: ServicesParam) -> Response:
    """Where the owner's token lies, for the owner alone."""
    if caller.key != OWNER:
        raise AccessError("only the owner of the store is told where their token lies")
    return reply({"path": str(services.files.token.resolve())})


@router.post("/inspector/sample")
def sample(caller: CallerParam) -> Response:
    loaded: dict[str, Any] = load_sample(caller.memory, caller.key.tenant)
    return reply(loaded)
