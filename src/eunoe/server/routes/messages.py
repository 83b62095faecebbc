"""Messages in: appended to the log, word for word."""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from eunoe.server.routes.common import Body, CallerParam, MessageField, ScopeField
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.once import OnceParam
from eunoe.server.routes.schemas import Receipts, answers

router = json_router("messages")


class MessagesBody(Body):
    scope: ScopeField
    messages: list[MessageField] = Field(examples=[[{"role": "user", "content": "My dog is called Bruno."}]])


@router.post("/messages", summary="Append messages to the log", responses=answers(Receipts, 409, 507))
async def observe(body: MessagesBody, caller: CallerParam, once: OnceParam) -> Response:
    """All of them are stored or, on an error, none. A message that is there already is recognised."""

    async def work() -> dict[str, Any]:
        return {"receipts": await caller.async_memory.observe(body.scope, body.messages)}

    return await once(work)
