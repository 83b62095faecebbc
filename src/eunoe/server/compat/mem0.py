"""mem0's REST paths, for programs that call them already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from eunoe.model.scope import Scope
from eunoe.server.access import Caller
from eunoe.server.compat.mem0_filters import OWNERS, names_owner
from eunoe.server.compat.mem0_memory import DEFAULT_COUNT, Mem0Memory
from eunoe.server.problems import problem
from eunoe.server.routes.common import CallerParam, IdParam, reply
from eunoe.server.routes.json_request import json_router
from eunoe.server.routes.schemas import answers

router = json_router("mem0")
R = TypeVar("R")
_NO_OWNER: Final = "At least one identifier (user_id, agent_id, run_id) is required."


class Owners(BaseModel):
    """Whose memory. What else mem0 takes is left aside."""

    model_config = ConfigDict(extra="ignore")

    user_id: str | None = Field(None, examples=["anna"])
    agent_id: str | None = None
    run_id: str | None = None

    @property
    def owners(self) -> dict[str, str]:
        return {name: value for name in OWNERS if (value := getattr(self, name))}


class Mem0Message(BaseModel):
    role: str = Field("user", examples=["user"])
    content: str = Field(examples=["I moved to Rome with my dog Bruno."])


class Mem0AddBody(Owners):
    messages: str | Mem0Message | list[Mem0Message]
    metadata: dict[str, Any] | None = None
    infer: bool = Field(True, strict=True, description="False keeps the messages as they are.")


class Mem0SearchBody(Owners):
    query: str = Field(examples=["Where does she live?"])
    filters: dict[str, Any] | None = Field(None, examples=[{"user_id": "anna"}])
    top_k: int | None = Field(None, ge=1, le=500)
    limit: int | None = Field(None, ge=1, le=500)
    threshold: float | None = Field(None, strict=True)


class ListQuery(Owners):
    top_k: int | None = Field(None, ge=1, le=500)
    limit: int | None = Field(None, ge=1, le=500)


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
    owner = _owner(body.owners)
    given = body.messages if isinstance(body.messages, list) else [body.messages]
    messages = [Mem0Message(role="user", content=each) if isinstance(each, str) else each for each in given]
    said = [message.model_dump() for message in messages]
    added = await _run(caller, lambda memory: memory.add(owner, said, body.metadata or {}, body.infer))
    return reply({"results": added})


@router.get("/memories", summary="mem0: list memories", responses=answers(Mem0Results))
async def mem0_get_all(query: Annotated[ListQuery, Query()], caller: CallerParam) -> Response:
    """Of whoever is named, latest first."""
    owner, count = _owner(query.owners), query.top_k or query.limit or DEFAULT_COUNT
    return reply({"results": await _run(caller, lambda memory: memory.get_all(owner, count))})


@router.delete("/memories", summary="mem0: delete the memories of somebody", responses=answers(Mem0Note))
async def mem0_delete_all(query: Annotated[Owners, Query()], caller: CallerParam) -> Response:
    """With the messages they were learned from."""
    owner = _owner(query.owners)
    await _run(caller, lambda memory: memory.delete_all(owner))
    return reply({"message": "All relevant memories deleted"})


@router.get("/memories/{id}", summary="mem0: get a memory", responses=answers(dict[str, Any], 404))
async def mem0_get(id: IdParam, caller: CallerParam) -> Response:
    """Its id stays the same when it is changed."""
    return reply(await _run(caller, lambda memory: memory.get(id)))


@router.put("/memories/{id}", summary="mem0: change a memory", responses=answers(Mem0Note, 404))
async def mem0_update(id: IdParam, body: Mem0UpdateBody, caller: CallerParam) -> Response:
    """The text, the metadata, or both."""
    text = body.text or body.data or body.memory
    await _run(caller, lambda memory: memory.update(id, text, body.metadata))
    return reply({"message": "Memory updated successfully!"})


@router.delete("/memories/{id}", summary="mem0: delete a memory", responses=answers(Mem0Note, 404))
async def mem0_delete(id: IdParam, caller: CallerParam) -> Response:
    """With all its versions."""
    await _run(caller, lambda memory: memory.delete(id))
    return reply({"message": "Memory deleted successfully"})


@router.get("/memories/{id}/history", summary="mem0: all versions", responses=answers(list[dict[str, Any]], 404))
async def mem0_history(id: IdParam, caller: CallerParam) -> Response:
    """Oldest first."""
    return reply(await _run(caller, lambda memory: memory.history(id)))


@router.post("/search", summary="mem0: search memories", responses=answers(Mem0Results))
async def mem0_search(body: Mem0SearchBody, caller: CallerParam) -> Response:
    """The ids stand in `filters`, or beside the query as they did before."""
    filters = {**(body.filters or {}), **body.owners}
    if not names_owner(filters):
        raise HTTPException(400, _NO_OWNER)
    count = body.top_k or body.limit or DEFAULT_COUNT
    return reply(
        {"results": await _run(caller, lambda memory: memory.search(filters, body.query, count, body.threshold or 0.0))}
    )


@router.post("/reset", summary="mem0: forget everything", responses=answers(Mem0Note))
async def mem0_reset(caller: CallerParam) -> Response:
    """All that the key reaches. It needs the rights `admin` and `forget`."""
    caller.memory.guard.allow("admin")
    await _run(caller, lambda memory: memory.delete_all({}))
    return reply({"message": "All memories reset"})


@router.get("/entities", summary="mem0: whose memories there are", responses=answers(list[dict[str, Any]]))
async def mem0_entities(caller: CallerParam) -> Response:
    """Users, agents and runs, with how many memories each has."""
    return reply(await _run(caller, lambda memory: memory.entities()))


@router.delete("/entities/{kind}/{id}", summary="mem0: delete somebody", responses=answers(Mem0Note))
async def mem0_delete_entity(kind: Literal["user", "agent", "run"], id: IdParam, caller: CallerParam) -> Response:
    """All memories of a user, an agent or a run."""
    await _run(caller, lambda memory: memory.delete_all(_owner({f"{kind}_id": id})))
    return reply({"message": "Entity deleted"})


@router.post("/configure", summary="mem0: configure", responses={409: answers(None, 409)[409]})
async def mem0_configure(config: dict[str, Any]) -> Response:
    """Always refused: a server is set up where it is started."""
    hint = "Start the server with the models you want: `eunoe serve --help` names the options."
    return problem(409, "not_supported", "the server is not configured over HTTP; nothing was changed", hint=hint)


async def _run(caller: Caller, work: Callable[[Mem0Memory], R]) -> R:
    return await asyncio.to_thread(work, Mem0Memory(caller.memory))


def _owner(given: Mapping[str, str]) -> Scope:
    if not given:
        raise HTTPException(400, _NO_OWNER)
    return Scope(**{OWNERS[name]: value for name, value in given.items()})
