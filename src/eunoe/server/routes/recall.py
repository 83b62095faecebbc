"""Questions: recall, context, look-up."""

from typing import Annotated, Any, Final

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from eunoe.errors import InputError
from eunoe.model.arguments import ContextFormat, Kind, LookupMode, MemoryType, RecipeName
from eunoe.model.json import hits_value
from eunoe.model.result import Context
from eunoe.recall.recipes import MAX_BUDGET_MS
from eunoe.recall.request import find_recipe
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, ExactField, ScopeField, ScopesBody, TimeField, one_of, reply
from eunoe.server.routes.schemas import Hits, answers, model_of

_MILLISECONDS: Final = "`thorough`, as far as it gets in so many milliseconds of reading."


def _check_recipe(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Speak of names and of milliseconds: of a union Pydantic names the first part alone."""
    try:
        return check(value)
    except ValidationError:
        try:
            find_recipe(value)
        except InputError as error:
            raise PydanticCustomError("recipe", "{reason}", {"reason": str(error)}) from None
        raise


RecipeField = Annotated[
    RecipeName | Annotated[int, Field(strict=True, ge=1, le=MAX_BUDGET_MS, description=_MILLISECONDS)],
    WrapValidator(_check_recipe),
]

router = json_router("recall")


class RecallBody(ExactField, ScopesBody):
    query: str = Field(examples=["What is the name of the dog?"])
    limit: int | None = Field(None, ge=1, description="At most so many hits; 10 if neither this nor `tokens` is given.")
    tokens: int | None = Field(None, ge=1, description="At most so many tokens of text, the best hits first.")
    kinds: list[Kind] = []
    labels: list[str] = []
    since: TimeField | None = None
    until: TimeField | None = None
    files: list[str] = []
    people: list[str] = []
    sessions: list[str] = []
    speakers: list[str] = []
    where: dict[str, Any] | None = Field(None, description="Conditions on metadata; `AND`, `OR` and `NOT` join others.")
    as_of: TimeField | None = Field(None, description="What was true then.")
    known_at: TimeField | None = Field(None, description="What the store knew then.")
    now: TimeField | None = Field(None, description="The moment the question is asked, for words such as yesterday.")
    recipe: RecipeField = "default"
    vector: list[float] | None = Field(None, description="The query's vector, made with the store's model.")
    expired: bool = Field(False, description="Also what no longer holds.")


class ContextBody(Body):
    scope: ScopeField
    message: str = Field("", examples=["What shall I cook tonight?"])
    users: list[str] = Field([], description="Who is present beside the scope's user.")
    tokens: int | None = Field(None, ge=1, description="The most it may take; the most valuable first.")
    limit: int | None = Field(None, ge=1, description="The most that is recalled for the message.")
    recall: LookupMode = "auto"
    recipe: RecipeField = "default"
    format: ContextFormat = "xml"
    sources: bool = Field(False, description="Name the messages each memory rests on.")
    now: TimeField | None = None


class LookupBody(ExactField, Body):
    scope: ScopeField
    query: str | None = Field(None, examples=["peanuts"])
    queries: list[str] | None = Field(None, description="Several; a memory counts by the one it answers best.")
    users: list[str] = []
    memory_types: list[MemoryType] = []
    limit: int = Field(10, ge=1)
    recipe: RecipeField = "default"


@router.post("/recall", summary="Bring back what bears on a question", responses=answers(Hits, 502))
async def recall(body: RecallBody, caller: CallerParam) -> Response:
    """Hits, best first, each with its score from 0 to 1 and its reasons. Nothing outside the scopes named is read."""
    given = body.given("scope", "scopes", "query")
    return reply(hits_value(await caller.async_memory.recall(body.owners, body.query, **given)))


@router.post("/context", summary="What to put in front of the agent", responses=answers(model_of(Context), 502))
async def get_context(body: ContextBody, caller: CallerParam) -> Response:
    """What always stands there, then what is recalled for this message, within a budget of tokens."""
    return reply(await caller.async_memory.context(body.scope, body.message, **body.given("scope", "message")))


@router.post("/look-up", summary="Recall as a conversation may do it", responses=answers(Hits, 502))
async def look_up(body: LookupBody, caller: CallerParam) -> Response:
    """In all the memory that its context shows, and in nothing else."""
    asked, given = one_of(body, "query", "queries"), body.given("scope", "query", "queries")
    return reply(hits_value(await caller.async_memory.look_up(body.scope, asked, **given)))
