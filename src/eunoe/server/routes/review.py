"""What was learned lately, and what waits to be looked at."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.arguments import AtomKind
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, ExactField, KeysQuery, ScopeField, reply
from eunoe.server.routes.schemas import RECEIPT, ItemPage, answers

router = json_router("review")


class RecentQuery(ExactField, KeysQuery):
    since: str | None = Field(None, description="Recorded at that time or later.")
    until: str | None = Field(None, description="Recorded before that time.")
    kinds: list[AtomKind] = []
    retired: bool = Field(False, description="What was superseded or archived too.")
    in_review: bool | None = Field(None, description="Only what waits to be looked at, or only the rest.")
    within: str | None = Field(None, description="The scope, in place of its keys.", examples=["agent=cook/*"])


class ReviewBody(ExactField, Body):
    scope: ScopeField
    ids: list[str]
    keep: bool = Field(True, description="False: they wait again.")


class Reviewed(BaseModel):
    """What became of them, in the order given."""

    receipts: list[RECEIPT]


@router.get("/recent", summary="What was learned lately", responses=answers(ItemPage))
async def list_recent(query: Annotated[RecentQuery, Query()], caller: CallerParam) -> Response:
    """In all scopes that the key may see, or in the one whose keys the query names; latest first."""
    return reply(await caller.async_memory.recent(**query.given()))


@router.post("/review", summary="Keep what waits to be looked at", responses=answers(Reviewed, 404, 409))
async def review(body: ReviewBody, caller: CallerParam) -> Response:
    """Until then it is left out of recall. `POST /v1/forget` rejects it."""
    return reply({"receipts": await caller.async_memory.review(body.scope, body.ids, keep=body.keep, exact=body.exact)})
