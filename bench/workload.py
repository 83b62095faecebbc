"""The memories and questions every engine is given: synthetic, repeatable, made scope by scope."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

BATCH_SIZE = 500
_CENTRES = 200
_CENTRES_PER_SCOPE = 12
_SPREAD = 0.8
"""How far a memory lies from its centre."""
_VOCABULARY_WORDS = 8_000
_FUNCTION_WORDS = """
    the of and to a in is that it for was on are with as at be this have from or by not but what all were
    we when your can there an which their if will about how up out then she he they you i me my had has
"""
_ONSETS = "b c d f g h k l m n p r s t v w br ch st tr"
_VOWELS = "a e i o u ai ea"


@dataclass(frozen=True)
class WorkloadBatch:
    """Memories of one scope, in every form an engine may ask for."""

    scope: str
    keys: list[str]
    texts: list[str]
    matrix: Matrix
    lists: list[list[float]]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class SearchQuery:
    """One question, and the ten texts an exact vector search of its scope gives, less any that point away from it."""

    scope: str
    text: str
    vector: Matrix
    floats: list[float]
    truth: tuple[str, ...]


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
    def _centres(self) -> Matrix:
        return _unit_noise(np.random.default_rng(self.seed), _CENTRES, self.dimension)

    def memories(self, index: int, count: int | None = None, part: int = 0) -> tuple[list[str], Matrix]:
        """Texts and unit vectors of scope number `index`; another `part` gives other memories of it."""
        rng = np.random.default_rng((self.seed, index, part))
        count = self.per_scope if count is None else count
        own = np.random.default_rng((self.seed, index)).choice(_CENTRES, _CENTRES_PER_SCOPE, replace=False)
        noise = _unit_noise(rng, count, self.dimension)
        vectors = _unit(self._centres[rng.choice(own, count)] + np.float32(_SPREAD) * noise)
        return _random_texts(rng, count), vectors

    def batches(self, index: int) -> Iterator[WorkloadBatch]:
        """Everything in one scope, at most `BATCH_SIZE` at a time."""
        texts, vectors = self.memories(index)
        for start in range(0, len(texts), BATCH_SIZE):
            rows = slice(start, start + BATCH_SIZE)
            yield _batch(index, start, texts[rows], vectors[rows])

    def singles(self, count: int) -> Iterator[WorkloadBatch]:
        """More memories, one at a time, round the scopes."""
        for number in range(count):
            lap, index = divmod(number, self.scopes)
            texts, vectors = self.memories(index, count=1, part=1 + lap)
            yield _batch(index, self.per_scope + lap, texts, vectors)

    def queries(self, count: int, among: int | None = None) -> list[SearchQuery]:
        """Questions near a stored memory, in mixed order, over all scopes or `among` random ones."""
        rng = np.random.default_rng((self.seed, 1))
        chosen = rng.permutation(self.scopes)[: min(among or self.scopes, count)]
        queries: list[SearchQuery] = []
        for place, index in enumerate(chosen):
            queries += self._queries_of(int(index), count // len(chosen) + (place < count % len(chosen)))
        return [queries[place] for place in rng.permutation(len(queries))]

    def _queries_of(self, index: int, count: int) -> list[SearchQuery]:
        rng = np.random.default_rng((self.seed, 2, index))
        texts, matrix = self.memories(index)
        near = rng.integers(0, len(texts), count)
        vectors = _unit(matrix[near] + np.float32(_SPREAD / 2) * _unit_noise(rng, count, self.dimension))
        cosines = vectors @ matrix.T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :10]
        return [
            SearchQuery(
                scope=f"scope-{index}",
                text=" ".join(rng.permutation(texts[memory].split())[:8]),
                vector=vector,
                floats=vector.tolist(),
                truth=tuple(texts[row] for row in rows if similarities[row] > 0),
            )
            for memory, vector, rows, similarities in zip(near, vectors, best, cosines, strict=True)
        ]


def _batch(index: int, start: int, texts: list[str], vectors: Matrix) -> WorkloadBatch:
    keys = [f"{index}-{start + offset}" for offset in range(len(texts))]
    return WorkloadBatch(f"scope-{index}", keys, texts, vectors, vectors.tolist())


def _unit(matrix: Matrix) -> Matrix:
    scaled: Matrix = matrix / np.linalg.norm(matrix, axis=-1, keepdims=True)
    return scaled


def _unit_noise(rng: np.random.Generator, rows: int, dimension: int) -> Matrix:
    return _unit(rng.standard_normal((rows, dimension), dtype=np.float32))


def _random_texts(rng: np.random.Generator, count: int) -> list[str]:
    words, frequencies = _vocabulary()
    lengths = rng.integers(12, 29, count)
    drawn = words[np.searchsorted(frequencies, rng.random(int(lengths.sum())))]
    return [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]


@cache
def _vocabulary() -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Words by rank, and the cumulative Zipf frequencies to draw them with."""
    rng = np.random.default_rng(0)
    words = dict.fromkeys(_FUNCTION_WORDS.split())
    onsets, vowels = _ONSETS.split(), _VOWELS.split()
    while len(words) < _VOCABULARY_WORDS:
        syllables = range(int(rng.integers(2, 5)))
        words["".join(str(rng.choice(onsets)) + str(rng.choice(vowels)) for _ in syllables)] = None
    weights = 1.0 / np.arange(1, _VOCABULARY_WORDS + 1)
    return np.array(list(words), dtype=object), np.cumsum(weights / weights.sum())
