"""Import of the file in which the reference memory server keeps its graph: JSON, one entity or relation a line."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import Right, show
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope
from eunoe.server.mcp.tool import Answer, Tool, ToolCall, as_json, check_arguments

if TYPE_CHECKING:
    from eunoe.memory import Memory

ENTITY: Final = "graph_entity"
OBSERVATION: Final = "graph_observation"
RELATION: Final = "graph_relation"
_LABELS: Final = (ENTITY, OBSERVATION, RELATION)
_NODE: Final = "graph_node"
"""The field of an atom's metadata that holds the entity, observation or relation itself."""
_PAGE: Final = 5000

Node = Mapping[str, Any]


class KnowledgeGraph:
    """The graph of one scope as it stood when it was read, and the changes to it."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._memory = memory
        self._scope = scope
        self._ids: dict[str, dict[str, Node]] = {label: {} for label in _LABELS}
        for atom in self._atoms():
            if node := atom.metadata.get(_NODE):
                self._ids[atom.label][atom.id] = node

    def _atoms(self) -> Iterator[Atom]:
        after = ""
        while True:
            page = self._memory.list(self._scope, kinds=["fact"], labels=_LABELS, limit=_PAGE, after=after, exact=True)
            yield from (item for item in page.items if isinstance(item, Atom))
            if not (after := page.next):
                return

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
        return self._with_relations(
            entity
            for entity in self.read()["entities"]
            if any(words in text.lower() for text in (entity["name"], entity["entityType"], *entity["observations"]))
        )

    def open(self, names: Iterable[str]) -> dict[str, Any]:
        wanted = set(names)
        return self._with_relations(entity for entity in self.read()["entities"] if entity["name"] in wanted)

    def _with_relations(self, entities: Iterable[dict[str, Any]]) -> dict[str, Any]:
        found = list(entities)
        names = {entity["name"] for entity in found}
        relations = [each for each in self.read()["relations"] if each["from"] in names or each["to"] in names]
        return {"entities": found, "relations": relations}

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

    def delete_entities(self, names: Iterable[str]) -> list[str]:
        """Remove entities with their observations and relations; return the names of those that were there."""
        gone = [name for name in dict.fromkeys(names) if name in self.names]
        self._remove(id for nodes in self._ids.values() for id, node in nodes.items() if _ends(node) & set(gone))
        return gone

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


def _ends(node: Node) -> set[str]:
    """The names of the entities that a node is about."""
    return {node[key] for key in ("name", "entityName", "from", "to") if key in node}


def _item(label: str, node: Node) -> dict[str, Any]:
    """A node as an atom, in words that a search finds."""
    if label == ENTITY:
        text, more = f"{node['name']} ({node['entityType']})", {"entities": [node["name"]]}
    elif label == OBSERVATION:
        text, more = f"{node['entityName']}: {node['content']}", {}
    else:
        text, more = f"{node['from']} {node['relationType']} {node['to']}", {}
    return {"text": text, "id": node_id(label, node), "label": label, "metadata": {_NODE: dict(node), **more}}


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
