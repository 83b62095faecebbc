"""Jobs: what runs behind the replies, what failed, and how to try it again."""

from typing import Annotated, Any, Final, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import FileResponse, Response

from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.model.arguments import Right
from eunoe.server.access import Caller
from eunoe.server.jobs import Job, JobState
from eunoe.server.routes.common import Body, CallerParam, ExactField, ModelField, ScopesField, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of
from eunoe.server.services import Services

router = json_router("jobs")

KindName = Literal["form", "consolidate", "retention", "export", "cold_sessions", "embed"]

_RIGHTS: Final[dict[KindName, Right]] = {
    "form": "write",
    "consolidate": "write",
    "retention": "forget",
    "export": "read",
    "cold_sessions": "admin",
    "embed": "admin",
}
"""What a caller needs to ask for a job of each kind."""
JOB: Any = model_of(Job)
_STORE_WIDE: Final = ("cold_sessions", "embed")


class JobBody(ExactField, Body):
    kind: KindName
    scope: ScopesField = None
    """Whose memories; of an export also a list."""
    force: bool | None = None
    """Of `form` and `consolidate`: even if not enough was said."""
    model: ModelField = None
    """Of `embed`."""


class JobPage(BaseModel):
    """A part of the jobs within reach."""

    items: list[JOB]
    next: str = Field(description="Pass it as `after` to read on; empty if there is no more.")


@router.get("/jobs", summary="Jobs, newest first", responses=answers(JobPage))
async def list_jobs(
    caller: CallerParam,
    services: ServicesParam,
    state: JobState | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: str = "",
) -> Response:
    """`state=dead` lists those that were tried too often: look at their error, then retry them."""
    caller.memory.guard.allow("read")
    jobs, more = services.jobs.list(_tenant(caller), state, limit, after)
    return reply({"items": [job for job in jobs if _is_within_reach(caller, job)], "next": more})


@router.get("/jobs/{id}", summary="One job", responses=answers(JOB, 404))
async def get_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("read")
    return reply(_find(caller, services, id))


@router.post("/jobs", summary="Put a job into the queue", status_code=202, responses=answers(JOB, status=202))
async def add_job(body: JobBody, caller: CallerParam, services: ServicesParam) -> Response:
    """`form`, `consolidate`, `retention` and `export` need a scope; `cold_sessions` and `embed` work on the whole
    store and are for its owner."""
    return reply(services.worker.add(body.kind, **_parse(body, caller)), 202)


@router.post("/jobs/{id}/retry", summary="Try a dead or cancelled job again", responses=answers(JOB, 404, 409))
async def retry_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("write")
    return reply(services.worker.retry(_find(caller, services, id).id))


@router.post("/jobs/{id}/cancel", summary="Take a job out of the queue", responses=answers(JOB, 404, 409))
async def cancel_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("write")
    return reply(services.jobs.cancel(_find(caller, services, id).id))


@router.get("/jobs/{id}/result", summary="The file that an export wrote", response_class=FileResponse)
async def get_result(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("read")
    job = _find(caller, services, id)
    file = services.exports / f"{job.id}.jsonl"
    if job.kind != "export" or job.state != "succeeded" or not file.exists():
        raise NotFoundError("the job has no file, or not any more: an export is kept for an hour")
    return FileResponse(file, media_type="application/jsonl", filename=f"eunoe-{job.id}.jsonl")


def _parse(body: JobBody, caller: Caller) -> dict[str, Any]:
    """What the queue takes, within the caller's reach."""
    right, guard = _RIGHTS[body.kind], caller.memory.guard
    given = {"force": body.force, "model": body.model, "exact": body.exact or None}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if body.kind in _STORE_WIDE:
        guard.allow_store(right)
        return {"options": options}
    if body.scope is None:
        raise InputError(f"{body.kind} needs a scope")
    if body.kind == "export":
        scopes = guard.reaches(body.scope, right, body.exact)
        return {"tenant": caller.key.tenant, "options": options | {"scopes": [scope.text for scope in scopes]}}
    is_wide = body.kind == "retention"
    scope = guard.reach(body.scope, right, body.exact) if is_wide else guard.scope(body.scope, right)
    return {"tenant": scope.pairs.get("tenant", ""), "scope": scope.text, "options": options}


def _tenant(caller: Caller) -> str | None:
    """None for those who see the jobs of all tenants."""
    return caller.key.tenant or None


def _find(caller: Caller, services: Services, id: str) -> Job:
    job = services.jobs.get(id, _tenant(caller))
    if not _is_within_reach(caller, job):
        raise NotFoundError("no such job")
    return job


def _is_within_reach(caller: Caller, job: Job) -> bool:
    scopes = [job.scope] if job.scope else list(job.options.get("scopes", ()))
    try:
        caller.memory.guard.reaches(scopes, "read") if scopes else caller.memory.guard.allow_store("read")
    except AccessError:
        return False
    return True
