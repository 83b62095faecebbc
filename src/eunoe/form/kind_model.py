"""What kind of thing a turn holds, and whether it is worth keeping: a small model on what the encoder makes of it.

It is three ridge regressions with a Gaussian kernel: a text is compared with each example that the model learned from,
and the examples vote, the nearer the louder. One says the kind, one whether a turn is worth keeping, one whether a
sentence of a turn is. `training/kinds.py` makes the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import ENCODER_SHA256, MEANS_DIMENSIONS
from eunoe.form.kind_features import ASSISTANT_MARK, KindInput, Matrix, read_features
from eunoe.model.arguments import INSTRUCTION, TURN_KINDS, TurnKind
from eunoe.records.corrections import Place

MODEL_FILE: Final = Path(__file__).parent / "model" / "kinds.npz"
_BATCH_TURNS: Final = 256
_LEAST_LENGTH: Final = 1e-9
_DIGITS: Final = 6
"""Of a probability. What the order of additions changes lies far below, so that a turn is judged alike in any batch."""
_INSTRUCTION: Final = TURN_KINDS.index(INSTRUCTION)
_NOTHING: Final = TURN_KINDS.index("nothing")

Arrays = Mapping[str, NDArray[Any]]


class Judgement(NamedTuple):
    """What the model says of a turn or a sentence."""

    kind: TurnKind
    probabilities: Mapping[TurnKind, float]
    """By kind. Their sum is 1."""
    keep: float
    """The probability that it holds something worth keeping."""


class Projection:
    """Brings features down to the few directions in which examples differ."""

    def __init__(self, arrays: Arrays) -> None:
        self._mean = arrays["mean"].astype(np.float64)
        self._matrix = arrays["projection"] * arrays["row_scale"].astype(np.float64)[:, None]

    def project(self, features: Matrix) -> Matrix:
        """What is missing counts as usual; so do columns that are left out at the end."""
        size = features.shape[1]
        projected: Matrix = np.nan_to_num(features - self._mean[:size]) @ self._matrix[:size]
        return projected


class Regression:
    """Lets examples vote."""

    def __init__(self, arrays: Arrays) -> None:
        self._examples = arrays["examples"] * arrays["example_scale"].astype(np.float64)
        self._squares = _squares(self._examples)
        self._votes, self._offsets = arrays["votes"].astype(np.float64), arrays["offsets"].astype(np.float64)

    def score(self, projected: Matrix) -> Matrix:
        scores: Matrix = gaussian_kernel(projected, self._examples, self._squares) @ self._votes + self._offsets
        return scores


class KindModel:
    """Judges turns and sentences by the examples that it learned from. It never changes."""

    def __init__(self, arrays: Arrays) -> None:
        """`arrays` is what `training/kinds.py` writes."""
        self._name = blake2b(arrays["kinds_projection"].tobytes(), digest_size=8).hexdigest()
        kinds, keep, turns, sentences = (part_of(arrays, name) for name in ("kinds", "keep", "turns", "sentences"))
        self._kind_projection, self._kinds = Projection(kinds), Regression(kinds)
        self._sentence_bias = kinds["sentence_bias"].astype(np.float64)
        self._keep_projection, self._turns, self._sentences = Projection(keep), Regression(turns), Regression(sentences)

    def judge(self, turns: Sequence[KindInput]) -> list[Judgement | None]:
        """Say of each turn or sentence what it holds; None of one without a vector."""
        judgements: list[Judgement | None] = [None] * len(turns)
        places = [place for place, turn in enumerate(turns) if turn.vector is not None and turn.vector.any()]
        for start in range(0, len(places), _BATCH_TURNS):
            batch = places[start : start + _BATCH_TURNS]
            for place, judgement in zip(batch, self._judge([turns[place] for place in batch]), strict=True):
                judgements[place] = judgement
        return judgements

    def place(self, means: Sequence[Vectors]) -> list[Place]:
        """Where texts stand among the examples by their layer means alone."""
        rows = self._kind_projection.project(np.array(means, np.float64).reshape(len(means), MEANS_DIMENSIONS))
        lengths = np.maximum(np.sqrt((rows**2).sum(1, keepdims=True)), _LEAST_LENGTH)
        return [Place(self._name, row) for row in (rows / lengths).astype(np.float32)]

    def _judge(self, turns: Sequence[KindInput]) -> Iterator[Judgement]:
        features, is_sentence = read_features(turns), np.array([turn.is_sentence for turn in turns])
        scores = self._kinds.score(self._kind_projection.project(features))
        shares = to_probabilities(scores + self._sentence_bias * is_sentence[:, None], features)
        projected = self._keep_projection.project(features)
        keep = np.where(is_sentence, self._sentences.score(projected)[:, 0], self._turns.score(projected)[:, 0])
        chances = (1 / (1 + np.exp(-keep))).round(_DIGITS).tolist()
        for row, chance in zip(shares.round(_DIGITS).tolist(), chances, strict=True):
            by_kind = dict(zip(TURN_KINDS, row, strict=True))
            yield Judgement(max(TURN_KINDS, key=by_kind.__getitem__), by_kind, chance)


@cache
def load_kind_model(encoder_name: str) -> KindModel | None:
    """Load the model that reads the vectors of an encoder; None if there is none."""
    if not MODEL_FILE.is_file():
        return None
    with np.load(MODEL_FILE, allow_pickle=False) as file:
        arrays = dict(file)
    is_for_encoder = [str(arrays[name]) for name in ("encoder", "sha256")] == [encoder_name, ENCODER_SHA256]
    return KindModel(arrays) if is_for_encoder else None


def part_of(arrays: Arrays, name: str) -> dict[str, NDArray[Any]]:
    """The arrays of one part of the model, by their own names."""
    start = f"{name}_"
    return {each.removeprefix(start): array for each, array in arrays.items() if each.startswith(start)}


def to_probabilities(scores: Matrix, features: Matrix) -> Matrix:
    """The probability of each kind, by row. An assistant gives no standing instructions: what it says so is advice."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    shares: Matrix = powers / powers.sum(1, keepdims=True)
    is_assistant = features[:, ASSISTANT_MARK] == 1
    shares[is_assistant, _NOTHING] += shares[is_assistant, _INSTRUCTION]
    shares[is_assistant, _INSTRUCTION] = 0
    return shares


def gaussian_kernel(one: Matrix, other: Matrix, squares: Matrix | None = None) -> Matrix:
    """How alike each row of one is to each row of the other, from 0 to 1. `squares` are the other's, if known."""
    kernel: Matrix = one @ other.T
    kernel *= 2
    kernel -= (one**2).sum(1)[:, None]
    kernel -= _squares(other) if squares is None else squares
    np.minimum(kernel, 0, out=kernel)
    return np.exp(kernel, out=kernel)


def _squares(rows: Matrix) -> Matrix:
    squares: Matrix = (rows**2).sum(1)
    return squares
