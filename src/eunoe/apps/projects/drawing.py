"""A part of the entity graph for other programs and for the eye: GraphML, and a picture as SVG."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from xml.etree import ElementTree as Xml

import numpy as np

from eunoe.apps.projects.graph_layout import Floats, Layout, Tie, lay_out
from eunoe.model.result import Entity, Link, Neighbourhood, Relation
from eunoe.text.normalize import one_line

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
_COLOURS: Final = ("#c2410c", "#1d4ed8", "#0f766e", "#64748b")
"""By the distance from the entity asked about."""
_STEPS: Final = {0: "the name asked about", 1: "one step from it", 2: "two steps", 3: "three and more"}
_INK, _GREY, _RELATION_COLOUR = "#0f172a", "#94a3b8", "#7c3aed"
_MAX_LABEL_CHARACTERS: Final = 34
_MAX_RELATIONS: Final = 150
"""Pairs of names; more than these nobody can tell apart."""
_MARGIN, _LINE_HEIGHT = 28.0, 18.0
_FONT_SIZE, _SMALL_FONT_SIZE, _TITLE_FONT_SIZE = 13.0, 11.0, 20.0
_LETTER_WIDTH: Final = 0.61
"""Of a font's size, roughly; letters of scripts without spaces are twice as wide."""


def graphml(graph: Neighbourhood) -> str:
    """Write entities, passages, the links between them and relations as GraphML.

    All edges are undirected, since some programs read no graph with both kinds; a relation says its subject and object.

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
    return _to_xml(root)


def _add(parent: Xml.Element, tag: str, data: dict[str, object], **attributes: str) -> None:
    element = Xml.SubElement(parent, tag, attributes)
    for name, value in data.items():
        Xml.SubElement(element, "data", key=f"{tag}-{name}").text = _xml_text(str(value))


def svg(graph: Neighbourhood, scope: str = "") -> str:
    """Draw entities as dots, larger the more passages have them, with lines as strong as their links, and relations as
    arrows with their words; above it a title, below it a legend."""
    arrows = _arrows(graph.relations)
    picture = _Picture(graph, arrows)
    heading = _heading(graph, scope)
    steps, lines = list(_legend_steps(graph)), list(_legend_lines(graph, arrows))
    width = max(
        picture.width,
        *(_text_width(text, size) for text, size, _ in heading),
        _legend_width(steps),
        *(entry.width for entry in lines),
    )
    rows = _wrap([*steps, *lines], width)
    top = _MARGIN + sum(1.5 * size for _, size, _ in heading)
    legend_top = top + picture.height + (_LINE_HEIGHT if graph.entities else 0)
    root = _root(width + 2 * _MARGIN, legend_top + _LINE_HEIGHT * len(rows) + _MARGIN, heading[0][0])
    _draw_heading(root, heading)
    picture.draw(root, _MARGIN + (width - picture.width) / 2, top)
    _draw_legend(root, rows, legend_top)
    return _to_xml(root)


def _root(width: float, height: float, title: str) -> Xml.Element:
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    font = {"font-family": "system-ui, sans-serif", "font-size": f"{_FONT_SIZE:g}", "fill": _INK}
    box = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "role": "img"}
    root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **box, **font})
    Xml.SubElement(root, "title").text = title
    head = {"viewBox": "0 0 8 8", "refX": "7", "refY": "4", "markerWidth": "8", "markerHeight": "8"}
    arrow = {"id": "arrow", "orient": "auto", "markerUnits": "userSpaceOnUse"}
    marker = Xml.SubElement(Xml.SubElement(root, "defs"), "marker", arrow | head)
    Xml.SubElement(marker, "path", d="M0 0.5 8 4 0 7.5Z", fill=_RELATION_COLOUR)
    Xml.SubElement(root, "rect", size | {"fill": "#ffffff"})
    return root


def _heading(graph: Neighbourhood, scope: str) -> list[tuple[str, float, str]]:
    """The lines above the picture, with their sizes and colours."""
    asked = next((entity.name for entity in graph.entities if entity.key == graph.entity), "")
    title = (
        f"Around {_label(asked)}" if asked else "Names, the best connected first" if graph.entities else "No names yet"
    )
    relations = _count(len(graph.relations), "relation") if graph.relations else ""
    about = (one_line(_xml_text(scope), 80), _count(len(graph.entities), "name"), relations)
    return [(title, _TITLE_FONT_SIZE, _INK), (" · ".join(filter(None, about)), _FONT_SIZE, "#475569")]


def _draw_heading(root: Xml.Element, heading: Sequence[tuple[str, float, str]]) -> None:
    y = _MARGIN - 8
    for text, size, colour in heading:
        y += 1.2 * size
        weight = "bold" if size == _TITLE_FONT_SIZE else "normal"
        place = {"x": f"{_MARGIN:g}", "y": f"{y:.1f}", "fill": colour}
        Xml.SubElement(root, "text", place | {"font-size": f"{size:g}", "font-weight": weight}).text = text


class _Arrow(NamedTuple):
    """All relations from one entity to another."""

    subject: str
    object: str
    words: tuple[str, ...]

    @property
    def label(self) -> str:
        return _label(", ".join(self.words))


def _arrows(relations: Sequence[Relation]) -> list[_Arrow]:
    """Those that most passages say first."""
    order: dict[tuple[str, str], list[str]] = {}
    for each in relations:
        order.setdefault((each.subject, each.object), []).append(each.relation)
    return [_Arrow(*ends, tuple(words)) for ends, words in list(order.items())[:_MAX_RELATIONS]]


def _lines(graph: Neighbourhood, arrows: Sequence[_Arrow]) -> list[Link]:
    """The links that no arrow stands for."""
    related = {frozenset((arrow.subject, arrow.object)) for arrow in arrows}
    return [link for link in graph.links if frozenset((link.a, link.b)) not in related]


class _Picture:
    """Dots, lines and arrows in their places. The words of an arrow have a box of their own, like a name."""

    def __init__(self, graph: Neighbourhood, arrows: Sequence[_Arrow]) -> None:
        self.graph = graph
        self.arrows = arrows
        self._labels = _labels(graph.entities)
        layout = self._lay_out()
        self.width, self.height = layout.width, layout.height
        count = len(graph.entities)
        self._entity_places, self._arrow_places = layout.places[:count], layout.places[count:]

    def _lay_out(self) -> Layout:
        numbers = {entity.key: number for number, entity in enumerate(self.graph.entities)}
        boxes = [_name_box(entity, self._labels[entity.key]) for entity in self.graph.entities]
        boxes += [(_text_width(arrow.label, _SMALL_FONT_SIZE) + 10, 1.5 * _LINE_HEIGHT) for arrow in self.arrows]
        strongest = max((link.weight for link in self.graph.links), default=1.0)
        ties = [Tie(numbers[link.a], numbers[link.b], link.weight / strongest) for link in self.graph.links]
        middles = [(numbers[arrow.subject], numbers[arrow.object]) for arrow in self.arrows]
        return lay_out(np.array(boxes, float).reshape(-1, 2), ties, middles)

    def draw(self, root: Xml.Element, left: float, top: float) -> None:
        body = Xml.SubElement(root, "g", transform=f"translate({left:.1f} {top:.1f})")
        dots = {
            entity.key: (x, y - _LINE_HEIGHT / 2)
            for entity, (x, y) in zip(self.graph.entities, self._entity_places.tolist(), strict=True)
        }
        self._draw_links(body, dots)
        self._draw_arrows(body, dots)
        self._draw_names(body, dots)

    def _draw_links(self, body: Xml.Element, dots: dict[str, tuple[float, float]]) -> None:
        lines = Xml.SubElement(body, "g", {"stroke": _GREY, "stroke-linecap": "round"})
        strongest = max((link.weight for link in self.graph.links), default=1.0)
        for link in sorted(_lines(self.graph, self.arrows), key=lambda link: link.weight):
            share = (link.weight / strongest) ** 0.5
            (x1, y1), (x2, y2) = dots[link.a], dots[link.b]
            ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
            strength = {"stroke-width": f"{0.5 + 3 * share:.1f}", "stroke-opacity": f"{0.2 + 0.6 * share:.2f}"}
            Xml.SubElement(lines, "line", ends | strength)

    def _draw_arrows(self, body: Xml.Element, dots: dict[str, tuple[float, float]]) -> None:
        line = {"stroke": _RELATION_COLOUR, "stroke-width": "1.4", "stroke-opacity": "0.75", "fill": "none"}
        curves = Xml.SubElement(body, "g", line)
        style = {"font-style": "italic", "fill": _RELATION_COLOUR, "stroke-width": "6"}
        words = Xml.SubElement(body, "g", _label_style(_SMALL_FONT_SIZE) | style)
        entities = {entity.key: entity for entity in self.graph.entities}
        for arrow, place in zip(self.arrows, self._arrow_places, strict=True):
            start, end = np.array(dots[arrow.subject]), np.array(dots[arrow.object])
            bend = 2 * place - (start + end) / 2  # so that the curve goes through its words
            start = _toward(start, bend, self._way_out(entities[arrow.subject], bend - start))
            end = _toward(end, bend, self._way_out(entities[arrow.object], bend - end) + 2)
            path = f"M{_point(start)} Q{_point(bend)} {_point(end)}"
            Xml.SubElement(curves, "path", {"d": path, "marker-end": "url(#arrow)"})
            word = Xml.SubElement(words, "text", x=f"{place[0]:.1f}", y=f"{place[1] + 4:.1f}")
            word.text = arrow.label
            Xml.SubElement(word, "title").text = _xml_text("\n".join(arrow.words))

    def _way_out(self, entity: Entity, direction: Floats) -> float:
        """How far it is from the middle of a dot to where neither the dot nor the label below it covers a line."""
        radius = _radius(entity)
        half_width = _text_width(self._labels[entity.key], _FONT_SIZE) / 2
        x, y = abs(float(direction[0])), float(direction[1])
        if y <= 0 or x * radius >= y * half_width:  # it leaves the dot above the label, or beside it
            return radius
        return math.hypot(x, y) * min((radius + _LINE_HEIGHT) / y, half_width / max(x, 1e-9))

    def _draw_names(self, body: Xml.Element, dots: dict[str, tuple[float, float]]) -> None:
        circles, labels = Xml.SubElement(body, "g"), Xml.SubElement(body, "g", _label_style(_FONT_SIZE))
        for entity in reversed(self.graph.entities):
            (x, y), radius, is_asked = dots[entity.key], _radius(entity), entity.key == self.graph.entity
            colour = _COLOURS[_step(self.graph, entity)]
            dot = Xml.SubElement(circles, "circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius:.1f}", fill=colour)
            Xml.SubElement(dot, "title").text = _xml_text(f"{entity.name} ({_count(entity.passages, 'passage')})")
            label = Xml.SubElement(labels, "text", x=f"{x:.1f}", y=f"{y + radius + _FONT_SIZE:.1f}")
            label.set("font-weight", "bold" if is_asked else "normal")
            label.text = self._labels[entity.key]


class _LegendEntry(NamedTuple):
    """A sign and what it means."""

    sign: str
    """"dot", "line" or "arrow"."""
    colour: str
    text: str

    @property
    def width(self) -> float:
        return 44 + _text_width(self.text, _SMALL_FONT_SIZE)


def _legend_steps(graph: Neighbourhood) -> Iterator[_LegendEntry]:
    meanings = _STEPS if graph.entity else {1: "a name: larger, the more passages have it"}
    for step in sorted({_step(graph, entity) for entity in graph.entities}):
        yield _LegendEntry("dot", _COLOURS[step], meanings[step])


def _legend_lines(graph: Neighbourhood, arrows: Sequence[_Arrow]) -> Iterator[_LegendEntry]:
    if _lines(graph, arrows):
        yield _LegendEntry("line", _GREY, "in the same passages: thicker, the more they are")
    if arrows:
        yield _LegendEntry("arrow", _RELATION_COLOUR, "a relation, as a language model read it")


def _legend_width(entries: Sequence[_LegendEntry]) -> float:
    return sum(entry.width for entry in entries)


def _wrap(entries: Sequence[_LegendEntry], width: float) -> list[list[_LegendEntry]]:
    rows: list[list[_LegendEntry]] = []
    for entry in entries:
        if not rows or _legend_width([*rows[-1], entry]) > width:
            rows.append([])
        rows[-1].append(entry)
    return rows


def _draw_legend(root: Xml.Element, rows: Sequence[Sequence[_LegendEntry]], top: float) -> None:
    legend = Xml.SubElement(root, "g", {"font-size": f"{_SMALL_FONT_SIZE:g}", "fill": "#475569"})
    for number, row in enumerate(rows):
        x, y = _MARGIN, top + _LINE_HEIGHT * (number + 0.5)
        for entry in row:
            line = {"stroke": entry.colour, "d": f"M{x:.1f} {y:.1f}H{x + 22:.1f}", "stroke-width": "2"}
            if entry.sign == "dot":
                Xml.SubElement(legend, "circle", cx=f"{x + 16:.1f}", cy=f"{y:.1f}", r="6", fill=entry.colour)
            else:
                Xml.SubElement(legend, "path", line | ({"marker-end": "url(#arrow)"} if entry.sign == "arrow" else {}))
            Xml.SubElement(legend, "text", x=f"{x + 28:.1f}", y=f"{y + 4:.1f}").text = entry.text
            x += entry.width


def _step(graph: Neighbourhood, entity: Entity) -> int:
    """Which colour an entity has: that of its distance, or one for all where no name was asked about."""
    return min(entity.distance, len(_COLOURS) - 1) if graph.entity else 1


def _label_style(font_size: float) -> dict[str, str]:
    halo = {"paint-order": "stroke", "stroke": "#ffffff", "stroke-width": "3", "stroke-linejoin": "round"}
    return {"font-size": f"{font_size:g}", "text-anchor": "middle", **halo}


def _labels(entities: Sequence[Entity]) -> dict[str, str]:
    """The names by the keys: long ones are cut, unless another would look the same."""
    uses = Counter(map(_label, {entity.name for entity in entities}))
    shown = {entity.key: _label(entity.name) for entity in entities}
    return shown | {entity.key: _xml_text(entity.name) for entity in entities if uses[shown[entity.key]] > 1}


def _name_box(entity: Entity, label: str) -> tuple[float, float]:
    radius = _radius(entity)
    return max(_text_width(label, _FONT_SIZE), 2 * radius) + 10, 2 * radius + _LINE_HEIGHT + 6


def _radius(entity: Entity) -> float:
    return min(4 + 2 * float(np.sqrt(entity.passages)), 24.0)


def _toward(point: Floats, target: Floats, distance: float) -> Floats:
    """The point so far from one toward another."""
    way = target - point
    moved: Floats = point + way * (distance / max(float(np.hypot(*way)), distance, 1e-9))
    return moved


def _point(point: Floats) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _text_width(text: str, font_size: float) -> float:
    return sum(2 if ord(letter) >= 0x2E80 else 1 for letter in text) * _LETTER_WIDTH * font_size


def _label(text: str) -> str:
    return one_line(_xml_text(text), _MAX_LABEL_CHARACTERS)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _to_xml(root: Xml.Element) -> str:
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
