"""The second stage of recall: the best that was found, read together with the question and put into a new order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import exp, isfinite, log
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eunoe.errors import EmbedderError, EunoeError
from eunoe.index.dense import Floats
from eunoe.index.stream import StreamIndex
from eunoe.model.record import Record
from eunoe.recall.filters import Filter
from eunoe.recall.ranking import Found
from eunoe.recall.recipes import Reading
from eunoe.store.contract import Store
from eunoe.store.query import ItemQuery
from eunoe.text.parts import split_into_parts

BEFORE = 24
"""How many words of the turn before are read with a turn."""

_TINY = 1e-12
_SURE = 700.0
"""Log-odds that no score needs to exceed: `exp` takes little more."""


class Model(Protocol):
    """What reads."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """A number for each text, the higher the better it answers the question."""


class Reranker:
    """Reads for one memory. Where it cannot, recall goes on without, and `error` says why."""

    def __init__(self, model: Model | None = None) -> None:
        self._given = model
        self.error = ""

    @cached_property
    def model(self) -> Model:
        from eunoe.embed.encoder import CrossEncoder

        return self._given or CrossEncoder()

    def rerank(self, question: str, found: list[Found], texts: Sequence[str], reading: Reading) -> list[Found]:
        """Put what was found into the order that both stages give together; `texts` are those of the first ones.

        Raise EmbedderError where they cannot be read; `error` keeps why.
        """
        try:
            scores = self._scores(question, texts)
        except EunoeError as error:
            self.error = str(error)
            raise
        self.error = ""
        return _ordered(found, scores, reading)

    def _scores(self, question: str, texts: Sequence[str]) -> list[float]:
        try:
            scores: list[float] = self.model.scores(question, texts).tolist()
        except EunoeError:
            raise
        except Exception as error:
            # Its message may hold words of a memory, which must not outlive it.
            raise EmbedderError(f"{self.model.name} failed: {type(error).__name__}") from None
        if len(scores) != len(texts) or not all(map(isfinite, scores)):
            raise EmbedderError(f"{self.model.name} gave something else than a number for each text")
        return scores


class Passage(NamedTuple):
    """What is to be read of one thing found."""

    record: Record
    before: Record | None
    """The turn before it."""
    part: tuple[int, int]
    """Which of its vectors is nearest to the question's, and how many it has."""

    def text(self) -> str:
        """As in training: who speaks, and above it the end of what was said just before."""
        own = _said(self.record, self._nearest())
        if self.before is None:
            return own
        return f"{_said(self.before, ' '.join(self.before.content.split()[-BEFORE:]))}\n{own}"

    def _nearest(self) -> str:
        """Of a long text the nearest part."""
        text, (which, count) = self.record.content, self.part
        if count < 2:
            return text
        pieces = split_into_parts(text)
        return pieces[which] if len(pieces) == count else text  # some could not be embedded


def passages(
    store: Store,
    indexes: Sequence[StreamIndex],
    found: Sequence[Found],
    records: Mapping[int, Record],
    filter: Filter,
    now: float,
    vector: Floats | None = None,
) -> list[Passage]:
    """What is to be read of each thing found for a question with this vector. What is filtered out lends nothing here
    either."""
    masks = {number: filter.mask(indexes[number], now) for number in {one.stream for one in found}}
    before = [_before(indexes[one.stream], one.seq, masks[one.stream]) for one in found]
    missing = [seq for seq in dict.fromkeys(before) if seq and seq not in records]
    known = {**records, **{record.seq: record for record in store.select(ItemQuery(seqs=missing))}}
    near = [_part(indexes[one.stream], one.seq, vector) for one in found]
    each = zip(found, before, near, strict=True)
    return [Passage(known[one.seq], known.get(seq), part) for one, seq, part in each]


def _before(index: StreamIndex, seq: int, mask: NDArray[np.bool_]) -> int:
    """Number of the turn before, 0 if there is none."""
    row = index.row(seq)
    before = -1 if row is None else int(index.layout.before[row])
    return index.seqs[before] if before >= 0 and mask[before] else 0


def _part(index: StreamIndex, seq: int, vector: Floats | None) -> tuple[int, int]:
    row = index.row(seq)
    if row is None or vector is None or len(vector) != index.dense.size:
        return 0, 0
    return index.dense.nearest(row, vector)


def _said(record: Record, text: str) -> str:
    speaker = record.speaker or record.role.capitalize()
    return f"{speaker}: {text}" if speaker else text


def _ordered(found: Sequence[Found], scores: Sequence[float], reading: Reading) -> list[Found]:
    """What was not read follows in its order: it counts as if it read like the worst of what was."""
    worth = [reading.weight * (score - reading.usual) for score in scores]
    read = [_moved(one, each) for one, each in zip(found, worth, strict=False)]
    rest = [one._replace(score=_raised(one.score, min(worth))) for one in found[len(worth) :]]
    return sorted(read, key=lambda one: (-one.score, one.id, one.stream)) + rest


def _moved(one: Found, worth: float) -> Found:
    return one._replace(score=_raised(one.score, worth), explain=partial(one.explain, read=worth))


def _raised(score: float, by: float) -> float:
    within = min(max(score, _TINY), 1 - _TINY)
    odds = min(max(log(within / (1 - within)) + by, -_SURE), _SURE)
    return 1 / (1 + exp(-odds))
