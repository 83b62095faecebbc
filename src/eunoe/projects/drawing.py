"""A part of the graph for other programs and for the eye: GraphML, and a picture as SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

import numpy as np
from numpy.typing import NDArray

from eunoe.model.graph import Entity, Neighbourhood

Floats = NDArray[np.float64]

_UNSEEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GRAPHML = "http://graphml.graphdrawing.org/xmlns"
_SVG = "http://www.w3.org/2000/svg"
_FIELDS = (
    *(("node", name, "string") for name in ("kind", "name", "key", "id", "text")),
    *(("node", name, "int") for name in ("passages", "distance")),
    ("node", "weight", "double"),
    ("edge", "weight", "double"),
)
_COLOURS = ("#c2410c", "#1d4ed8", "#0f766e", "#64748b")
_LONGEST_LABEL = 34
_ROUNDS, _FEWEST = 300, 60
_FONT, _MARGIN, _LINE = 13.0, 30.0, 18.0
_LETTER = 7.2
"""How wide a letter is, about; those of scripts without spaces are twice as wide."""


def graphml(found: Neighbourhood) -> str:
    """Names, passages, and what ties them, as GraphML.

    >>> "A &amp; B" in graphml(Neighbourhood(entities=(Entity("a b", "A & B", 1, 0.5),)))
    True
    """
    root = Xml.Element("graphml", xmlns=_GRAPHML)
    for place, name, kind in _FIELDS:
        Xml.SubElement(root, "key", {"id": f"{place}-{name}", "for": place, "attr.name": name, "attr.type": kind})
    graph = Xml.SubElement(root, "graph", id="neighbourhood", edgedefault="undirected")
    names = {entity.key: f"e{number}" for number, entity in enumerate(found.entities)}
    for entity in found.entities:
        node = Xml.SubElement(graph, "node", id=names[entity.key])
        counts = {"passages": entity.passages, "distance": entity.distance, "weight": entity.weight}
        _data(node, "node", {"kind": "entity", "name": entity.name, "key": entity.key, **counts})
    for number, passage in enumerate(found.passages):
        node = Xml.SubElement(graph, "node", id=f"p{number}")
        _data(node, "node", {"kind": passage.kind, "id": passage.id, "text": passage.text})
    for link in found.links:
        edge = Xml.SubElement(graph, "edge", source=names[link.a], target=names[link.b])
        _data(edge, "edge", {"weight": link.weight})
    for number, passage in enumerate(found.passages):
        for key in passage.keys:
            Xml.SubElement(graph, "edge", source=names[key], target=f"p{number}")
    return _written(root)


def svg(found: Neighbourhood) -> str:
    """A picture: names as dots, larger the more passages have them, with lines as strong as their ties."""
    places, size = _laid_out(found)
    width, height = (f"{side:.0f}" for side in size)
    root = Xml.Element("svg", xmlns=_SVG, width=width, height=height, viewBox=f"0 0 {width} {height}")
    Xml.SubElement(root, "rect", width=width, height=height, fill="#ffffff")
    at = {entity.key: place for entity, place in zip(found.entities, places.tolist(), strict=True)}
    strongest = max((link.weight for link in found.links), default=1.0)
    lines = Xml.SubElement(root, "g", {"stroke": "#94a3b8", "stroke-linecap": "round"})
    for link in sorted(found.links, key=lambda link: link.weight):
        share = (link.weight / strongest) ** 0.5
        ends = dict(zip(("x1", "y1", "x2", "y2"), (f"{one:.1f}" for one in (*at[link.a], *at[link.b])), strict=True))
        strength = {"stroke-width": f"{0.5 + 3 * share:.1f}", "stroke-opacity": f"{0.2 + 0.6 * share:.2f}"}
        Xml.SubElement(lines, "line", ends | strength)
    words = {"font-family": "system-ui, sans-serif", "font-size": f"{_FONT:g}", "text-anchor": "middle"}
    halo = {"paint-order": "stroke", "stroke": "#ffffff", "stroke-width": "3", "stroke-linejoin": "round"}
    dots, labels = Xml.SubElement(root, "g"), Xml.SubElement(root, "g", words | halo)
    for entity in reversed(found.entities):
        _draw(dots, labels, entity, at[entity.key], is_asked=entity.key == found.entity)
    return _written(root)


def _draw(dots: Xml.Element, labels: Xml.Element, entity: Entity, place: list[float], is_asked: bool) -> None:
    x, y, radius = *place, _radius(entity)
    colour = _COLOURS[min(entity.distance, len(_COLOURS) - 1)] if is_asked or entity.distance else _COLOURS[1]
    dot = Xml.SubElement(dots, "circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", fill=colour)
    title = Xml.SubElement(dot, "title")
    title.text = _clean(f"{entity.name} ({entity.passages} passages)")
    label = Xml.SubElement(labels, "text", {"x": f"{x:.1f}", "y": f"{y + radius + _FONT:.1f}", "fill": "#0f172a"})
    label.set("font-weight", "bold" if is_asked else "normal")
    label.text = _label(entity)


def _laid_out(found: Neighbourhood) -> tuple[Floats, tuple[float, float]]:
    """Where each name stands, and how large the picture is."""
    if not found.entities:
        return np.zeros((0, 2)), (2 * _MARGIN, 2 * _MARGIN)
    boxes = np.array([_box(entity) for entity in found.entities])
    spread = 1.4 * float(np.sqrt(boxes.prod(axis=1).sum()))
    places = _spaced(_pulled(found) * np.array([1.3, 0.8]) * spread, boxes)
    low, high = (places - boxes / 2).min(axis=0), (places + boxes / 2).max(axis=0)
    width, height = (high - low + 2 * _MARGIN).tolist()
    return places - low + _MARGIN, (width, height)


def _pulled(found: Neighbourhood) -> Floats:
    """Places in a square of side 1 or so: names push each other away, and ties pull them together."""
    keys = {entity.key: number for number, entity in enumerate(found.entities)}
    count = len(keys)
    ties = np.zeros((count, count))
    for link in found.links:
        ties[keys[link.a], keys[link.b]] = ties[keys[link.b], keys[link.a]] = link.weight**0.5
    ties /= max(float(ties.max(initial=0)), 1e-9)
    # The golden angle: no two start at the same place, and the same graph always looks the same.
    turn = np.arange(count) * 2.39996
    places: Floats = 0.5 * np.sqrt(np.arange(count) / count)[:, None] * np.column_stack((np.cos(turn), np.sin(turn)))
    apart = 1 / np.sqrt(count)
    for heat in np.linspace(0.1, 0.002, _rounds(count)):
        squares = (places**2).sum(axis=1)
        distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * places @ places.T, 1e-8))
        force = apart**2 / distance**2 - ties * distance / apart
        step = places * (force.sum(axis=1) - 0.5)[:, None] - force @ places
        places = places + step * np.minimum(1.0, heat / np.maximum(np.sqrt((step**2).sum(axis=1)), 1e-9))[:, None]
    return places


def _spaced(places: Floats, boxes: Floats) -> Floats:
    """Moves names apart until none covers another, or at least fewer do."""
    for _ in range(_rounds(len(boxes))):
        sides = zip(boxes.T, places.T, strict=True)
        lack = [(size[:, None] + size) / 2 - np.abs(place[:, None] - place) for size, place in sides]
        first, second = np.nonzero(np.triu((lack[0] > 0) & (lack[1] > 0), 1))
        if not len(first):
            break
        lacks = np.column_stack([one[first, second] for one in lack])
        # Along the shorter way; what stands at one place is parted by its order.
        push = lacks * np.eye(2)[lacks.argmin(axis=1)] * np.where(places[first] < places[second], -0.3, 0.3)
        places = places.copy()
        np.add.at(places, first, push)
        np.add.at(places, second, -push)
    return places


def _rounds(count: int) -> int:
    """The more names the fewer: a picture of a thousand is drawn in seconds, too."""
    return min(_ROUNDS, max(_FEWEST, 60_000 // count))


def _box(entity: Entity) -> tuple[float, float]:
    """The room that a dot and its label take."""
    letters = sum(2 if ord(sign) >= 0x2E80 else 1 for sign in _label(entity))
    radius = _radius(entity)
    return max(letters * _LETTER, 2 * radius) + 8, 2 * (radius + _LINE)


def _radius(entity: Entity) -> float:
    return min(4 + 2 * float(np.sqrt(entity.passages)), 24.0)


def _label(entity: Entity) -> str:
    name = " ".join(_clean(entity.name).split())
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def _data(parent: Xml.Element, place: str, values: dict[str, object]) -> None:
    for name, value in values.items():
        Xml.SubElement(parent, "data", key=f"{place}-{name}").text = _clean(str(value))


def _clean(text: str) -> str:
    """Text without signs that XML has no way to write."""
    return _UNSEEN.sub("\ufffd", text)


def _written(root: Xml.Element) -> str:
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
