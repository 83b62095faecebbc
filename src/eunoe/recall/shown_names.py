"""Which entities of a graph are shown as names, and which of them are one: by what all passages of a stream say."""

from collections.abc import Iterator
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from eunoe.index.dense import Bools, Ints
from eunoe.index.graph import EntityGraph, sum_by
from eunoe.index.passage import term_number
from eunoe.text import analyzer
from eunoe.text.full_names import group_names
from eunoe.text.name_model import GIVEN_NAMES, load_name_model
from eunoe.text.names import is_identifier

Floats = NDArray[np.float64]

_MAX_SCORE: Final = 0.98
"""No single passage is surer than this."""
_OTHER_USE_WEIGHT: Final = 2.0
"""What counts how often a word is no name elsewhere, beside what its own passages say."""
_MAX_OTHER_USE: Final = 0.8
"""What can be said for a name by its being no word elsewhere: a word may be rare."""
_MAX_SENTENCES: Final = 500
_MAX_LABELS: Final = 50
"""Passages that are looked at for how a name is written."""


class ShownNames:
    """What the passages of one graph say together about its entities."""

    def __init__(self, graph: EntityGraph, visible: Bools) -> None:
        """`visible` are the rows of the graph that count."""
        self._graph, self._size = graph, len(graph.keys)
        is_visible = visible.take(graph.edges["row"])
        entity, score = graph.edges["entity"][is_visible], graph.edges["score"][is_visible].astype(np.float64)
        likely = np.clip(score, 1 - _MAX_SCORE, _MAX_SCORE)
        counts = self._counts = np.bincount(entity, minlength=self._size)
        self._odds = sum_by(entity, np.log(likely / (1 - likely)), self._size) / np.maximum(counts, 1)
        self._sentence_is_visible = visible.take(graph.sentences["row"])
        self._is_name: dict[int, bool] = {}

    def is_name(self, entity: int) -> bool:
        """Say whether an entity is more likely a name than not."""
        if entity not in self._is_name:
            likely = self._odds[entity] + self._other_use(entity) > 0
            self._is_name[entity] = likely or self._is_identifier(self._graph.keys[entity])
        return self._is_name[entity]

    def _other_use(self, entity: int) -> float:
        """How much the sentences with the same word speak for a name, or against."""
        key = self._graph.keys[entity]
        if " " in key or self._odds[entity] < -np.log(_MAX_SCORE / (1 - _MAX_SCORE)):
            return 0.0
        words, mentions = self._graph.words, self._graph.mentions
        numbers = [term_number(term) for term in analyzer.terms_of_each([key])[0]]
        sentences = np.unique(words["sentence"][np.isin(words["term"], numbers)])
        sentences = sentences[self._sentence_is_visible.take(sentences)][:_MAX_SENTENCES]
        inside = np.flatnonzero(np.isin(mentions["sentence"], sentences)).tolist()
        holds_key = [key in self._graph.keys[mentions["entity"][place]].split() for place in inside]
        named = len(set(compress(mentions["sentence"][inside].tolist(), holds_key)))
        use = _OTHER_USE_WEIGHT * float(np.log((named + 0.5) / (len(sentences) - named + 0.5)))
        # The name of who speaks stands before the words, "Jonas: ...", and is not read as a name there.
        is_known = key in GIVEN_NAMES or not load_name_model().level(key)
        return min(max(use, 0.0) if is_known else use, _MAX_OTHER_USE)

    def groups(self) -> Ints:
        """For each entity the one that it is shown as."""
        likely = np.flatnonzero(self._odds > 0)
        keys = [self._graph.keys[entity] for entity in likely.tolist()]
        same = group_names(dict(zip(keys, self._counts[likely].tolist(), strict=True)), self._may_be_person)
        shown = np.arange(self._size, dtype=np.int32)
        apart = ((name, full) for name, full in same.items() if " " in name or not self._stand_together(name, full))
        for name, full in (*apart, *self._overlong()):
            shown[self._graph.entities[name]] = shown[self._graph.entities[full]]
        return shown

    def _may_be_person(self, key: str) -> bool:
        level = load_name_model().level
        return all(not level(word) or word in GIVEN_NAMES for word in key.split()) and not self._is_identifier(key)

    def _is_identifier(self, key: str) -> bool:
        """Say whether a name is written like an identifier wherever it stands."""
        entity = self._graph.entities[key]
        rows = self._graph.edges["row"].take(self._graph.edges_to(np.array([entity]))[0])[:_MAX_LABELS]
        return all(is_identifier(self._graph.label_in(row, entity)) for row in rows.tolist())

    def _stand_together(self, *names: str) -> bool:
        """Say whether a passage tells two names apart: it would have joined what it holds to be one."""
        edges = self._graph.edges
        one, other = (edges["row"][edges["entity"] == self._graph.entities[name]] for name in names)
        return bool(np.isin(one, other).any())

    def _overlong(self) -> Iterator[tuple[str, str]]:
        """Names that have a word too many in front, or a number behind, with the name alone, which is more frequent."""
        level = load_name_model().level
        for key in filter(None, self._graph.keys):
            first, _, rest = key.partition(" ")
            name, _, last = key.rpartition(" ")
            for short, is_extra in (
                (rest, bool(level(first)) and not level(rest.partition(" ")[0])),
                (name, last.isdecimal()),
            ):
                number = self._graph.entities.get(short, 0)
                if not is_extra or not number or self._counts[number] < self._counts[self._graph.entities[key]]:
                    continue
                if not self._is_identifier(key):
                    yield key, short
                    break
