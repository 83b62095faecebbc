"""Forgetting, with its proof."""

from pydantic import Field
from starlette.responses import Response

from eunoe.model.result import ForgetReport
from eunoe.server.requests import json_router
from eunoe.server.routes.common import CallerParam, ExactField, ScopesBody, reply
from eunoe.server.routes.schemas import answers, model_of

router = json_router("forgetting")


class ForgetBody(ExactField, ScopesBody):
    ids: list[str] = Field([], examples=[["b1946ac9"]])
    person: str = Field("", description="What they said and what is noted about them.")
    everything: bool = Field(False, description="All that the scopes hold.")
    mentions: bool = Field(False, description="With `person`: what others said of them too.")
    may_return: bool = Field(False, description="Leave no tombstones, so that the same text may be stored again.")
    verify: bool = Field(False, description="Search every table, file, index and cache for what should be gone.")


@router.post("/forget", summary="Remove memories for good", responses=answers(model_of(ForgetReport), 404, 409))
async def forget(body: ForgetBody, caller: CallerParam) -> Response:
    """These ids, a person, or everything in the scopes: exactly one of the three. A memory goes with all its versions,
    a message with every memory that rests on it."""
    return reply(await caller.async_memory.forget(body.owners, **body.given("scope", "scopes")))
