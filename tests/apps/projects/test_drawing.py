"""A part of the graph as GraphML and as a picture, whatever the names hold."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as Xml

import networkx
import pytest

from eunoe.apps.projects.drawing import graphml, svg
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


def texts(root: Xml.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def size(root: Xml.Element) -> tuple[float, float]:
    return float(root.get("width") or 0), float(root.get("height") or 0)


def dots(root: Xml.Element) -> list[tuple[float, float]]:
    """Where the names are drawn; a dot of the legend has no title."""
    circles = [circle for circle in root.iter(f"{SVG}circle") if len(circle)]
    return [(float(circle.get("cx") or 0), float(circle.get("cy") or 0)) for circle in circles]


def test_a_picture_has_every_name_link_and_relation_inside_it() -> None:
    root = Xml.fromstring(svg(MANY))
    width, height = size(root)
    assert len(dots(root)) == 40
    assert all(0 < x < width and 0 < y < height for x, y in dots(root))
    assert len(list(root.iter(f"{SVG}line"))) == 39 - len(ODD)
    assert len([path for path in root.iter(f"{SVG}path") if "Q" in path.get("d", "")]) == len(ODD)
    assert {ODD[0], ODD[6]} <= set(texts(root))
    names = [text.text for group in list(root.iter(f"{SVG}g"))[-2:] for text in group.iter(f"{SVG}text")]
    assert max(len(name or "") for name in names) <= 60


def test_a_picture_says_what_it_shows() -> None:
    said = texts(Xml.fromstring(svg(MANY, "project=atlas")))
    assert said[:2] == [f"Around {ODD[0]}", "project=atlas · 40 names · 10 relations"]
    legend = {"the name asked about", "one step from it", "a relation, as a language model read it"}
    assert legend <= set(said)
    assert "two steps" not in said
    plain = texts(Xml.fromstring(svg(Neighbourhood("", MANY.entities[:2], (Link("k0", "k1", 1.0),)))))
    assert plain[:2] == ["Names, the best connected first", "2 names"]
    assert not [text for text in plain if "relation" in text]


@pytest.mark.parametrize("odd", ODD)
def test_whatever_a_name_holds_is_text(odd: str) -> None:
    """An attack: a name that ends its element, adds an attribute, a script or a link."""
    graph = Neighbourhood(
        "a", (Entity("a", odd, 1, 0.0), Entity("b", odd, 1, 1.0, 1)), (), (), (Relation("a", odd, "b", 1),)
    )
    plain = Neighbourhood(
        "a", (Entity("a", "x", 1, 0.0), Entity("b", "x", 1, 1.0, 1)), (), (), (Relation("a", "x", "b", 1),)
    )
    for draw in (lambda near: svg(near, odd), graphml):
        found, harmless = Xml.fromstring(draw(graph)), Xml.fromstring(draw(plain))
        assert [element.tag for element in found.iter()] == [element.tag for element in harmless.iter()]
        assert [set(element.attrib) for element in found.iter()] == [set(element.attrib) for element in harmless.iter()]


def boxes(root: Xml.Element) -> list[tuple[float, float, float]]:
    body = next(group for group in root.iter(f"{SVG}g") if group.get("transform"))
    labels = list(body.iter(f"{SVG}text"))
    return [(float(one.get("x") or 0), float(one.get("y") or 0), 6.5 * len(one.text or "")) for one in labels]


def test_no_label_covers_another() -> None:
    labels = boxes(Xml.fromstring(svg(MANY)))
    assert len(labels) == 40 + len(ODD)
    for place, (x, y, width) in enumerate(labels):
        for other_x, other_y, other_width in labels[:place]:
            assert abs(y - other_y) >= 10 or abs(x - other_x) >= (width + other_width) / 2


def test_long_names_that_begin_alike_are_told_apart() -> None:
    names = [f"src/eunoe/apps/projects/a_very_long_folder/{name}.py" for name in ("drawing", "layout")]
    graph = Neighbourhood("", tuple(Entity(name, name, 1, 0.0) for name in (*names, "x" * 200)))
    drawn = texts(Xml.fromstring(svg(graph)))
    assert set(names) <= set(drawn)
    assert len(max(drawn, key=len)) < 60


def test_the_legend_has_what_is_drawn() -> None:
    line = "in the same passages: thicker, the more they are"
    link, arrow = (Link("k0", "k1", 1.0),), (Relation("k0", "owns", "k1", 1),)
    assert line in texts(Xml.fromstring(svg(Neighbourhood("", MANY.entities[:2], link))))
    assert line not in texts(Xml.fromstring(svg(Neighbourhood("", MANY.entities[:2], link, (), arrow))))


def test_the_steps_of_the_legend_stand_in_one_row() -> None:
    entities = tuple(Entity(f"k{step}", f"N{step}", 1, 1.0, step) for step in range(4))
    root = Xml.fromstring(svg(Neighbourhood("k0", entities, tuple(Link("k0", each.key, 1.0) for each in entities[1:]))))
    signs = [circle for circle in root.iter(f"{SVG}circle") if not len(circle)]
    assert len(signs) == 4
    assert len({circle.get("cy") for circle in signs}) == 1


def test_an_arrow_ends_where_nothing_covers_its_head() -> None:
    """Below a name stands its label; an arrow from there ends below it."""
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    entities = tuple(Entity(f"k{place}", f"Name number {place}", 1, 1.0) for place in range(6))
    relations = tuple(Relation(f"k{a}", "owns", f"k{b}", 1) for a, b in pairs)
    root = Xml.fromstring(svg(Neighbourhood("", entities, (), (), relations)))
    labels = [box for box, text in zip(boxes(root), texts(root)[2:], strict=False) if text.startswith("Name")]
    paths = [path.get("d") or "" for path in root.iter(f"{SVG}path") if "Q" in (path.get("d") or "")]
    assert len(labels) == 6
    assert len(paths) == len(pairs)
    for path in paths:
        bend_x, bend_y, x, y = map(float, path.partition("Q")[2].split())
        way = math.hypot(x - bend_x, y - bend_y)
        for back in (0, 3, 6):
            head_x, head_y = x + back * (bend_x - x) / way, y + back * (bend_y - y) / way
            for middle, baseline, width in labels:
                assert abs(head_x - middle) > width / 2 or not baseline - 9 < head_y < baseline + 1


def test_names_without_a_link_take_little_room() -> None:
    together = Neighbourhood("", MANY.entities[:20], tuple(Link("k0", f"k{place}", 1.0) for place in range(1, 20)))
    strays = Neighbourhood("", MANY.entities[:23], together.links)
    (width, height), (more_width, more_height) = size(Xml.fromstring(svg(together))), size(Xml.fromstring(svg(strays)))
    assert more_width * more_height < 1.35 * width * height


def test_a_name_that_is_hardly_linked_does_not_stand_far_away() -> None:
    links = [Link(f"k{a}", f"k{b}", 50.0) for a in range(12) for b in range(a)]
    root = Xml.fromstring(svg(Neighbourhood("", MANY.entities[:13], (*links, Link("k0", "k12", 1.0)))))
    points = dots(root)
    (middle_x, middle_y) = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    distances = sorted(((x - middle_x) ** 2 + (y - middle_y) ** 2) ** 0.5 for x, y in points)
    assert distances[-1] < 3 * distances[len(distances) // 2]


def test_the_same_graph_is_drawn_the_same() -> None:
    assert svg(MANY) == svg(MANY)


@pytest.mark.parametrize(
    "found", [Neighbourhood(), Neighbourhood("a", (Entity("a", "A", 1, 0.0),)), Neighbourhood("", MANY.entities[:2])]
)
def test_small_graphs_can_be_drawn(found: Neighbourhood) -> None:
    assert len(dots(Xml.fromstring(svg(found)))) == len(found.entities)
    assert len(list(Xml.fromstring(graphml(found)).iter(f"{GRAPHML}node"))) == len(found.entities)
