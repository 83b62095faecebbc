"""Metrics for Prometheus."""

import asyncio

from starlette.responses import Response

from eunoe.server.routes.common import CallerParam, ServicesParam
from eunoe.server.routes.json_request import json_router

router = json_router("health")


@router.get("/metrics", summary="Metrics in Prometheus' format", response_class=Response)
async def metrics(caller: CallerParam, services: ServicesParam) -> Response:
    """For the owner of the store: the figures are about all of it."""
    caller.memory.guard.allow_store("read")
    text = await asyncio.to_thread(services.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
