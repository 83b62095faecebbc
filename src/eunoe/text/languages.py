"""Which language a text is in, and the words that say nothing in it. A language is a number: its place in LANGUAGES."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from eunoe.text.normalize import SPACELESS, fold, load_groups, load_words, normalize_form

LANGUAGES: Final = (
    "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish", "danish", "norwegian",
    "finnish", "hungarian", "romanian", "turkish", "polish", "czech", "russian", "ukrainian", "greek", "arabic",
    "hindi", "hebrew", "chinese", "japanese", "korean", "thai",
)  # fmt: skip
ENGLISH: Final = 0
"""It comes first: it wins a tie and stands in when a text has no vote."""

STOP_WORDS: Final = {name: load_words(f"stop_words/{name}") for name in LANGUAGES}
"""As they are written, by the name of the language."""
FRAME_WORDS: Final = load_words("frame_words")
"""Words that say what is asked rather than what about: they count for less in a question."""
INDEFINITE_WORDS: Final = load_words("indefinite_words")
"""Words that stand for what is not said. They are no question by themselves."""


class Vote(NamedTuple):
    """The languages that a word speaks for, and how much."""

    languages: tuple[int, ...]
    weight: int


WORD_WEIGHT: Final = 4
_SHORT_WORD_WEIGHT: Final = 2
"""Of two letters, which may be a name or a sound elsewhere."""
_HINT_WEIGHT: Final = 1
"""Of single letters, endings and accents: many languages share them, so that they decide between those with the same
words."""
LEAST_POINTS: Final = 4
"""Of a language other than English."""
_ENGLISH_WORDS: Final = FRAME_WORDS | load_words("english_words")
_LAST_LATIN: Final = "\u036f"
_SCRIPTS: Final = (
    ("[\u3040-\u30ff]", ("japanese",)),
    ("[\u3400-\u9fff\uf900-\ufaff]", ("chinese", "japanese")),
    ("[\uac00-\ud7a3\u1100-\u11ff]", ("korean",)),
    ("[\u0454\u0456\u0457\u0491]", ("ukrainian",)),
    ("[\u0400-\u052f]", ("russian", "ukrainian")),
    ("[\u0370-\u03ff\u1f00-\u1fff]", ("greek",)),
    ("[\u0600-\u06ff]", ("arabic",)),
    ("[\u0900-\u097f]", ("hindi",)),
    ("[\u0590-\u05ff]", ("hebrew",)),
    ("[\u0e00-\u0e7f]", ("thai",)),
)
"""Letters of a script, and the languages that are written in it. Its words are stemmed in the first."""
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


def is_latin(language: int) -> bool:
    """Say whether a language is written in Latin letters."""
    return language not in _OTHER_SCRIPTS


def stemming_language(word: str, language: int) -> int:
    """Return the language that a word is stemmed in: that of its text, unless its script is another one.

    >>> LANGUAGES[stemming_language("деньги", ENGLISH)], LANGUAGES[stemming_language("server", 16)]
    ('russian', 'english')
    """
    if word.isascii() or max(word) <= _LAST_LATIN:
        return language if is_latin(language) else ENGLISH
    return next((languages[0] for languages in _languages_by_script(word)), language)


def detect_language(text: str) -> int:
    """Return the language that the words speak for; English when they say too little.

    >>> LANGUAGES[detect_language("Ich habe das nicht gesehen")]
    'german'
    """
    return guess_language(text) or ENGLISH


def guess_language(text: str) -> int | None:
    """Return the language that the words speak for, if they say enough."""
    points = [0] * len(LANGUAGES)
    for _, vote in language_votes(text.split()):
        for language in vote.languages:
            points[language] += vote.weight
    return points.index(most) if (most := max(points)) >= LEAST_POINTS else None


def language_votes(tokens: Sequence[str]) -> Iterator[tuple[int, Vote]]:
    """Yield the places of tokens that speak for languages, by their script, as a stop word or by letters, with their
    votes."""
    lowered = [token.strip(_PUNCTUATION).lower() for token in tokens]
    for place, (token, vote) in enumerate(zip(lowered, map(_VOTES.get, lowered), strict=True)):
        # Most tokens of an English text have nothing to say: they are passed over without a call.
        if vote or ((token[-3:] in _ENDINGS or not token.isascii()) and (vote := _vote_by_letters(token))):
            yield place, vote


def _vote_by_letters(token: str) -> Vote | None:
    if token.isascii():
        return _vote_by_ending(token)
    script = next(_languages_by_script(token), None)
    if script:
        return Vote(script, WORD_WEIGHT)
    folded = fold(token)
    return _VOTES.get(folded) or _vote_by_ending(folded) or next(filter(None, map(_LETTERS.get, token)), None)


def _vote_by_ending(word: str) -> Vote | None:
    for ending, vote in _ENDINGS.get(word[-3:], ()):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return vote
    return None


def _languages_by_script(token: str) -> Iterator[tuple[int, ...]]:
    if max(token, default="") > _LAST_LATIN:
        yield from (languages for pattern, languages in _SCRIPT_PATTERNS if pattern.search(token))


def _numbers(names: Iterable[str]) -> tuple[int, ...]:
    return tuple(map(LANGUAGES.index, names))


def votes_by_word(words: Mapping[str, Iterable[str]], weight: int = WORD_WEIGHT) -> dict[str, Vote]:
    """Return the vote of each word, by the words of each language."""
    owners: dict[str, list[str]] = {}
    for language, own in words.items():
        for word in own:
            owners.setdefault(word, []).append(language)
    return {word: Vote(_numbers(names), min(weight, _weight(word, names))) for word, names in owners.items()}


def _by_last_letters(votes: Mapping[str, Vote]) -> dict[str, list[tuple[str, Vote]]]:
    """The endings with their votes, the longest first, by their last three letters."""
    endings: dict[str, list[tuple[str, Vote]]] = {}
    for ending in sorted(votes, key=len, reverse=True):
        endings.setdefault(ending[-3:], []).append((ending, votes[ending]))
    return endings


def _weight(word: str, languages: Sequence[str]) -> int:
    if "english" in languages or len(word) > 2:
        return WORD_WEIGHT
    if len(word) == 1:
        return _HINT_WEIGHT
    return _SHORT_WORD_WEIGHT if word.isascii() else WORD_WEIGHT


_SCRIPT_PATTERNS: Final = tuple((re.compile(letters), _numbers(names)) for letters, names in _SCRIPTS)
_OTHER_SCRIPTS: Final = frozenset(language for _, languages in _SCRIPT_PATTERNS for language in languages)
_LETTERS: Final = votes_by_word(load_groups("letters"), _HINT_WEIGHT)
_ENDINGS: Final = _by_last_letters(votes_by_word(load_groups("word_endings"), _HINT_WEIGHT))
_VOTES: Final = votes_by_word(
    {
        name: words | folded | (_ENGLISH_WORDS if name == "english" else frozenset())
        for (name, words), folded in zip(STOP_WORDS.items(), _FOLDED, strict=True)
    }
)
"""Of stop words as they are written, and without accents: "qué" is Spanish, "que" is French too."""


_MAX_CHARACTERS: Final = 2000
_LEAST_SURE_POINTS: Final = 6
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
    """Return the language that a text is surely in, or its script where that is not Latin; empty if nothing is sure:
    what could be a name, a code or a quotation is not.

    >>> name_language("Wo habe ich den Schlüssel gelassen?"), name_language("Где мой ключ?")
    ('German', 'Cyrillic script')
    >>> name_language("Who is Jürgen von der Lippe?"), name_language("ok?")
    ('English', '')
    """
    plain = normalize_form("NFKC", text[:_MAX_CHARACTERS])
    tokens = plain.split()
    every = [vote for _, vote in language_votes(list(dict.fromkeys(tokens)))]
    votes = [vote for vote in every if vote.weight > 1]
    if not plain.isascii() and (script := _other_script(tokens, votes)):
        return script
    # The first word of a question: a short one has no other word that tells.
    if len(tokens) > 1 and tokens[-1].endswith("?") and (vote := _QUESTION_WORDS.get(fold(tokens[0].lstrip(_OPENING)))):
        votes.append(vote)
    # The language that most words speak for which are not English, if few are English and not of that language. Of
    # languages that share these words it is the one that letters and endings hint at.
    points, hints = _points([vote for vote in votes if ENGLISH not in vote.languages]), _points(every)
    best = max(points, key=lambda language: (points[language], hints.get(language, 0)), default=ENGLISH)
    english = sum(vote.weight for vote in votes if ENGLISH in vote.languages and best not in vote.languages)
    if best != ENGLISH and points[best] >= max(_LEAST_SURE_POINTS, _MAX_ENGLISH_SHARE * english):
        return LANGUAGES[best].capitalize()
    is_english = english >= WORD_WEIGHT or (best == ENGLISH and votes)
    return ENGLISH_NAME if is_english else ""


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


def _points(votes: list[Vote]) -> dict[int, int]:
    points: dict[int, int] = {}
    for vote in votes:
        for language in vote.languages:
            points[language] = points.get(language, 0) + vote.weight
    return points


def other_numbers(word: str, language: int) -> tuple[str, ...]:
    """Return what the plural of a folded word may be, or the singular of a plural; most languages need none.

    >>> other_numbers("reunioes", LANGUAGES.index("portuguese")), other_numbers("luz", LANGUAGES.index("spanish"))
    (('reuniao',), ('luces',))
    """
    return tuple(
        word.removesuffix(ending) + other
        for ending, other in _PLURAL_ENDINGS.get(language, ())
        if word.endswith(ending) and len(word) > len(ending)
    )


def _both_ways(pairs: frozenset[str]) -> tuple[tuple[str, str], ...]:
    found = [(one, many) for one, _, many in (pair.partition("/") for pair in sorted(pairs))]
    return (*found, *((many, one) for one, many in found))


_PLURAL_ENDINGS: Final = {
    LANGUAGES.index(name): _both_ways(pairs) for name, pairs in load_groups("plural_endings").items()
}
