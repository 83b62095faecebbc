"""What of a summary says something forgotten where its lineage does not tell: it was written by hand, or says more
than it absorbed. A part goes if nothing left in its stream bears out what it shares with the forgotten words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from eunoe.records.scrubbing import mark_scrub_due
from eunoe.store.contract import Store, all_items
from eunoe.store.query import ItemQuery
from eunoe.store.tables import RevisionRecord, StreamState
from eunoe.text.analyzer import content_terms
from eunoe.text.normalize import fold
from eunoe.text.sentences import split_sentences

MIN_PHRASE_CHARACTERS = 12
"""A shorter text stands by chance in others."""
_PAGE = 200
"""Few records: most words are soon found in others."""
_STEM_CHARACTERS = 3
"""A stem may end in other letters than its words; so many of its first are in each of them."""
_WORD = re.compile(r"\w")
_DIGIT_GROUP = re.compile(r"(?<=\d)[,.'\u00a0\u202f ](?=\d{3}(?!\d))")
"""What stands between the digits of one number, as in 48,500."""


def cut_forgotten(store: Store, stream: StreamState, texts: Sequence[str]) -> list[int]:
    """Take out of every revision of a stream what surely says something of forgotten texts. Return the numbers of those
    that have nothing left: they are still to be purged."""
    records = store.load(RevisionRecord, stream=stream.id) if texts else []
    parts = find_forgotten(store, stream, [record.text for record in records], texts)
    sure = [part for part, is_sure in parts.items() if is_sure]
    cut = {record: _without(record.text, sure) for record in records if any(part in record.text for part in sure)}
    if cut:
        mark_scrub_due(store, stream, store.advance(stream.id).version)
        store.save([record._replace(text=text) for record, text in cut.items() if text])
    return [record.number for record, text in cut.items() if not text]


def find_forgotten(
    store: Store, stream: StreamState, summaries: Iterable[str], texts: Sequence[str]
) -> Mapping[str, bool]:
    """The parts of summaries of a stream that say something of forgotten texts which nothing left in the stream does,
    and whether they surely do: they repeat a text, a number or a name of it, or hold little else."""
    parts = list(dict.fromkeys(part for summary in summaries for part in _split(summary)))
    if not parts or not texts:
        return {}
    gone = _terms("\n".join(texts)) - _terms(" ".join(stream.scope.pairs.values()))
    telling = set().union(*map(_telling_terms, texts))
    terms = {part: _terms(part) for part in parts}
    phrases = [text for text in texts if len(text) >= MIN_PHRASE_CHARACTERS]
    repeated = {part: [text for text in phrases if text in part] for part in parts}
    alone = {term for own in terms.values() for term in own & gone}
    unsaid = {text for found in repeated.values() for text in found}
    for record in all_items(store, ItemQuery(stream.id), _PAGE) if alone or unsaid else ():
        words = f"{record.text}\n{record.caption}"
        folded = fold(_with_whole_numbers(words))
        if any(term[: max(_STEM_CHARACTERS, len(term) - _STEM_CHARACTERS)] in folded for term in alone):
            alone -= _terms(words)
        unsaid = {text for text in unsaid if text not in words}
        if not (alone or unsaid):
            return {}

    def is_sure(part: str, own: set[str]) -> bool:
        is_told = bool(own & (telling | _telling_terms(part))) or 2 * len(own) > len(terms[part])
        return is_told or not unsaid.isdisjoint(repeated[part])

    found = {part: terms[part] & alone for part in parts}
    return {part: is_sure(part, own) for part, own in found.items() if own or not unsaid.isdisjoint(repeated[part])}


def _terms(text: str) -> set[str]:
    return content_terms(_with_whole_numbers(text))


def _with_whole_numbers(text: str) -> str:
    """A text, and it once more with each number as one word."""
    return f"{text}\n{_DIGIT_GROUP.sub('', text)}" if _DIGIT_GROUP.search(text) else text


def _telling_terms(text: str) -> set[str]:
    """Terms of names and numbers: what is capitalised, but for the first word, and what has a digit."""
    named = (token for token in text.split()[1:] if token.lstrip("\"'(")[:1].isupper())
    numbers = (term for term in _terms(text) if any(map(str.isdigit, term)))
    return _terms(" ".join(named)).union(numbers)


def _split(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from split_sentences(line) or filter(str.strip, [line])


def _without(text: str, parts: Sequence[str]) -> str:
    """A text without parts, and without the lines that hold nothing else; empty if no word is left."""
    lines = []
    for line in text.splitlines():
        kept = line
        for part in parts:
            kept = " ".join(kept.split(part)) if part in kept else kept
        if kept == line or _WORD.search(kept):
            lines.append(kept.rstrip())
    left = "\n".join(lines)
    return left if _WORD.search(left) else ""
