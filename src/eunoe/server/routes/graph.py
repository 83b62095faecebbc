"""The entity graph: which names stand in the same memories."""

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from eunoe.errors import LlmError
from eunoe.model.result import GraphReport, GraphSize, Neighbourhood
from eunoe.server.problems import NoLlmError
from eunoe.server.requests import json_router
from eunoe.server.routes.common import Body, CallerParam, ExactField, ScopeField, ScopeQuery, reply
from eunoe.server.routes.schemas import answers, model_of

router = json_router("graph")


class GraphSizeQuery(ExactField, ScopeQuery):
    """Whose graph is meant."""


class GraphQuery(GraphSizeQuery):
    entity: str = Field("", description="Without one, the entities that are tied to most.")
    depth: int = Field(1, ge=1, description="How many steps from passage to passage to go.")
    limit: int = Field(50, ge=1, description="At most so many other entities, and so many passages.")


class ExtractGraphBody(Body):
    scope: ScopeField
    limit: int | None = Field(None, ge=1, description="At most so many passages.")
    ask: bool = Field(True, description="False: only what metadata says is taken in.")


@router.get("/graph", summary="What stands around an entity", responses=answers(model_of(Neighbourhood), 404))
async def get_graph(query: Annotated[GraphQuery, Query()], caller: CallerParam) -> Response:
    """The entities in the same passages, how strongly they are tied, and the passages."""
    return reply(await caller.async_memory.graph.neighbours(query.scope, **query.given("scope")))


@router.get("/graph/size", summary="How much the graph holds", responses=answers(model_of(GraphSize)))
async def get_graph_size(query: Annotated[GraphSizeQuery, Query()], caller: CallerParam) -> Response:
    """Its passages, entities and triples."""
    return reply(await caller.async_memory.graph.size(query.scope, exact=query.exact))


@router.post("/graph/extract", summary="Have a model read passages", responses=answers(model_of(GraphReport), 409, 502))
async def extract_graph(body: ExtractGraphBody, caller: CallerParam) -> Response:
    """For entities and triples; the graph takes both in. A passage whose answer cannot be used stays due."""
    try:
        return reply(await caller.async_memory.graph.extract(body.scope, **body.given("scope")))
    except LlmError as error:
        if caller.memory.llm is None:
            raise NoLlmError(str(error)) from None
        raise
