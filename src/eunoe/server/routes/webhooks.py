"""Webhooks: who is told of what memory learns, and the log of it."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.json import json_value
from eunoe.server.access import Caller
from eunoe.server.routes.common import Body, CallerParam, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of
from eunoe.server.webhook_delivery import check_url
from eunoe.server.webhooks import Delivery, Webhook

router = json_router("webhooks")


WEBHOOK: Any = model_of(Webhook)


class WebhookBody(Body):
    url: str = Field(max_length=2000, examples=["https://example.org/memory"])
    with_text: bool = Field(False, description="Send the words too, not only which memories there are.")


class WebhookList(BaseModel):
    """All webhooks of the tenant."""

    items: list[WEBHOOK]


class NewWebhook(WEBHOOK):  # type: ignore[misc]
    """A webhook and its secret."""

    secret: str = Field(description="What its requests are signed with; shown this once.")


class DeliveryPage(BaseModel):
    """A part of the log."""

    items: list[model_of(Delivery)]  # type: ignore[valid-type]
    next: str = Field(description="Pass it as `after` to read on; empty if there is no more.")


@router.get("/webhooks", summary="All webhooks", responses=answers(WebhookList))
async def list_webhooks(caller: CallerParam, services: ServicesParam) -> Response:
    return reply({"items": services.webhooks.list(_check(caller))})


@router.post("/webhooks", summary="Have an address told", status_code=201, responses=answers(NewWebhook, status=201))
async def create_webhook(body: WebhookBody, caller: CallerParam, services: ServicesParam) -> Response:
    """It is told what the key that makes it may read. The reply has the secret that requests are signed with, as
    [Standard Webhooks](https://www.standardwebhooks.com) say; it is shown this once."""
    tenant = _check(caller)
    check_url(body.url, allow_private=tenant is None)
    webhook, secret = services.webhooks.create(caller.key.id, caller.key.tenant, body.url, body.with_text)
    return reply({**json_value(webhook), "secret": secret}, 201)


@router.get("/webhooks/{id}", summary="One webhook", responses=answers(WEBHOOK, 404))
async def get_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    return reply(services.webhooks.get(id, _check(caller)))


@router.post("/webhooks/{id}/resume", summary="Go on with one that was stopped", responses=answers(WEBHOOK, 404))
async def resume_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    return reply(services.webhooks.resume(id, _check(caller)))


@router.delete("/webhooks/{id}", summary="Delete a webhook", status_code=204, responses=answers(None, 404, status=204))
async def delete_webhook(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    services.webhooks.delete(id, _check(caller))
    return Response(status_code=204)


@router.get("/webhooks/{id}/deliveries", summary="What was sent, newest first", responses=answers(DeliveryPage, 404))
async def list_deliveries(
    id: str,
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
) -> Response:
    items, more = services.webhooks.deliveries(id, _check(caller), limit, after)
    return reply({"items": items, "next": more})


def _check(caller: Caller) -> str | None:
    """Refuse who may not look after webhooks; return the tenant, or None for who sees those of all."""
    caller.memory.guard.allow("admin")
    return caller.key.tenant or None
