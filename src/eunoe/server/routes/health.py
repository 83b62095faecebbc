"""Is it alive, is it ready, is it the one it says it is, and how does its store stand."""

import hashlib
import hmac
import re
from typing import Annotated

from fastapi import Query
from starlette.responses import JSONResponse, Response

from eunoe.server.routes.common import CallerParam, ServicesParam, reply
from eunoe.server.routes.json_request import json_router

router = json_router("health")
_NONCE = re.compile(r"[0-9a-f]{32,128}")


@router.get("/healthz", summary="Whether the process is alive")
async def live() -> Response:
    return JSONResponse({"status": "ok"})


@router.get("/readyz", summary="Whether the store can be used")
async def ready(services: ServicesParam) -> Response:
    await services.memory.scopes(tenant="-")
    return JSONResponse({"status": "ready"})


@router.get("/v1/identity", summary="Prove that this is the server of a store")
async def identity(services: ServicesParam, nonce: Annotated[str, Query(pattern=_NONCE.pattern)]) -> Response:
    """A local client asks this before it sends the owner's token: only who knows the token can answer."""
    proof = hmac.new(services.owner_token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return JSONResponse({"proof": proof})


@router.get("/v1/status", summary="How the store stands")
async def status(caller: CallerParam) -> Response:
    return reply(await caller.async_memory.status())
