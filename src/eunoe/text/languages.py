"""Which language a text is in, and the words that say nothing in it. A language is a number: its place in LANGUAGES."""

from collections.abc import Iterator, Sequence
from typing import Final

from eunoe.text.normalize import fold
from eunoe.text.word_files import load_words

LANGUAGES: Final = (
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish", "danish", "norwegian",
    "finnish", "hungarian", "romanian", "turkish", "polish", "russian", "greek", "arabic", "hindi", "hebrew",
)  # fmt: skip
ENGLISH: Final = 0
"""It comes first: it wins a tie and stands in when a text has no vote."""

STOP_WORDS: Final = {name: load_words(f"stop_words/{name}") for name in LANGUAGES}
"""As they are written, by the name of the language."""
FRAME_WORDS: Final = load_words("frame_words")
"""Words that say what is asked rather than what about: they count for less in a question."""

_SCRIPTS: Final = (
    ("\u0400", "\u052f", LANGUAGES.index("russian")),
    ("\u0370", "\u03ff", LANGUAGES.index("greek")),
    ("\u0600", "\u06ff", LANGUAGES.index("arabic")),
    ("\u0900", "\u097f", LANGUAGES.index("hindi")),
    ("\u0590", "\u05ff", LANGUAGES.index("hebrew")),
)
"""First and last letter of a script, and the language its words are stemmed in."""
_PUNCTUATION: Final = ".,;:!?\u00bf\u00a1\"'()\u00ab\u00bb\u201c\u201d\u201e\u2026"
_FOLDED: Final = tuple(frozenset(map(fold, words)) for words in STOP_WORDS.values())
_FOLDED_AND_ENGLISH: Final = tuple(words | _FOLDED[ENGLISH] for words in _FOLDED)


def stop_words(language: int) -> frozenset[str]:
    """Return the folded words that say nothing in a language."""
    return _FOLDED[language]


def is_stop_word(word: str, language: int) -> bool:
    """Say whether a folded word says nothing in a language."""
    return word in _FOLDED[language]


def stop_words_and_english(language: int) -> frozenset[str]:
    """Return the folded words that say nothing in a language or in English; those of others may be names here."""
    return _FOLDED_AND_ENGLISH[language]


def detect_language(text: str) -> int:
    """Return the language with the most votes; English when there are none.

    >>> LANGUAGES[detect_language("Ich habe das nicht gesehen")]
    'german'
    """
    votes = [language for _, languages in language_votes(text.split()) for language in languages]
    return max(sorted(set(votes)), key=votes.count, default=ENGLISH)


def language_votes(tokens: Sequence[str]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the places of tokens that speak for languages, by their script or as a stop word, with these languages."""
    lowered = [token.strip(_PUNCTUATION).lower() for token in tokens]
    for place, languages in enumerate(map(_VOTES.get, lowered)):
        if languages or (not lowered[place].isascii() and (languages := _votes_by_script(lowered[place]))):
            yield place, languages


def _votes_by_script(token: str) -> tuple[int, ...]:
    letter = next(filter(str.isalpha, token), "")
    for first, last, language in _SCRIPTS:
        if first <= letter <= last:
            return (language,)
    return _VOTES.get(fold(token), ())


def _languages_by_stop_word() -> dict[str, tuple[int, ...]]:
    languages: dict[str, tuple[int, ...]] = {}
    for language, words in enumerate(_FOLDED):
        for word in words:
            languages[word] = (*languages.get(word, ()), language)
    return languages


_VOTES: Final = _languages_by_stop_word()
