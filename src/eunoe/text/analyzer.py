"""Text into terms: folding, languages, stems, identifiers and scripts without spaces."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Final, ParamSpec, TypeVar, cast

import Stemmer

from eunoe.text.calendar import word_set
from eunoe.text.languages import LANGUAGES, SCRIPTS, STOPS

P = ParamSpec("P")
T = TypeVar("T")

ENGLISH: Final = 0
_MAX_WHOLE = 128
_MAX_NAME = 1000
_MAX_CACHED = 48
_MAX_STEMMED = 64
_LONG_RUN = 1 << 14
_CACHE_SIZE = 400_000


def _class(codes: Iterable[int]) -> str:
    return "".join(re.escape(chr(code)) for code in codes)


_MARKS = _class(
    code for block in (range(0x300, 0x1D00), range(0xA800, 0xAC00)) for code in block
    if unicodedata.category(chr(code)).startswith("M")
)  # fmt: skip
SPACELESS: Final = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7a3"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0f40-\u0fbc\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
)
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}|[\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    "\u2190-\u21ff\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff]"
)
_EMOJI_START = "\U0001f000-\U0001faff\u2190-\u21ff\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff"
_RUN = re.compile(
    rf"(?P<emoji>{_EMOJI})|(?P<spaceless>[{SPACELESS}]+)"
    rf"|(?P<other>[^{SPACELESS}{_EMOJI_START}]+|.)",
    re.DOTALL,
)
_WORD = re.compile(rf"(?:[^\W_{SPACELESS}]|[{_MARKS}])+")
_CORE = re.compile(rf"[#@.~/]?(?:[^\W_]|_+[^\W_]).*(?:[^\W_]|[{_MARKS}])(?:\+\+|#)?|[^\W_](?:\+\+|#)?", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_BREAK = re.compile(r"""(?<!\d),|,(?!\d)|[;()\[\]{}<>"`|…“”„«»]|\.\.+|--+|[—–]""")
_JOINT = re.compile(r"[:=?&!']+|://")
_STEP = re.compile(r"[/\\@]+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc\uff07", "'"))
_ELIDED = word_set("l d j m n s t c qu ll re ve")
_DROPPED = re.compile(
    "(?<=[a-z\u03b1-\u03c9])[\u0300-\u036f]+|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff]"
)


def _unaccented() -> dict[int, str]:
    """Latin and Greek letters without their accents; other scripts' marks change the letter and stay."""
    table = {ord("ø"): "o", ord("ł"): "l", ord("đ"): "d", ord("æ"): "ae", ord("œ"): "oe", 0x131: "i", ord("ð"): "d"}
    for block in (range(0xC0, 0x250), range(0x370, 0x400), range(0x1E00, 0x2000)):
        for code in block:
            base = unicodedata.normalize("NFD", chr(code))
            if len(base) > 1 and all(unicodedata.combining(mark) for mark in base[1:]):
                table[code] = base[0]
    return table


_UNACCENTED: Final = _unaccented()


def fold(text: str) -> str:
    """The form in which words are compared: no case, no Latin or Greek accents.

    >>> fold("Crème Brûlée")
    'creme brulee'
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_UNACCENTED)
    return _DROPPED.sub("", folded)


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a chunk of text holds: `wholes` are kept as they are, `words` are stemmed, `grams` are letters in pairs."""

    wholes: tuple[str, ...]
    words: tuple[str, ...]
    grams: tuple[str, ...] = ()


def pieces(chunk: str) -> Pieces:
    """Takes a chunk without spaces apart."""
    bare = _bare(chunk)
    if bare.isascii() and bare.isalpha():
        return Pieces((), _camel(bare))
    wholes: dict[str, None] = {}
    words: list[str] = []
    grams: list[str] = []
    for kind, run in _runs(chunk):
        if kind == "emoji":
            wholes[run] = None
        elif kind == "spaceless":
            grams.append(run)
        else:
            for part in _BREAK.split(run):
                _take_apart(part, wholes, words)
    return Pieces(tuple(wholes), tuple(words), tuple(grams))


def _runs(chunk: str) -> Iterable[tuple[str | None, str]]:
    if chunk.isascii():
        return (("other", chunk),)
    text = unicodedata.normalize("NFKC", chunk).translate(_APOSTROPHES)
    return ((run.lastgroup, run[0]) for run in _RUN.finditer(text))


def _bare(chunk: str) -> str:
    return chunk.lstrip("('\"*").rstrip(".,;:!?)'\"*")


def _camel(word: str) -> tuple[str, ...]:
    whole = fold(word)
    if word.islower() or word.isupper() or word[1:].islower():
        return (whole,)
    parts = [fold(part) for part in _CAMEL.split(word)]
    return (whole, *(part for part in parts if len(part) > 1 and part != whole))


def _take_apart(part: str, wholes: dict[str, None], words: list[str]) -> None:
    core = _CORE.search(part)
    if core is None:
        return
    found = _WORD.findall(core[0])
    if len(found) == 1 and len(found[0]) == len(core[0]):
        _take_word(found[0], wholes, words)
    elif "'" in core[0] and all(letter == "'" or letter.isalnum() for letter in core[0]):
        _take_elided(core[0], words)
    else:
        _take_identifier(core[0], wholes)
        for word in found:
            _take_word(word, wholes, words)


def _take_word(word: str, wholes: dict[str, None], words: list[str]) -> None:
    if word.isalpha() or word.isdecimal() or not word.isalnum():
        words.extend(_camel(word))
        return
    wholes[fold(word)] = None
    words.extend(fold(part) for part in _CAMEL.split(word) if len(part) > 1)


def _take_elided(core: str, words: list[str]) -> None:
    parts = [fold(part) for part in core.split("'")]
    kept = [part for part in parts if len(part) > 1 and part not in _ELIDED]
    if parts[0] == "o" or not kept:
        kept.append("".join(parts))
    words.extend(kept)


def _take_identifier(core: str, wholes: dict[str, None]) -> None:
    folded = fold(core)
    candidates = [folded]
    if re.fullmatch(r"[\d.,]+", folded):
        candidates.append(folded.replace(",", ""))
    for joint in _JOINT.split(folded):
        candidates.append(joint)
        candidates += _STEP.split(joint)
    for candidate in candidates:
        kept = candidate if candidate is folded else candidate.strip("./\\-_*!?%$")
        if kept and len(kept) <= _MAX_WHOLE and not kept.isalnum():
            wholes[kept] = None


def words(name: str) -> list[str]:
    """The folded words of a name."""
    return [word for chunk in name[:_MAX_NAME].split() for word in pieces(chunk).words]


_VERSION: Final = re.compile(r"(?!(?:19|20)\d\d\.)\d+(?:\.\d+){2,}(?<!\.(?:19|20)\d\d)")
_COUNTED: Final = re.compile(r"[\d.,:/-]*\d(?:-?[^\W\d_]+)*")
_JOINED: Final = re.compile(r"[_/\\@#:.~]")


def is_identifier(whole: str) -> bool:
    """Whether a whole names one thing: a path, an address, a version, a code. Amounts, dates and hyphened words do not.

    >>> is_identifier("err_42"), is_identifier("7pm")
    (True, False)
    """
    if _COUNTED.fullmatch(whole):
        return bool(_VERSION.fullmatch(whole))
    if any(letter.isdecimal() for letter in whole) or whole.endswith(("++", "#")):
        return True
    told = any(len(word) > 1 and not is_stop(word, ENGLISH) for word in _WORD.findall(whole))
    return told and bool(_JOINED.search(whole))


_caches: Final[list[Callable[[], None]]] = []


def remembered(size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """What a function made of words, kept until `forget_words`."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        kept = lru_cache(maxsize=size)(function)
        _caches.append(kept.cache_clear)
        return cast("Callable[P, T]", kept)

    return keep


class _Stemmers(threading.local):
    """One stemmer per language and thread: they may not be shared."""

    def __init__(self) -> None:
        self._made: dict[int, Callable[[str], str]] = {}

    def stem(self, word: str, language: int) -> str:
        stemmer = self._made.get(language) or self._make(language)
        if len(word) > _MAX_STEMMED:
            return word
        try:
            return stemmer(word)
        except UnicodeEncodeError:
            return word

    def stems(self, words: list[str], language: int) -> list[str]:
        """The stems of ASCII words."""
        stemmer = self._made.get(language) or self._make(language)
        owner = getattr(stemmer, "__self__", None)
        return owner.stemWords(words) if isinstance(owner, Stemmer.Stemmer) else words

    def _make(self, language: int) -> Callable[[str], str]:
        name = LANGUAGES[language]
        made: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord if name in Stemmer.algorithms() else str
        self._made[language] = made
        return made


_stemmers: Final = _Stemmers()


@remembered(1 << 16)
def stem(word: str, language: int = ENGLISH) -> str:
    """The stem of a folded word."""
    return _stemmers.stem(word, language)


def terms(chunk: str, language: int = ENGLISH) -> tuple[str, ...]:
    """The terms that a chunk of a text is found by.

    >>> terms("src/a/b.py")
    ('src/a/b.py', 'b.py', 'src', 'a', 'b', 'py')
    """
    return all_terms([chunk], language)[0]


def all_terms(chunks: Sequence[str], language: int = ENGLISH) -> list[tuple[str, ...]]:
    """The terms of each chunk."""
    known = _known.setdefault(language, {})
    found = list(map(known.get, chunks))
    missing = [place for place, made in enumerate(found) if made is None]
    if not missing:
        return cast("list[tuple[str, ...]]", found)
    bare = [_bare(chunks[place]) for place in missing]
    words = [word.lower() if _is_word(word) else "" for word in bare]
    stems = _stemmers.stems(words, language)
    for place, stemmed in zip(missing, stems, strict=True):
        found[place] = (stemmed,) if stemmed else _taken_apart(chunks[place], language)
    _remember(known, {chunks[place]: found[place] for place in missing if len(chunks[place]) <= _MAX_CACHED})
    return cast("list[tuple[str, ...]]", found)


def _is_word(bare: str) -> bool:
    """Whether it is one plain word or number."""
    if not bare.isascii() or len(bare) > _MAX_STEMMED:
        return False
    return (bare.islower() or bare[1:].islower()) if bare.isalpha() else bare.isdecimal()


def _taken_apart(chunk: str, language: int) -> tuple[str, ...]:
    found = pieces(chunk)
    return (*found.wholes, *(stem(word, language) for word in found.words), *_grams(found.grams))


def _remember(known: dict[str, Any], made: dict[str, Any]) -> None:
    if len(known) + len(made) > _CACHE_SIZE:
        known.clear()
    if len(made) <= _CACHE_SIZE:
        known.update(made)


_known: Final[dict[int, dict[str, tuple[str, ...]]]] = {}


def forget_words() -> None:
    """Empties what is remembered about words seen: for when some of them have to go."""
    _known.clear()
    for clear in _caches:
        clear()


def _grams(runs: Iterable[str]) -> Iterator[str]:
    for run in runs:
        folded = fold(run)
        found = chain(folded, map("".join, pairwise(folded)))
        # How often no longer matters in a run this long, and the memory for it would.
        yield from found if len(folded) <= _LONG_RUN else dict.fromkeys(found)


def pairs(run: str) -> list[str]:
    """The terms by which a run of a script without spaces is looked up."""
    folded = fold(run)
    return list(map("".join, pairwise(folded))) or [folded]


def _voters() -> dict[str, tuple[int, ...]]:
    made: dict[str, list[int]] = {}
    for number, language in enumerate(LANGUAGES):
        for word in {fold(stop) for stop in STOPS[language]}:
            made.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in made.items()}


_VOTERS: Final = _voters()
_SCRIPTS: Final = tuple((first, last, LANGUAGES.index(language)) for first, last, language in SCRIPTS)


_EDGES: Final = ".,;:!?\u00bf\u00a1\"'()\u00ab\u00bb\u201c\u201d\u201e\u2026"


def votes(chunks: Sequence[str]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Places of chunks that speak for languages: by their script, or as one of their stop words."""
    lowered = [chunk.strip(_EDGES).lower() for chunk in chunks]
    for place, found in enumerate(map(_VOTERS.get, lowered)):
        if found or (not lowered[place].isascii() and (found := _scripted(lowered[place]))):
            yield place, found


def _scripted(chunk: str) -> tuple[int, ...]:
    letter = next((each for each in chunk if each.isalpha()), "")
    for first, last, language in _SCRIPTS:
        if first <= letter <= last:
            return (language,)
    return _VOTERS.get(fold(chunk)) or ()


def language(text: str) -> int:
    """The language with the most votes; English when there are none."""
    voices = [number for _, numbers in votes(text.split()) for number in numbers]
    return max(sorted(set(voices)), key=voices.count, default=ENGLISH)


_STOPS: Final = tuple(frozenset(fold(word) for word in STOPS[name]) for name in LANGUAGES)


def stops(language: int) -> frozenset[str]:
    """The folded words that say nothing in this language."""
    return _STOPS[language]


def is_stop(word: str, language: int) -> bool:
    """Whether a folded word says nothing in this language."""
    return word in _STOPS[language]
