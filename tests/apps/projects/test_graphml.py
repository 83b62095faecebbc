"""A part of the graph as GraphML, whatever the names hold."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import networkx
import pytest

from eunoe.apps.projects.graphml import graphml
from eunoe.model.result import Entity, Link, Mention, Neighbourhood, Relation

ODD = (
    *('A <b> & "c"', "]]> <!-- \x00\x1b[31m", "名前", "x" * 200, "lone \ud800 half", "'; DROP"),
    *(
        '<script>alert("1")</script>',
        '" onload="alert(1)',
        "</text><image href='x' onerror='y'/>",
        "&#60;a&#62; &quot;",
    ),
)
MANY = Neighbourhood(
    "k0",
    tuple(Entity(f"k{place}", ODD[place % len(ODD)], place + 1, 1.0, min(place, 1)) for place in range(40)),
    tuple(Link("k0", f"k{place}", float(place)) for place in range(1, 40)),
    (Mention("id <1>", "fact", "A text with\nlines & <tags>", True, ("k0", "k3")),),
    tuple(Relation("k0", odd, f"k{place}", 2) for place, odd in enumerate(ODD, 1)),
)
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def values(node: Xml.Element) -> dict[str | None, str | None]:
    return {data.get("key"): data.text for data in node.iter(f"{GRAPHML}data")}


def test_graphml_reads_back_as_it_was() -> None:
    root = Xml.fromstring(graphml(MANY))
    nodes = {node.get("id"): values(node) for node in root.iter(f"{GRAPHML}node")}
    assert len(nodes) == 41
    assert nodes["e0"]["node-name"] == ODD[0]
    assert nodes["p0"]["node-text"] == MANY.passages[0].text
    assert nodes["p0"]["node-id"] == "id <1>"
    edges = [(edge.get("source"), edge.get("target"), values(edge)) for edge in root.iter(f"{GRAPHML}edge")]
    assert ("e0", "e7", {"edge-kind": "link", "edge-weight": "7.0"}) in edges
    assert ("e3", "p0", {"edge-kind": "mention"}) in edges
    relation = {"edge-kind": "relation", "edge-relation": ODD[6], "edge-subject": ODD[0], "edge-object": ODD[7]}
    assert ("e0", "e7", relation | {"edge-passages": "2"}) in edges
    assert len(edges) == 41 + len(ODD)


def test_networkx_reads_graphml_with_relations(tmp_path: Path) -> None:
    (tmp_path / "near.graphml").write_text(graphml(MANY), encoding="utf-8")
    found = networkx.read_graphml(tmp_path / "near.graphml")
    edges = [data for _, _, data in found.edges(data=True) if data["kind"] == "relation"]
    assert ODD[6] in {data["relation"] for data in edges}
    assert {data["subject"] for data in edges} == {ODD[0]}


def test_every_key_of_graphml_is_declared() -> None:
    root = Xml.fromstring(graphml(MANY))
    declared = {key.get("id") for key in root.iter(f"{GRAPHML}key")}
    assert {data.get("key") for data in root.iter(f"{GRAPHML}data")} <= declared


@pytest.mark.parametrize("odd", ODD)
def test_whatever_a_name_holds_is_text(odd: str) -> None:
    """An attack: a name that ends its element, adds an attribute, a script or a link."""
    entities = (Entity("a", odd, 1, 0.0), Entity("b", odd, 1, 1.0, 1))
    found = Xml.fromstring(graphml(Neighbourhood("a", entities, (), (), (Relation("a", odd, "b", 1),))))
    plain = tuple(Entity(each.key, "x", 1, each.weight, each.distance) for each in entities)
    harmless = Xml.fromstring(graphml(Neighbourhood("a", plain, (), (), (Relation("a", "x", "b", 1),))))
    assert [element.tag for element in found.iter()] == [element.tag for element in harmless.iter()]
    assert [set(element.attrib) for element in found.iter()] == [set(element.attrib) for element in harmless.iter()]


def test_an_empty_graph_is_a_file_without_nodes() -> None:
    assert not list(Xml.fromstring(graphml(Neighbourhood())).iter(f"{GRAPHML}node"))
