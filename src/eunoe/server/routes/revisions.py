"""Summaries: their revisions, what changed between two, and new ones."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.stream import Revision
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, PageFields, ScopeBody, ScopeField, ScopeQuery, page_of, reply
from eunoe.server.routes.comparison import Comparison, compare
from eunoe.server.routes.schemas import answers, model_of

router = json_router("summaries")
REVISION: Any = model_of(Revision)


class RevisionsReply(BaseModel):
    """Every revision of a stream's summary, oldest first."""

    revisions: list[REVISION]
    next: str


class RevisionReply(BaseModel):
    """The new revision; null if there was nothing to do."""

    revision: REVISION | None


class RevisionsQuery(PageFields, ScopeQuery):
    pass


class CompareQuery(ScopeQuery):
    old: int = Field(ge=0, description="The number of a revision; 0 is before the first.")
    new: int = Field(ge=1)


class SummaryBody(Body):
    scope: ScopeField
    text: str = Field(examples=["Anna lives in Rome with her dog Bruno."])
    author: str = "hand"
    parent: int | None = Field(None, description="Only if this is still the current revision.")
    absorbed: list[str] = Field([], description="Ids of open observations that it says.")
    base: int | None = Field(None, description="The revision it was written from, if not the current one; 0 for none.")


class ConsolidateBody(Body):
    scope: ScopeField
    force: bool = Field(True, description="Even if not enough observations wait.")


@router.get("/revisions", summary="The revisions of a summary", responses=answers(RevisionsReply))
async def list_revisions(query: Annotated[RevisionsQuery, Query()], caller: CallerParam) -> Response:
    """Oldest first."""
    revisions = await caller.async_memory.summaries.revisions(query.scope)
    return reply(page_of("revisions", revisions, query, lambda revision: str(revision.number)))


@router.get("/revisions/compare", summary="What changed between two revisions", responses=answers(Comparison, 404))
async def compare_revisions(query: Annotated[CompareQuery, Query()], caller: CallerParam) -> Response:
    """Line by line, and within changed lines word by word; with the memories that each revision absorbed."""
    return reply(compare(await caller.async_memory.summaries.revisions(query.scope), query.old, query.new))


@router.post("/revisions", summary="Write a summary by hand", responses=answers(REVISION, 404, 409))
async def write_summary(body: SummaryBody, caller: CallerParam) -> Response:
    """As a new revision."""
    return reply(await caller.async_memory.summaries.write(body.scope, body.text, **body.given("scope", "text")))


@router.post("/revisions/{number}/restore", summary="Bring a revision back", responses=answers(REVISION, 404, 409))
async def restore_revision(number: int, body: ScopeBody, caller: CallerParam) -> Response:
    """As a new revision. What later ones had absorbed waits again to be consolidated."""
    return reply(await caller.async_memory.summaries.restore(body.scope, number))


@router.post("/consolidate", summary="Write what waits into the summary", responses=answers(RevisionReply, 409, 502))
async def consolidate(body: ConsolidateBody, caller: CallerParam) -> Response:
    """Now, whether or not enough observations wait."""
    return reply({"revision": await caller.async_memory.summaries.consolidate(body.scope, force=body.force)})
