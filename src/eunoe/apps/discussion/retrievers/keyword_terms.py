"""Keywords and texts as terms: what stands at which place, so that words are found alone and as a phrase."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from eunoe.errors import InputError
from eunoe.text.analyzer import TokenParts, character_pairs, split_token, stem, word_cache
from eunoe.text.languages import ENGLISH, is_stop_word
from eunoe.text.normalize import fold

MAX_KEYWORDS: Final = 60
_CACHED_TOKENS: Final = 1 << 16
_CACHED_KEYWORDS: Final = 1 << 12
_MAX_CACHED_CHARACTERS: Final = 64
"""Longer ones hardly come twice, and in scripts without spaces a token is a whole sentence."""
_WORDS_SHARE: Final = 0.5
"""What all words of a keyword count together beside the keyword as a phrase."""
_SEPARATOR: Final = re.compile("[;\uff1b]")
"""A semicolon, also as Chinese and Japanese keyboards write it."""
_HYPHEN: Final = re.compile("[-\u2010\u2011]")
_LOGGER: Final = logging.getLogger("eunoe")

Forms = tuple[str, ...]
"""The terms that count as one word: its stems in several languages."""


class PlacedTerm(NamedTuple):
    """A term, and so many places after the beginning of its token."""

    offset: int
    term: str


class PlacedForms(NamedTuple):
    """A word of a keyword, and its place in it."""

    offset: int
    forms: Forms


Phrase = tuple[PlacedForms, ...]
"""Words in order, or one word."""


class KeywordPart(NamedTuple):
    """What a keyword is looked up by: all of it in order, or one of its words; and what that counts."""

    phrase: Phrase
    share: float


def split_keywords(text: str) -> list[str]:
    """Split keywords at semicolons. No sign in them means anything; blanks and repeated ones are left out.

    >>> split_keywords('Rome; "well-known" ;; ROME; NOT')
    ['Rome', '"well known"', 'NOT']
    """
    if not isinstance(text, str):
        raise InputError(f"keywords must be a text with ';' between them, not {type(text).__name__}")
    parts = (" ".join(part.split()) for part in _SEPARATOR.split(_HYPHEN.sub(" ", text)))
    keywords: dict[str, str] = {}
    for part in filter(None, parts):
        keywords.setdefault(fold(part), part)
    if len(keywords) > MAX_KEYWORDS:
        _LOGGER.warning("keyword search: only the first %d of %d keywords are used", MAX_KEYWORDS, len(keywords))
    return list(keywords.values())[:MAX_KEYWORDS]


def parse_keyword(text: str, languages: frozenset[int]) -> tuple[KeywordPart, ...]:
    """Read one keyword: all of it as a phrase and, if it has several words, each of them."""
    return (_parse_usual if len(text) <= _MAX_CACHED_CHARACTERS else _parse)(text, languages)


def _parse(text: str, languages: frozenset[int]) -> tuple[KeywordPart, ...]:
    tokens = [split_token(token) for token in text.split()]
    if len(tokens) == 1 and _is_word(tokens[0]):
        return (KeywordPart((PlacedForms(0, _stems(tokens[0].words[0], languages)),), 1.0),)
    phrase: list[PlacedForms] = []
    words: dict[Forms, bool] = {}
    place = 0
    for parts in tokens:
        phrase += [PlacedForms(place + offset, forms) for offset, forms in _phrase_of(parts, languages)]
        words |= dict(_words_of(parts, languages))
        place += _width(parts)
    if not phrase:
        return ()
    whole = KeywordPart(tuple(phrase), 1.0)
    if len(words) == len(phrase) == 1:
        return (whole,)
    telling = [forms for forms, is_telling in words.items() if is_telling] or list(words)
    return (whole, *(KeywordPart((PlacedForms(0, forms),), _WORDS_SHARE / len(telling)) for forms in telling))


def _is_word(parts: TokenParts) -> bool:
    return len(parts.words) == 1 and not parts.exact_terms and not parts.spaceless_runs


def _phrase_of(parts: TokenParts, languages: Collection[int]) -> list[PlacedForms]:
    """The token as a whole: its identifier, or its first word, which has all its letters; runs of other scripts."""
    whole = [PlacedForms(0, parts.exact_terms[:1])] if parts.exact_terms else []
    if parts.words and not whole:
        whole = [PlacedForms(0, _stems(parts.words[0], languages))]
    offset = len(parts.words)
    for run in parts.spaceless_runs:
        whole += [PlacedForms(offset + place, (pair,)) for place, pair in enumerate(character_pairs(run))]
        offset += len(fold(run))
    return whole


def _words_of(parts: TokenParts, languages: Collection[int]) -> Iterable[tuple[Forms, bool]]:
    """The words of a token, and whether they say anything by themselves. One such as `gpt4` is one word."""
    yield from (((term,), True) for term in parts.exact_terms[:1])
    is_code = any(term.isalnum() for term in parts.exact_terms[:1])
    for word in () if is_code else parts.words:
        yield _stems(word, languages), not any(is_stop_word(word, language) for language in languages)
    for run in parts.spaceless_runs:
        yield from (((pair,), True) for pair in character_pairs(run))


def placed_terms(token: str, language: int) -> tuple[tuple[PlacedTerm, ...], int]:
    """The terms of a token of a text, in its language and in English, and how many places it takes."""
    return (_place_usual if len(token) <= _MAX_CACHED_CHARACTERS else _place)(token, language)


def _place(token: str, language: int) -> tuple[tuple[PlacedTerm, ...], int]:
    parts = split_token(token)
    terms = [PlacedTerm(0, term) for term in parts.exact_terms]
    for offset, word in enumerate(parts.words):
        terms += [PlacedTerm(offset, form) for form in _stems(word, (ENGLISH, language))]
    offset = len(parts.words)
    for run in map(fold, parts.spaceless_runs):
        terms += [PlacedTerm(offset + place, character) for place, character in enumerate(run)]
        terms += [PlacedTerm(offset + place, run[place : place + 2]) for place in range(len(run) - 1)]
        offset += len(run)
    return tuple(terms), _width(parts)


def _width(parts: TokenParts) -> int:
    return max(1, len(parts.words) + sum(len(fold(run)) for run in parts.spaceless_runs))


def _stems(word: str, languages: Iterable[int]) -> Forms:
    return tuple(dict.fromkeys(stem(word, language) for language in languages))


_parse_usual: Final = word_cache(_CACHED_KEYWORDS)(_parse)
_place_usual: Final = word_cache(_CACHED_TOKENS)(_place)
