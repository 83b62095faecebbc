"""Forming memories out of what was said, for real or to see what would come of it."""

from typing import Any, Final

from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.result import FormReport, PassedOver
from eunoe.model.scope import Scope
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, MessageField, ScopeField, one_of, reply
from eunoe.server.routes.schemas import ATOM, answers, model_of

_FLUSH_SECONDS: Final = 30.0
_NOBODY: Final = Scope(session="preview")
"""The scope of what is tried out for nobody."""

router = json_router("formation")
FORM_REPORT: Any = model_of(FormReport)
PASSED_OVER: Any = model_of(PassedOver)


class FormBody(Body):
    scope: ScopeField
    force: bool = Field(True, description="Even if not enough was said.")


class FlushBody(Body):
    timeout: float | None = Field(None, ge=0, le=300, description="Seconds; 30 if none are given.")


class Flushed(BaseModel):
    """Whether the background has nothing left to do."""

    flushed: bool


class ExtractBody(Body):
    scope: ScopeField | None = None
    text: str | None = Field(None, examples=["I moved to Rome with my dog Bruno."])
    messages: list[MessageField] | None = None


class Proposals(BaseModel):
    """What would be learned, and what hindered it. Nothing was kept."""

    memories: list[ATOM]
    doubtful: list[str] = Field(description="Ids of those that are less than sure.")
    passed_over: list[PASSED_OVER] = Field(description="Messages that nothing new would be learned from.")
    corrected: dict[str, str] = Field(description="By id: the sentence whose correction by hand decided about it.")
    notes: list[str]


class ColdSessionsBody(Body):
    idle: float = Field(600, description="Seconds without a new message.")
    minimum: int = Field(4, description="New messages that there must be.")
    limit: int = 100
    concurrency: int = 3


@router.post("/form", summary="Turn what was said into memories now", responses=answers(FORM_REPORT, 409, 502))
async def form(body: FormBody, caller: CallerParam) -> Response:
    """Chunk by chunk; what fails is reported and stays due."""
    return reply(await caller.async_memory.form(body.scope, force=body.force))


@router.post("/flush", summary="Wait for the background", responses=answers(Flushed))
async def flush(body: FlushBody, caller: CallerParam) -> Response:
    """Until it has nothing left to do, or the time is over."""
    seconds = _FLUSH_SECONDS if body.timeout is None else body.timeout
    return reply({"flushed": await caller.async_memory.flush(seconds)})


@router.post("/extract", summary="What would be learned from a text", responses=answers(Proposals, 502))
async def extract(body: ExtractBody, caller: CallerParam) -> Response:
    """A dry run: nothing is kept. With a scope alone, from what was said there and is still to be formed."""
    is_given = body.scope is None or body.text is not None or body.messages is not None
    said = one_of(body, "text", "messages") if is_given else None
    owner = next(iter(caller.key.scopes), _NOBODY) if body.scope is None else body.scope
    page = await caller.async_memory.preview(owner, said)
    told = {name: getattr(page, name) for name in ("doubtful", "passed_over", "corrected", "notes")}
    return reply({"memories": page.items, **told})


@router.post("/cold-sessions", summary="Form conversations that have gone quiet", responses=answers(FORM_REPORT, 502))
async def process_cold_sessions(body: ColdSessionsBody, caller: CallerParam) -> Response:
    """One that fails is reported and stays due; the others go on."""
    return reply(await caller.async_memory.admin.process_cold_sessions(**body.given()))
