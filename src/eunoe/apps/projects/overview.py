"""Questions about a project as a whole: no document bears on them more than another."""

from typing import Final

from eunoe.text.analyzer import folded_words
from eunoe.text.languages import ENGLISH, FRAME_WORDS, stop_words
from eunoe.text.word_files import load_groups

SCORE: Final = 0.5
"""Of each document that such a question is answered with."""

_WORDS: Final = load_groups("overview_words")
_SUBJECTS, _ASPECTS = _WORDS["subject"], _WORDS["aspect"]
_KNOWN_WORDS: Final = _SUBJECTS | _ASPECTS | _WORDS["other"] | FRAME_WORDS | stop_words(ENGLISH)
_MAX_WORDS: Final = 40
"""A longer question is about something."""


def asks_for_overview(question: str) -> bool:
    """Say whether a question is about a project as a whole, in English.

    >>> asks_for_overview("What has been done in this project? Completed work and summaries.")
    True
    >>> asks_for_overview("What is the status of the login?")
    False
    """
    chunks = question.split()[:_MAX_WORDS]
    words = {word for chunk in chunks for word in folded_words(chunk)}
    if len(chunks) == _MAX_WORDS or not words <= _KNOWN_WORDS:
        return False
    aspects = len(words & _ASPECTS)
    return aspects > 1 or (aspects == 1 and not words.isdisjoint(_SUBJECTS))
