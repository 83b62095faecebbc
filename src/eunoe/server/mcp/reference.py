"""The profile `reference`: the nine tools of the reference memory server, with its names, shapes and messages.

Each entity, relation and observation is one atom with an id made from what it says: whoever writes the same writes it
once, from however many processes.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import Right, show
from eunoe.model.scope import Scope
from eunoe.server.mcp.tool import Answer, Tool, ToolCall, as_json, check_arguments, object_schema

if TYPE_CHECKING:
    from eunoe.memory import Memory

GRAPH_URI: Final = "memory://knowledge-graph"
ENTITY: Final = "graph_entity"
OBSERVATION: Final = "graph_observation"
RELATION: Final = "graph_relation"
_LABELS: Final = (ENTITY, OBSERVATION, RELATION)
_NODE: Final = "graph_node"
"""The field of an atom's metadata that holds the entity, observation or relation itself."""
_PAGE: Final = 5000
_MAX_QUERY_CHARACTERS: Final = 2048
_TURNS: Final = tuple(threading.Lock() for _ in range(64))
"""Two graphs seldom share one."""

Node = Mapping[str, Any]


class KnowledgeGraph:
    """The graph of one scope as it stood when it was read, and the changes to it."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        from eunoe.memory import iterate_atoms  # loads the engine

        self._memory = memory
        self._scope = scope
        self._ids: dict[str, dict[str, Node]] = {label: {} for label in _LABELS}
        for atom in iterate_atoms(memory, scope, kinds=["fact"], labels=_LABELS, exact=True):
            if node := atom.metadata.get(_NODE):
                self._ids[atom.label][atom.id] = node

    @property
    def names(self) -> dict[str, Node]:
        return {node["name"]: node for node in self._ids[ENTITY].values()}

    def read(self) -> dict[str, Any]:
        """The whole graph."""
        observations: dict[str, list[str]] = {}
        for node in self._ids[OBSERVATION].values():
            observations.setdefault(node["entityName"], []).append(node["content"])
        entities = [{**node, "observations": observations.get(name, [])} for name, node in self.names.items()]
        return {"entities": entities, "relations": [dict(node) for node in self._ids[RELATION].values()]}

    def search(self, query: str) -> dict[str, Any]:
        """The entities with these words in their name, type or observations, and the relations they are part of."""
        words = query.lower()
        return self._part(
            lambda entity: any(
                words in text.lower() for text in (entity["name"], entity["entityType"], *entity["observations"])
            )
        )

    def open(self, names: Iterable[str]) -> dict[str, Any]:
        wanted = set(names)
        return self._part(lambda entity: entity["name"] in wanted)

    def _part(self, is_wanted: Callable[[Node], bool]) -> dict[str, Any]:
        whole = self.read()
        entities = [entity for entity in whole["entities"] if is_wanted(entity)]
        names = {entity["name"] for entity in entities}
        relations = [each for each in whole["relations"] if each["from"] in names or each["to"] in names]
        return {"entities": entities, "relations": relations}

    def create_entities(self, entities: Iterable[Node]) -> list[dict[str, Any]]:
        """Those whose name is new, each once, with their observations."""
        known, new = self.names, dict[str, Node]()
        for entity in entities:
            if entity["name"] not in known:
                new.setdefault(entity["name"], entity)
        kept = self._keep(node for entity in new.values() for node in _entity_nodes(entity))
        return [dict(entity) for entity in new.values() if node_id(ENTITY, entity) in kept]

    def create_relations(self, relations: Iterable[Node], strict: bool = True) -> list[dict[str, Any]]:
        """Those that are new. If strict, both ends must be there."""
        wanted = list(relations)
        if strict:
            self._check_names(name for each in wanted for name in (each["from"], each["to"]))
        new = self._new(RELATION, wanted)
        kept = self._keep((RELATION, node) for node in new)
        return [node for node in new if node_id(RELATION, node) in kept]

    def add_observations(self, additions: Iterable[Node]) -> list[dict[str, Any]]:
        """For each entity those that are new."""
        wanted = list(additions)
        self._check_names(each["entityName"] for each in wanted)
        news = [
            self._new(OBSERVATION, [_observation(each["entityName"], text) for text in each["contents"]])
            for each in wanted
        ]
        kept = self._keep((OBSERVATION, node) for new in news for node in new)
        added = ([node["content"] for node in new if node_id(OBSERVATION, node) in kept] for new in news)
        names = (each["entityName"] for each in wanted)
        return [{"entityName": name, "addedObservations": texts} for name, texts in zip(names, added, strict=True)]

    def delete_entities(self, names: Iterable[str]) -> int:
        """Remove entities with their observations and relations; return how many were there."""
        gone = set(names) & self.names.keys()
        ends = ("name", "entityName", "from", "to")
        self._remove(
            id
            for nodes in self._ids.values()
            for id, node in nodes.items()
            if gone & {node[end] for end in ends if end in node}
        )
        return len(gone)

    def delete_observations(self, deletions: Iterable[Node]) -> int:
        nodes = [_observation(each["entityName"], text) for each in deletions for text in each["observations"]]
        return self._remove(node_id(OBSERVATION, node) for node in nodes)

    def delete_relations(self, relations: Iterable[Node]) -> int:
        return self._remove(node_id(RELATION, node) for node in relations)

    def _new(self, label: str, nodes: Iterable[Node]) -> list[dict[str, Any]]:
        by_id = {node_id(label, node): dict(node) for node in nodes}
        return [node for id, node in by_id.items() if id not in self._ids[label]]

    def _check_names(self, names: Iterable[str]) -> None:
        known = self.names
        if missing := next((name for name in names if name not in known), None):
            raise NotFoundError(f"Entity with name {missing} not found: create it first")

    def _keep(self, nodes: Iterable[tuple[str, Node]]) -> set[str]:
        """Store nodes; return the ids of those that nobody else has stored since the graph was read."""
        items = [_item(label, node) for label, node in nodes]
        receipts = self._memory.remember_many(self._scope, items)
        if refused := [item for item, receipt in zip(items, receipts, strict=True) if receipt.outcome == "forgotten"]:
            raise InputError(f"the user had {show(refused[0]['text'])} forgotten; it was not stored again")
        return {receipt.id for receipt in receipts if receipt.outcome == "stored"}

    def _remove(self, ids: Iterable[str]) -> int:
        there = {id for nodes in self._ids.values() for id in nodes}
        gone = [id for id in dict.fromkeys(ids) if id in there]
        if gone:
            # Who deletes a node may create it again: no tombstones.
            self._memory.forget(self._scope, gone, may_return=True, exact=True)
        return len(gone)


def node_id(label: str, node: Node) -> str:
    """The id of what a node says; an entity is its name."""
    said = node["name"] if label == ENTITY else sorted(node.items())
    return f"{label}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:24]}"


def _entity_nodes(entity: Node) -> Iterator[tuple[str, Node]]:
    yield ENTITY, {"name": entity["name"], "entityType": entity["entityType"]}
    for text in dict.fromkeys(entity["observations"]):
        yield OBSERVATION, _observation(entity["name"], text)


def _observation(name: str, text: str) -> dict[str, Any]:
    return {"entityName": name, "content": text}


def _item(label: str, node: Node) -> dict[str, Any]:
    """A node as an atom, in words that a search finds."""
    metadata: dict[str, Any] = {_NODE: dict(node)}
    if label == ENTITY:
        text = f"{node['name']} ({node['entityType']})"
        metadata["entities"] = [node["name"]]
    elif label == OBSERVATION:
        text = f"{node['entityName']}: {node['content']}"
    else:
        text = f"{node['from']} {node['relationType']} {node['to']}"
    return {"text": text, "id": node_id(label, node), "label": label, "metadata": metadata}


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _strings(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _object(**properties: Any) -> dict[str, Any]:
    return object_schema(*properties, **properties)


def _array(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


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
_GRAPH: Final = _object(entities=_ENTITIES, relations=_RELATIONS)
_DELETION: Final = _object(success={"type": "boolean"}, message={"type": "string"})


def _tool(
    name: str,
    description: str,
    right: Right,
    run: Callable[[KnowledgeGraph, Any], Answer],
    result: Any,
    **arguments: Any,
) -> Tool:
    """A tool with at most one argument. Changes of one graph come in turn: each begins by reading what is there."""

    def run_in_turn(call: ToolCall) -> Answer:
        given = call.arguments[next(iter(arguments))] if arguments else None
        if right == "read":
            return run(KnowledgeGraph(call.memory, call.scope), given)
        with _TURNS[hash(call.scope) % len(_TURNS)]:
            return run(KnowledgeGraph(call.memory, call.scope), given)

    return Tool(
        name=name,
        title=name.replace("_", " ").title(),
        description=description,
        run=run_in_turn,
        right=right,
        arguments=arguments,
        required=tuple(arguments),
        result=result,
        is_destructive=right == "forget",
        is_idempotent=right != "write",
        changes_graph=right != "read",
    )


def _created(name: str, created: list[dict[str, Any]]) -> Answer:
    return Answer(as_json(created), {name: created})


def _deleted(what: str, deleted: int, asked: int) -> Answer:
    """To have deleted nothing is no success."""
    message = f"{what.capitalize()} deleted successfully"
    if deleted < asked or not deleted:
        message = f"Deleted {deleted} of {asked} {what}; the rest was not found: read_graph shows what there is"
    return Answer(message, {"success": deleted > 0, "message": message}, is_error=not deleted)


def _shown(graph: dict[str, Any]) -> Answer:
    return Answer(as_json(graph), graph)


REFERENCE_TOOLS: Final = (
    _tool(
        "create_entities",
        "Create multiple new entities in the knowledge graph",
        "write",
        lambda graph, entities: _created("entities", graph.create_entities(entities)),
        _object(entities=_ENTITIES),
        entities=_ENTITIES,
    ),
    _tool(
        "create_relations",
        "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice",
        "write",
        lambda graph, relations: _created("relations", graph.create_relations(relations)),
        _object(relations=_RELATIONS),
        relations=_RELATIONS,
    ),
    _tool(
        "add_observations",
        "Add new observations to existing entities in the knowledge graph",
        "write",
        lambda graph, additions: _created("results", graph.add_observations(additions)),
        _object(results=_array(entityName={"type": "string"}, addedObservations=_strings("Those that were new"))),
        observations=_array(
            entityName=_string("The name of the entity to add the observations to"),
            contents=_strings("An array of observation contents to add"),
        ),
    ),
    _tool(
        "delete_entities",
        "Delete multiple entities and their associated relations from the knowledge graph",
        "forget",
        lambda graph, names: _deleted("entities", graph.delete_entities(names), len(names)),
        _DELETION,
        entityNames=_strings("An array of entity names to delete"),
    ),
    _tool(
        "delete_observations",
        "Delete specific observations from entities in the knowledge graph",
        "forget",
        lambda graph, deletions: _deleted(
            "observations", graph.delete_observations(deletions), sum(len(each["observations"]) for each in deletions)
        ),
        _DELETION,
        deletions=_array(
            entityName=_string("The name of the entity containing the observations"),
            observations=_strings("An array of observations to delete"),
        ),
    ),
    _tool(
        "delete_relations",
        "Delete multiple relations from the knowledge graph",
        "forget",
        lambda graph, relations: _deleted("relations", graph.delete_relations(relations), len(relations)),
        _DELETION,
        relations={**_RELATIONS, "description": "An array of relations to delete"},
    ),
    _tool("read_graph", "Read the entire knowledge graph", "read", lambda graph, _: _shown(graph.read()), _GRAPH),
    _tool(
        "search_nodes",
        "Search for nodes in the knowledge graph based on a query",
        "read",
        lambda graph, query: _shown(graph.search(query)),
        _GRAPH,
        query={
            **_string("The search query to match against entity names, types, and observation content"),
            "maxLength": _MAX_QUERY_CHARACTERS,
        },
    ),
    _tool(
        "open_nodes",
        "Open specific nodes in the knowledge graph by their names",
        "read",
        lambda graph, names: _shown(graph.open(names)),
        _GRAPH,
        names=_strings("An array of entity names to retrieve"),
    ),
)


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
    """Read the file of the reference server: JSON, one entity or relation a line. Read twice it changes nothing."""
    found: dict[str, list[dict[str, Any]]] = {"entity": [], "relation": []}
    schemas = {"entity": _ENTITIES["items"], "relation": _RELATIONS["items"]}
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
    entities, relations = found["entity"], found["relation"]
    created = KnowledgeGraph(memory, scope).create_entities(entities)
    graph = KnowledgeGraph(memory, scope)  # with those that were just created
    added = graph.add_observations({"entityName": each["name"], "contents": each["observations"]} for each in entities)
    tied = graph.create_relations(relations, strict=False)
    observations = sum(len(entity["observations"]) for entity in created)
    observations += sum(len(each["addedObservations"]) for each in added)
    rest = len(entities) - len(created) + len(relations) - len(tied)
    return GraphImport(len(created), len(tied), observations, rest, tuple(skipped))
