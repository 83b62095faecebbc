"""Scopes and streams: what there is, how it is set up, what is cleaned up."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from eunoe.errors import InputError
from eunoe.model.result import RetentionReport
from eunoe.model.stream import Settings, Stream
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, ExactField, IdParam, KeysQuery, ScopeField, page_of, reply
from eunoe.server.routes.schemas import answers, model_of

router = json_router("streams")
STREAM: Any = model_of(Stream)
SETTINGS: Any = model_of(Settings)


class ScopesReply(BaseModel):
    """Scopes, as text."""

    scopes: list[str] = Field(examples=[["user=anna", "session=s1/user=anna"]])
    next: str


class StreamsReply(BaseModel):
    """Streams: settings, summary, what waits."""

    streams: list[STREAM]
    next: str


class PresetsReply(BaseModel):
    """The kinds of streams there are, and the settings each starts with."""

    presets: dict[str, SETTINGS]


class Done(BaseModel):
    """It is done; there is nothing to tell."""

    done: bool


class ConfigureBody(Body):
    scope: ScopeField
    preset: str = ""
    settings: dict[str, Any] = Field({}, examples=[{"consolidation_trigger": 8}])


class PresetBody(Body):
    like: str = Field("", description="A preset that a new one starts from.")
    settings: dict[str, Any] = Field({}, examples=[{"owner": ["team"]}])


class RetentionBody(ExactField, Body):
    scope: ScopeField
    max_age_days: float | None = None
    max_idle_days: float | None = None
    keep_best: int | None = None
    dry_run: bool = Field(False, description="Only say what would be archived.")


class IncognitoBody(Body):
    scope: ScopeField
    on: bool = True


@router.get("/scopes", summary="Scopes that hold something", responses=answers(ScopesReply))
async def list_scopes(query: Annotated[KeysQuery, Query()], caller: CallerParam) -> Response:
    """All that the key may see, or those with the keys that the query names, such as `?user=anna`."""
    scopes = await caller.async_memory.scopes(**query.keys)
    return reply(page_of("scopes", scopes, query, lambda scope: scope.text))


@router.get("/streams", summary="Streams and their settings", responses=answers(StreamsReply))
async def list_streams(query: Annotated[KeysQuery, Query()], caller: CallerParam) -> Response:
    """All that the key may see, or those with the keys that the query names, such as `?agent=cook`."""
    streams = await caller.async_memory.streams.list(**query.keys)
    return reply(page_of("streams", streams, query, lambda stream: stream.scope.text))


@router.patch("/streams", summary="Change the settings of a stream", responses=answers(STREAM, 409))
async def configure_stream(body: ConfigureBody, caller: CallerParam) -> Response:
    """Makes it if it is new: so an agent gets a shard."""
    return reply(await caller.async_memory.streams.configure(body.scope, **_changes(body.settings, preset=body.preset)))


@router.get("/presets", summary="The kinds of streams", responses=answers(PresetsReply))
async def list_presets(caller: CallerParam) -> Response:
    """And the settings that each starts with."""
    return reply({"presets": await caller.async_memory.streams.presets()})


@router.put("/presets/{name}", summary="Change or make a kind of stream", responses=answers(SETTINGS, 409))
async def set_preset(name: IdParam, body: PresetBody, caller: CallerParam) -> Response:
    """Streams of that kind that were not changed by hand follow it."""
    return reply(await caller.async_memory.streams.set_preset(name, **_changes(body.settings, like=body.like)))


@router.post("/retention", summary="Archive what is old or unused", responses=answers(model_of(RetentionReport), 404))
async def apply_retention(body: RetentionBody, caller: CallerParam) -> Response:
    """Never what is pinned. What is not given is taken from the stream's own settings."""
    return reply(await caller.async_memory.streams.apply_retention(body.scope, **body.given("scope")))


@router.post("/incognito", summary="Keep nothing of a session", responses=answers(Done, 409))
async def set_incognito(body: IncognitoBody, caller: CallerParam) -> Response:
    """Marks a session as one of which nothing is kept, or takes the mark off."""
    await caller.async_memory.streams.set_incognito(body.scope, body.on)
    return reply({"done": True})


def _changes(settings: dict[str, Any], **named: str) -> dict[str, Any]:
    if doubled := settings.keys() & named.keys():
        raise InputError(f"{', '.join(doubled)} is not a setting: it stands beside `settings`")
    return settings | named
