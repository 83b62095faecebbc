"""Keyword search: keyword memories that have any of some keywords, best first.

A small index in memory is made of a discussion's keyword memories, until they change: which rows have a term, how
often in which field. Rows are ranked by BM25 with a weight for each field; a keyword of several words counts as a
phrase too.
"""

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import log1p
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eunoe.apps.discussion.model import KEYWORD_MEMORY, KeywordMemory, keyword_memories
from eunoe.apps.discussion.texts import RULE, escape_memory
from eunoe.errors import EmbedderError, InputError
from eunoe.memory import Memory
from eunoe.model.arguments import check_count, check_flag, show, utc_now
from eunoe.model.scope import Scope
from eunoe.text.analyzer import character_pairs, split_token, stem, terms_of_each, word_cache
from eunoe.text.languages import ENGLISH, detect_language, is_stop_word
from eunoe.text.normalize import fold

SearchMode = Literal["keyword", "semantic", "hybrid"]
SEARCH_MODES: Final[tuple[SearchMode, ...]] = ("keyword", "semantic", "hybrid")
FIELDS: Final = ("title", "summary", "entities", "key_phrases", "text")
EQUAL_WEIGHTS: Final = (1.0,) * len(FIELDS)
DEFAULT_LIMIT: Final = 5
MAX_KEYWORDS: Final = 60
_SUMMARY: Final = FIELDS.index("summary")
_TEXT: Final = FIELDS.index("text")
_MAX_WEIGHT: Final = 1e6
_CANDIDATES: Final = 50
"""So many of each list are fused or expanded, at the least."""
_RRF_K: Final = 60
_SEED_MEMORIES: Final = 10
"""The entities of so many of the best are followed."""
_RECENT_FACTOR: Final = 2.5
"""What a memory of today counts beside one that is years old."""
_DECAY_PER_DAY: Final = 0.01
_SECONDS_PER_DAY: Final = 86_400
_SATURATION: Final = 1.2
"""k1 of BM25: how soon a word that is repeated counts no more."""
_LENGTH_SHARE: Final = 0.75
"""b of BM25: how much a long row counts less."""
_WORDS_SHARE: Final = 0.5
"""What all words of a keyword count together beside the keyword as a phrase."""
_SEPARATOR: Final = re.compile("[;\uff1b]")
"""A semicolon, also as Chinese and Japanese keyboards write it."""
_HYPHEN: Final = re.compile("[-\u2010\u2011]")
_LOGGER: Final = logging.getLogger("eunoe")

_MAX_CACHED: Final = 1 << 12
Floats = NDArray[np.float64]
Forms = frozenset[str]
"""The terms that count as one word: its stems in several languages."""


class Impact(NamedTuple):
    """The rows that have a word or a phrase, and what it counts in each before its rarity is known."""

    rows: NDArray[np.int64]
    values: Floats


_KEY: Final = itemgetter("user", "discussion")
"""Whose discussion a scope is, and its id, whether or not the scope names its tenant."""
_NO_ROWS: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuery:
    """What is searched for, and how."""

    keywords: str
    limit: int = 0
    """At most so many; 0 for the default."""
    weights: Sequence[float] = EQUAL_WEIGHTS
    use_recency: bool = False
    mode: SearchMode = "keyword"
    semantic_query: str = ""
    """What is compared by meaning; the keywords if it is empty."""
    use_entity_expansion: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", check_limit(self.limit))
        if self.mode not in SEARCH_MODES:
            raise InputError(f"search_mode {show(self.mode)} must be one of {', '.join(SEARCH_MODES)}")
        check_flag(self.use_recency, "use_recency")
        check_flag(self.use_entity_expansion, "use_entity_expansion")
        check_weights(self.weights)


class KeywordHit(NamedTuple):
    """A keyword memory that was found."""

    scope: Scope
    memory: KeywordMemory
    text: str
    """Its summary, escaped."""
    score: float


def check_limit(limit: object) -> int:
    """How many are wanted at most; 0 means the default."""
    return check_count(limit, "limit", least=0) or DEFAULT_LIMIT


def check_weights(weights: Sequence[float]) -> None:
    """Raise InputError if these are not five weights, none below zero, none beyond a million, and one above zero."""
    is_list = isinstance(weights, Sequence) and not isinstance(weights, str | bytes)
    is_right = is_list and len(weights) == len(FIELDS) and any(weights)
    numbers = [each for each in weights if type(each) in (int, float) and 0 <= each <= _MAX_WEIGHT] if is_right else []
    if len(numbers) != len(FIELDS):
        raise InputError(
            f"weights: {show(weights)} must be {len(FIELDS)} numbers, one each for {', '.join(FIELDS)}: "
            f"from 0 to {_MAX_WEIGHT:,.0f}, and not all of them 0"
        )


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


class _Row(NamedTuple):
    """A memory as it is searched."""

    memory: KeywordMemory
    text: str
    """Its summary, escaped."""
    language: int
    phrases: tuple[str, ...]
    """For each field its words in order, stemmed, with a blank around each; a line ends each text."""
    size: int


class KeywordRows:
    """The keyword memories of a discussion, and where their terms stand."""

    def __init__(self, memories: Iterable[KeywordMemory]) -> None:
        self.rows: list[_Row] = []
        self.languages = {ENGLISH}
        self._counts: dict[str, dict[int, list[int]]] = {}
        """By term and row: how often it stands in each field."""
        for number, memory in enumerate(memories):
            # Of the whole text what stands nowhere else; the weight of the summary has the rest.
            lists = ([memory.title], [memory.summary], memory.entities, memory.key_phrases, memory.topics)
            language = detect_language(" ".join(text for texts in lists for text in texts))
            self.languages.add(language)
            phrases, size = [], 0
            for field, texts in enumerate(lists):
                for token in (token for text in texts for token in text.split()):
                    for term in {*terms_of_each([token], ENGLISH)[0], *terms_of_each([token], language)[0]}:
                        self._counts.setdefault(term, {}).setdefault(number, [0] * len(FIELDS))[field] += 1
                    size += 1
                phrases.append("\n".join(f" {_phrase(text, language)} " for text in texts))
            text = escape_memory(memory.summary, RULE)
            self.rows.append(_Row(memory, text, language, tuple(phrases), size))
        self.places = {row.memory.id: number for number, row in enumerate(self.rows)}
        moments = (row.memory.moment for row in self.rows)
        self.times = np.array([moment.timestamp() if moment else 0.0 for moment in moments])
        sizes = np.array([row.size for row in self.rows], np.float64)
        usual = max(1.0, float(sizes.mean())) if len(sizes) else 1.0
        self._norms = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * sizes / usual)
        self._impacts: dict[tuple[Sequence[Forms], str, tuple[float, ...]], Impact] = {}

    def impact(self, words: Sequence[Forms], phrase: str, weights: tuple[float, ...]) -> Impact:
        """What a word, or a phrase of some words, counts in each row that has it, before its rarity is known."""
        key = tuple(words), phrase, weights
        if key not in self._impacts:
            if len(self._impacts) >= _MAX_CACHED:
                self._impacts.clear()
            counts = self._phrase_counts(words, phrase, weights) if phrase else self._word_counts(words[0], weights)
            rows = np.array([row for row, count in counts.items() if count], np.int64)
            found = np.array([count for count in counts.values() if count])
            self._impacts[key] = Impact(rows, found / (found + self._norms[rows]))
        return self._impacts[key]

    def _word_counts(self, forms: Forms, weights: tuple[float, ...]) -> dict[int, float]:
        found: dict[int, float] = {}
        for form in forms:
            for number, fields in self._counts.get(form, {}).items():
                count = sum(weight * times for weight, times in zip(weights, fields, strict=True))
                found[number] = max(count, found.get(number, 0.0))
        return found

    def _phrase_counts(self, words: Sequence[Forms], phrase: str, weights: tuple[float, ...]) -> dict[int, float]:
        holding = [set().union(*(self._counts.get(form, {}) for form in forms)) for forms in words]
        wanted = {language: f" {_phrase(phrase, language)} " for language in self.languages}
        found: dict[int, float] = {}
        for number in set.intersection(*holding):
            row = self.rows[number]
            times = (field.count(wanted[row.language]) for field in row.phrases)
            found[number] = sum(weight * each for weight, each in zip(weights, times, strict=True))
        return found


def _phrase(text: str, language: int) -> str:
    """The words of a text in order as they are compared: stems, and of scripts without spaces each character."""
    words: list[str] = []
    for parts in map(split_token, text.split()):
        words += [stem(word, language) for word in parts.words] or parts.exact_terms[:1]
        words += [character for run in parts.spaceless_runs for character in fold(run)]
    return " ".join(words)


@word_cache(_MAX_CACHED)
def _words(keyword: str, languages: frozenset[int]) -> tuple[Forms, ...]:
    """The words of a keyword, each once: without those that say nothing, unless there are no others."""
    words: dict[Forms, bool] = {}
    for parts in map(split_token, keyword.split()):
        words |= {frozenset([term]): True for term in parts.exact_terms[:1]}
        is_code = any(term.isalnum() for term in parts.exact_terms[:1])  # one such as `gpt4` is one word
        for word in () if is_code else parts.words:
            is_telling = not any(is_stop_word(word, language) for language in languages)
            words[frozenset(stem(word, language) for language in languages)] = is_telling
        words |= {frozenset([pair]): True for run in parts.spaceless_runs for pair in character_pairs(run)}
    return tuple(forms for forms, is_telling in words.items() if is_telling) or tuple(words)


def _read_rows(memory: Memory, scope: Scope) -> KeywordRows:
    return KeywordRows(keyword_memories(memory, scope))


_Ranking = list[tuple[int, float]]
"""Rows and their scores, best first. Those of several discussions are counted one after the other."""


def search_keyword_memories(memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> list[KeywordHit]:
    """Find keyword memories of some discussions, best first. Nothing is written."""
    return _Search(memory, scopes, query).hits()


class _Search:
    """One search, in the keyword memories as they are now."""

    def __init__(self, memory: Memory, scopes: Sequence[Scope], query: KeywordQuery) -> None:
        self._memory = memory
        self._scopes = scopes
        self._query = query
        self._discussions = [memory.view(scope, "keyword_rows", partial(_read_rows, memory, scope)) for scope in scopes]
        self._starts = list(accumulate((len(each.rows) for each in self._discussions), initial=0))
        self._languages = frozenset[int]().union(*(each.languages for each in self._discussions))
        # The summary is a part of the whole text too.
        weights = list(map(float, query.weights))
        weights[_SUMMARY] += weights[_TEXT]
        self._weights = tuple(weights)
        is_plain = query.mode == "keyword" and not query.use_entity_expansion
        self._most = query.limit if is_plain else max(_CANDIDATES, 2 * query.limit)

    def hits(self) -> list[KeywordHit]:
        keywords, limit = split_keywords(self._query.keywords), self._query.limit
        ranked = self._rank(keywords)
        best = ranked[:limit]
        if self._query.use_entity_expansion:
            # The entities of the best that were not searched for are followed one step.
            known, asked = {row for row, _ in best}, set(map(fold, keywords))
            seeds: dict[str, str] = {}
            for number, _ in ranked[:_SEED_MEMORIES]:
                for entity in (" ".join(entity.split()) for entity in self._row(number).memory.entities):
                    if entity and fold(entity) not in asked:
                        seeds[fold(entity)] = entity
            others = [each for each in self._find(list(seeds.values())[:MAX_KEYWORDS]) if each[0] not in known]
            reserved = min(max(1, limit // 3), len(others), limit - 1)
            best = [*best[: limit - reserved], *others][:limit]
        rows = ((bisect_right(self._starts, number) - 1, self._row(number), score) for number, score in best)
        return [KeywordHit(self._scopes[place], row.memory, row.text, score) for place, row, score in rows]

    def _row(self, number: int) -> _Row:
        place = bisect_right(self._starts, number) - 1
        return self._discussions[place].rows[number - self._starts[place]]

    def _rank(self, keywords: Sequence[str]) -> _Ranking:
        """By the mode of the query."""
        question = self._query.semantic_query.strip() or " ".join(keywords)
        if self._query.mode == "keyword":
            return self._find(keywords)
        if (near := self._near(question)) is None:
            return self._find(keywords or [question])
        scores = dict(near)
        if self._query.mode == "hybrid":  # reciprocal rank fusion
            scores = {}
            for ranked in (self._find(keywords, is_weighed=False), near):
                for rank, (row, _) in enumerate(ranked, 1):
                    scores[row] = scores.get(row, 0.0) + 1 / (_RRF_K + rank)
        if self._query.use_recency:
            factors = self._factors()
            scores = {row: score * float(factors[row]) for row, score in scores.items()}
        return sorted(scores.items(), key=lambda each: -each[1])

    def _find(self, keywords: Iterable[str], is_weighed: bool = True) -> _Ranking:
        """The rows that have any of the keywords; of equals the later one first."""
        rows, values, size = [_NO_ROWS], [np.zeros(0)], self._starts[-1]
        for keyword in keywords:
            words = _words(keyword, self._languages)
            is_word = len(words) == 1 and len(keyword.split()) == 1
            parts = [((forms,), "", 1.0 if is_word else _WORDS_SHARE / len(words)) for forms in words]
            for part, phrase, share in parts if is_word or not words else [(words, keyword, 1.0), *parts]:
                impacts = [each.impact(part, phrase, self._weights) for each in self._discussions]
                holding = sum(len(each.rows) for each in impacts)
                factor = share * (_SATURATION + 1) * log1p((size - holding + 0.5) / (holding + 0.5))
                rows += [each.rows + start for start, each in zip(self._starts, impacts, strict=False)]
                values += [each.values * factor for each in impacts]
        sums = np.bincount(np.concatenate(rows), np.concatenate(values), minlength=size)
        if self._query.use_recency and is_weighed:
            sums = sums * self._factors()
        found = np.flatnonzero(sums)
        best = found[np.lexsort((found, sums[found]))[::-1][: self._most]]
        return list(zip(best.tolist(), sums[best].tolist(), strict=True))

    def _factors(self) -> Floats:
        """What memories count for their age: 2.5 today, 1.55 after a hundred days, in the end 1."""
        times = np.concatenate([each.times for each in self._discussions])
        days = np.maximum(0.0, utc_now().timestamp() - times) / _SECONDS_PER_DAY
        factors: Floats = 1 + (_RECENT_FACTOR - 1) * np.exp(-_DECAY_PER_DAY * days)
        return factors

    def _near(self, question: str) -> _Ranking | None:
        """What is close in meaning, best first; None if that cannot be said."""
        if not question:
            return []
        if self._memory.embedder is None:
            return None
        how: Any = {"kinds": ["fact"], "labels": [KEYWORD_MEMORY], "recipe": "dense", "exact": True}
        try:
            found = self._memory.recall(list(self._scopes), question, limit=self._most, **how)
        except EmbedderError as error:
            _LOGGER.warning("keyword search: no vectors (%s), so that only words count", type(error).__name__)
            return None
        numbers = {_KEY(scope): number for number, scope in enumerate(self._scopes)}
        near = ((numbers.get(_KEY(hit.scope)), hit) for hit in found)
        rows = ((n, self._discussions[n].places.get(hit.id), hit.score) for n, hit in near if n is not None)
        return [(self._starts[number] + row, score) for number, row, score in rows if row is not None]
