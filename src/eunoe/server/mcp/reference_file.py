"""Import of the file in which the reference memory server keeps its graph: JSON, one entity or relation a line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from eunoe.errors import InputError
from eunoe.model.scope import Scope
from eunoe.server.mcp.arguments import check_arguments
from eunoe.server.mcp.knowledge_graph import KnowledgeGraph
from eunoe.server.mcp.reference_tools import ENTITY_SCHEMA, RELATION_SCHEMA

if TYPE_CHECKING:
    from eunoe.memory import Memory


class GraphImport(NamedTuple):
    """What an import brought in."""

    entities: int
    relations: int
    observations: int
    known: int
    """Entities and relations that were there already. Observations that such an entity lacked were added."""
    skipped: tuple[int, ...]
    """Numbers of the lines that hold neither."""


def import_graph(memory: Memory, scope: Scope, lines: Iterable[str]) -> GraphImport:
    """Read the file. Read twice it changes nothing."""
    entities, relations, skipped = _parse(lines)
    created = KnowledgeGraph(memory, scope).create_entities(entities)
    graph = KnowledgeGraph(memory, scope)  # with those that were just created
    added = graph.add_observations(
        {"entityName": entity["name"], "contents": entity["observations"]} for entity in entities
    )
    tied = graph.create_relations(relations, strict=False)
    observations = sum(len(entity["observations"]) for entity in created)
    observations += sum(len(each["addedObservations"]) for each in added)
    rest = len(entities) - len(created) + len(relations) - len(tied)
    return GraphImport(len(created), len(tied), observations, rest, skipped)


def _parse(lines: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[int, ...]]:
    found: dict[str, list[dict[str, Any]]] = {"entity": [], "relation": []}
    schemas = {"entity": ENTITY_SCHEMA, "relation": RELATION_SCHEMA}
    skipped = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            node = json.loads(line)
            kind = node.pop("type")
            found[kind].append(check_arguments(schemas[kind], node))
        except (ValueError, LookupError, TypeError, AttributeError, InputError):
            skipped.append(number)
    return found["entity"], found["relation"], tuple(skipped)
