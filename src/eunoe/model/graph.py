"""What stands around a name: names in the same passages, how strongly they are tied, and the passages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Entity:
    """A name, and how much there is of it."""

    key: str
    """The form in which names are compared."""
    name: str
    """As it is written in one of its passages."""
    passages: int
    """How many passages have it."""
    weight: float
    """How strongly it is tied to the name asked about, through others if need be; without one, to all others."""
    distance: int = 0
    """Steps from the name asked about."""


@dataclass(frozen=True, slots=True)
class Link:
    """Two names, by their keys, that passages share. Each passage counts 1, one that is about either of them more."""

    a: str
    b: str
    weight: float


@dataclass(frozen=True, slots=True)
class Relation:
    """What passages say of two names, by their keys: a language model, or metadata, gave it."""

    subject: str
    relation: str
    object: str
    passages: int
    """How many passages say it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A passage that has the name asked about."""

    id: str
    kind: str
    text: str
    about: bool
    """Whether the name is what the passage is about."""
    keys: tuple[str, ...] = ()
    """The keys of the names in it, as far as they are shown."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A part of the graph of one scope."""

    entity: str = ""
    """The key of the name asked about; empty if none was."""
    entities: tuple[Entity, ...] = ()
    """The nearest first, the strongest tie first; the one asked about before all."""
    links: tuple[Link, ...] = ()
    passages: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()
    """Between the entities; those that most passages say first."""


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How much there is in the graph of one scope."""

    passages: int = 0
    entities: int = 0
    mentions: int = 0
    """Pairs of a passage and an entity in it."""
    triples: int = 0
    """What language models, or metadata, gave; each once, however many passages say it."""


class Triple(NamedTuple):
    """One statement of a passage: who, what, whom."""

    subject: str
    relation: str
    object: str


class PassageGraph(NamedTuple):
    """The entities and triples of one passage, as a language model or metadata gave them.

    >>> PassageGraph.of(PassageGraph(("Anna",), (Triple("Anna", "lives in", "Rome"),)).json()).triples[0].object
    'Rome'
    """

    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()

    @classmethod
    def of(cls, data: str) -> PassageGraph:
        entities, triples = json.loads(data)
        return cls(tuple(entities), tuple(map(Triple._make, triples)))

    def json(self) -> str:
        return json.dumps(self, ensure_ascii=False)
