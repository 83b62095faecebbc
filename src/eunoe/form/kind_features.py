"""What the kind model reads of a turn or of one of its sentences: layer means, marks and cue words."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.embed.contract import Vectors
from eunoe.embed.encoder import MEANS_DIMENSIONS
from eunoe.form.data_files import PatternFile

_STATE: Final = MEANS_DIMENSIONS // 4
_STATES_BEFORE: Final = np.r_[_STATE : 2 * _STATE, 3 * _STATE : 4 * _STATE]
"""What is read of the vector of what was said before. The other half adds nothing."""
_TURN: Final = slice(0, MEANS_DIMENSIONS)
_BEFORE: Final = slice(_TURN.stop, _TURN.stop + len(_STATES_BEFORE))
_MARKS: Final = slice(_BEFORE.stop, _BEFORE.stop + 23)
ASSISTANT_MARK: Final = _MARKS.stop - 4
_ASSISTANT_ROLES: Final = ("assistant", "ai", "model")
_AGENT_ROLE: Final = "agent"
_FEW_WORDS: Final = 3
_SHORT_WORD_LETTERS: Final = 3
"""Words that are no longer are in too many turns to say that two of them are about the same."""
_READ_CHARACTERS: Final = 2000
"""About as much as the encoder reads of a text."""
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PATTERNS: Final = PatternFile("kinds")
_CUES: Final = slice(_MARKS.stop, _MARKS.stop + len(_PATTERNS.content["cues"]))
_CUES_BEFORE: Final = slice(_CUES.stop, _CUES.stop + len(_PATTERNS.content["cues_before"]))
BLOCKS: Final = (_TURN, _BEFORE, _MARKS, _CUES, _CUES_BEFORE)
"""The columns of a row of features: vectors of the turn and of what was said before it, marks of both, cues in each."""

Matrix = NDArray[np.float64]


class KindInput(NamedTuple):
    """A turn, or a sentence of one, as the model reads it."""

    text: str
    role: str = "user"
    before: str = ""
    """What was said just before: by the other side, or in the same turn."""
    vector: Vectors | None = None
    """The layer means of the text, by `Encoder.layer_means`. Without them there is no judgement."""
    vector_before: Vectors | None = None
    continues: bool = False
    """Whether the same speaker said what was said before."""
    is_to_agent: bool = False
    """Whether an agent listens. To people one says other things in other ways."""
    is_sentence: bool = False
    """Whether it is one of the sentences of a turn, and not all of it."""


def read_features(turns: Sequence[KindInput]) -> Matrix:
    """What is known of each turn, by row. Without a vector of what was said before, its columns are not numbers."""
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
        turn.continues,
        turn.is_to_agent,
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
