"""A passage: a text as the entity graph reads it, with its sentences, the entities in them, and what it is about."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

from eunoe.model.result import PassageGraph, Triple
from eunoe.text import analyzer, entities
from eunoe.text.entities import EntityExtractor, EntityMention, entity_key, find_full_names
from eunoe.text.languages import detect_language, is_stop_word
from eunoe.text.names import LEAST_LIKELY, LIKELY, is_identifier
from eunoe.text.normalize import SPACELESS_BLOCKS
from eunoe.text.sentences import split_sentences

NO_GRAPH: Final = PassageGraph()

_MAX_SENTENCES: Final = 400
_MAX_SENTENCE_CHARACTERS: Final = 4000
_SPACELESS: Final = re.compile(f"[{SPACELESS_BLOCKS}]")


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
    scores: dict[str, float]
    """How likely each entity is a name, 0 to 1, by its key."""


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
    full = find_full_names(_with_short_forms(title, title_keys, names))
    # A title is what its text is about, whether it is a name or not.
    in_title = entities.find_entities(title, extractor=extractor) if title_keys else {}
    title_score = max((in_title[key].score for key in title_keys if key in in_title), default=LEAST_LIKELY)
    mentions = [
        *((key, EntityMention(title, 0, title_score)) for key in title_keys),
        *((full.get(name, name), mention) for own in names for name, mention in own.items()),
        *(
            (full.get(name, name), EntityMention(label, 0))
            for name, label in zip(map(entity_key, given), given, strict=True)
        ),
    ]
    labels: dict[str, str] = {}  # as first written
    scores: dict[str, float] = {}
    for key, mention in mentions:
        labels.setdefault(key, mention.label)
        scores[key] = max(scores.get(key, 0.0), round(mention.score, 3))
    about = title_keys
    if parts and not title_keys:
        about = [full.get(name, name) for name in entities.main_keys(parts[0], names[0])]
        labels |= {name: labels.get(name, labels[about[0]]) for name in about}
        scores |= {name: scores.get(name, scores[about[0]]) for name in about}
    triples = [(" ".join(triple), map(entity_key, _ends(triple))) for triple in graph.triples]
    lines = [_sentence(*pair, full, language) for pair in (*zip(parts, names, strict=True), *triples)]
    return Passage(labels, tuple(dict.fromkeys(about)), tuple(lines), scores)


def _with_short_forms(
    title: str, title_keys: Sequence[str], names: Iterable[Mapping[str, EntityMention]]
) -> Iterator[str]:
    """The names that may have a short form in the text, or be one: all that are no identifiers."""
    if not is_identifier(title):
        yield from title_keys[-1:]
    for own in names:
        for name, mention in own.items():
            if mention.score >= LIKELY and not is_identifier(mention.label):
                yield name


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
