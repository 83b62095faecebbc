"""Memories: facts and observations, one by one."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from eunoe.server.routes.common import Body, CallerParam, ScopeField, reply

router = APIRouter(tags=["memories"])


class MemoriesBody(Body):
    scope: ScopeField
    items: list[str | dict[str, Any]] = Field(examples=[["Anna is allergic to peanuts."]])
    source_scopes: list[ScopeField] = []
    again: bool = False


@router.post("/memories", summary="Keep facts or observations")
async def remember(body: MemoriesBody, caller: CallerParam) -> Response:
    """All of them are kept or, on an error, none."""
    given = body.given("scope", "items")
    return reply({"receipts": await caller.async_memory.remember_many(body.scope, body.items, **given)})
