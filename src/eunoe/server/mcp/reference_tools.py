"""The profile `reference`: the nine tools of the reference memory server, with its names, shapes and messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from eunoe.model.arguments import Right
from eunoe.server.mcp.knowledge_graph import KnowledgeGraph
from eunoe.server.mcp.tool import Answer, Tool, ToolCall, as_json

GRAPH_URI: Final = "memory://knowledge-graph"
_MAX_QUERY_CHARACTERS: Final = 2048
_TURNS: Final = tuple(threading.Lock() for _ in range(64))
"""Two graphs seldom share one."""


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _strings(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _array(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_ENTITIES: Final = _array(
    name=_string("The name of the entity"),
    entityType=_string("The type of the entity"),
    observations=_strings("An array of observation contents associated with the entity"),
)
_RELATIONS: Final = _array(
    **{
        "from": _string("The name of the entity where the relation starts"),
        "to": _string("The name of the entity where the relation ends"),
        "relationType": _string("The type of the relation"),
    }
)
ENTITY_SCHEMA: Final = _ENTITIES["items"]
RELATION_SCHEMA: Final = _RELATIONS["items"]
_GRAPH: Final = _object(entities=_ENTITIES, relations=_RELATIONS)
_DELETION: Final = _object(success={"type": "boolean"}, message={"type": "string"})


def _graph(call: ToolCall) -> KnowledgeGraph:
    return KnowledgeGraph(call.memory, call.scope)


def _graph_answer(graph: dict[str, Any]) -> Answer:
    return Answer(as_json(graph), graph)


def _create_entities(call: ToolCall) -> Answer:
    created = _graph(call).create_entities(call.arguments["entities"])
    return Answer(as_json(created), {"entities": created})


def _create_relations(call: ToolCall) -> Answer:
    created = _graph(call).create_relations(call.arguments["relations"])
    return Answer(as_json(created), {"relations": created})


def _add_observations(call: ToolCall) -> Answer:
    results = _graph(call).add_observations(call.arguments["observations"])
    return Answer(as_json(results), {"results": results})


def _delete_entities(call: ToolCall) -> Answer:
    names = call.arguments["entityNames"]
    return _deletion_answer("entities", len(_graph(call).delete_entities(names)), len(names))


def _delete_observations(call: ToolCall) -> Answer:
    deletions = call.arguments["deletions"]
    asked = sum(len(each["observations"]) for each in deletions)
    return _deletion_answer("observations", _graph(call).delete_observations(deletions), asked)


def _delete_relations(call: ToolCall) -> Answer:
    relations = call.arguments["relations"]
    return _deletion_answer("relations", _graph(call).delete_relations(relations), len(relations))


def _deletion_answer(what: str, deleted: int, asked: int) -> Answer:
    """To have deleted nothing is no success."""
    message = f"{what.capitalize()} deleted successfully"
    if deleted < asked or not deleted:
        message = f"Deleted {deleted} of {asked} {what}; the rest was not found: read_graph shows what there is"
    return Answer(message, {"success": deleted > 0, "message": message}, is_error=not deleted)


def _read_graph(call: ToolCall) -> Answer:
    return _graph_answer(_graph(call).read())


def _search_nodes(call: ToolCall) -> Answer:
    return _graph_answer(_graph(call).search(call.text("query")))


def _open_nodes(call: ToolCall) -> Answer:
    return _graph_answer(_graph(call).open(call.arguments["names"]))


def _in_turn(change: Callable[[ToolCall], Answer]) -> Callable[[ToolCall], Answer]:
    """Changes of one graph come one after the other: each begins by reading what is there."""

    def run(call: ToolCall) -> Answer:
        with _TURNS[hash(call.scope) % len(_TURNS)]:
            return change(call)

    return run


def _tool(
    run: Callable[[ToolCall], Answer], description: str, right: Right, result: dict[str, Any], **arguments: Any
) -> Tool:
    """A tool that is named as its function."""
    name = run.__name__.strip("_")
    return Tool(
        name=name,
        title=name.replace("_", " ").title(),
        description=description,
        run=run if right == "read" else _in_turn(run),
        right=right,
        arguments=arguments,
        required=tuple(arguments),
        result=result,
        is_destructive=right == "forget",
        is_idempotent=right != "write",
        changes_graph=right != "read",
    )


REFERENCE_TOOLS: Final = (
    _tool(
        _create_entities,
        "Create multiple new entities in the knowledge graph",
        "write",
        _object(entities=_ENTITIES),
        entities=_ENTITIES,
    ),
    _tool(
        _create_relations,
        "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
        "write",
        _object(relations=_RELATIONS),
        relations=_RELATIONS,
    ),
    _tool(
        _add_observations,
        "Add new observations to existing entities in the knowledge graph",
        "write",
        _object(results=_array(entityName={"type": "string"}, addedObservations=_strings("Those that were new"))),
        observations=_array(
            entityName=_string("The name of the entity to add the observations to"),
            contents=_strings("An array of observation contents to add"),
        ),
    ),
    _tool(
        _delete_entities,
        "Delete multiple entities and their associated relations from the knowledge graph",
        "forget",
        _DELETION,
        entityNames=_strings("An array of entity names to delete"),
    ),
    _tool(
        _delete_observations,
        "Delete specific observations from entities in the knowledge graph",
        "forget",
        _DELETION,
        deletions=_array(
            entityName=_string("The name of the entity containing the observations"),
            observations=_strings("An array of observations to delete"),
        ),
    ),
    _tool(
        _delete_relations,
        "Delete multiple relations from the knowledge graph",
        "forget",
        _DELETION,
        relations={**_RELATIONS, "description": "An array of relations to delete"},
    ),
    _tool(_read_graph, "Read the entire knowledge graph", "read", _GRAPH),
    _tool(
        _search_nodes,
        "Search for nodes in the knowledge graph based on a query",
        "read",
        _GRAPH,
        query={
            **_string("The search query to match against entity names, types, and observation content"),
            "maxLength": _MAX_QUERY_CHARACTERS,
        },
    ),
    _tool(
        _open_nodes,
        "Open specific nodes in the knowledge graph by their names",
        "read",
        _GRAPH,
        names=_strings("An array of entity names to retrieve"),
    ),
)
