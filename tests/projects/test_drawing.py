"""A part of the graph as GraphML and as a picture, whatever the names hold."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from eunoe.model.graph import Entity, Link, Mention, Neighbourhood
from eunoe.projects.drawing import graphml, svg

ODD = ('A <b> & "c"', "]]> <!-- \x00\x1b[31m", "名前", "x" * 200, "lone \ud800 half", "'; DROP")
MANY = Neighbourhood(
    "k0",
    tuple(Entity(f"k{place}", ODD[place % len(ODD)], place + 1, 1.0, min(place, 1)) for place in range(40)),
    tuple(Link("k0", f"k{place}", float(place)) for place in range(1, 40)),
    (Mention("id <1>", "fact", "A text with\nlines & <tags>", True, ("k0", "k3")),),
)
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
SVG = "{http://www.w3.org/2000/svg}"


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
    assert ("e0", "e7", {"edge-weight": "7.0"}) in edges
    assert ("e3", "p0", {}) in edges
    assert len(edges) == 41


def test_every_key_of_graphml_is_declared() -> None:
    root = Xml.fromstring(graphml(MANY))
    declared = {key.get("id") for key in root.iter(f"{GRAPHML}key")}
    assert {data.get("key") for data in root.iter(f"{GRAPHML}data")} <= declared


def test_a_picture_has_every_name_and_tie_inside_it() -> None:
    root = Xml.fromstring(svg(MANY))
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    circles, labels = list(root.iter(f"{SVG}circle")), list(root.iter(f"{SVG}text"))
    assert len(circles) == len(labels) == 40
    assert len(list(root.iter(f"{SVG}line"))) == 39
    for circle in circles:
        assert 0 < float(circle.get("cx") or 0) < width
        assert 0 < float(circle.get("cy") or 0) < height
    assert ODD[0] in {label.text for label in labels}
    assert max(len(label.text or "") for label in labels) <= 34


def test_no_label_covers_another() -> None:
    labels = [
        (float(one.get("x") or 0), float(one.get("y") or 0)) for one in Xml.fromstring(svg(MANY)).iter(f"{SVG}text")
    ]
    for place, (x, y) in enumerate(labels):
        for other_x, other_y in labels[:place]:
            assert abs(y - other_y) >= 13 or abs(x - other_x) >= 16


def test_the_same_graph_is_drawn_the_same() -> None:
    assert svg(MANY) == svg(MANY)


@pytest.mark.parametrize(
    "found", [Neighbourhood(), Neighbourhood("a", (Entity("a", "A", 1, 0.0),)), Neighbourhood("", MANY.entities[:2])]
)
def test_small_graphs_can_be_drawn(found: Neighbourhood) -> None:
    assert len(list(Xml.fromstring(svg(found)).iter(f"{SVG}circle"))) == len(found.entities)
    assert len(list(Xml.fromstring(graphml(found)).iter(f"{GRAPHML}node"))) == len(found.entities)
