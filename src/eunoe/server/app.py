"""The application: routes, middleware and errors, put together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe import __version__
from eunoe.errors import EunoeError
from eunoe.server.middleware.authentication import AuthenticationMiddleware
from eunoe.server.problems import problem, problem_of
from eunoe.server.routes import events, health, jobs, memories, messages, recall, webhooks
from eunoe.server.services import Services

_log = logging.getLogger("eunoe.server")


def create_app(services: Services) -> FastAPI:
    """The server's ASGI application. It closes the services when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
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
    )
    app.state.services = services
    app.include_router(health.router)
    for module in (messages, memories, recall, jobs, events, webhooks):
        app.include_router(module.router, prefix="/v1")
    app.add_middleware(AuthenticationMiddleware, services=services)
    app.add_exception_handler(EunoeError, _tell_error)
    app.add_exception_handler(RequestValidationError, _tell_validation_error)
    app.add_exception_handler(HTTPException, _tell_http_error)
    app.add_exception_handler(Exception, _tell_fault)
    return app


async def _tell_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EunoeError)
    return problem_of(error)


async def _tell_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    status = 400 if first["type"] == "json_invalid" else 422
    return problem(status, "input", f"{place}: {first['msg']}" if place else str(first["msg"]))


async def _tell_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "no_such_path", 405: "method_not_allowed"}
    code = codes.get(error.status_code, "refused")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)


async def _tell_fault(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
    return problem(500, "fault", "the server failed; its log says where")
