"""A part of the entity graph for other programs, as GraphML."""

import re
from typing import Final
from xml.etree import ElementTree as Xml

from eunoe.model.result import Neighbourhood

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML has no way to write."""
_GRAPHML_KEYS: Final = (
    *(("node", name, "string") for name in ("kind", "name", "key", "id", "text")),
    *(("node", name, "int") for name in ("passages", "distance")),
    ("node", "weight", "double"),
    *(("edge", name, "string") for name in ("kind", "relation", "subject", "object")),
    ("edge", "passages", "int"),
    ("edge", "weight", "double"),
)


def graphml(graph: Neighbourhood) -> str:
    """Write entities, passages, the links between them and relations as GraphML.

    All edges are undirected, since some programs read no graph with both kinds; a relation says its subject and object.

    >>> from eunoe.model.result import Entity
    >>> "A &amp; B" in graphml(Neighbourhood(entities=(Entity("a b", "A & B", 1, 0.5),)))
    True
    """
    root = Xml.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    for owner, name, kind in _GRAPHML_KEYS:
        Xml.SubElement(root, "key", {"id": f"{owner}-{name}", "for": owner, "attr.name": name, "attr.type": kind})
    body = Xml.SubElement(root, "graph", id="neighbourhood", edgedefault="undirected")
    ids = {entity.key: f"e{number}" for number, entity in enumerate(graph.entities)}
    names = {entity.key: entity.name for entity in graph.entities}
    for entity in graph.entities:
        counts = {"passages": entity.passages, "distance": entity.distance, "weight": entity.weight}
        _add(body, "node", {"kind": "entity", "name": entity.name, "key": entity.key, **counts}, id=ids[entity.key])
    for number, passage in enumerate(graph.passages):
        _add(body, "node", {"kind": passage.kind, "id": passage.id, "text": passage.text}, id=f"p{number}")
    for link in graph.links:
        _add(body, "edge", {"kind": "link", "weight": link.weight}, source=ids[link.a], target=ids[link.b])
    for each in graph.relations:
        ends = {"subject": names[each.subject], "object": names[each.object]}
        data = {"kind": "relation", "relation": each.relation, **ends, "passages": each.passages}
        _add(body, "edge", data, source=ids[each.subject], target=ids[each.object])
    for number, passage in enumerate(graph.passages):
        for key in passage.keys:
            _add(body, "edge", {"kind": "mention"}, source=ids[key], target=f"p{number}")
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _add(parent: Xml.Element, tag: str, data: dict[str, object], **attributes: str) -> None:
    element = Xml.SubElement(parent, tag, attributes)
    for name, value in data.items():
        Xml.SubElement(element, "data", key=f"{tag}-{name}").text = _NOT_XML.sub("\ufffd", str(value))
