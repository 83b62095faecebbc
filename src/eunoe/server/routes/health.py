"""Is it alive, is it ready, is it the one it says it is, and how does its store stand."""

import hashlib
import hmac
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from eunoe.model.result import Status
from eunoe.server.routes.common import CallerParam, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of

router = json_router("health")
NonceParam = Annotated[str, Query(pattern="^[0-9a-f]{32,128}$", examples=["0123456789abcdef" * 2])]
STATUS: Any = model_of(Status)


class Live(BaseModel):
    status: Literal["ok"]


class Ready(BaseModel):
    status: Literal["ready"]


class Identity(BaseModel):
    proof: str = Field(description="HMAC-SHA256 of the nonce with the owner's token, in hex.", examples=["9f8e"])


@router.get("/healthz", summary="Whether the process is alive", responses=answers(Live))
async def live() -> Response:
    """It answers as long as the process does, whatever its store."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", summary="Whether the store can be used", responses=answers(Ready))
async def ready(services: ServicesParam) -> Response:
    """It reads from the store."""
    await services.memory.scopes(tenant="-")
    return JSONResponse({"status": "ready"})


@router.get("/v1/identity", summary="Prove that this is the server of a store", responses=answers(Identity))
async def identity(
    services: ServicesParam,
    nonce: NonceParam,
) -> Response:
    """A local client asks this before it sends the owner's token: only who knows the token can answer."""
    proof = hmac.new(services.owner_token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return JSONResponse({"proof": proof})


@router.get("/v1/status", summary="How the store stands", responses=answers(STATUS))
async def get_status(caller: CallerParam) -> Response:
    """What the key may see of it: what it holds, what is still due, how large it is."""
    return reply(await caller.async_memory.status())
