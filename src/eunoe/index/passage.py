"""A passage: a text as the entity graph reads it, with its sentences, the entities in them, and what it is about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

from eunoe.model.graph import PassageGraph, Triple
from eunoe.text import analyzer, entities
from eunoe.text.entities import EntityExtractor, EntityMention, entity_key
from eunoe.text.languages import detect_language, is_stop_word
from eunoe.text.scripts import SPACELESS_BLOCKS
from eunoe.text.sentences import split_sentences

NO_GRAPH: Final = PassageGraph()

_MAX_SENTENCES: Final = 400
_MAX_SENTENCE_CHARACTERS: Final = 4000
_SPACELESS: Final = re.compile(f"[{SPACELESS_BLOCKS}]")
_CONNECTIVES: Final = frozenset({"and", "y", "und", "et", "in", "on", "at", "to", "for"})


class Sentence(NamedTuple):
    """The terms of a sentence as numbers, and the keys of its entities."""

    terms: tuple[int, ...]
    entities: tuple[str, ...]


class Passage(NamedTuple):
    """What the graph keeps of a text."""

    labels: dict[str, str]
    """The entities by their keys, as written."""
    about: tuple[str, ...]
    """Keys of the entities that the text is about: its title, or else the first entity in it."""
    sentences: tuple[Sentence, ...]


def term_number(term: str) -> int:
    """A term as a number above 0 that is the same everywhere; no list of terms has to be kept for it."""
    return crc32(term.encode("utf-8", "surrogatepass")) or 1


def parse_passage(text: str, extractor: EntityExtractor | None = None, graph: PassageGraph = NO_GRAPH) -> Passage:
    """Take a text apart. Entities that a model found in it count like others, and each triple is one more sentence.

    >>> passage = parse_passage("Port Blair (town)\\n\\nIt lies in India. Bob Smith was born there. Smith left.")
    >>> passage.about, passage.sentences[-1].entities
    (('port blair town', 'port blair'), ('bob smith',))
    """
    title, body = entities.split_heading(text)
    language = detect_language(body)
    parts = [part[:_MAX_SENTENCE_CHARACTERS] for part in split_sentences(body)[:_MAX_SENTENCES]]
    lowercase = entities.lowercase_words(body)
    given = list(chain(graph.entities, *map(_ends, graph.triples)))
    names = [_add_given(entities.find_entities(part, lowercase, extractor, language), part, given) for part in parts]
    title_keys = entities.title_keys(title)
    full = _full_names([*title_keys[-1:], *chain.from_iterable(names)])
    labels = dict.fromkeys(title_keys, title)
    labels_in_text = [(name, mention.label) for own in names for name, mention in own.items()]
    for name, label in (*labels_in_text, *zip(map(entity_key, given), given, strict=True)):
        labels.setdefault(full.get(name, name), label)
    about = title_keys
    if parts and not title_keys:
        about = [full.get(name, name) for name in entities.main_keys(parts[0], names[0])]
        labels |= {name: labels.get(name, labels[about[0]]) for name in about}
    triples = [(" ".join(triple), map(entity_key, _ends(triple))) for triple in graph.triples]
    lines = [_sentence(*pair, full, language) for pair in (*zip(parts, names, strict=True), *triples)]
    return Passage(labels, tuple(dict.fromkeys(about)), tuple(lines))


def _ends(triple: Triple) -> tuple[str, str]:
    return triple.subject, triple.object


def _sentence(part: str, names: Iterable[str], full: Mapping[str, str], language: int) -> Sentence:
    terms = chain.from_iterable(analyzer.terms_of_each(part.split(), language))
    numbers = dict.fromkeys(term_number(term) for term in terms if not is_stop_word(term, language))
    return Sentence(tuple(numbers), tuple(dict.fromkeys(full.get(name, name) for name in names)))


def is_within(name: str, words: str) -> bool:
    """Whether a name stands in a text, both in the form in which names are compared."""
    # Scripts without spaces have no words to compare.
    return name in words if _SPACELESS.search(name) else f" {name} " in f" {words} "


def _add_given(names: dict[str, EntityMention], part: str, given: Sequence[str]) -> dict[str, EntityMention]:
    """The names in a sentence with those given ones that stand in it, in the order in which they start."""
    if not given:
        return names
    words, folded = entity_key(part), part.casefold()
    starts = {
        entity_key(label): EntityMention(label, folded.find(label.casefold()) % (len(part) + 1)) for label in given
    }
    merged = {name: mention for name, mention in starts.items() if is_within(name, words)} | names
    return dict(sorted(merged.items(), key=lambda item: item[1].start))


def _full_names(names: Iterable[str]) -> dict[str, str]:
    """Full names by their first and last words, where only one name has the word, or several that hold the same one:
    a person is named in full once."""
    owners: dict[str, set[str]] = {}
    for name in dict.fromkeys(names):
        words = name.split()
        for word in {words[0], words[-1]} if len(words) > 1 and not _CONNECTIVES.intersection(words) else ():
            owners.setdefault(word, set()).add(name)
    shortest = {word: min(found, key=lambda name: (len(name), name)) for word, found in owners.items()}
    return {word: short for word, short in shortest.items() if all(short in name for name in owners[word])}
