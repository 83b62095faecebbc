"""The audit log: who changed how much of what."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import Response

from eunoe.server.audit import AuditEntry
from eunoe.server.routes.common import CallerParam, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of

router = json_router("audit")


class AuditPage(BaseModel):
    """A part of the log, newest first."""

    items: list[model_of(AuditEntry)]  # type: ignore[valid-type]
    next: str


@router.get("/audit", summary="Who changed what, newest first", responses=answers(AuditPage))
def list_audit(
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """For keys with the right `admin`. A key of a tenant sees what happened in that tenant."""
    entries, more = services.audit.list(caller.key, limit=limit, after=after)
    return reply({"items": entries, "next": more})
