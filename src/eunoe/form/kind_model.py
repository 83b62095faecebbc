"""What kind of thing a turn holds: a small model on what the encoder makes of the turn and of the one before it.

It is a ridge regression with a Gaussian kernel: a turn is compared with each example that the model learned from, and
the examples vote for kinds, the nearer the louder. `training/kinds.py` makes the file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import ENCODER_SHA256, MEANS_DIMENSIONS
from eunoe.form.data_files import PatternFile

TURN_KINDS: Final = ("instruction", "preference", "fact", "plan", "decision", "change", "request", "nothing")
KEPT_KINDS: Final = TURN_KINDS[:6]
"""What is worth keeping. The other two are dropped."""
MODEL_FILE: Final = Path(__file__).parent / "model" / "kinds.npz"

_STATE: Final = MEANS_DIMENSIONS // 4
_STATES_BEFORE: Final = np.r_[_STATE : 2 * _STATE, 3 * _STATE : 4 * _STATE]
"""What is read of the vector of the turn before. The other half adds nothing."""
_TURN: Final = slice(0, MEANS_DIMENSIONS)
_BEFORE: Final = slice(_TURN.stop, _TURN.stop + len(_STATES_BEFORE))
_MARKS: Final = slice(_BEFORE.stop, _BEFORE.stop + 21)
_ASSISTANT_ROLES: Final = ("assistant", "ai", "model")
_AGENT_ROLE: Final = "agent"
_ASSISTANT_MARK: Final = _MARKS.stop - 2
_FEW_WORDS: Final = 3
_SHORT_WORD_LETTERS: Final = 3
"""Words that are no longer are in too many turns to say that two of them are about the same."""
_READ_CHARACTERS: Final = 2000
"""About as much as the encoder reads of a text."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_BATCH_TURNS: Final = 256
_DIGITS: Final = 6
"""Of a probability. What the order of additions changes lies far below, so that a turn is judged alike in any batch."""
_LEAST: Final = 1e-4
"""Smaller probabilities are alike to the judgement whether to keep a turn."""
_INSTRUCTION: Final = TURN_KINDS.index("instruction")
_NOTHING: Final = TURN_KINDS.index("nothing")
_PATTERNS: Final = PatternFile("kinds")
_CUES: Final = slice(_MARKS.stop, _MARKS.stop + len(_PATTERNS.content["cues"]))
_CUES_BEFORE: Final = slice(_CUES.stop, _CUES.stop + len(_PATTERNS.content["cues_before"]))
BLOCKS: Final = (_TURN, _BEFORE, _MARKS, _CUES, _CUES_BEFORE)
"""The columns of a row of features: vectors of the turn and of the one before it, marks of both, cues in each."""

Matrix = NDArray[np.float64]


class KindInput(NamedTuple):
    """A turn as the model reads it."""

    text: str
    role: str = "user"
    before: str = ""
    """What the other side said just before."""
    vector: Vectors | None = None
    """The layer means of the text, by `Encoder.layer_means`. Without them there is no judgement."""
    vector_before: Vectors | None = None


class Judgement(NamedTuple):
    """What the model says of a turn."""

    kind: str
    probabilities: Mapping[str, float]
    """By kind. Their sum is 1."""
    keep: float
    """The probability that the turn holds something worth keeping."""


class KindModel:
    """Judges turns by the examples that it learned from. It never changes."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """`arrays` is what `training/kinds.py` writes."""
        self._mean = arrays["mean"].astype(np.float64)
        self._projection = arrays["projection"] * arrays["row_scale"].astype(np.float64)[:, None]
        self._examples = arrays["examples"] * arrays["example_scale"].astype(np.float64)
        self._votes, self._offsets = arrays["votes"].astype(np.float64), arrays["offsets"].astype(np.float64)
        self._keep_weights = arrays["keep"].astype(np.float64)

    def judge(self, turns: Sequence[KindInput]) -> list[Judgement | None]:
        """Say of each turn what it holds; None of a turn without a vector."""
        judgements: list[Judgement | None] = [None] * len(turns)
        places = [place for place, turn in enumerate(turns) if turn.vector is not None and turn.vector.any()]
        for start in range(0, len(places), _BATCH_TURNS):
            batch = places[start : start + _BATCH_TURNS]
            for place, judgement in zip(batch, self._judge([turns[place] for place in batch]), strict=True):
                judgements[place] = judgement
        return judgements

    def _judge(self, turns: Sequence[KindInput]) -> Iterator[Judgement]:
        features = read_features(turns)
        projected = self.project(features)
        probabilities = to_probabilities(self.score(projected), features)
        keep = 1 / (1 + np.exp(-keep_features(features, projected, probabilities) @ self._keep_weights))
        for row, share in zip(probabilities.round(_DIGITS).tolist(), keep.round(_DIGITS).tolist(), strict=True):
            by_kind = dict(zip(TURN_KINDS, row, strict=True))
            yield Judgement(max(TURN_KINDS, key=by_kind.__getitem__), by_kind, share)

    def project(self, features: Matrix) -> Matrix:
        """Bring features down to the few directions in which kinds differ. What is missing counts as usual."""
        projected: Matrix = np.nan_to_num(features - self._mean) @ self._projection
        return projected

    def score(self, projected: Matrix) -> Matrix:
        """How much the examples speak for each kind, by row."""
        scores: Matrix = gaussian_kernel(projected, self._examples) @ self._votes + self._offsets
        return scores


@cache
def load_kind_model(encoder_name: str) -> KindModel | None:
    """Load the model that reads the vectors of an encoder; None if there is none."""
    if not MODEL_FILE.is_file():
        return None
    with np.load(MODEL_FILE, allow_pickle=False) as file:
        arrays = dict(file)
    is_for_encoder = [str(arrays[name]) for name in ("encoder", "sha256")] == [encoder_name, ENCODER_SHA256]
    return KindModel(arrays) if is_for_encoder else None


def read_features(turns: Sequence[KindInput]) -> Matrix:
    """What is known of each turn, by row. Without a vector of the turn before, its columns are not numbers."""
    rows = np.zeros((len(turns), _CUES_BEFORE.stop))
    for row, turn in zip(rows, turns, strict=True):
        words, words_before = _read_words(turn.text), _read_words(turn.before)
        row[_TURN] = turn.vector
        row[_BEFORE] = np.nan
        if turn.before and turn.vector_before is not None and turn.vector_before.any():
            row[_BEFORE] = turn.vector_before[_STATES_BEFORE]
        row[_MARKS] = _read_marks(turn, words, words_before)
        row[_CUES][_find_cues(words, "cues")] = 1
        row[_CUES_BEFORE][_find_cues(words_before, "cues_before")] = 1
    return rows


def to_probabilities(scores: Matrix, features: Matrix) -> Matrix:
    """The probability of each kind, by row. An assistant gives no standing instructions: what it says so is advice."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    shares: Matrix = powers / powers.sum(1, keepdims=True)
    is_assistant = features[:, _ASSISTANT_MARK] == 1
    shares[is_assistant, _NOTHING] += shares[is_assistant, _INSTRUCTION]
    shares[is_assistant, _INSTRUCTION] = 0
    return shares


def keep_features(features: Matrix, projected: Matrix, probabilities: Matrix) -> Matrix:
    """What decides whether a turn is worth keeping, by row."""
    logs = np.log(np.maximum(probabilities, _LEAST))
    return np.column_stack([features[:, _MARKS.start :], projected, logs, np.ones(len(features))])


def gaussian_kernel(one: Matrix, other: Matrix) -> Matrix:
    """How alike each row of one is to each row of the other, from 0 to 1."""
    distances = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T
    return np.exp(-np.maximum(distances, 0))


def _read_words(text: str) -> list[str]:
    return _WORD.findall(text[:_READ_CHARACTERS].lower().replace("’", "'"))


def _read_marks(turn: KindInput, words: Sequence[str], words_before: Sequence[str]) -> tuple[float, ...]:
    text, before, role = turn.text[:_READ_CHARACTERS], turn.before[:_READ_CHARACTERS], turn.role.lower()
    said = {word for word in words if len(word) > _SHORT_WORD_LETTERS}
    repeated = len(said.intersection(words_before))
    is_answer, is_short = before.rstrip().endswith("?"), len(words) <= _FEW_WORDS
    has_digit, has_digit_before = _has_digit(text), _has_digit(before)
    return (
        np.log1p(len(text)),
        np.log1p(len(words)),
        is_short,
        has_digit,
        "?" in text,
        text.rstrip().endswith("?"),
        "!" in text,
        '"' in text,
        ":" in text,
        text[:1].isupper(),
        not before,
        np.log1p(len(before)),
        "?" in before,
        is_answer,
        is_answer and is_short,
        has_digit_before,
        has_digit and has_digit_before,
        np.log1p(repeated),
        repeated / (len(said) or 1),
        role in _ASSISTANT_ROLES,
        role == _AGENT_ROLE,
    )


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _find_cues(words: Sequence[str], name: str) -> list[int]:
    """The numbers of the cues that words have, of one of the lists."""
    cues, found = _load_cues(name), set[int]()
    for place, word in enumerate(words):
        for size in range(1, cues.longest.get(word, 0) + 1):
            found.update(cues.numbers.get(" ".join(words[place : place + size]), ()))
    return list(found)


class _Cues(NamedTuple):
    numbers: Mapping[str, Sequence[int]]
    """By phrase: the cues that it belongs to."""
    longest: Mapping[str, int]
    """By first word: how many words the longest of its phrases has."""


@cache
def _load_cues(name: str) -> _Cues:
    numbers: dict[str, list[int]] = {}
    longest: dict[str, int] = {}
    for number, cue in enumerate(_PATTERNS.content[name]):
        for phrase in cue.split(","):
            words = phrase.split()
            numbers.setdefault(" ".join(words), []).append(number)
            longest[words[0]] = max(longest.get(words[0], 0), len(words))
    return _Cues(numbers, longest)
