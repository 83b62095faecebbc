"""Corrections by hand of what was learned, or should have been."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.arguments import Verdict
from eunoe.model.atom import Correction
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, IdParam, ScopeBody, ScopeField, ScopeQuery, reply
from eunoe.server.routes.schemas import answers, model_of

router = json_router("corrections")
CORRECTION: Any = model_of(Correction)


class CorrectionBody(Body):
    scope: ScopeField
    id: str = Field(min_length=1, description="Of a memory or a message in this scope.", examples=["b1946ac9"])
    verdict: Verdict = Field(description="Worth keeping, not worth keeping, or the kind of thing it is.")
    sentence: str = Field("", description="The part that is meant, word for word; without it, what says something.")


class Corrections(BaseModel):
    """Corrections, the latest first."""

    corrections: list[CORRECTION]


class Removed(BaseModel):
    """That it counts no more."""

    removed: str


@router.post("/corrections", summary="Correct what was learned", responses=answers(CORRECTION, 404, 409))
async def add_correction(body: CorrectionBody, caller: CallerParam) -> Response:
    """Acts at once on what was learned from it, and counts from then on for sentences that are like it."""
    given = body.given("scope", "id", "verdict")
    return reply(await caller.async_memory.corrections.add(body.scope, body.id, body.verdict, **given))


@router.get("/corrections", summary="The corrections of a scope", responses=answers(Corrections))
async def list_corrections(query: Annotated[ScopeQuery, Query()], caller: CallerParam) -> Response:
    """Those of what a user said are kept in the user's own stream."""
    return reply({"corrections": await caller.async_memory.corrections.list(query.scope)})


@router.post("/corrections/{id}/remove", summary="Let a correction count no more", responses=answers(Removed, 404))
async def remove_correction(id: IdParam, body: ScopeBody, caller: CallerParam) -> Response:
    """What it changed at once stays as it is."""
    await caller.async_memory.corrections.remove(body.scope, id)
    return reply({"removed": id})
