"""The terms of a text: tokens are split into words and identifiers, and words are folded and stemmed.

A token is a piece of text between blanks. All of this runs for every text that is indexed and for every question.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from string import ascii_lowercase
from threading import get_ident
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

import Stemmer

from eunoe.text.languages import (
    ENGLISH,
    LANGUAGES,
    detect_language,
    is_latin,
    is_stop_word,
    stemming_language,
    stop_words,
)
from eunoe.text.normalize import MARKS, SPACELESS, fold, normalize_form, word_set

P = ParamSpec("P")
T = TypeVar("T")

_MAX_IDENTIFIER_CHARACTERS: Final = 128
_MAX_NAME_CHARACTERS: Final = 1000
_MAX_CACHED_CHARACTERS: Final = 48
_MAX_STEMMED_CHARACTERS: Final = 64
_MAX_CACHED_TOKENS: Final = 400_000
_LONG_RUN_CHARACTERS: Final = 1 << 14

_EMOJI: Final = (
    "[\U0001f1e6-\U0001f1ff]{2}|[\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    "\u2190-\u21ff\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff]"
)
_EMOJI_START: Final = "\U0001f000-\U0001faff\u2190-\u21ff\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff"
_RUN: Final = re.compile(
    rf"(?P<emoji>{_EMOJI})|(?P<spaceless>[{SPACELESS}]+)|(?P<other>[^{SPACELESS}{_EMOJI_START}]+|.)", re.DOTALL
)
_WORD: Final = re.compile(rf"(?:[^\W_{SPACELESS}]|[{MARKS}])+")
_CORE: Final = re.compile(
    rf"[#@.~/]?(?:[^\W_]|(?<!_)_++[^\W_]).*(?:[^\W_]|[{MARKS}])(?:\+\+|#)?|[^\W_](?:\+\+|#)?", re.DOTALL
)
"""A token without the punctuation around it, but with the signs that belong to a name: #17, .env, C++."""
_CAMEL_CASE: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_BREAK: Final = re.compile(r"""(?<!\d),|,(?!\d)|[;()\[\]{}<>"`|…“”„«»]|\.\.+|--+|[—–]""")
_JOINT: Final = re.compile(r"[:=?&!']+|://")
_PATH_STEP: Final = re.compile(r"[/\\@]+")
_APOSTROPHES: Final = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07", "'"))
_ELISIONS: Final = word_set("l d j m n s t c qu ll re ve")
_VERSION: Final = re.compile(r"(?!(?:19|20)\d\d\.)\d+(?:\.\d+){2,}(?<!\.(?:19|20)\d\d)")
_AMOUNT: Final = re.compile(r"[\d.,:/-]*\d(?:-?[^\W\d_]++)*+")
_IDENTIFIER_SIGN: Final = re.compile(r"[_/\\@#:.~]")


class TokenParts(NamedTuple):
    """What a token is found by."""

    exact_terms: tuple[str, ...]
    """Identifiers, amounts and emoji: they are found as they are."""
    words: tuple[str, ...]
    """Folded words, still to be stemmed."""
    spaceless_runs: tuple[str, ...] = ()
    """Runs of scripts without spaces: they are found by their characters and pairs of these."""


def split_token(token: str) -> TokenParts:
    """Split a token into identifiers, words and runs of scripts without spaces."""
    bare = _strip_punctuation(token)
    if bare.isascii() and bare.isalpha():
        return TokenParts((), _camel_case_words(bare))
    exact: dict[str, None] = {}
    words: list[str] = []
    spaceless: list[str] = []
    for kind, run in _runs(token):
        if kind == "emoji":
            exact[run] = None
        elif kind == "spaceless":
            spaceless.append(run)
        else:
            for part in _BREAK.split(run):
                _add_part(part, exact, words)
    return TokenParts(tuple(exact), tuple(words), tuple(spaceless))


def _strip_punctuation(token: str) -> str:
    return token.lstrip("('\"*").rstrip(".,;:!?)'\"*")


def _runs(token: str) -> Iterable[tuple[str | None, str]]:
    if token.isascii():
        return (("other", token),)
    text = normalize_form("NFKC", token).translate(_APOSTROPHES)
    return ((run.lastgroup, run[0]) for run in _RUN.finditer(text))


def _camel_case_words(word: str) -> tuple[str, ...]:
    whole = fold(word)
    if word.islower() or word.isupper() or word[1:].islower():
        return (whole,)
    parts = [fold(part) for part in _CAMEL_CASE.split(word)]
    return (whole, *(part for part in parts if len(part) > 1 and part != whole))


def _add_part(part: str, exact: dict[str, None], words: list[str]) -> None:
    match = _CORE.search(part)
    if match is None:
        return
    core = match[0]
    inner = _WORD.findall(core)
    if len(inner) == 1 and len(inner[0]) == len(core):
        _add_word(core, exact, words)
    elif "'" in core and all(letter == "'" or letter.isalnum() for letter in core):
        words += _elided_words(core)
    else:
        exact |= dict.fromkeys(_identifiers(core))
        for word in inner:
            _add_word(word, exact, words)


def _add_word(word: str, exact: dict[str, None], words: list[str]) -> None:
    if word.isalpha() or word.isdecimal() or not word.isalnum():
        words += _camel_case_words(word)
    else:
        exact[fold(word)] = None
        words += [fold(part) for part in _CAMEL_CASE.split(word) if len(part) > 1]


def _elided_words(core: str) -> list[str]:
    parts = [fold(part) for part in core.split("'")]
    words = [part for part in parts if len(part) > 1 and part not in _ELISIONS]
    return words if words and parts[0] != "o" else [*words, "".join(parts)]


def _identifiers(core: str) -> Iterator[str]:
    """Yield a path, an address or a code as a whole, and the parts of it that are identifiers too."""
    whole = fold(core)
    parts = [whole.replace(",", "")] if re.fullmatch(r"[\d.,]+", whole) else []
    for joint in _JOINT.split(whole):
        parts += [joint, *_PATH_STEP.split(joint)]
    for identifier in (whole, *(part.strip("./\\-_*!?%$") for part in parts if part != whole)):
        if identifier and len(identifier) <= _MAX_IDENTIFIER_CHARACTERS and not identifier.isalnum():
            yield identifier


def folded_words(name: str) -> list[str]:
    """Return the words of a name, folded."""
    return [word for token in name[:_MAX_NAME_CHARACTERS].split() for word in split_token(token).words]


def is_identifier(term: str) -> bool:
    """Say whether a term names one thing: a path, an address, a version, a code. Amounts, dates and words with a
    hyphen do not.

    >>> is_identifier("err_42"), is_identifier("7pm")
    (True, False)
    """
    if _AMOUNT.fullmatch(term):
        return bool(_VERSION.fullmatch(term))
    if any(letter.isdecimal() for letter in term) or term.endswith(("++", "#")):
        return True
    has_word = any(len(word) > 1 and not is_stop_word(word, ENGLISH) for word in _WORD.findall(term))
    return has_word and bool(_IDENTIFIER_SIGN.search(term))


_terms_by_token: Final[dict[int, dict[str, tuple[str, ...]]]] = {}
"""For each language."""
_cache_clearers: Final[list[Callable[[], None]]] = []


def word_cache(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache what a function makes of words, until `clear_word_caches`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=size)(function)
        _cache_clearers.append(cached.cache_clear)
        return cast("Callable[P, T]", cached)

    return decorate


def clear_word_caches() -> None:
    """Empty every cache of words: for when some of them are forgotten."""
    _terms_by_token.clear()
    for clear in _cache_clearers:
        clear()


@lru_cache(maxsize=256)
def _stemmer(thread: int, language: int) -> Any:
    """Return the stemmer of a language, which threads may not share; None for a language that has none."""
    name = LANGUAGES[language]
    return Stemmer.Stemmer(name, 0) if name in Stemmer.algorithms() else None


@word_cache(1 << 16)
def stem(word: str, language: int = ENGLISH) -> str:
    """Return the stem of a folded word of a text in a language."""
    stemmer = _stemmer(get_ident(), stemming_language(word, language))
    if stemmer is None or len(word) > _MAX_STEMMED_CHARACTERS:
        return word
    try:
        return cast("str", stemmer.stemWord(word))
    except UnicodeEncodeError:
        return word


def terms(token: str, language: int = ENGLISH) -> tuple[str, ...]:
    """Return the terms that a token is found by.

    >>> terms("src/a/b.py")
    ('src/a/b.py', 'b.py', 'src', 'a', 'b', 'py')
    """
    return terms_of_each([token], language)[0]


def terms_of_each(tokens: Sequence[str], language: int = ENGLISH) -> list[tuple[str, ...]]:
    """Return the terms of each token."""
    known = _terms_by_token.setdefault(language, {})
    found = list(map(known.get, tokens))
    missing = [place for place, token_terms in enumerate(found) if token_terms is None]
    if missing:
        new: dict[str, tuple[str, ...]] = {}
        for place, token_terms in zip(missing, _analyze([tokens[place] for place in missing], language), strict=True):
            found[place] = token_terms
            if len(tokens[place]) <= _MAX_CACHED_CHARACTERS:
                new[tokens[place]] = token_terms
        if len(known) + len(new) > _MAX_CACHED_TOKENS:
            known.clear()
        if len(new) <= _MAX_CACHED_TOKENS:
            known.update(new)
    return cast("list[tuple[str, ...]]", found)


def text_terms(text: str, language: int) -> set[str]:
    """Return the terms that a text is found by."""
    return {term for found in terms_of_each(text.split(), language) for term in found}


def content_terms(text: str) -> set[str]:
    """Return the terms of a text but for those of words that say nothing in its language.

    >>> sorted(content_terms("She has the cats of Anna."))
    ['anna', 'cat']
    """
    language = detect_language(text)
    return text_terms(text, language) - _stop_terms(language)


@lru_cache
def _stop_terms(language: int) -> set[str]:
    return text_terms(" ".join(stop_words(language)), language)


def _analyze(tokens: Sequence[str], language: int) -> Iterator[tuple[str, ...]]:
    bare = map(_strip_punctuation, tokens)
    words = [word.lower() if _is_plain_word(word) else "" for word in bare]
    stems = _stemmer(get_ident(), language if is_latin(language) else ENGLISH).stemWords(words)
    for token, plain_stem in zip(tokens, stems, strict=True):
        if plain_stem:
            yield (plain_stem,)
            continue
        parts = split_token(token)
        found = [stem(word, language) for word in parts.words]
        yield (*parts.exact_terms, *found, *chain.from_iterable(map(_characters_and_pairs, parts.spaceless_runs)))


def _is_plain_word(bare: str) -> bool:
    """Say whether it is one word or number in ASCII, the usual case, which is quick."""
    if not bare.isascii() or len(bare) > _MAX_STEMMED_CHARACTERS:
        return False
    return (bare.islower() or bare[1:].islower()) if bare.isalpha() else bare.isdecimal()


def _characters_and_pairs(run: str) -> Iterable[str]:
    folded = fold(run)
    found = chain(folded, map("".join, pairwise(folded)))
    # How often no longer matters in a run this long, and the memory for it would.
    return found if len(folded) <= _LONG_RUN_CHARACTERS else dict.fromkeys(found)


def character_pairs(run: str) -> list[str]:
    """Return the terms by which a run of a script without spaces is looked up."""
    folded = fold(run)
    return list(map("".join, pairwise(folded))) or [folded]


MIN_CHARACTERS: Final = 5
"""A shorter word is one letter away from too many others."""
_MAX_CHARACTERS: Final = 24


def one_letter_away(word: str) -> frozenset[str]:
    """Return what a folded word is with a letter left out, put in, changed, or two exchanged; the first letter, which
    is seldom wrong, stays.

    >>> sorted({"render", "sundays", "fender"} & (one_letter_away("rendr") | one_letter_away("sundys")))
    ['render', 'sundays']
    """
    if not (MIN_CHARACTERS <= len(word) <= _MAX_CHARACTERS and word.isascii() and word.isalpha()):
        return frozenset()
    parts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    found = {before + letter + after for before, after in parts for letter in ascii_lowercase}
    found |= {before + letter + after[1:] for before, after in parts if after for letter in ("", *ascii_lowercase)}
    found |= {before + after[1] + after[0] + after[2:] for before, after in parts if len(after) > 1}
    return frozenset(found - {word})
