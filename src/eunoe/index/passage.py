"""A text as the graph takes it in: its sentences, the names in them, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

from eunoe.model.graph import PassageGraph
from eunoe.text import analyzer, entities
from eunoe.text.entities import EntityExtractor, EntityMention, entity_key
from eunoe.text.languages import detect_language, is_stop_word
from eunoe.text.sentences import split_sentences

_MOST_SENTENCES: Final = 400
_LONGEST_SENTENCE: Final = 4000
_SPACELESS: Final = re.compile("[\u0e00-\u0eff\u2e80-\ud7a3\uf900-\ufaff]")
_JOINED: Final = frozenset({"and", "y", "und", "et", "in", "on", "at", "to", "for"})


class Sentence(NamedTuple):
    """The terms of a sentence as numbers, and the keys of its names."""

    terms: tuple[int, ...]
    names: tuple[str, ...]


class Passage(NamedTuple):
    """What the graph keeps of a text."""

    labels: dict[str, str]
    """The names by their keys, as written."""
    about: tuple[str, ...]
    """Keys of the names that the text is about: its title, or else the first name in it."""
    sentences: tuple[Sentence, ...]


NOTHING: Final = PassageGraph()


def number(term: str) -> int:
    """A term as a number above 0 that is the same everywhere; no list of terms has to be kept for it."""
    return crc32(term.encode("utf-8", "surrogatepass")) or 1


def read(words: str, extractor: EntityExtractor | None = None, reading: PassageGraph = NOTHING) -> Passage:
    """Takes a text apart. Names that a model read in it count like others, and each triple is one more sentence.

    >>> passage = read("Port Blair (town)\\n\\nIt lies in India. Bob Smith was born there. Smith left.")
    >>> passage.about, passage.sentences[-1].names
    (('port blair town', 'port blair'), ('bob smith',))
    """
    title, body = entities.split_heading(words)
    small = entities.lowercase_words(body)
    told = [part[:_LONGEST_SENTENCE] for part in split_sentences(body)[:_MOST_SENTENCES]]
    language = detect_language(body)
    found = [entities.find_entities(part, small, extractor, language) for part in told]
    if reading != NOTHING:
        found = [_joined(names, part, reading) for part, names in zip(told, found, strict=True)]
    titled = entities.title_keys(title)
    longer = _longer([*titled[-1:], *(name for names in found for name in names)])
    labels = dict.fromkeys(titled, title)
    for names in found:
        for name, written in names.items():
            labels.setdefault(longer.get(name, name), written.label)
    for label in _named(reading):
        labels.setdefault(longer.get(entity_key(label), entity_key(label)), label)
    about = titled or ([longer.get(name, name) for name in entities.main_keys(told[0], found[0])] if told else [])
    for name in about:
        labels.setdefault(name, labels[about[0]])
    return Passage(
        labels,
        tuple(dict.fromkeys(about)),
        tuple(
            Sentence(_terms(part, language), tuple(dict.fromkeys(longer.get(name, name) for name in names)))
            for part, names in chain(zip(told, found, strict=True), _told(reading))
        ),
    )


def is_within(name: str, words: str) -> bool:
    """Whether a name stands in a text, both in the form in which names are compared."""
    # Scripts without spaces have no words to compare.
    return name in words if _SPACELESS.search(name) else f" {name} " in f" {words} "


def _named(reading: PassageGraph) -> list[str]:
    """All names of a reading, as written."""
    return [*reading.entities, *(end for subject, _, object in reading.triples for end in (subject, object))]


def _joined(names: dict[str, EntityMention], part: str, reading: PassageGraph) -> dict[str, EntityMention]:
    """The names in a sentence with those that a model read there, in the order in which they start."""
    words, small = entity_key(part), part.casefold()
    more = {
        entity_key(label): EntityMention(label, small.find(label.casefold()) % (len(part) + 1))
        for label in _named(reading)
    }
    joined = {name: written for name, written in more.items() if is_within(name, words)} | names
    return dict(sorted(joined.items(), key=lambda item: item[1].start))


def _told(reading: PassageGraph) -> Iterable[tuple[str, tuple[str, str]]]:
    """Triples as sentences with their names."""
    return ((" ".join(triple), (entity_key(triple.subject), entity_key(triple.object))) for triple in reading.triples)


def _longer(names: Iterable[str]) -> dict[str, str]:
    """Single words that begin or end just one longer name, or several that hold the same one: a person is named in
    full once."""
    owners: dict[str, set[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        for word in {words[0], words[-1]} if len(words) > 1 and not _JOINED.intersection(words) else ():
            owners.setdefault(word, set()).add(name)
    shortest = {word: min(found, key=lambda name: (len(name), name)) for word, found in owners.items()}
    return {word: short for word, short in shortest.items() if all(short in name for name in owners[word])}


def _terms(part: str, language: int) -> tuple[int, ...]:
    found = (term for terms in analyzer.terms_of_each(part.split(), language) for term in terms)
    return tuple(dict.fromkeys(number(term) for term in found if not is_stop_word(term, language)))
