"""Messages in: appended to the log, word for word."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from eunoe.server.routes.common import Body, CallerParam, ScopeField, reply

router = APIRouter(tags=["messages"])


class MessagesBody(Body):
    scope: ScopeField
    messages: list[str | dict[str, Any]] = Field(examples=[[{"role": "user", "content": "My dog is called Bruno."}]])


@router.post("/messages", summary="Append messages to the log")
async def append_messages(body: MessagesBody, caller: CallerParam) -> Response:
    """All of them are stored or, on an error, none. A message that is there already is recognised."""
    return reply({"receipts": await caller.async_memory.observe(body.scope, body.messages)})
