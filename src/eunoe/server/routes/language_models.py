"""Language models: every call that was made, and a test of the connection."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import Response

from eunoe.errors import LlmError
from eunoe.model.result import LlmReport, ModelCall
from eunoe.server.problems import NoLlmError
from eunoe.server.routes.common import CallerParam, PageFields, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of

CALL: Any = model_of(ModelCall)


class CallPage(BaseModel):
    """Calls of language models; pass `next` as `after` to read on."""

    items: list[CALL]
    next: str
    notes: list[str]


router = json_router("language models")


@router.get("/calls", summary="Calls of language models", responses=answers(CallPage))
async def list_calls(query: Annotated[PageFields, Query()], caller: CallerParam) -> Response:
    """Latest first, with tokens, time and cost. What was said is not kept."""
    return reply(await caller.async_memory.admin.calls(**query.given()))


@router.post("/models/test", summary="Test the language model", responses=answers(model_of(LlmReport), 502))
async def test_model(caller: CallerParam) -> Response:
    """Asks it for one word. `problem` says what is wrong; it is empty if the model answers."""
    try:
        return reply(await caller.async_memory.admin.test_llm())
    except LlmError as error:
        if caller.memory.llm is None:
            raise NoLlmError(str(error)) from None
        raise
