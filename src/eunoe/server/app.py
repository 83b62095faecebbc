"""The application: routes, middleware and errors, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe import __version__
from eunoe.errors import EunoeError
from eunoe.server import administration, chat, inspector, mem0, oauth_pages, projects, verbs
from eunoe.server.access import LoginError
from eunoe.server.mcp.server import McpApp
from eunoe.server.middleware import add_middleware, refusal
from eunoe.server.openapi import describe, operation_id
from eunoe.server.problems import HTTP_CODES, problem, problem_of
from eunoe.server.services import Services


def create_app(services: Services) -> FastAPI:
    """The server's ASGI application. It closes the services when it stops."""
    mcp = McpApp(secret=services.owner_token.encode(), max_body_bytes=services.config.max_body_bytes)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with mcp.lifespan():
                yield
        finally:
            await services.close()

    app = FastAPI(
        title="Eunoe",
        version=__version__,
        summary="A memory for AI agents.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        generate_unique_id_function=operation_id,
        redirect_slashes=False,  # `/memories/` is an id left empty, not the list
        telemetry={"tracing": False, "metrics": False, "logs": False},  # its spans would hold paths, and ids in them
    )
    app.state.services = services
    for router in administration.ROUTERS:
        app.include_router(router)
    for router in (*administration.V1_ROUTERS, *verbs.ROUTERS, chat.router):
        app.include_router(router, prefix="/v1")
    app.include_router(projects.router, prefix="/api")
    app.include_router(mem0.router, prefix="/compat/mem0")
    app.router.routes.extend(mcp.routes)
    inspector.install(app)
    app.router.routes.extend(oauth_pages.oauth_routes(services))
    add_middleware(app, services)
    app.add_exception_handler(LoginError, _tell_login_error)
    app.add_exception_handler(EunoeError, _tell_error)
    app.add_exception_handler(RequestValidationError, _tell_validation_error)
    app.add_exception_handler(HTTPException, _tell_http_error)
    describe(app)
    return app


async def _tell_login_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LoginError)
    return refusal(error, request.app.state.services.addresses, request.scope["path"])


async def _tell_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EunoeError)
    return problem_of(error)


async def _tell_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    status = 400 if first["type"] == "json_invalid" else 422
    if place:
        return problem(status, "input", f"{place}: {first['msg']}")
    if first["type"] == "missing":
        return problem(status, "input", "the body is empty: send a JSON object")
    if "json" not in request.headers.get("content-type", ""):
        return problem(status, "input", "the body was not read as JSON: send the header Content-Type: application/json")
    return problem(status, "input", "the body must be a JSON object")


async def _tell_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTP_CODES.get(error.status_code, "refused")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)
