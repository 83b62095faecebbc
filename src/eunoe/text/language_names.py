"""Which language a text is surely in, as a word for people. What could be a name, a code or a quotation is not sure."""

import re
from collections.abc import Mapping
from typing import Final

from eunoe.text.languages import ENGLISH, LANGUAGES, WORD_WEIGHT, Vote, is_latin, language_votes, votes_by_word
from eunoe.text.normalize import fold, normalize_form
from eunoe.text.scripts import SPACELESS
from eunoe.text.word_files import load_groups

_MAX_CHARACTERS: Final = 2000
_LEAST_POINTS: Final = 6
"""More than one word: "Los Angeles" is no Spanish."""
_LEAST_LETTERS: Final = 3
"""Of another script: a "π" and a "μm" are no Greek."""
_MAX_ENGLISH_SHARE: Final = 4
"""A question has to speak four times as much for another language as for English: it may name a book."""
_OTHER_LETTER: Final = re.compile("(?=[^\\W\\d_])[^\0-\u036f\u1d00-\u1eff\u2070-\u218f\u2c60-\u2c7f\ua720-\ua7ff]")
_SPACELESS_LETTER: Final = re.compile(f"[{SPACELESS}]")
_SCRIPT_NAMES: Final = {
    "russian": "Cyrillic script",
    "ukrainian": "Cyrillic script",
    "arabic": "Arabic script",
    "hindi": "Devanagari script",
    "hebrew": "Hebrew script",
}
"""Several languages are written in them."""
_OPENING: Final = "¿¡\"'(«„“"
_QUESTION_WORDS: Final = votes_by_word(load_groups("question_words"))
ANOTHER_SCRIPT: Final = "another script"
LATIN_LANGUAGES: Final = frozenset(name.capitalize() for name in LANGUAGES if is_latin(LANGUAGES.index(name)))
ENGLISH_NAME: Final = "English"


def name_language(text: str) -> str:
    """Return the language that a text is surely in, or its script where that is not Latin; empty if nothing is sure.

    >>> name_language("Wo habe ich den Schlüssel gelassen?"), name_language("Где мой ключ?")
    ('German', 'Cyrillic script')
    >>> name_language("Who is Jürgen von der Lippe?"), name_language("ok?")
    ('English', '')
    """
    plain = normalize_form("NFKC", text[:_MAX_CHARACTERS])
    tokens = plain.split()
    every = [vote for _, vote in language_votes(list(dict.fromkeys(tokens)))]
    votes = [vote for vote in every if vote.weight > 1]
    script = "" if plain.isascii() else _other_script(tokens, votes)
    return script or _latin_language(votes + _question_votes(tokens), _points(every))


def _question_votes(tokens: list[str]) -> list[Vote]:
    """What the first word of a question says: a short one has no other word that tells."""
    if len(tokens) < 2 or not tokens[-1].endswith("?"):
        return []
    vote = _QUESTION_WORDS.get(fold(tokens[0].lstrip(_OPENING)))
    return [vote] if vote else []


def _other_script(tokens: list[str], votes: list[Vote]) -> str:
    others = [token for token in tokens if _OTHER_LETTER.search(token)]
    letters = _OTHER_LETTER.findall("".join(others))
    weight = sum(2 if _SPACELESS_LETTER.match(letter) else 1 for letter in letters)
    has_english = any(ENGLISH in vote.languages for vote in votes)
    if weight < _LEAST_LETTERS or (has_english and 2 * len(others) <= len(tokens)):
        return ""
    points = _points([vote for _, vote in language_votes(others)])
    name = LANGUAGES[max(points, key=points.__getitem__)] if points else ""
    return _SCRIPT_NAMES.get(name, name.capitalize()) or ANOTHER_SCRIPT


def _latin_language(votes: list[Vote], hints: Mapping[int, int]) -> str:
    """The language that most words speak for which are not English, if few are English and not of that language. Of
    languages that share these words it is the one that letters and endings hint at."""
    points = _points([vote for vote in votes if ENGLISH not in vote.languages])
    best = max(points, key=lambda language: (points[language], hints.get(language, 0)), default=ENGLISH)
    english = sum(vote.weight for vote in votes if ENGLISH in vote.languages and best not in vote.languages)
    if best != ENGLISH and points[best] >= max(_LEAST_POINTS, _MAX_ENGLISH_SHARE * english):
        return LANGUAGES[best].capitalize()
    is_english = english >= WORD_WEIGHT or (best == ENGLISH and votes)
    return ENGLISH_NAME if is_english else ""


def _points(votes: list[Vote]) -> dict[int, int]:
    points: dict[int, int] = {}
    for vote in votes:
        for language in vote.languages:
            points[language] = points.get(language, 0) + vote.weight
    return points
