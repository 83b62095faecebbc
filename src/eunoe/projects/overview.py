"""Questions about a project as a whole: no document bears on them more than another."""

from typing import Final

from eunoe.text.analyzer import folded_words
from eunoe.text.languages import ENGLISH, FRAME_WORDS, stop_words
from eunoe.text.word_files import load_groups

SCORE: Final = 0.5
"""Of each document that such a question is answered with."""

_WORDS: Final = load_groups("overview_words")
_OTHER_WORDS: Final = _WORDS["other"] | FRAME_WORDS | stop_words(ENGLISH)
_MAX_WORDS: Final = 40
"""A longer question is about something."""


def asks_for_overview(question: str) -> bool:
    """Say whether a question is about a project as a whole, in English.

    >>> asks_for_overview("What has been done in this project? Completed work and summaries.")
    True
    >>> asks_for_overview("What is the status of the login?")
    False
    """
    words = question.split()[:_MAX_WORDS]
    about = {word for each in words for word in folded_words(each)} - _OTHER_WORDS
    return 0 < len(words) < _MAX_WORDS and bool(about) and about <= _WORDS["subject"]
