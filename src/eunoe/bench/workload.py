"""The memories and questions every engine is given: synthetic, repeatable, made scope by scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

BATCH = 500
CENTRES = 200
CENTRES_PER_SCOPE = 12
SPREAD = 0.8
VOCABULARY = 8_000
FUNCTION_WORDS = """
    the of and to a in is that it for was on are with as at be this have from or by not but what all were
    we when your can there an which their if will about how up out then she he they you i me my had has
"""
CONSONANTS = "b c d f g h k l m n p r s t v w br ch st tr"
VOWELS = "a e i o u ai ea"


@dataclass(frozen=True)
class Batch:
    """Memories of one scope, in every form an engine may ask for."""

    scope: str
    keys: list[str]
    texts: list[str]
    matrix: Matrix
    lists: list[list[float]]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Query:
    """One question, and the ten texts an exact vector search of its scope gives, less any that point away from it."""

    scope: str
    text: str
    vector: Matrix
    floats: list[float]
    truth: tuple[str, ...]


def unit(matrix: Matrix) -> Matrix:
    """Rows scaled to length one."""
    scaled: Matrix = matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)
    return scaled


@cache
def _vocabulary() -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Words by rank, and the cumulative Zipf frequencies to draw them with."""
    rng = np.random.default_rng(0)
    words = dict.fromkeys(FUNCTION_WORDS.split())
    onsets, nuclei = CONSONANTS.split(), VOWELS.split()
    while len(words) < VOCABULARY:
        parts = int(rng.integers(2, 5))
        words["".join(str(rng.choice(onsets)) + str(rng.choice(nuclei)) for _ in range(parts))] = None
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    return np.array(list(words), dtype=object), np.cumsum(weights / weights.sum())


@dataclass(frozen=True)
class Workload:
    """`size` memories spread evenly over `scopes`; the same seed gives the same memories."""

    size: int
    scopes: int
    dimension: int = 256
    seed: int = 7

    @property
    def per_scope(self) -> int:
        return max(1, self.size // self.scopes)

    @cached_property
    def centres(self) -> Matrix:
        rng = np.random.default_rng(self.seed)
        return unit(rng.standard_normal((CENTRES, self.dimension), dtype=np.float32))

    def memories(self, index: int, count: int | None = None, part: int = 0) -> tuple[list[str], Matrix]:
        """Texts and unit vectors of scope number `index`; another `part` gives other memories of it."""
        rng = np.random.default_rng((self.seed, index, part))
        count = self.per_scope if count is None else count
        own = np.random.default_rng((self.seed, index)).choice(CENTRES, CENTRES_PER_SCOPE, replace=False)
        noise = unit(rng.standard_normal((count, self.dimension), dtype=np.float32))
        vectors = unit(self.centres[rng.choice(own, count)] + np.float32(SPREAD) * noise)
        return _texts(rng, count), vectors

    def batches(self, index: int) -> Iterator[Batch]:
        """Everything in one scope, at most `BATCH` at a time."""
        texts, vectors = self.memories(index)
        for start in range(0, len(texts), BATCH):
            cut = slice(start, start + BATCH)
            yield _batch(index, start, texts[cut], vectors[cut])

    def singles(self, count: int) -> Iterator[Batch]:
        """More memories, one at a time, round the scopes."""
        for number in range(count):
            index = number % self.scopes
            texts, vectors = self.memories(index, count=1, part=1 + number // self.scopes)
            yield _batch(index, self.per_scope + number // self.scopes, texts, vectors)

    def queries(self, count: int, among: int | None = None) -> list[Query]:
        """Questions near a stored memory, in mixed order, over all scopes or `among` random ones."""
        rng = np.random.default_rng((self.seed, 1))
        chosen = rng.permutation(self.scopes)[: min(among or self.scopes, count)]
        made: list[Query] = []
        for place, index in enumerate(chosen):
            share = count // len(chosen) + (place < count % len(chosen))
            made += self._queries_of(int(index), share)
        return [made[place] for place in rng.permutation(len(made))]

    def _queries_of(self, index: int, count: int) -> list[Query]:
        rng = np.random.default_rng((self.seed, 2, index))
        texts, matrix = self.memories(index)
        near = rng.integers(0, len(texts), count)
        noise = unit(rng.standard_normal((count, self.dimension), dtype=np.float32))
        vectors = unit(matrix[near] + np.float32(SPREAD / 2) * noise)
        cosines = vectors @ matrix.T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :10]
        return [
            Query(
                scope=scope_name(index),
                text=" ".join(rng.permutation(texts[memory].split())[:8]),
                vector=vector,
                floats=vector.tolist(),
                truth=tuple(texts[row] for row in rows if near_it[row] > 0),
            )
            for memory, vector, rows, near_it in zip(near, vectors, best, cosines, strict=True)
        ]


def scope_name(index: int) -> str:
    return f"scope-{index}"


def _batch(index: int, start: int, texts: list[str], vectors: Matrix) -> Batch:
    keys = [f"{index}-{start + offset}" for offset in range(len(texts))]
    return Batch(scope_name(index), keys, texts, vectors, vectors.tolist())


def _texts(rng: np.random.Generator, count: int) -> list[str]:
    words, frequencies = _vocabulary()
    lengths = rng.integers(12, 29, count)
    drawn = words[np.searchsorted(frequencies, rng.random(int(lengths.sum())))]
    ends = np.cumsum(lengths)
    return [" ".join(drawn[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
