"""Messages: appended to the log, word for word, and taken back."""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from eunoe.server.requests import OnceParam, json_router
from eunoe.server.routes.common import Body, CallerParam, MessageField, ScopeField, reply
from eunoe.server.routes.schemas import Receipts, answers

router = json_router("messages")


class MessagesBody(Body):
    scope: ScopeField
    messages: list[MessageField] = Field(examples=[[{"role": "user", "content": "My dog is called Bruno."}]])


class RetractBody(Body):
    scope: ScopeField
    ids: list[str] = Field(examples=[["b1946ac9"]])
    retracted: bool = Field(True, description="False: restore them.")


@router.post("/messages", summary="Append messages to the log", responses=answers(Receipts, 409, 507))
async def observe(body: MessagesBody, caller: CallerParam, once: OnceParam) -> Response:
    """All of them are stored or, on an error, none. A message that is there already is recognised."""

    async def work() -> dict[str, Any]:
        return {"receipts": await caller.async_memory.observe(body.scope, body.messages)}

    return await once(work)


@router.post("/retract", summary="Take messages back", responses=answers(Receipts, 404, 409))
async def retract_messages(body: RetractBody, caller: CallerParam) -> Response:
    """They stay in the log, word for word, but nothing is recalled or learned from them any more."""
    return reply({"receipts": await caller.async_memory.retract(body.scope, body.ids, retracted=body.retracted)})
