"""Entities, relations and observations, as the reference memory server has them, kept as atoms of one scope.

Each is one atom with an id made from what it says: whoever writes the same writes it once, from however many processes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from eunoe.errors import InputError, NotFoundError
from eunoe.model.arguments import show
from eunoe.model.atom import Atom
from eunoe.model.scope import Scope

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
