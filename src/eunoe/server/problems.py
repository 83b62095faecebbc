"""Errors as problem details (RFC 9457): what is wrong, a code to branch on, and what to do."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from eunoe import errors


class NoLlmError(errors.LlmError):
    """The server has no language model to ask."""


class NoEmbedderError(errors.EmbedderError):
    """The server has no model that makes vectors."""


_STATUSES: Final[tuple[tuple[type[errors.EunoeError], int], ...]] = (
    (errors.AccessError, 403),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.ScopeError, 422),
    (errors.InputError, 422),
    (errors.StoreFullError, 507),
    (errors.StoreBusyError, 503),
    (errors.ClosedError, 503),
    (errors.ModelMismatchError, 409),
    (NoLlmError, 409),
    (NoEmbedderError, 409),
    (errors.LlmError, 502),
    (errors.EmbedderError, 502),
)
"""The first that fits counts; other errors are ours: 500."""

_HINTS: Final[Mapping[str, str]] = {
    "access": "Use a key that has this right and this scope.",
    "not_found": "Check the id and the scope.",
    "conflict": "Read it again, then repeat the change.",
    "scope": "A scope is key=value pairs joined by /, such as user=anna/session=s1.",
    "input": "Correct the value that the detail names.",
    "store_busy": "Try again in a moment.",
    "closed": "The server is stopping: try again in a moment.",
    "store_full": "Make room on the server's disk.",
    "no_llm": "Start the server with a language model.",
    "no_embedder": "Name a model, or start the server with one.",
    "llm": "POST /v1/models/test says what is wrong with the language model.",
    "no_such_path": "GET /v1/openapi.json lists all paths.",
    "method_not_allowed": "The header Allow names the methods of this path.",
    "body_too_large": "Send less at once, or import it.",
    "body_timeout": "Send the whole body without a pause.",
    "idempotency_mismatch": "Use a new Idempotency-Key for another body.",
    "rate_limit": "Wait for as many seconds as Retry-After says.",
    "unauthorized": "Send `Authorization: Bearer KEY`. `eunoe key create` makes a key.",
}
HTTP_CODES: Final[Mapping[int, str]] = {
    400: "input",
    404: "no_such_path",
    405: "method_not_allowed",
    408: "body_timeout",
    413: "body_too_large",
    422: "input",
}
"""Codes of what goes wrong before a route is reached."""
_PROJECT_PATHS: Final = "/api/projects/"
_CHAT_PATHS: Final = "/v1/chat/"
_RETRY_SECONDS: Final = 2
_log = logging.getLogger("eunoe.server")


class ProblemResponse(JSONResponse):
    """An error, told as problem details, with the id of the request that had it.

    Under the paths of projects and of chats it has `error` too, which their callers read.
    """

    media_type = "application/problem+json"

    def __init__(self, content: dict[str, Any], status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, status, headers)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope.get("state", {}).get("request_id")
        more: dict[str, Any] = {"request_id": id} if id else {}
        if scope.get("path", "").startswith(_PROJECT_PATHS):
            more["error"] = self._content["detail"]
        elif scope.get("path", "").startswith(_CHAT_PATHS):
            more["error"] = {"message": self._content["detail"], "type": self._content["code"], "param": None}
        if more:
            self.body = self.render({**self._content, **more})
            self.headers["Content-Length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    content: dict[str, Any] = {
        "type": f"urn:eunoe:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "code": code,
        "detail": detail,
        "hint": hint or _HINTS.get(code, ""),
    }
    return ProblemResponse(content, status, headers)


def problem_of(error: errors.EunoeError) -> ProblemResponse:
    """The problem that an error of the memory is."""
    status = status_of(error)
    if status == 500:  # it may tell of files, which are no business of a caller
        _log.error("the store failed: %s: %s", type(error).__name__, error)
        return problem(500, code_of(error), "the store cannot do this; the server's log says why")
    headers = {"Retry-After": str(_RETRY_SECONDS)} if status == 503 else None
    return problem(status, code_of(error), str(error), headers=headers)


def status_of(error: errors.EunoeError) -> int:
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def code_of(error: errors.EunoeError) -> str:
    """
    >>> code_of(errors.NotFoundError("x"))
    'not_found'
    """
    name = type(error).__name__.removesuffix("Error")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
