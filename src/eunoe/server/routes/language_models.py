"""Language models: every call that was made, and a test of the connection."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from eunoe.server.routes.common import CallerParam, PageFields, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers

router = json_router("language models")


@router.get("/calls", summary="Calls of language models", responses=answers(None))
async def list_calls(query: Annotated[PageFields, Query()], caller: CallerParam) -> Response:
    """Latest first, with tokens, time and cost. What was said is not kept."""
    return reply(await caller.async_memory.admin.calls(**query.given()))


@router.post("/models/test", summary="Test the connection to the language model", responses=answers(None))
async def test_model(caller: CallerParam) -> Response:
    """Asks it for one word."""
    return reply(await caller.async_memory.admin.test_llm())
