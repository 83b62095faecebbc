"""The part of a graph around one name, or its best connected names: for people to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import NotFoundError
from eunoe.index.cache import IndexCache
from eunoe.index.graph import TITLE_WEIGHT, Graph, summed
from eunoe.index.stream import StreamIndex
from eunoe.model.graph import Entity, Link, Mention, Neighbourhood
from eunoe.model.scope import Scope
from eunoe.recall.filters import ALL
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.text.entities import entity_key, title_keys

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MAX_ENTITIES, MAX_DEPTH = 1000, 6
_OFFERED = 5
_WRITTEN = 50
"""Rows that are looked at for how a name is written."""


def find_neighbourhood(
    store: Store, indexes: IndexCache, scope: Scope, entity: str, depth: int, limit: int
) -> Neighbourhood:
    """What is near to a name, at most so many others; without a name those that are tied to most."""
    with indexes.borrow([scope], graph=True) as held:
        for _, index in held:
            seen = _Seen(index)
            return _near(store, seen, scope, entity, depth, limit) if entity.strip() else _best(seen, limit)
    if entity.strip():
        raise NotFoundError(f"{scope} holds nothing yet, so it knows no {entity!r}")
    return Neighbourhood()


class _Seen:
    """The edges of the rows that are true now, and no others."""

    def __init__(self, index: StreamIndex) -> None:
        assert index.graph is not None
        self.graph: Graph = index.graph
        where = index.rows_of(self.graph)
        visible = (where >= 0) & np.append(ALL.mask(index, time()), False).take(where)
        seen = visible.take(self.graph.edges["row"])
        self.row: Ints = self.graph.edges["row"][seen]
        self.entity: Ints = self.graph.edges["entity"][seen]
        self.weight: Floats = self.graph.edges["weight"][seen].astype(np.float64)
        self.sizes = self.graph.rows, len(self.graph.keys)
        self.holders = np.bincount(self.entity, minlength=self.sizes[1])
        """How many rows have each name."""

    def weights(self, entity: int) -> Floats:
        """How much each row has to do with a name, 0 where it does not have it."""
        own = self.entity == entity
        return summed(self.row[own], self.weight[own], self.sizes[0])

    def beside(self, entity: int) -> Floats:
        """How strongly each name is tied to this one."""
        own = self.weights(entity).take(self.row)
        ties = summed(self.entity, np.where(own > 0, np.maximum(own, self.weight), 0), self.sizes[1])
        ties[entity] = 0
        return ties

    def ties(self) -> Floats:
        """How strongly each name is tied to all others together, without going through the pairs."""
        titled = self.weight > 1
        main = np.bincount(self.row, titled, self.sizes[0]).take(self.row)
        others = np.bincount(self.row, minlength=self.sizes[0]).take(self.row) - 1
        shared = np.where(titled, TITLE_WEIGHT * others, others + (TITLE_WEIGHT - 1) * main)
        return summed(self.entity, shared, self.sizes[1])

    def label(self, entity: int) -> str:
        """How a name is written where it stands alone, or else as the title that it is a short form of."""
        return next(
            (name for name in self._written(entity) if entity_key(name) == self.graph.keys[entity]), self.title(entity)
        )

    def title(self, entity: int) -> str:
        """How a name is written in a row about it, or else in the first that has it."""
        return next(self._written(entity))

    def _written(self, entity: int) -> Iterator[str]:
        places = np.flatnonzero(self.entity == entity)
        order = places[np.argsort(-self.weight[places], kind="stable")][:_WRITTEN]
        return (self.graph.written(row, entity) for row in self.row[order].tolist())

    def told(self, entity: int, weight: float, distance: int) -> Entity:
        found = self.graph.keys[entity]
        return Entity(found, self.label(entity), int(self.holders[entity]), round(weight, 3), distance)


def _best(seen: _Seen, limit: int) -> Neighbourhood:
    ties = seen.ties()
    told = [seen.told(number, float(ties[number]), 0) for number in _strongest(seen, ties, limit)]
    return Neighbourhood(entities=tuple(told), links=_links(seen, [entity.key for entity in told]))


def _near(store: Store, seen: _Seen, scope: Scope, entity: str, depth: int, limit: int) -> Neighbourhood:
    start = _found(seen, scope, entity)
    told = [seen.told(start, 0.0, 0)]
    known, edge = {start}, {start: 1.0}
    for distance in range(1, depth + 1):
        reached = sum((share * seen.beside(number) for number, share in edge.items()), np.zeros(seen.sizes[1]))
        reached[list(known)] = 0
        chosen = _strongest(seen, reached, limit + 1 - len(told), sorted(known))
        told += [seen.told(number, float(reached[number]), distance) for number in chosen]
        known |= set(chosen)
        total = float(reached[chosen].sum()) or 1.0
        edge = {number: float(reached[number]) / total for number in chosen}
        if not edge or len(told) > limit:
            break
    keys = [each.key for each in told]
    return Neighbourhood(keys[0], tuple(told), _links(seen, keys), _passages(store, seen, start, keys, limit))


def _found(seen: _Seen, scope: Scope, entity: str) -> int:
    """The number of a name, however it is written."""
    for name in (entity_key(entity), *title_keys(entity)):
        number = seen.graph.entities.get(name, 0)
        if seen.holders[number] and number:
            return number
    words = set(entity_key(entity).split())
    like = [number for name, number in seen.graph.entities.items() if seen.holders[number] and words & {*name.split()}]
    like.sort(key=lambda number: (-len(words & {*seen.graph.keys[number].split()}), -seen.holders[number], number))
    offered = ", ".join(dict.fromkeys(seen.label(number) for number in like[:_OFFERED]))
    raise NotFoundError(
        f"{scope} has no passage that names {entity!r}" + (f"; near to it: {offered}" if offered else "")
    )


def _strongest(seen: _Seen, ties: Floats, limit: int, known: Sequence[int] = ()) -> list[int]:
    """The names with the strongest ties, the rarer first among equals: they tell more. Short forms of a title that
    stand nowhere without it count as one."""
    order = np.lexsort((np.arange(len(ties)), seen.holders, -ties))
    forms = {(seen.title(number), int(seen.holders[number])) for number in known}
    chosen: list[int] = []
    for number in order.tolist():
        if len(chosen) >= limit or ties[number] <= 0:
            break
        form = seen.title(number), int(seen.holders[number])
        if form not in forms:
            forms.add(form)
            chosen.append(number)
    return chosen


def _links(seen: _Seen, keys: Sequence[str]) -> tuple[Link, ...]:
    """The ties among these names."""
    place = np.full(seen.sizes[1], -1)
    place[[seen.graph.entities[name] for name in keys]] = np.arange(len(keys))
    at = place.take(seen.entity)
    inside = np.flatnonzero(at >= 0)
    inside = inside[np.argsort(seen.row[inside], kind="stable")]
    ties = np.zeros((len(keys), len(keys)))
    for part in np.split(inside, np.flatnonzero(np.diff(seen.row[inside])) + 1):
        ties[np.ix_(at[part], at[part])] += np.maximum.outer(seen.weight[part], seen.weight[part])
    pairs = np.argwhere(np.triu(ties, 1) > 0).tolist()
    return tuple(Link(keys[a], keys[b], round(float(ties[a, b]), 3)) for a, b in pairs)


def _passages(store: Store, seen: _Seen, start: int, keys: Sequence[str], limit: int) -> tuple[Mention, ...]:
    """Those that are about the name first, then the latest."""
    weights = seen.weights(start)
    seqs = {seen.graph.seqs[row]: float(weights[row]) for row in np.flatnonzero(weights).tolist()}
    order = sorted(seqs, key=lambda seq: (-seqs[seq], -seq))[:limit]
    rows = {row.seq: row for row in store.select(ItemQuery(seqs=order))}
    shown = frozenset(keys)
    return tuple(
        Mention(
            rows[seq].id,
            rows[seq].kind,
            rows[seq].text,
            seqs[seq] > 1,
            tuple(name for name in seen.graph.names_of(seq) if name in shown),
        )
        for seq in order
        if seq in rows
    )
