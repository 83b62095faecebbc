"""The inspector's session: a key is shown once and exchanged for a cookie."""

from typing import Annotated, Any

from fastapi import Header, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from eunoe.server.access import Caller
from eunoe.server.cookies import find_session_id, set_session_id
from eunoe.server.middleware.authentication import attempt_of
from eunoe.server.problems import problem
from eunoe.server.routes.common import Body, CallerParam, ServicesParam
from eunoe.server.routes.json_request import json_router

router = json_router("session")


class SessionBody(Body):
    token: str = Field(max_length=512, description="A key, or the token of the store's owner.")


@router.post("/session", summary="Log the inspector in", status_code=201)
async def start_session(
    body: SessionBody, request: Request, services: ServicesParam, origin: Annotated[str, Header()] = ""
) -> Response:
    """Sets a cookie that pages of this server use in place of the key."""
    if not services.addresses.is_own_origin(origin, request.headers.get("host", "")):
        return problem(403, "foreign_origin", "a session can be started only by a page of this server")
    caller = services.logins.by_token(body.token, attempt_of(request))
    caller.trail.note("start_session")
    response = JSONResponse(_identity(caller), 201)
    set_session_id(response, request, services.addresses, services.sessions.start(caller.key.id))
    return response


@router.get("/session", summary="Who is logged in")
async def show_session(caller: CallerParam) -> Response:
    return JSONResponse(_identity(caller))


@router.delete("/session", summary="Log the inspector out", status_code=204)
async def end_session(request: Request, services: ServicesParam) -> Response:
    services.sessions.end(find_session_id(request, services.addresses))
    response = Response(status_code=204)
    set_session_id(response, request, services.addresses, "")
    return response


def _identity(caller: Caller) -> dict[str, Any]:
    key = caller.key
    scopes = [scope.text for scope in key.scopes]
    return {"key": key.id, "name": key.name, "tenant": key.tenant, "scopes": scopes, "rights": list(key.rights)}
