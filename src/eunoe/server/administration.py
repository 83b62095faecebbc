"""The routes that are no verbs: health, sessions, keys, audit, jobs, events, webhooks, transfer, comparison."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from difflib import SequenceMatcher
from time import monotonic
from typing import IO, Annotated, Any, Final, Literal

from fastapi import Header, Query, Request
from pydantic import BaseModel, Field, create_model
from pydantic_core import to_json
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.json import json_value
from eunoe.model.result import ImportReport
from eunoe.model.stream import Revision
from eunoe.server.access import Caller, find_session_id, set_session_id
from eunoe.server.audit import AuditEntry
from eunoe.server.jobs import Job, JobState
from eunoe.server.keys import Key, parse_duration, parse_end
from eunoe.server.middleware import attempt_of
from eunoe.server.openapi import answers, model_of
from eunoe.server.problems import problem
from eunoe.server.requests import (
    Body,
    CallerParam,
    ExactField,
    ModelField,
    ScopeQuery,
    ScopesField,
    ScopeText,
    ServicesParam,
    json_router,
    reply,
)
from eunoe.server.services import Services
from eunoe.server.webhooks import Delivery, Feed, Webhook, check_url


def _page_of(noun: Any, is_whole: bool = False) -> Any:
    """A list, or a part of one, as JSON has it."""
    end = Field(description="Pass it as `after` to read on; empty if there is no more.")
    shape: dict[str, Any] = {"items": (list[model_of(noun)], ...)} | ({} if is_whole else {"next": (str, end)})  # type: ignore[misc]
    name = noun.__name__.removesuffix("Entry")
    about = "All there are." if is_whole else "A part of a longer list."
    return create_model(f"{name}{'List' if is_whole else 'Page'}", __doc__=about, **shape)


_health = json_router("health")
NonceParam = Annotated[str, Query(pattern="^[0-9a-f]{32,128}$", examples=["0123456789abcdef" * 2])]


class Standing(BaseModel):
    status: Literal["ok", "ready"]


class Identity(BaseModel):
    proof: str = Field(description="HMAC-SHA256 of the nonce with the owner's token, in hex.", examples=["9f8e"])


@_health.get("/healthz", summary="Whether the process is alive", responses=answers(Standing))
async def live() -> Response:
    """It answers as long as the process does, whatever its store."""
    return JSONResponse({"status": "ok"})


@_health.get("/readyz", summary="Whether the store can be used", responses=answers(Standing))
async def ready(services: ServicesParam) -> Response:
    """It reads from the store."""
    await services.memory.scopes(tenant="-")
    return JSONResponse({"status": "ready"})


@_health.get("/v1/identity", summary="Prove that this is the server of a store", responses=answers(Identity))
async def identity(services: ServicesParam, nonce: NonceParam) -> Response:
    """A local client asks this before it sends the owner's token: only who knows the token can answer."""
    proof = hmac.new(services.owner_token.encode(), nonce.encode(), hashlib.sha256).hexdigest()
    return JSONResponse({"proof": proof})


@_health.get("/metrics", summary="Metrics in Prometheus' format", response_class=Response)
async def metrics(caller: CallerParam, services: ServicesParam) -> Response:
    """For the owner of the store: the figures are about all of it."""
    caller.memory.guard.allow_store("read")
    text = await asyncio.to_thread(services.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


_session = json_router("session")


class SessionBody(Body):
    token: str = Field(max_length=512, description="A key, or the token of the store's owner.")


@_session.post("/session", summary="Log the inspector in", status_code=201)
async def start_session(
    body: SessionBody, request: Request, services: ServicesParam, origin: Annotated[str, Header()] = ""
) -> Response:
    """Sets a cookie that pages of this server use in place of the key."""
    if not services.addresses.is_own_origin(origin, request.headers.get("host", "")):
        return problem(403, "foreign_origin", "a session can be started only by a page of this server")
    caller = services.logins.by_token(body.token, attempt_of(request))
    caller.trail.note("start_session")
    response = JSONResponse(_identity(caller), 201)
    set_session_id(response, request, services.addresses, services.sessions.start(caller.key.id))
    return response


@_session.get("/session", summary="Who is logged in")
async def show_session(caller: CallerParam) -> Response:
    return JSONResponse(_identity(caller))


@_session.delete("/session", summary="Log the inspector out", status_code=204)
async def end_session(request: Request, services: ServicesParam) -> Response:
    services.sessions.end(find_session_id(request, services.addresses))
    response = Response(status_code=204)
    set_session_id(response, request, services.addresses, "")
    return response


def _identity(caller: Caller) -> dict[str, Any]:
    key = caller.key
    scopes = [scope.text for scope in key.scopes]
    return {"key": key.id, "name": key.name, "tenant": key.tenant, "scopes": scopes, "rights": list(key.rights)}


_keys = json_router("keys")


class KeyBody(Body):
    name: str = Field(max_length=200, examples=["Anna's laptop"])
    tenant: str | None = Field(None, description="Else the tenant of the key that asks.", examples=["acme"])
    scopes: ScopesField = []
    rights: list[Right] = Field(list(RIGHTS), examples=[["read", "write"]])
    expires: str = Field("", description="A time, or from now on: 30d, 12h. Empty for never.", examples=["30d"])


class RotationBody(Body):
    overlap: str = Field("", description="How long the old secret still counts.", examples=["1h"])


class NewKey(BaseModel):
    """A key, and its text, which is shown this once."""

    key: model_of(Key)  # type: ignore[valid-type]
    token: str = Field(description="What to send as `Authorization: Bearer`.")


@_keys.get("/keys", summary="All keys, newest first", responses=answers(_page_of(Key, is_whole=True)))
def list_keys(caller: CallerParam, services: ServicesParam) -> Response:
    return reply({"items": services.keys.list(by=caller.key)})


@_keys.post("/keys", summary="Make a key", status_code=201, responses=answers(NewKey, status=201))
def create_key(body: KeyBody, caller: CallerParam, services: ServicesParam) -> Response:
    """It can do no more than the key that asks for it. The reply has its text, which is shown this once."""
    key, text = services.keys.create(
        body.name,
        tenant=caller.key.tenant if body.tenant is None else body.tenant,
        scopes=body.scopes,
        rights=body.rights,
        expires=parse_end(body.expires, "expires") if body.expires else None,
        by=caller.key,
    )
    return reply({"key": key, "token": text}, 201)


@_keys.post("/keys/{id}/rotate", summary="Give a key a new secret", responses=answers(NewKey, 404))
def rotate_key(id: str, body: RotationBody, caller: CallerParam, services: ServicesParam) -> Response:
    """The old secret ends at once, or after an overlap; sessions of the inspector end at once."""
    overlap = parse_duration(body.overlap, "overlap") if body.overlap else timedelta()
    key, text = services.keys.rotate(id, overlap=overlap, by=caller.key)
    return reply({"key": key, "token": text})


@_keys.delete("/keys/{id}", summary="Revoke a key", status_code=204, responses=answers(None, 404, status=204))
def revoke_key(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    services.keys.revoke(id, by=caller.key)
    return Response(status_code=204)


_audit = json_router("audit")


@_audit.get("/audit", summary="Who changed what, newest first", responses=answers(_page_of(AuditEntry)))
def list_audit(
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """For keys with the right `admin`. A key of a tenant sees what happened in that tenant."""
    entries, more = services.audit.list(caller.key, limit=limit, after=after)
    return reply({"items": entries, "next": more})


_jobs = json_router("jobs")

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
_STORE_WIDE: Final = ("cold_sessions", "embed")


class JobBody(ExactField, Body):
    kind: KindName
    scope: ScopesField = None
    """Whose memories; of an export also a list."""
    force: bool | None = None
    """Of `form` and `consolidate`: even if not enough was said."""
    model: ModelField = None
    """Of `embed`."""


@_jobs.get("/jobs", summary="Jobs, newest first", responses=answers(_page_of(Job)))
async def list_jobs(
    caller: CallerParam,
    services: ServicesParam,
    state: JobState | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: str = "",
) -> Response:
    """`state=dead` lists those that were tried too often: look at their error, then retry them."""
    caller.memory.guard.allow("read")
    jobs, more = services.jobs.list(caller.key.tenant or None, state, limit, after)
    return reply({"items": [job for job in jobs if _is_within_reach(caller, job)], "next": more})


@_jobs.get("/jobs/{id}", summary="One job", responses=answers(model_of(Job), 404))
async def get_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("read")
    return reply(_find(caller, services, id))


@_jobs.post("/jobs", summary="Put a job into the queue", status_code=202, responses=answers(model_of(Job), status=202))
async def add_job(body: JobBody, caller: CallerParam, services: ServicesParam) -> Response:
    """`form`, `consolidate`, `retention` and `export` need a scope; `cold_sessions` and `embed` work on the whole
    store and are for its owner."""
    return reply(services.worker.add(body.kind, **_parse(body, caller)), 202)


@_jobs.post("/jobs/{id}/retry", summary="Try a dead or cancelled job again", responses=answers(model_of(Job), 404, 409))
async def retry_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("write")
    return reply(services.worker.retry(_find(caller, services, id).id))


@_jobs.post("/jobs/{id}/cancel", summary="Take a job out of the queue", responses=answers(model_of(Job), 404, 409))
async def cancel_job(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    caller.memory.guard.allow("write")
    return reply(services.jobs.cancel(_find(caller, services, id).id))


@_jobs.get("/jobs/{id}/result", summary="The file that an export wrote", response_class=FileResponse)
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
    guard.allow(right)
    given = {"force": body.force, "model": body.model, "exact": body.exact or None}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if body.kind in _STORE_WIDE:
        guard.allow_whole()
        return {"options": options}
    if body.scope is None:
        raise InputError(f"{body.kind} needs a scope")
    if body.kind == "export":
        scopes = guard.reaches(body.scope, body.exact)
        return {"tenant": caller.key.tenant, "options": options | {"scopes": [scope.text for scope in scopes]}}
    is_wide = body.kind == "retention"
    scope = guard.reach(body.scope, body.exact) if is_wide else guard.scope(body.scope)
    return {"tenant": scope.pairs.get("tenant", ""), "scope": scope.text, "options": options}


def _find(caller: Caller, services: Services, id: str) -> Job:
    job = services.jobs.get(id, caller.key.tenant or None)
    if not _is_within_reach(caller, job):
        raise NotFoundError("no such job")
    return job


def _is_within_reach(caller: Caller, job: Job) -> bool:
    scopes = [job.scope] if job.scope else list(job.options.get("scopes", ()))
    guard = caller.memory.guard
    try:
        guard.allow("read")
        guard.reaches(scopes) if scopes else guard.allow_whole()
    except AccessError:
        return False
    return True


_events = json_router("events")

_LOOK_SECONDS: Final = 1.0
_HEARTBEAT_SECONDS: Final = 15.0
_MAX_SECONDS: Final = 300.0
"""A client reconnects by itself after that."""


@_events.get("/events", summary="What memory is learning now", response_class=StreamingResponse)
async def stream_events(
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    last_event_id: Annotated[str, Header(max_length=2000)] = "",
) -> Response:
    """One event `learned` for each new fact or observation within reach. `Last-Event-ID` goes on where you were."""
    caller.memory.guard.allow("read")
    feed = Feed.from_cursor(caller.memory, last_event_id)
    return StreamingResponse(_stream(request, feed, services.stopping), media_type="text/event-stream")


async def _stream(request: Request, feed: Feed, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    began = told = monotonic()
    yield b"retry: 1000\n\n"
    while monotonic() - began < _MAX_SECONDS and not stopping.is_set() and not await request.is_disconnected():
        if not request.state.is_valid():  # the key was revoked, rotated or has ended
            return
        for event in await asyncio.to_thread(feed.read):
            told = monotonic()
            yield b"id: %s\nevent: learned\ndata: %s\n\n" % (event.cursor.encode(), to_json(event.json()))
        if monotonic() - told > _HEARTBEAT_SECONDS:
            told = monotonic()
            yield b": still here\n\n"
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _LOOK_SECONDS)


_webhooks = json_router("webhooks")


_WEBHOOK: Any = model_of(Webhook)


class WebhookBody(Body):
    url: str = Field(max_length=2000, examples=["https://example.org/memory"])
    with_text: bool = Field(False, description="Send the words too, not only which memories there are.")


class NewWebhook(_WEBHOOK):  # type: ignore[misc]
    """A webhook and its secret."""

    secret: str = Field(description="What its requests are signed with; shown this once.")


@_webhooks.get("/webhooks", summary="All webhooks", responses=answers(_page_of(Webhook, is_whole=True)))
async def list_webhooks(caller: CallerParam, services: ServicesParam) -> Response:
    return reply({"items": services.webhooks.list(_check(caller))})


@_webhooks.post("/webhooks", summary="Have an address told", status_code=201, responses=answers(NewWebhook, status=201))
async def create_webhook(body: WebhookBody, caller: CallerParam, services: ServicesParam) -> Response:
    """It is told what the key that makes it may read. The reply has the secret that requests are signed with, as
    [Standard Webhooks](https://www.standardwebhooks.com) say; it is shown this once."""
    tenant = _check(caller)
    check_url(body.url, allow_private=tenant is None)
    webhook, secret = services.webhooks.create(caller.key.id, caller.key.tenant, body.url, body.with_text)
    return reply({**json_value(webhook), "secret": secret}, 201)


@_webhooks.get("/webhooks/{id}", summary="One webhook", responses=answers(_WEBHOOK, 404))
async def get_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    return reply(services.webhooks.get(id, _check(caller)))


@_webhooks.post("/webhooks/{id}/resume", summary="Go on with one that was stopped", responses=answers(_WEBHOOK, 404))
async def resume_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    return reply(services.webhooks.resume(id, _check(caller)))


@_webhooks.delete(
    "/webhooks/{id}", summary="Delete a webhook", status_code=204, responses=answers(None, 404, status=204)
)
async def delete_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    services.webhooks.delete(id, _check(caller))
    return Response(status_code=204)


@_webhooks.get(
    "/webhooks/{id}/deliveries", summary="What was sent, newest first", responses=answers(_page_of(Delivery), 404)
)
async def list_deliveries(
    id: str,
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    """Newest first."""
    items, more = services.webhooks.deliveries(id, _check(caller), limit, after)
    return reply({"items": items, "next": more})


def _check(caller: Caller) -> str | None:
    """Refuse who may not look after webhooks; return the tenant, or None for who sees those of all."""
    caller.memory.guard.allow("admin")
    return caller.key.tenant or None


_transfer = json_router("transfer")
_CHUNK_BYTES: Final = 256 * 1024
_JSON_LINES: Final = "application/jsonl"
_EXAMPLE: Final = '{"eunoe": 2}\n'


class ExportQuery(ExactField):
    scope: list[ScopeText] = Field([], description="One or several; all that the key may see if none is named.")
    skip_damaged: bool = Field(False, description="Leave out what cannot be read.")


@_transfer.get(
    "/export",
    summary="Export scopes as JSON Lines",
    response_class=Response,
    responses=answers(None, 404)
    | {200: {"description": "One line a record.", "content": {_JSON_LINES: {"schema": {"type": "string"}}}}},
)
async def export(query: Annotated[ExportQuery, Query()], caller: CallerParam) -> Response:
    """Without loss: `POST /v1/import` reads it. It is one snapshot, written whole before its first byte is sent, so
    that a slow reader holds up nobody."""
    file = await asyncio.to_thread(_write_export, caller, query)
    return StreamingResponse(_chunks(file), media_type=_JSON_LINES, background=BackgroundTask(file.close))


@_transfer.post(
    "/import",
    summary="Import JSON Lines",
    responses=answers(model_of(ImportReport), 408, 409, 507),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {_JSON_LINES: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
async def import_(request: Request, caller: CallerParam, services: ServicesParam) -> Response:
    """What `GET /v1/export` gave. Read twice it changes nothing; what was forgotten here stays forgotten. It begins
    when the whole body is there: a client that goes away in the middle leaves nothing behind."""
    with tempfile.TemporaryFile(prefix="eunoe-") as file:
        async for chunk in request.stream():
            await asyncio.to_thread(file.write, chunk)
        return reply(await asyncio.to_thread(_read_import, caller, file, services.config.max_body_bytes))


def _write_export(caller: Caller, query: ExportQuery) -> IO[bytes]:
    # Without a name: nobody else can read it.
    file = tempfile.TemporaryFile(prefix="eunoe-")  # noqa: SIM115
    try:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        scopes: Any = query.scope or caller.memory.scopes()
        if scopes:
            given = query.given("scope") | ({} if query.scope else {"exact": True})
            caller.memory.admin.export(scopes, text, **given)
        text.flush()
        text.detach()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read_import(caller: Caller, file: IO[bytes], max_line_bytes: int) -> ImportReport:
    file.seek(0)
    return caller.memory.admin.import_(_lines(file, max_line_bytes))


def _lines(file: IO[bytes], most: int) -> Iterator[str]:
    """A line that is longer than any body would be held in memory as a whole."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise InputError(f"line {number} is longer than {most:,} bytes")
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise InputError(f"line {number} is not UTF-8 text") from None


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
        yield chunk


REVISION: Any = model_of(Revision)
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_PARTS: Final = 4000
"""Matching takes time with the square of the parts: beyond this a change is told as a whole."""


class Change(BaseModel):
    """A part of the text: the same in both, only in the old one, only in the new one, or put in other words."""

    kind: Literal["same", "removed", "added", "changed"]
    old: str = Field(description="The lines of the old revision.")
    new: str = Field(description="The lines of the new revision.")
    words: list[list[str]] = Field(
        description='Of changed lines: pairs of a kind ("same", "removed" or "added") and a text.'
    )


class Comparison(BaseModel):
    """Two revisions, and the way from one to the other."""

    old: REVISION | None = Field(description="Null for number 0: before the first.")
    new: REVISION
    changes: list[Change]


class CompareQuery(ScopeQuery):
    old: int = Field(ge=0, description="The number of a revision; 0 is before the first.")
    new: int = Field(ge=1)


_comparison = json_router("summaries")


@_comparison.get("/revisions/compare", summary="What changed between two revisions", responses=answers(Comparison, 404))
async def compare_revisions(query: Annotated[CompareQuery, Query()], caller: CallerParam) -> Response:
    """Line by line, and within changed lines word by word; with the memories that each revision absorbed."""
    return reply(compare(await caller.async_memory.summaries.revisions(query.scope), query.old, query.new))


def compare(revisions: Sequence[Revision], old: int, new: int) -> dict[str, Any]:
    """Compare two revisions by their numbers; 0 is the empty text before the first."""
    by_number = {revision.number: revision for revision in revisions}
    if missing := [number for number in (old, new) if number and number not in by_number]:
        raise NotFoundError(f"there is no revision {missing[0]} of this summary")
    before, after = by_number.get(old), by_number[new]
    return {"old": before, "new": after, "changes": list(_changes(before.text if before else "", after.text))}


def _changes(old: str, new: str) -> Iterator[dict[str, Any]]:
    for kind, left, right in _differences(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        words: list[tuple[str, str]] = []
        for part, before, after in _differences(_WORDS.findall(left), _WORDS.findall(right)):
            pairs = [("same", before)] if part == "same" else [("removed", before), ("added", after)]
            words += [pair for pair in pairs if pair[1]]
        yield {"kind": kind, "old": left, "new": right, "words": words if kind == "changed" else []}


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    kinds = {"equal": "same", "delete": "removed", "insert": "added", "replace": "changed"}
    if len(old) + len(new) > _MAX_PARTS:
        yield "changed", "".join(old), "".join(new)
        return
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield kinds[kind], "".join(old[start:end]), "".join(new[new_start:new_end])


ROUTERS: Final = (_health, _session)
V1_ROUTERS: Final = (_transfer, _jobs, _events, _webhooks, _keys, _audit, _comparison)
"""Below `/v1`."""
