"""The routes of the page: its files, and the few things that only it needs. All else it asks of /v1."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, FastAPI, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe.errors import AccessError
from eunoe.model.scope import Scope
from eunoe.server.inspector.abridgement import AbridgementMiddleware
from eunoe.server.inspector.details import (
    absorbed_items,
    context_summary,
    describe_item,
    latest_revisions,
    strongest_links,
    summary_scope,
)
from eunoe.server.inspector.files import page_files
from eunoe.server.inspector.glance import glance_at
from eunoe.server.inspector.sample import load_sample
from eunoe.server.keys import OWNER
from eunoe.server.routes.common import CallerParam, ServicesParam, reply
from eunoe.server.routes.recall import ContextBody

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
    return reply(describe_item(caller.memory, Scope.of(scope), id))


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
    near = caller.memory.graph.neighbours(Scope.of(scope), entity, limit=limit)
    return reply(strongest_links(near))


@router.get("/inspector/glance")
def glance(caller: CallerParam, scope: str) -> Response:
    return reply(glance_at(caller.memory, Scope.of(scope)))


@router.get("/inspector/revisions")
def revisions(caller: CallerParam, scope: str) -> Response:
    return reply({"revisions": latest_revisions(caller.memory, Scope.of(scope))})


@router.get("/inspector/summary-scope")
def find_summary_scope(caller: CallerParam) -> Response:
    """Where there is a summary to look at."""
    return reply({"scope": summary_scope(caller.memory)})


@router.get("/inspector/absorbed")
def absorbed(caller: CallerParam, scope: str, number: int) -> Response:
    return reply({"items": absorbed_items(caller.memory, Scope.of(scope), number)})


@router.post("/inspector/context")
def context(body: ContextBody, caller: CallerParam) -> Response:
    return reply(context_summary(caller.memory.context(body.scope, body.message, **body.given("scope", "message"))))


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
