"""The inspector's page: its files, and the few things that only it needs. All else it asks of /v1."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
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
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Memory
from eunoe.memory.verb import VERBS
from eunoe.model.atom import Atom, Item, source_name, source_place
from eunoe.model.json import json_value
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope
from eunoe.server.keys import OWNER
from eunoe.server.requests import CallerParam, ServicesParam, reply
from eunoe.server.verbs import body_of

router = APIRouter(include_in_schema=False)
HEADER: Final = "eunoe-text-limit"
"""A request with this header wants no text longer than so many characters."""
MAX_REPLY_BYTES: Final = 200_000
_MAX_ITEMS: Final = 500
"""A list has at most so many."""
_FEWEST: Final = 8
"""Below so many characters or items a reply is not cut any further."""
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PIECE: Final = 40_000
"""Characters of a long text that are sent at once."""
_MAX_NODES: Final = 100
_MAX_SOURCES: Final = 50
_MAX_PASSAGES: Final = 20
_MAX_LINKS: Final = 600
"""Among a hundred names there can be thousands of links; more than this nobody can tell apart."""
_MAX_REVISIONS: Final = 200
_MAX_ABSORBED: Final = 40
_MAX_HIT_CHARACTERS: Final = 800
_MAX_ATOMS: Final = 2_000
"""So many of the latest are looked through for what is pinned and for the chart."""
_SHOWN: Final = 10
_MAX_SCOPES: Final = 50
_MAX_BINS: Final = 48
_SHORTEST_BIN: Final = 60.0
"""Seconds: below that nobody asks when something was learned."""
_OLD_PLAN: Final = "launch"
_NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
_CHANGED: Final = "2025-03-08"


def install(app: FastAPI) -> None:
    """Add the page to an application."""
    app.include_router(router)
    app.add_middleware(AbridgementMiddleware)


class AbridgementMiddleware:
    """Cuts JSON replies to requests that ask for it: long texts and lists are cut, and say how long they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        limit = Headers(scope=scope).get(HEADER, "") if scope["type"] == "http" else ""
        if not (limit.isascii() and limit.isdecimal() and len(limit) <= 9):
            return await self._app(scope, receive, send)
        start: Message | None = None
        content = bytearray()

        async def send_abridged(message: Message) -> None:
            """Hold a JSON reply back until it is complete, then send what is left of it."""
            nonlocal start
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                start = message if kind.startswith("application/json") else None
            if start is None:
                await send(message)
                return
            content.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                body = abridge(bytes(content), int(limit))
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
                await send(start)
                await send({"type": "http.response.body", "body": body})

        return await self._app(scope, receive, send_abridged)


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


@cache
def page_files() -> dict[str, tuple[bytes, str, str]]:
    """Content, type and hash of every file by its path below `static/`. No other path can be asked for."""
    found: dict[str, tuple[bytes, str, str]] = {}

    def read(folder: Traversable, below: PurePosixPath) -> None:
        for entry in folder.iterdir():
            path = below / entry.name
            if entry.is_dir():
                read(entry, path)
            elif kind := _TYPES.get(path.suffix):
                content = entry.read_bytes()
                found[str(path)] = content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"'

    read(resources.files("eunoe.server") / "static", PurePosixPath())
    return found


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
    """A file, or that it is still the one the browser has. It is asked about each time: an update is seen at once."""
    if path not in page_files():
        raise HTTPException(404, "the page has no such file")
    content, kind, etag = page_files()[path]
    headers = {"Cache-Control": "no-cache", "ETag": etag}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)


@router.get("/inspector/item")
def item(caller: CallerParam, scope: str, id: str) -> Response:
    """A memory with its versions, what it rests on word for word, and how often it was recalled."""
    memory, asked = caller.memory, Scope.of(scope)
    item = memory.get(asked, id)
    owner = item.scope or asked
    is_atom = isinstance(item, Atom)
    return reply(
        {
            "item": item,
            "versions": memory.history(owner, id, exact=True) if is_atom else [],
            "sources": _sources(memory, item) if isinstance(item, Atom) else [],
            "access": memory.admin.access_counts(owner, [id], exact=True)[id],
        }
    )


def _sources(memory: Memory, atom: Atom) -> list[dict[str, Any]]:
    """The messages that an atom rests on; None for one that is gone or out of the caller's reach."""
    assert atom.scope
    places = [source_place(name, atom.scope) for name in atom.source[:_MAX_SOURCES]]
    return [{"scope": scope, "id": id, "item": _find(memory, scope, id)} for scope, id in places]


def _find(memory: Memory, scope: Scope, id: str) -> Item | None:
    try:
        return memory.get(scope, id, exact=True)
    except (NotFoundError, AccessError):
        return None


@router.get("/inspector/text")
def text(caller: CallerParam, scope: str, id: str, start: Annotated[int, Query(ge=0)] = 0) -> Response:
    """A piece of a long text, and where the next one starts."""
    whole = caller.memory.get(Scope.of(scope), id).text
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
    """The links and passages that a picture has room for. Those of the name asked about come first."""
    near = caller.memory.graph.neighbours(Scope.of(scope), entity, limit=limit)
    links = sorted(near.links, key=lambda link: (near.entity not in (link.a, link.b), -link.weight))
    shown = replace(near, links=tuple(links[:_MAX_LINKS]), passages=near.passages[:_MAX_PASSAGES], relations=())
    return reply(shown)


@router.get("/inspector/glance")
def glance(caller: CallerParam, scope: str) -> Response:
    """One scope with its sessions: how it stands, what is pinned, what came last, when it was busy."""
    memory, asked = caller.memory, Scope.of(scope)
    page = memory.recent(retired=True, limit=_MAX_ATOMS, within=asked)
    atoms = [item for item in page.items if isinstance(item, Atom)]
    is_open = [atom for atom in atoms if not atom.retired]
    bound = memory.guard.scope(asked.alone)
    within = memory.streams.list(**asked.pairs)
    return reply(
        {
            "stream": next((stream for stream in within if stream.scope == bound), None),
            "pinned": [atom for atom in is_open if atom.pinned][:_SHOWN],
            "latest": [atom for atom in is_open if not atom.pinned][:_SHOWN],
            "activity": {"bins": _bins(atoms), "counted": len(atoms), "complete": not page.next},
            "scopes": [each.scope for each in within if each.scope != bound][:_MAX_SCOPES],
            "notes": page.notes,
        }
    )


def _bins(atoms: Sequence[Atom]) -> list[dict[str, Any]]:
    """How many were learned and retired, in equal steps of time."""
    learned = [atom.recorded.timestamp() for atom in atoms if atom.recorded]
    retired = [atom.retired.timestamp() for atom in atoms if atom.retired]
    if not learned:
        return []
    start, end = min(learned), max(learned + retired)
    width = max((end - start) / _MAX_BINS, _SHORTEST_BIN)
    count = min(int((end - start) / width) + 1, _MAX_BINS)
    moments = {"learned": learned, "retired": retired}
    counts = {
        name: Counter(min(int((moment - start) / width), count - 1) for moment in each)
        for name, each in moments.items()
    }
    return [
        {"start": datetime.fromtimestamp(start + width * place, UTC)} | {name: counts[name][place] for name in counts}
        for place in range(count)
    ]


@router.get("/inspector/revisions")
def revisions(caller: CallerParam, scope: str) -> Response:
    """Revisions of a summary, the latest first, without their texts."""
    found = caller.memory.summaries.revisions(Scope.of(scope))[::-1][:_MAX_REVISIONS]
    names = ("number", "parent", "author", "recorded", "current")
    shown = [{name: getattr(each, name) for name in names} | {"absorbed": len(each.absorbed)} for each in found]
    return reply({"revisions": shown})


@router.get("/inspector/summary-scope")
def find_summary_scope(caller: CallerParam) -> Response:
    """Where there is a summary to look at."""
    streams = caller.memory.streams.list()
    return reply({"scope": next((stream.scope.text for stream in streams if stream.revision), "")})


@router.get("/inspector/absorbed")
def absorbed(caller: CallerParam, scope: str, number: int) -> Response:
    """The atoms that a revision absorbed, each with the messages it came from."""
    memory, asked = caller.memory, Scope.of(scope)
    ids = next((each.absorbed for each in memory.summaries.revisions(asked) if each.number == number), ())
    found = (_find(memory, asked, id) for id in ids[:_MAX_ABSORBED])
    items = [{"item": atom, "sources": _sources(memory, atom)} for atom in found if isinstance(atom, Atom)]
    return reply({"items": items})


ContextBody: Any = body_of(VERBS["context"])


@router.post("/inspector/context")
def context(body: ContextBody, caller: CallerParam) -> Response:
    """A context whole, and of its hits as much as a list shows."""
    found = caller.memory.context(**body.given())
    hits = json_value(found.hits)
    for hit in hits:
        if len(hit["text"]) > _MAX_HIT_CHARACTERS:
            hit["text"] = {"cut": hit["text"][:_MAX_HIT_CHARACTERS], "length": len(hit["text"])}
        hit["metadata"] = {}
    static_length = len(found.static) if found.text.startswith(found.static) else 0
    told = {name: getattr(found, name) for name in ("text", "tokens", "query", "faults", "notes")}
    return reply(told | {"static_length": static_length, "hits": hits})


@router.get("/inspector/token-file")
def token_file(caller: CallerParam, services: ServicesParam) -> Response:
    """Where the owner's token lies, for the owner alone."""
    if caller.key != OWNER:
        raise AccessError("only the owner of the store is told where their token lies")
    return reply({"path": str(services.files.token.resolve())})


@router.post("/inspector/sample")
def sample(caller: CallerParam) -> Response:
    return reply(load_sample(caller.memory, caller.key.tenant))


def load_sample(memory: Memory, tenant: str = "") -> dict[str, Any]:
    """Two friends, an old dinghy and their assistant, in scopes of their own. Done twice it changes nothing."""
    owner = Scope(agent="pilot", user="sample").extended({"tenant": tenant} if tenant else {})
    talks = groupby(_lines("conversation.jsonl"), key=lambda line: str(line["session"]))
    messages = {owner.extended({"session": name}): list(talk) for name, talk in talks}
    messages[owner.extended({"session": "talk"})] = _lines("talk.jsonl")
    for session, talk in messages.items():
        memory.observe(session, talk)
    facts, near = _lines("facts.jsonl"), set[Scope]()
    for fact in facts:
        places = [(owner.extended({"session": id.partition(".")[0]}), id) for id in fact["source"]]
        near |= {session for session, _ in places}
        fact["source"] = [source_name(session, id, owner) for session, id in places]
    memory.remember_many(owner, facts, source_scopes=[*sorted(near, key=str)])
    report = sum((memory.form(session) for session in messages), FormReport())
    memory.flush(30)
    if not memory.get(owner, _OLD_PLAN).retired:
        memory.update(owner, _OLD_PLAN, _NEW_PLAN, valid_from=_CHANGED, time=_CHANGED)
    return {"scope": owner.text, "sessions": len(messages), "stored": len(report.stored)}


def _lines(name: str) -> list[dict[str, Any]]:
    text = (resources.files("eunoe") / "cli" / "demo" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
