"""Keys over HTTP: for whoever has the right `admin`, within their own tenant, scopes and rights."""

from datetime import timedelta

from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.model.arguments import RIGHTS, Right
from eunoe.server.durations import parse_duration, parse_end
from eunoe.server.keys import Key
from eunoe.server.routes.common import Body, CallerParam, ScopesField, ServicesParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers, model_of

router = json_router("keys")


class KeyBody(Body):
    name: str = Field(max_length=200, examples=["Anna's laptop"])
    tenant: str | None = Field(None, description="Else the tenant of the key that asks.", examples=["acme"])
    scopes: ScopesField = []
    rights: list[Right] = Field(list(RIGHTS), examples=[["read", "write"]])
    expires: str = Field("", description="A time, or from now on: 30d, 12h. Empty for never.", examples=["30d"])


class RotationBody(Body):
    overlap: str = Field("", description="How long the old secret still counts.", examples=["1h"])


class KeyList(BaseModel):
    """All keys that can do no more than the one that asks."""

    items: list[model_of(Key)]  # type: ignore[valid-type]


class NewKey(BaseModel):
    """A key, and its text, which is shown this once."""

    key: model_of(Key)  # type: ignore[valid-type]
    token: str = Field(description="What to send as `Authorization: Bearer`.")


@router.get("/keys", summary="All keys, newest first", responses=answers(KeyList))
def list_keys(caller: CallerParam, services: ServicesParam) -> Response:
    return reply({"items": services.keys.list(by=caller.key)})


@router.post("/keys", summary="Make a key", status_code=201, responses=answers(NewKey, status=201))
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


@router.post("/keys/{id}/rotate", summary="Give a key a new secret", responses=answers(NewKey, 404))
def rotate_key(id: str, body: RotationBody, caller: CallerParam, services: ServicesParam) -> Response:
    """The old secret ends at once, or after an overlap; sessions of the inspector end at once."""
    overlap = parse_duration(body.overlap, "overlap") if body.overlap else timedelta()
    key, text = services.keys.rotate(id, overlap=overlap, by=caller.key)
    return reply({"key": key, "token": text})


@router.delete("/keys/{id}", summary="Revoke a key", status_code=204, responses=answers(None, 404, status=204))
def revoke_key(id: str, caller: CallerParam, services: ServicesParam) -> Response:
    services.keys.revoke(id, by=caller.key)
    return Response(status_code=204)
