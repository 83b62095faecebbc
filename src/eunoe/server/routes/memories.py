"""Memories: facts and observations, one by one."""

import json
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.responses import Response

from eunoe.errors import InputError
from eunoe.memory.groups import Access
from eunoe.model.arguments import AtomKind, Kind, show
from eunoe.server.requests import OnceParam, json_router
from eunoe.server.routes.common import (
    Body,
    CallerParam,
    ExactField,
    IdParam,
    PageFields,
    ScopeBody,
    ScopeField,
    ScopeQuery,
    TimeField,
    page_of,
    reply,
)
from eunoe.server.routes.schemas import ITEM, RECEIPT, AnyItems, ItemPage, Items, Receipts, Versions, answers, model_of

router = json_router("memories")
ACCESS: Any = model_of(Access)


class _ItemShape(BaseModel):
    """What is known of a memory beside its words."""

    model_config = ConfigDict(extra="forbid", title="NewMemory")

    text: str = Field(min_length=1)
    kind: AtomKind = "fact"
    id: str = Field("", max_length=1024)
    label: str = Field("", max_length=1024)
    files: list[str] = []
    pages: list[str] = []
    people: list[str] = []
    source: list[str] = Field([], description="Ids of the messages it rests on.")
    time: TimeField | None = None
    valid_from: TimeField | None = None
    valid_to: TimeField | None = None
    pinned: bool = False
    metadata: dict[str, Any] | None = None
    vector: list[float] | list[list[float]] | None = Field(None, description="A vector, or several that lead to it.")


ItemField = Annotated[
    str | dict[str, Any],
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _ItemShape.model_json_schema()]}),
]
"""The memory checks it, as it does for every caller; here it is only described."""


class MemoriesBody(Body):
    scope: ScopeField
    items: list[ItemField] = Field(examples=[["Anna is allergic to peanuts."]])
    source_scopes: list[ScopeField] = []
    again: bool = Field(False, description="Keep them even if they were forgotten before.")
    replace: bool = Field(False, description="An id that is there already names the new version from now on.")


class ReadQuery(ExactField, ScopeQuery):
    """Where a memory is looked for."""


class ListQuery(PageFields, ReadQuery):
    kinds: list[Kind] = []
    labels: list[str] = []
    retired: bool = Field(False, description="What was superseded, archived or retracted too.")
    newest: bool = Field(False, description="Newest first instead of oldest first.")
    known_at: str | None = Field(None, description="What the store held at that moment.")
    where: str | None = Field(
        None, description="Conditions on metadata as in `recall`, as JSON.", examples=['{"team":"red"}']
    )
    offset: int = Field(0, ge=0, description="So many that fit are passed over first.")

    @property
    def conditions(self) -> dict[str, Any]:
        """What `where` says, as the verb takes it."""
        if self.where is None:
            return {}
        try:
            return {"where": json.loads(self.where)}
        except ValueError:
            raise InputError(f"where is {show(self.where)}: it must be a JSON object") from None


class UpdateBody(Body):
    scope: ScopeField
    text: str = Field("", examples=["Anna lives in Rome."])
    kind: AtomKind = "fact"
    label: str = ""
    files: list[str] = []
    pages: list[str] = []
    people: list[str] = []
    source: list[str] = []
    source_scopes: list[ScopeField] = []
    time: TimeField | None = None
    valid_from: TimeField | None = None
    valid_to: TimeField | None = None
    pinned: bool = False
    metadata: dict[str, Any] = {}


class AccessCounts(BaseModel):
    """By id, how often it was recalled and when last."""

    counts: dict[str, ACCESS]


class PinBody(Body):
    scope: ScopeField
    pinned: bool = True


class ExpireBody(Body):
    scope: ScopeField
    ids: list[str] = Field(examples=[["b1946ac9"]])
    at: TimeField | None = Field(description="Until when they hold; null for ever.")


class FilesBody(PageFields, ExactField, Body):
    scope: ScopeField
    paths: list[str] = Field(examples=[["src/app.py", "docs/"]])


class IdsBody(ExactField, Body):
    scope: ScopeField
    ids: list[str]


@router.post("/memories", summary="Keep facts or observations", responses=answers(Receipts, 409, 507))
async def remember(body: MemoriesBody, caller: CallerParam, once: OnceParam) -> Response:
    """All of them are kept or, on an error, none. An item is a text, or an object with `text` and whatever else is
    known: `kind`, `id`, `label`, `files`, `pages`, `people`, `source`, `time`, `valid_from`, `valid_to`, `pinned`,
    `metadata`, `vector`."""

    async def work() -> dict[str, Any]:
        given = body.given("scope", "items")
        return {"receipts": await caller.async_memory.remember_many(body.scope, body.items, **given)}

    return await once(work)


@router.get("/memories", summary="List what a scope holds", responses=answers(ItemPage))
async def list_memories(query: Annotated[ListQuery, Query()], caller: CallerParam) -> Response:
    """A page at a time."""
    return reply(await caller.async_memory.list(query.scope, **query.given("scope", "where"), **query.conditions))


@router.get("/memories/{id}", summary="Get one message or memory", responses=answers(ITEM, 404))
async def get_memory(id: IdParam, query: Annotated[ReadQuery, Query()], caller: CallerParam) -> Response:
    """Closed ones too: `retired` says so."""
    return reply(await caller.async_memory.get(query.scope, id, exact=query.exact))


@router.get("/memories/{id}/history", summary="All versions of a memory", responses=answers(Versions, 404))
async def get_history(id: IdParam, query: Annotated[ReadQuery, Query()], caller: CallerParam) -> Response:
    """Oldest first."""
    return reply({"versions": await caller.async_memory.history(query.scope, id, exact=query.exact)})


@router.patch("/memories/{id}", summary="Correct a memory", responses=answers(RECEIPT, 404, 409, 507))
async def update_memory(id: IdParam, body: UpdateBody, caller: CallerParam) -> Response:
    """Closes it and puts a new one in its place; the old one stays readable in its history."""
    return reply(await caller.async_memory.update(body.scope, id, **body.given("scope")))


@router.post("/expire", summary="Set until when memories hold", responses=answers(Receipts, 404, 409))
async def expire_memories(body: ExpireBody, caller: CallerParam) -> Response:
    """In place, without a new version. From then on `recall` leaves them out unless it asks for `expired` ones."""
    return reply({"receipts": await caller.async_memory.expire(body.scope, body.ids, body.at)})


@router.post("/memories/{id}/pin", summary="Pin a memory", responses=answers(RECEIPT, 404, 409))
async def pin_memory(id: IdParam, body: PinBody, caller: CallerParam) -> Response:
    """No clean-up takes what is pinned."""
    return reply(await caller.async_memory.pin(body.scope, id, body.pinned))


@router.post("/memories/{id}/unarchive", summary="Bring an archived memory back", responses=answers(RECEIPT, 404, 409))
async def unarchive_memory(id: IdParam, body: ScopeBody, caller: CallerParam) -> Response:
    """A clean-up had put it aside."""
    return reply(await caller.async_memory.streams.unarchive(body.scope, id))


@router.post("/by-ids", summary="Get several messages or memories", responses=answers(AnyItems))
async def get_memories(body: IdsBody, caller: CallerParam) -> Response:
    """Those that are there, in the order of their ids; closed ones too."""
    return reply({"items": await caller.async_memory.get_many(body.scope, body.ids, exact=body.exact)})


@router.post("/by-files", summary="What is remembered about files", responses=answers(Items))
async def list_by_files(body: FilesBody, caller: CallerParam) -> Response:
    """About these files, or files in these folders; latest first."""
    items = await caller.async_memory.by_files(body.scope, body.paths, exact=body.exact)
    return reply(page_of("items", items, body, lambda atom: atom.id))


@router.post("/access-counts", summary="How often memories were recalled", responses=answers(AccessCounts))
async def get_access_counts(body: IdsBody, caller: CallerParam) -> Response:
    """For each id, how many times and when last; 0 for one that never was."""
    counts = await caller.async_memory.admin.access_counts(body.scope, body.ids, exact=body.exact)
    return reply({"counts": {id: access._asdict() for id, access in counts.items()}})
