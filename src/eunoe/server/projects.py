"""Documents of projects, under the paths and in the shapes that an orchestrator of coding agents calls.

A project here is a scope of the caller's tenant. It needs no making: one that holds nothing answers with nothing.
"Project not found" is said of a name that no project can have, and of one that the key cannot reach.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import Path, Request
from starlette.responses import JSONResponse, Response

from eunoe.apps.projects import ProjectMemory
from eunoe.errors import AccessError, EunoeError, InputError, ScopeError
from eunoe.model.arguments import Right
from eunoe.model.scope import Scope
from eunoe.server.access import Caller
from eunoe.server.middleware import unescape_segment
from eunoe.server.problems import status_of
from eunoe.server.requests import CallerParam, check_limits, json_router, read_json

router = json_router("projects")
_log = logging.getLogger("eunoe.server")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
ProjectParam = Annotated[str, Path(examples=["7f9c24e8-3b12-4fef-91e0-56a2d5a0a3c1"])]


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)[:1]}


_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_COUNT: Final = _schema(message={"type": "string"}, count={"type": "integer"})
_ERROR: Final = _schema(error={"type": "string"}, detail={"type": "string"})
_RESULT: Final = _schema(
    question={"type": "string"}, docs=_TEXTS, doc_scores={"type": "array", "items": {"type": "number"}}, ids=_TEXTS
)
_DOCUMENT: Final = {"docs": ["Ticket: Login. The clock of the server was wrong."]}


def _about(body: dict[str, Any], result: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """What the OpenAPI document says of a route."""
    errors = {400: "It lacks what it needs.", 403: "The key lacks a right.", 404: "No such project."}
    return {
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": body, "example": example}}}
        },
        "responses": {200: {"description": "Done.", "content": {"application/json": {"schema": result}}}}
        | {
            status: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
            for status, text in errors.items()
        },
    }


@router.post(
    "/projects/{id}/memory/index",
    summary="Index documents of a project",
    **_about(_schema(docs=_TEXTS), _COUNT, _DOCUMENT),
)
async def index_documents(id: ProjectParam, request: Request, caller: CallerParam) -> Response:
    """A document that is there already stays as it is."""

    def index(memory: ProjectMemory, project: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"message": "Indexed", "count": len(memory.index(project, _texts(body, "docs")))}

    return await _answer(id, request, caller, "write", "Index failed", index)


@router.post(
    "/projects/{id}/memory/retrieve",
    summary="Ask for documents of a project",
    **_about(
        _schema(queries=_TEXTS, num_to_retrieve={"type": ["integer", "null"], "minimum": 1}),
        _schema(results={"type": "array", "items": _RESULT}),
        {"queries": ["Why did the login break?"], "num_to_retrieve": 5},
    ),
)
async def retrieve_documents(id: ProjectParam, request: Request, caller: CallerParam) -> Response:
    """A question on something else gives none."""

    def retrieve(memory: ProjectMemory, project: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"results": memory.retrieve(project, _texts(body, "queries"), body.get("num_to_retrieve"))}

    return await _answer(id, request, caller, "read", "Retrieve failed", retrieve)


@router.post(
    "/projects/{id}/memory/delete",
    summary="Delete documents of a project",
    **_about(_schema(docs=_TEXTS), _COUNT, _DOCUMENT),
)
async def delete_documents(id: ProjectParam, request: Request, caller: CallerParam) -> Response:
    """By their exact words, or by id. `count` is how many were there."""

    def delete(memory: ProjectMemory, project: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"message": "Deleted", "count": len(memory.delete(project, _texts(body, "docs"), missing_ok=True))}

    return await _answer(id, request, caller, "forget", "Delete failed", delete)


async def _answer(
    id: str,
    request: Request,
    caller: Caller,
    right: Right,
    failure: str,
    work: Callable[[ProjectMemory, str, dict[str, Any]], dict[str, Any]],
) -> Response:
    name, guard = unescape_segment(id), caller.memory.guard
    try:
        guard.allow(right)
        try:  # a UUID in small letters, as those who route it as one have it
            project = guard.scope(Scope(project=name.lower() if _UUID.fullmatch(name) else name))["project"]
        except (ScopeError, AccessError):
            return _error(404, "Project not found")
        body, config = read_json(await request.body()), request.app.state.services.config
        if not isinstance(body, dict):
            raise InputError("the body must be an object")
        check_limits(body, config)
        count = body.get("num_to_retrieve")
        if isinstance(count, int) and count > config.max_page:
            raise InputError(f"num_to_retrieve is {count:,}: at most {config.max_page:,} are given at once")
        return JSONResponse(await asyncio.to_thread(work, ProjectMemory(caller.memory), project, body))
    except InputError as error:
        return _error(400, str(error))
    except AccessError as error:
        return _error(403, str(error))
    except EunoeError as error:
        _log.warning("%s: %s", failure, type(error).__name__)
        return _error(status_of(error), failure, str(error))


def _texts(body: dict[str, Any], name: str) -> list[str]:
    texts = body.get(name)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} (list of strings) is required")
    return texts


def _error(status: int, error: str, detail: str = "") -> Response:
    return JSONResponse({"error": error} | ({"detail": detail} if detail else {}), status)
