"""The second stage of recall: the best candidates are read together with the question and put into a new order."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from heapq import merge
from itertools import accumulate
from math import exp, isfinite, log
from statistics import fmean
from time import perf_counter
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.encoder import CrossEncoder
from eunoe.errors import EmbedderError, EunoeError
from eunoe.index.stream import StreamIndex
from eunoe.index.tables import Floats
from eunoe.model.atom import Record
from eunoe.recall.ranking import Candidate
from eunoe.recall.recipes import RerankSettings
from eunoe.recall.request import Filter
from eunoe.store.contract import ItemQuery, Reading
from eunoe.text.sentences import split_into_parts

_MAX_BATCH: Final = 16
_MAX_RISE: Final = 2.0
_NEWEST_SHARE: Final = 0.3
"""The pace is the mean of all batches, the newest with this share. One moment of a busy machine is no pace: a batch
counts at most as so many times slower than those before."""
_RELAXATION: Final = 0.9


class ReadingPace:
    """Learnt from what was read before. Threads may share it: a number that is lost in between comes again.

    >>> pace = ReadingPace()
    >>> pace.note(characters=400, seconds=0.004)
    >>> pace.count_within([400, 400, 400, 400], seconds=0.02), pace.count_within([400], seconds=0.001)
    (2, 0)
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        """For a character; 0 before anything was read."""

    def count_within(self, sizes: Sequence[int], seconds: float) -> int:
        """How many texts of these sizes to read next: what takes half of the time, so that a wrong guess is noticed
        before it is over; the last one may take all of it. The very first text is read alone."""
        if not sizes or not seconds > 0 or sizes[0] * self._seconds > seconds:
            return 0
        if not self._seconds:
            return 1
        room = seconds / self._seconds
        return max(sum(total <= room / 2 for total in accumulate(sizes[:_MAX_BATCH])), 1)

    def note(self, characters: int, seconds: float) -> None:
        """Learn from a batch."""
        measured, known = seconds / max(characters, 1), self._seconds
        self._seconds = known + _NEWEST_SHARE * (min(measured, _MAX_RISE * known) - known) if known else measured

    def relax(self) -> None:
        """Expect a little less after reading nothing, or a pace that was too slow once would stay for ever."""
        self._seconds *= _RELAXATION


WORDS_BEFORE: Final = 12
"""How many words of the turn before are read with a turn."""

_MAX_SIZE: Final = 600
"""About so many characters of a question and a text are read; what is longer takes no more time."""
_TINY: Final = 1e-12
_MAX_LOG_ODDS: Final = 700.0
"""No score needs more: `exp` takes little more."""


class RerankModel(Protocol):
    """Reads texts together with a question."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """A number for each text, the higher the better it answers the question."""


class Reranker:
    """Reads for one memory, whose threads share it. Where it cannot, recall goes on without, and `error` says why."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.error = ""
        self._clock = clock
        self._pace = ReadingPace()

    @cached_property
    def model(self) -> RerankModel:
        return CrossEncoder()

    def rerank(
        self, question: str, candidates: Sequence[Candidate], passages: Sequence[str], settings: RerankSettings
    ) -> tuple[list[Candidate], int]:
        """Put candidates into the order that both stages give together, and say how many were read; the passages are
        those of the first ones.

        Raise EmbedderError where they cannot be read; `error` keeps why.
        """
        try:
            scores = self._read(question, passages, settings.budget_ms)
        except EunoeError as error:
            self.error = str(error)
            raise
        self.error = ""
        if not scores:
            return list(candidates), 0
        gains = [settings.weight * (score - settings.baseline) for score in scores]
        read = [
            candidate._replace(score=_raise(candidate.score, gain), explain=partial(candidate.explain, rerank=gain))
            for candidate, gain in zip(candidates, gains, strict=False)
        ]
        # Beyond the depth a candidate counts as if it read like the worst of what was.
        # What time did not suffice to read would read worse than the mean of the better ones, not as badly as the
        # worst, and gains nothing unread.
        loss = min(gains) if len(gains) == len(passages) else min((fmean(gains) + min(gains)) / 2, 0.0)
        rest = [each._replace(score=_raise(each.score, loss)) for each in candidates[len(gains) :]]
        read.sort(key=lambda each: (-each.score, each.id, each.stream))
        return list(merge(read, rest, key=lambda each: -each.score)), len(scores)

    def _read(self, question: str, passages: Sequence[str], budget_ms: float | None) -> list[float]:
        """The scores of all passages, or of as many of the first ones as can be read within a time."""
        if budget_ms is None:
            return self._scores(question, passages)
        self._scores(question, ())  # loading takes its time once, whatever the budget, and is no measure of reading
        end = self._clock() + budget_ms / 1000
        sizes = [min(len(question) + len(passage), _MAX_SIZE) for passage in passages]
        scores: list[float] = []
        while count := self._pace.count_within(sizes[len(scores) :], end - (began := self._clock())):
            batch = slice(len(scores), len(scores) + count)
            scores += self._scores(question, passages[batch])
            self._pace.note(sum(sizes[batch]), self._clock() - began)
        if not scores:
            self._pace.relax()
        return scores

    def _scores(self, question: str, passages: Sequence[str]) -> list[float]:
        try:
            scores: list[float] = self.model.scores(question, passages).tolist()
        except EunoeError:
            raise
        except Exception as error:
            # Its message may hold words of a memory, which must not outlive it.
            raise EmbedderError(f"{self.model.name} failed: {type(error).__name__}") from None
        if len(scores) != len(passages) or not all(map(isfinite, scores)):
            raise EmbedderError(f"{self.model.name} gave something else than a number for each text")
        return scores


def read_passages(
    store: Reading,
    indexes: Sequence[StreamIndex],
    candidates: Sequence[Candidate],
    records: Mapping[int, Record],
    filter: Filter,
    now: float,
    vector: Floats | None = None,
) -> list[str]:
    """The text of each candidate as the reranker reads it, as in training: who speaks, and above it the end of the turn
    before, unless that is filtered out. Of a long text it is the part that is nearest to the question's vector."""
    masks = [filter.mask(index, now) for index in indexes]
    before: list[int] = []  # the number of the turn before each, 0 where there is none that may be found
    for candidate in candidates:
        index = indexes[candidate.stream]
        row = int(index.layout.before[index.row_of[candidate.seq]])
        before.append(index.seqs[row] if row >= 0 and masks[candidate.stream][row] else 0)
    missing = [seq for seq in dict.fromkeys(before) if seq and seq not in records]
    known = {**records, **{record.seq: record for record in store.select(ItemQuery(seqs=missing))}}
    passages = []
    for candidate, seq in zip(candidates, before, strict=True):
        record = known[candidate.seq]
        text = _spoken(record, _nearest_part(record, indexes[candidate.stream], vector))
        if earlier := known.get(seq):
            text = f"{_spoken(earlier, ' '.join(earlier.content.split()[-WORDS_BEFORE:]))}\n{text}"
        passages.append(text)
    return passages


def _nearest_part(record: Record, index: StreamIndex, vector: Floats | None) -> str:
    if vector is None or len(vector) != index.dense.dimensions:
        return record.content
    part, count = index.dense.nearest_part(index.row_of[record.seq], vector)
    pieces = split_into_parts(record.content) if count > 1 else []
    return pieces[part] if count > 1 and len(pieces) == count else record.content  # some could not be embedded


def _spoken(record: Record, text: str) -> str:
    speaker = record.speaker or record.role.capitalize()
    return f"{speaker}: {text}" if speaker else text


def _raise(score: float, gain: float) -> float:
    within = min(max(score, _TINY), 1 - _TINY)
    odds = min(max(log(within / (1 - within)) + gain, -_MAX_LOG_ODDS), _MAX_LOG_ODDS)
    return 1 / (1 + exp(-odds))
