"""Questions: recall, context, look-up."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from eunoe.model.choices import ContextFormat, Kind, LookupMode, RecipeName
from eunoe.server.routes.common import Body, CallerParam, ScopeField, ScopesField, reply
from eunoe.wire.encoding import hits_value

router = APIRouter(tags=["recall"])


class RecallBody(Body):
    scope: ScopesField
    query: str = Field(examples=["What is the name of the dog?"])
    limit: int | None = None
    tokens: int | None = None
    kinds: list[Kind] = []
    labels: list[str] = []
    since: str | None = None
    until: str | None = None
    files: list[str] = []
    people: list[str] = []
    sessions: list[str] = []
    speakers: list[str] = []
    where: dict[str, Any] | None = None
    as_of: str | None = None
    known_at: str | None = None
    now: str | None = None
    recipe: RecipeName = "default"
    vector: list[float] | None = None


class ContextBody(Body):
    scope: ScopeField
    message: str = Field("", examples=["What shall I cook tonight?"])
    users: list[str] = []
    tokens: int | None = None
    limit: int | None = None
    recall: LookupMode = "auto"
    recipe: RecipeName = "default"
    format: ContextFormat = "xml"
    sources: bool = False
    now: str | None = None


@router.post("/recall", summary="Bring back what bears on a question")
async def recall(body: RecallBody, caller: CallerParam) -> Response:
    """Hits, best first, each with its score from 0 to 1 and its reasons."""
    hits = await caller.async_memory.recall(body.scope, body.query, **body.given("scope", "query"))
    return reply(hits_value(hits))


@router.post("/context", summary="What to put in front of the agent")
async def context(body: ContextBody, caller: CallerParam) -> Response:
    """What always stands there, then what is recalled for this message, within a budget of tokens."""
    return reply(await caller.async_memory.context(body.scope, body.message, **body.given("scope", "message")))
