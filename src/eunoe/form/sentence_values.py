"""How much a sentence matters to an agent that has room for only some of them."""

from functools import lru_cache
from itertools import islice
from math import inf
from typing import Final

from eunoe.form.data_files import PatternFile
from eunoe.form.statements import is_instruction, read_statement
from eunoe.text.sentences import split_sentences

_PATTERNS: Final = PatternFile("sentence_values")
_PLAIN_VALUE: Final = 0.5
"""What a sentence is worth that is no statement, as in summaries by rule."""
_PAST_LOSS: Final = 1.0
"""What a plan loses when its day is over."""
_MAX_SENTENCES: Final = 20
"""What a longer text says first tells what it is worth."""


@lru_cache(maxsize=4096)
def sentence_value(text: str) -> float:
    """The value of a memory or of a line of a summary; infinite for a standing instruction.

    >>> sentence_value("2024-05-07: anna: Always answer me in German.")
    inf
    """
    line = _PATTERNS.line_start.match(text)
    said = text[line.end() :] if line else text
    sentences = list(islice(split_sentences(said), _MAX_SENTENCES))
    if any(is_instruction(sentence) or _PATTERNS.standing.search(sentence.lower()) for sentence in sentences):
        return inf
    values = [statement.score for statement in map(read_statement, sentences) if statement]
    return max(values, default=_PLAIN_VALUE) - (_PAST_LOSS if line and line["past"] else 0.0)
