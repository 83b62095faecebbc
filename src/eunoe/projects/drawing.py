"""A part of the entity graph for other programs and for the eye: GraphML, and a picture as SVG."""

import re
from typing import Final
from xml.etree import ElementTree as Xml

import numpy as np
from numpy.typing import NDArray

from eunoe.model.graph import Entity, Neighbourhood
from eunoe.text.normalize import one_line

Floats = NDArray[np.float64]

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML has no way to write."""
_GRAPHML_KEYS: Final = (
    *(("node", name, "string") for name in ("kind", "name", "key", "id", "text")),
    *(("node", name, "int") for name in ("passages", "distance")),
    ("node", "weight", "double"),
    ("edge", "weight", "double"),
)
_COLOURS: Final = ("#c2410c", "#1d4ed8", "#0f766e", "#64748b")
"""By the distance from the entity asked about."""
_MAX_LABEL_CHARACTERS: Final = 34
_FONT_SIZE, _MARGIN, _LINE_HEIGHT = 13.0, 30.0, 18.0
_LETTER_WIDTH: Final = 7.2
"""Roughly; letters of scripts without spaces are twice as wide."""


def graphml(graph: Neighbourhood) -> str:
    """Write entities, passages and the links between them as GraphML.

    >>> "A &amp; B" in graphml(Neighbourhood(entities=(Entity("a b", "A & B", 1, 0.5),)))
    True
    """
    root = Xml.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    for owner, name, kind in _GRAPHML_KEYS:
        Xml.SubElement(root, "key", {"id": f"{owner}-{name}", "for": owner, "attr.name": name, "attr.type": kind})
    body = Xml.SubElement(root, "graph", id="neighbourhood", edgedefault="undirected")
    ids = {entity.key: f"e{number}" for number, entity in enumerate(graph.entities)}
    for entity in graph.entities:
        counts = {"passages": entity.passages, "distance": entity.distance, "weight": entity.weight}
        _add(body, "node", {"kind": "entity", "name": entity.name, "key": entity.key, **counts}, id=ids[entity.key])
    for number, passage in enumerate(graph.passages):
        _add(body, "node", {"kind": passage.kind, "id": passage.id, "text": passage.text}, id=f"p{number}")
    for link in graph.links:
        _add(body, "edge", {"weight": link.weight}, source=ids[link.a], target=ids[link.b])
    for number, passage in enumerate(graph.passages):
        for key in passage.keys:
            _add(body, "edge", {}, source=ids[key], target=f"p{number}")
    return _to_xml(root)


def _add(parent: Xml.Element, tag: str, data: dict[str, object], **attributes: str) -> None:
    element = Xml.SubElement(parent, tag, attributes)
    for name, value in data.items():
        Xml.SubElement(element, "data", key=f"{tag}-{name}").text = _xml_text(str(value))


def svg(graph: Neighbourhood) -> str:
    """Draw entities as dots, larger the more passages have them, with lines as strong as their links."""
    places, size = _lay_out(graph)
    width, height = (f"{side:.0f}" for side in size)
    root = Xml.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", width=width, height=height, viewBox=f"0 0 {width} {height}"
    )
    Xml.SubElement(root, "rect", width=width, height=height, fill="#ffffff")
    at = {entity.key: place for entity, place in zip(graph.entities, places.tolist(), strict=True)}
    strongest = max((link.weight for link in graph.links), default=1.0)
    lines = Xml.SubElement(root, "g", {"stroke": "#94a3b8", "stroke-linecap": "round"})
    for link in sorted(graph.links, key=lambda link: link.weight):
        share = (link.weight / strongest) ** 0.5
        (x1, y1), (x2, y2) = at[link.a], at[link.b]
        ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
        strength = {"stroke-width": f"{0.5 + 3 * share:.1f}", "stroke-opacity": f"{0.2 + 0.6 * share:.2f}"}
        Xml.SubElement(lines, "line", ends | strength)
    font = {"font-family": "system-ui, sans-serif", "font-size": f"{_FONT_SIZE:g}", "text-anchor": "middle"}
    halo = {"paint-order": "stroke", "stroke": "#ffffff", "stroke-width": "3", "stroke-linejoin": "round"}
    dots, labels = Xml.SubElement(root, "g"), Xml.SubElement(root, "g", font | halo)
    for entity in reversed(graph.entities):
        _draw(dots, labels, entity, at[entity.key], is_asked=entity.key == graph.entity)
    return _to_xml(root)


def _draw(dots: Xml.Element, labels: Xml.Element, entity: Entity, place: list[float], is_asked: bool) -> None:
    x, y, radius = *place, _radius(entity)
    colour = _COLOURS[min(entity.distance, len(_COLOURS) - 1)] if is_asked or entity.distance else _COLOURS[1]
    dot = Xml.SubElement(dots, "circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", fill=colour)
    Xml.SubElement(dot, "title").text = _xml_text(f"{entity.name} ({entity.passages} passages)")
    label = Xml.SubElement(labels, "text", x=f"{x:.1f}", y=f"{y + radius + _FONT_SIZE:.1f}", fill="#0f172a")
    label.set("font-weight", "bold" if is_asked else "normal")
    label.text = _label(entity)


def _lay_out(graph: Neighbourhood) -> tuple[Floats, tuple[float, float]]:
    if not graph.entities:
        return np.zeros((0, 2)), (2 * _MARGIN, 2 * _MARGIN)
    boxes = np.array([_box(entity) for entity in graph.entities])
    spread = 1.4 * float(np.sqrt(boxes.prod(axis=1).sum()))
    places = _separate(_attract(graph) * np.array([1.3, 0.8]) * spread, boxes)
    low, high = (places - boxes / 2).min(axis=0), (places + boxes / 2).max(axis=0)
    width, height = (high - low + 2 * _MARGIN).tolist()
    return places - low + _MARGIN, (width, height)


def _attract(graph: Neighbourhood) -> Floats:
    """A force-directed layout in a square of side 1 or so: entities push each other away, links pull them together."""
    keys = {entity.key: number for number, entity in enumerate(graph.entities)}
    count = len(keys)
    pull = np.zeros((count, count))
    for link in graph.links:
        pull[keys[link.a], keys[link.b]] = pull[keys[link.b], keys[link.a]] = link.weight**0.5
    pull /= max(float(pull.max(initial=0)), 1e-9)
    # The golden angle: no two start at the same place, and the same graph always looks the same.
    angle = np.arange(count) * 2.39996
    places: Floats = 0.5 * np.sqrt(np.arange(count) / count)[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    apart = 1 / np.sqrt(count)
    for heat in np.linspace(0.1, 0.002, _round_count(count)):
        squares = (places**2).sum(axis=1)
        distance = np.sqrt(np.maximum(squares[:, None] + squares - 2 * places @ places.T, 1e-8))
        force = apart**2 / distance**2 - pull * distance / apart
        step = places * (force.sum(axis=1) - 0.5)[:, None] - force @ places
        places = places + step * np.minimum(1.0, heat / np.maximum(np.sqrt((step**2).sum(axis=1)), 1e-9))[:, None]
    return places


def _separate(places: Floats, boxes: Floats) -> Floats:
    """Move entities apart until no box covers another, or at least fewer do."""
    for _ in range(_round_count(len(boxes))):
        sides = zip(boxes.T, places.T, strict=True)
        overlap = [(size[:, None] + size) / 2 - np.abs(place[:, None] - place) for size, place in sides]
        first, second = np.nonzero(np.triu((overlap[0] > 0) & (overlap[1] > 0), 1))
        if not len(first):
            break
        overlaps = np.column_stack([side[first, second] for side in overlap])
        # Along the shorter way; what stands at one place is parted by its order.
        push = overlaps * np.eye(2)[overlaps.argmin(axis=1)] * np.where(places[first] < places[second], -0.3, 0.3)
        places = places.copy()
        np.add.at(places, first, push)
        np.add.at(places, second, -push)
    return places


def _round_count(entities: int) -> int:
    """Fewer rounds the more entities there are: a picture of a thousand takes seconds, too."""
    return min(300, max(60, 60_000 // entities))


def _box(entity: Entity) -> tuple[float, float]:
    letters, radius = sum(2 if ord(letter) >= 0x2E80 else 1 for letter in _label(entity)), _radius(entity)
    return max(letters * _LETTER_WIDTH, 2 * radius) + 8, 2 * (radius + _LINE_HEIGHT)


def _radius(entity: Entity) -> float:
    return min(4 + 2 * float(np.sqrt(entity.passages)), 24.0)


def _label(entity: Entity) -> str:
    return one_line(_xml_text(entity.name), _MAX_LABEL_CHARACTERS)


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _to_xml(root: Xml.Element) -> str:
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
