"""mem0's REST paths, for programs that call them already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe.errors import NotFoundError
from eunoe.hosts.mem0 import Memory, MemoryNotFoundError
from eunoe.hosts.mem0.arguments import OwnerMissingError
from eunoe.server.access import Caller
from eunoe.server.openapi import answers
from eunoe.server.problems import problem
from eunoe.server.requests import CallerParam, IdParam, json_router, reply

router = json_router("mem0")
R = TypeVar("R")
_NO_OWNER: Final = "At least one identifier (user_id, agent_id, run_id) is required."
_UNKNOWN: Final = "Memory not found"


class Owners(BaseModel):
    """Whose memory. What else mem0 takes is left aside."""

    model_config = ConfigDict(extra="ignore")

    user_id: str | None = Field(None, examples=["anna"])
    agent_id: str | None = None
    run_id: str | None = None

    @property
    def ids(self) -> dict[str, Any]:
        given = {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}
        return {name: value for name, value in given.items() if value is not None}


class Mem0Message(BaseModel):
    role: str = Field("user", examples=["user"])
    content: str = Field(examples=["I moved to Rome with my dog Bruno."])


class Mem0AddBody(Owners):
    messages: str | Mem0Message | list[Mem0Message]
    metadata: dict[str, Any] | None = None
    infer: bool = Field(True, strict=True, description="False keeps the messages as they are.")
    expiration_date: str | None = Field(None, examples=["2030-12-31"], description="The last day on which it holds.")


class ListQuery(Owners):
    top_k: int | None = Field(None, ge=1, le=500)
    limit: int | None = Field(None, ge=1, le=500, description="The same.")

    @property
    def most(self) -> int | None:
        return self.top_k or self.limit


class Mem0SearchBody(ListQuery):
    query: str = Field(examples=["Where does she live?"])
    filters: dict[str, Any] | None = Field(None, examples=[{"user_id": "anna"}])
    threshold: float | None = Field(None, strict=True)


class Mem0UpdateBody(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str | None = Field(None, examples=["Anna lives in Rome."])
    data: str | None = Field(None, description="The same; older.")
    memory: str | None = Field(None, description="The same; older.")
    metadata: dict[str, Any] | None = None


class Mem0Results(BaseModel):
    results: list[dict[str, Any]]


class Mem0Note(BaseModel):
    message: str


@router.post("/memories", summary="mem0: create memories", responses=answers(Mem0Results, 502))
async def mem0_add(body: Mem0AddBody, caller: CallerParam) -> Response:
    """Learns from what was said, or keeps it word for word with `infer: false`."""
    ids, messages = _require(body.ids), body.model_dump()["messages"]
    more: dict[str, Any] = {"metadata": body.metadata, "infer": body.infer, "expiration_date": body.expiration_date}
    return reply(await _run(caller, lambda memory: memory.add(messages, **ids, **more)))


@router.get("/memories", summary="mem0: list memories", responses=answers(Mem0Results))
async def mem0_get_all(query: Annotated[ListQuery, Query()], caller: CallerParam) -> Response:
    """Of whoever is named, latest first."""
    ids = _require(query.ids)
    return reply(await _run(caller, lambda memory: memory.get_all(**ids, top_k=query.most)))


@router.delete("/memories", summary="mem0: delete the memories of somebody", responses=answers(Mem0Note))
async def mem0_delete_all(query: Annotated[Owners, Query()], caller: CallerParam) -> Response:
    """With the messages they were learned from."""
    ids = _require(query.ids)
    await _run(caller, lambda memory: memory.delete_all(**ids))
    return reply({"message": "All relevant memories deleted"})


@router.get("/memories/{id}", summary="mem0: get a memory", responses=answers(dict[str, Any], 404))
async def mem0_get(id: IdParam, caller: CallerParam) -> Response:
    """Its id stays the same when it is changed."""
    return reply(_not_empty(await _run(caller, lambda memory: memory.get(id))))


@router.put("/memories/{id}", summary="mem0: change a memory", responses=answers(Mem0Note, 404))
async def mem0_update(id: IdParam, body: Mem0UpdateBody, caller: CallerParam) -> Response:
    """The text, the metadata, or both."""
    text = body.text or body.data or body.memory
    return reply(await _run(caller, lambda memory: memory.update(id, text, body.metadata)))


@router.delete("/memories/{id}", summary="mem0: delete a memory", responses=answers(Mem0Note, 404))
async def mem0_delete(id: IdParam, caller: CallerParam) -> Response:
    """With all its versions."""
    await _run(caller, lambda memory: memory.delete(id))
    return reply({"message": "Memory deleted successfully"})


@router.get("/memories/{id}/history", summary="mem0: all versions", responses=answers(list[dict[str, Any]], 404))
async def mem0_history(id: IdParam, caller: CallerParam) -> Response:
    """Oldest first. Of a memory that was deleted, only when."""
    return reply(_not_empty(await _run(caller, lambda memory: memory.history(id))))


@router.post("/search", summary="mem0: search memories", responses=answers(Mem0Results))
async def mem0_search(body: Mem0SearchBody, caller: CallerParam) -> Response:
    """The ids stand in `filters`, or beside the query as they did before."""
    more: dict[str, Any] = {"top_k": body.most, "threshold": body.threshold or 0.0}
    return reply(await _run(caller, lambda memory: memory.search(body.query, filters=body.filters, **body.ids, **more)))


@router.post("/reset", summary="mem0: forget everything", responses=answers(Mem0Note))
async def mem0_reset(caller: CallerParam) -> Response:
    """The memories of all users, agents and runs that the key reaches. It needs the rights `admin` and `forget`."""
    caller.memory.guard.allow("admin")
    await _run(caller, lambda memory: memory.reset())
    return reply({"message": "All memories reset"})


@router.get("/entities", summary="mem0: whose memories there are", responses=answers(list[dict[str, Any]]))
async def mem0_entities(caller: CallerParam) -> Response:
    """Users, agents and runs, with how many memories each has."""
    return reply(await _run(caller, lambda memory: memory.entities()))


@router.delete("/entities/{kind}/{id}", summary="mem0: delete somebody", responses=answers(Mem0Note))
async def mem0_delete_entity(kind: Literal["user", "agent", "run"], id: IdParam, caller: CallerParam) -> Response:
    """All memories of a user, an agent or a run."""
    await _run(caller, lambda memory: memory.delete_all(**{f"{kind}_id": id}))
    return reply({"message": "Entity deleted"})


@router.post("/configure", summary="mem0: configure", responses={409: answers(None, 409)[409]})
async def mem0_configure(config: dict[str, Any]) -> Response:
    """Always refused: a server is set up where it is started."""
    hint = "Start the server with the models you want: `eunoe serve --help` names the options."
    return problem(409, "not_supported", "the server is not configured over HTTP; nothing was changed", hint=hint)


async def _run(caller: Caller, work: Callable[[Memory], R]) -> R:
    try:
        return await asyncio.to_thread(work, Memory(memory=caller.memory))
    except MemoryNotFoundError:
        raise NotFoundError(_UNKNOWN) from None
    except OwnerMissingError as error:
        raise HTTPException(400, f"{_NO_OWNER} {error}") from None


def _require(ids: dict[str, Any]) -> dict[str, Any]:
    if not ids:
        raise HTTPException(400, _NO_OWNER)
    return ids


def _not_empty(reply: R | None) -> R:
    if not reply:
        raise NotFoundError(_UNKNOWN)
    return reply
