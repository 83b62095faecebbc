"""Export and import as streams of JSON Lines. Neither ever holds more than a part in memory."""

import asyncio
import io
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import IO, Annotated, Any, Final, cast

from fastapi import Query, Request
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from eunoe.errors import InputError
from eunoe.model.result import ImportReport
from eunoe.server.access import Caller
from eunoe.server.routes.common import CallerParam, ExactField, ScopeText, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of

router = json_router("transfer")
_CHUNK_BYTES: Final = 256 * 1024
_JSON_LINES: Final = "application/jsonl"
_EXAMPLE: Final = '{"eunoe": 1}\n'


class ExportQuery(ExactField):
    scope: list[ScopeText] = Field([], description="One or several; all that the key may see if none is named.")
    skip_damaged: bool = Field(False, description="Leave out what cannot be read.")


@router.get(
    "/export",
    summary="Export scopes as JSON Lines",
    response_class=Response,
    responses=answers(None, 404)
    | {200: {"description": "One line a record.", "content": {_JSON_LINES: {"schema": {"type": "string"}}}}},
)
async def export(query: Annotated[ExportQuery, Query()], caller: CallerParam) -> Response:
    """Without loss: `POST /v1/import` reads it. It is one snapshot, written whole before its first byte is sent, so
    that a slow reader holds up nobody."""
    file = await asyncio.to_thread(_write_export, caller, query)
    return StreamingResponse(_chunks(file), media_type=_JSON_LINES, background=BackgroundTask(file.close))


@router.post(
    "/import",
    summary="Import JSON Lines",
    responses=answers(model_of(ImportReport), 408, 409, 507),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {_JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
async def import_(request: Request, caller: CallerParam, services: ServicesParam) -> Response:
    """What `GET /v1/export` gave. Read twice it changes nothing; what was forgotten here stays forgotten. It begins
    when the whole body is there: a client that goes away in the middle leaves nothing behind."""
    with _spool() as file:
        async for chunk in request.stream():
            await asyncio.to_thread(file.write, chunk)
        return reply(await asyncio.to_thread(_read_import, caller, file, services.config.max_body_bytes))


def _spool() -> IO[bytes]:
    """A file without a name: nobody else can read it, and it is gone when it is closed."""
    return tempfile.TemporaryFile(prefix="eunoe-")


def _write_export(caller: Caller, query: ExportQuery) -> IO[bytes]:
    file = _spool()
    try:
        text = io.TextIOWrapper(cast("io.BufferedRandom", file), encoding="utf-8", newline="\n")
        scopes: Any = query.scope or caller.memory.scopes()
        if scopes:
            given = query.given("scope") | ({} if query.scope else {"exact": True})
            caller.memory.admin.export(scopes, text, **given)
        text.flush()
        text.detach()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read_import(caller: Caller, file: IO[bytes], max_line_bytes: int) -> ImportReport:
    file.seek(0)
    return caller.memory.admin.import_(_lines(file, max_line_bytes))


def _lines(file: IO[bytes], most: int) -> Iterator[str]:
    """A line that is longer than any body would be held in memory as a whole."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise InputError(f"line {number} is longer than {most:,} bytes")
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise InputError(f"line {number} is not UTF-8 text") from None


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
        yield chunk
