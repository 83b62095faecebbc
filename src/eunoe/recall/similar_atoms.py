"""Atoms that may say the same as a text: the nearest by vectors, or by words where there are none."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from eunoe.index.dense import Floats
from eunoe.index.stream import StreamIndex
from eunoe.model.arguments import ATOM_KINDS, utc_now
from eunoe.model.scope import Scope
from eunoe.recall.ranking_recipes import RECIPES
from eunoe.recall.request import Filter, RecallRequest
from eunoe.recall.search import Searcher

_MAX_SIMILAR: Final = 5

SimilarAtoms = Mapping[str, float]
"""The cosine of each atom with a text, by its id; 0 where the vectors cannot be compared."""


def find_similar_atoms(
    searcher: Searcher, scope: Scope, vectors: Mapping[str, Floats | None]
) -> dict[str, SimilarAtoms]:
    """Find the open atoms of a scope that are nearest to each text. `vectors` are those of the texts."""
    with searcher.indexes.borrow([scope]) as held:
        index = held[0].index if held else None
        found = {text: _nearest(index, vector) for text, vector in vectors.items()}
    return {text: _find_by_words(searcher, scope, text) if near is None else near for text, near in found.items()}


def _nearest(index: StreamIndex | None, vector: Floats | None) -> SimilarAtoms | None:
    """The nearest atoms; None where they cannot be told by vectors."""
    codes = [index.codes["kind"][kind] for kind in ATOM_KINDS if kind in index.codes["kind"]] if index else []
    if index is None or not codes:
        return {}
    cosines = index.dense.cosines(vector) if vector is not None and index.dense.count else None
    if cosines is None:
        return None
    rows = np.flatnonzero(index.open & np.isin(index.columns["kind"], codes))
    best = rows[np.argsort(-cosines[rows], kind="stable")[:_MAX_SIMILAR]]
    return {index.ids[row]: float(cosines[row]) for row in best.tolist()}


def _find_by_words(searcher: Searcher, scope: Scope, text: str) -> SimilarAtoms:
    only_atoms = Filter(kinds=frozenset(ATOM_KINDS))
    request = RecallRequest(
        text, only_atoms, RECIPES["lexical"], utc_now().timestamp(), _MAX_SIMILAR, tokens=None, vector=None
    )
    return {hit.id: 0.0 for hit in searcher.search([scope], request).hits}
