"""Server-sent events: what memory is learning now."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic
from typing import Annotated, Final

from fastapi import Header, Request
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from eunoe.server.events import Feed
from eunoe.server.routes.common import CallerParam, ServicesParam
from eunoe.server.routes.json_request import json_router

router = json_router("events")

_LOOK_SECONDS: Final = 1.0
_HEARTBEAT_SECONDS: Final = 15.0
_MAX_SECONDS: Final = 300.0
"""A client reconnects by itself after that."""


@router.get("/events", summary="What memory is learning now", response_class=StreamingResponse)
async def stream_events(
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    last_event_id: Annotated[str, Header(max_length=2000)] = "",
) -> Response:
    """One event `learned` for each new fact or observation within reach. `Last-Event-ID` goes on where you were."""
    caller.memory.guard.allow("read")
    feed = Feed.from_cursor(caller.memory, last_event_id)
    return StreamingResponse(_stream(request, feed, services.stopping), media_type="text/event-stream")


async def _stream(request: Request, feed: Feed, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    began = told = monotonic()
    yield b"retry: 1000\n\n"
    while monotonic() - began < _MAX_SECONDS and not stopping.is_set() and not await request.is_disconnected():
        if not request.state.is_valid():  # the key was revoked, rotated or has ended
            return
        for event in await asyncio.to_thread(feed.read):
            told = monotonic()
            yield b"id: %s\nevent: learned\ndata: %s\n\n" % (event.cursor.encode(), to_json(event.json()))
        if monotonic() - told > _HEARTBEAT_SECONDS:
            told = monotonic()
            yield b": still here\n\n"
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_SECONDS)
