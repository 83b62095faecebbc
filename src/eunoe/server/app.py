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
from eunoe.server.middleware.body_limit import BodyLimitMiddleware
from eunoe.server.middleware.observation import ObservationMiddleware
from eunoe.server.middleware.path_segments import PathSegmentsMiddleware
from eunoe.server.openapi import describe, operation_id
from eunoe.server.problems import HTTP_CODES, problem, problem_of
from eunoe.server.routes import (
    events,
    forgetting,
    formation,
    graph,
    health,
    jobs,
    language_models,
    memories,
    messages,
    metrics,
    recall,
    review,
    revisions,
    session,
    streams,
    transfer,
    upkeep,
    webhooks,
)
from eunoe.server.services import Services

_VERSION_1 = (
    messages,
    memories,
    recall,
    forgetting,
    review,
    streams,
    revisions,
    formation,
    graph,
    transfer,
    upkeep,
    jobs,
    language_models,
    events,
    webhooks,
)
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
        generate_unique_id_function=operation_id,
    )
    app.state.services = services
    app.include_router(health.router)
    app.include_router(metrics.router)
    app.include_router(session.router)
    for module in _VERSION_1:
        app.include_router(module.router, prefix="/v1")
    app.add_middleware(AuthenticationMiddleware, services=services)
    app.add_middleware(
        BodyLimitMiddleware,
        max_bytes=services.config.max_body_bytes,
        max_bytes_by_path={"/v1/import": services.config.max_import_bytes},
    )
    app.add_middleware(PathSegmentsMiddleware)
    app.add_middleware(ObservationMiddleware, metrics=services.metrics, tracing=services.tracing)
    app.add_exception_handler(EunoeError, _tell_error)
    app.add_exception_handler(RequestValidationError, _tell_validation_error)
    app.add_exception_handler(HTTPException, _tell_http_error)
    app.add_exception_handler(Exception, _tell_fault)
    describe(app)
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
    code = HTTP_CODES.get(error.status_code, "refused")
    return problem(error.status_code, code, str(error.detail), headers=error.headers)


async def _tell_fault(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
    return problem(500, "fault", "the server failed; its log says where")
