"""The part of a context that is recalled for one message: the best hits that say something new and find room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import dropwhile, zip_longest
from math import inf
from typing import Final, NamedTuple

from eunoe.errors import EunoeError
from eunoe.model.choices import MEMORY_TYPES
from eunoe.model.hit import Hit
from eunoe.model.record import Record
from eunoe.model.scope import Scope
from eunoe.model.turn import read_turns
from eunoe.recall.audience import Audience
from eunoe.recall.context_request import ContextRequest
from eunoe.recall.lookup_query import is_reaction
from eunoe.recall.ranking_recipes import Recipe
from eunoe.recall.rendering import STYLES, Fragment, Style, TextBuilder
from eunoe.recall.request import DEFAULT_LIMIT, Filter, RecallRequest
from eunoe.recall.search import Searcher, SearchResult, find_quoted, messages_by_place
from eunoe.recall.static_context import Note, StaticContext, note_of
from eunoe.recall.static_rendering import sentence_set
from eunoe.store.query import ItemQuery
from eunoe.text.normalize import normalize
from eunoe.text.tokens import CHARACTERS_PER_TOKEN

RECENT_MESSAGES: Final = 4
"""Messages that the host has in its own history anyway."""

_SMALLEST_NOTE: Final = 12 * CHARACTERS_PER_TOKEN
"""Less room than this holds no memory worth showing."""
_USUAL_NOTE: Final = 24 * CHARACTERS_PER_TOKEN
_SPARE: Final = 20
_MAX_MISSES: Final = 20
"""After so many in a row that do not fit, what is left of the room stays empty."""
_MAX_HITS: Final = 1000
_OWN_SCALES: Final = frozenset({"lexical", "dense", "rrf"})
"""Ways to rank whose scores are on scales of their own, where no threshold means anything."""


class Threshold(NamedTuple):
    """The lowest scores that count as an answer: of the best hit, and of those after it."""

    best: float
    rest: float

    def count_passing(self, scores: Sequence[float]) -> int:
        """How many of these, best first, bear on the question."""
        if not scores or scores[0] < self.best:
            return 0
        return 1 + sum(score >= self.rest for score in scores[1:])


_THRESHOLD: Final = Threshold(0.1, 0.005)
"""Far lower than for an answer alone (`projects/relevance.py`): the budget of a context limits it anyway."""
_RERANKED_THRESHOLD: Final = Threshold(0.05, 0.0005)
"""The same after a second stage: it lowers the scores of all that does not answer."""


@dataclass(frozen=True, slots=True)
class RecalledContext:
    """The text of what was recalled, and the hits in it."""

    body: str = ""
    hits: tuple[Hit, ...] = ()
    fault: EunoeError | None = None
    """Why the reranker was asked for and did not read."""
    notes: tuple[str, ...] = ()
    statements: frozenset[str] = frozenset()
    """What the hits say, as duplicates are compared."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    hit: Hit
    note: Note
    shorter: _Candidate | None = None
    """A fact that quotes it, shown in its place where there is no room for the whole."""


def recall_for_message(
    searcher: Searcher, request: ContextRequest, audience: Audience, static: StaticContext, queries: Sequence[str]
) -> RecalledContext:
    """Search for more until there is no room left, the limit is reached, or nothing else is found. What several
    queries find takes turns, so that none can crowd out another."""
    style = STYLES[request.format]
    room = style.room_left(static.body, request.budget)
    if not audience.searched_in(MEMORY_TYPES) or (room is not None and room < _SMALLEST_NOTE):
        return RecalledContext()
    limit = request.limit or (DEFAULT_LIMIT if room is None else _MAX_HITS)
    # A message that was kept before it is answered must not speak for what was said around it.
    itself = _find_message_itself(searcher, request, audience)
    for count in _search_limits(limit, room):
        lookups = (lookup_request(query, count, request.now, request.recipe, itself) for query in queries)
        choosers = [_choose(searcher, request, audience, static, lookup) for lookup in lookups]
        builder = TextBuilder(room, style.root.separator)
        kept, is_full = _fill(builder, style, request, _take_turns(choosers), limit)
        if is_full or all(chooser.is_last for chooser in choosers):
            break
    return _recalled_context(builder.text(), kept, choosers[0])


def _recalled_context(body: str, kept: Sequence[_Candidate], first: _Chooser) -> RecalledContext:
    hits = tuple(each.hit for each in kept)
    statements = frozenset[str]().union(*(_statements(each.note) for each in kept))
    return RecalledContext(body, hits, first.fault, first.notes, statements)


def _choose(
    searcher: Searcher, request: ContextRequest, audience: Audience, static: StaticContext, lookup: RecallRequest
) -> _Chooser:
    result = searcher.search(audience.searched_in(MEMORY_TYPES), lookup, fold=False)
    return _Chooser(request, audience, static, result, lookup.limit)


def _take_turns(choosers: Sequence[_Chooser]) -> Iterator[_Candidate]:
    """The first candidate of each, then the second, and so on; each thing once."""
    if len(choosers) == 1:
        yield from choosers[0].candidates()
        return
    known: set[str] = set()
    for candidates in zip_longest(*(chooser.candidates() for chooser in choosers)):
        for candidate in filter(None, candidates):
            statements = _statements(candidate.note)
            if known.isdisjoint(statements):
                known |= statements
                yield candidate


def _search_limits(limit: int, room: float | None) -> Iterator[int]:
    """How many hits to ask for, and then for how many more. In a room it is twice as many as may fit: to read some more
    costs far less than to search again."""
    count = limit + _SPARE if room is None else 2 * (min(limit, int(room // _USUAL_NOTE)) + _SPARE)
    while count < _MAX_HITS:
        yield count
        count *= 2
    yield _MAX_HITS


def lookup_request(
    query: str, limit: int, now: datetime, recipe: Recipe, excluded: frozenset[int] = frozenset()
) -> RecallRequest:
    """Ask for what is nearest to a query, whether it bears on it or not."""
    return RecallRequest(query, Filter(excluded=excluded), recipe, now.timestamp(), limit, tokens=None, vector=None)


def shown_threshold(recipe: Recipe, reranked: bool) -> Threshold:
    """The threshold below which something is only the nearest of what does not bear on the question."""
    if recipe.method in _OWN_SCALES:
        return Threshold(-inf, -inf)
    return _RERANKED_THRESHOLD if reranked else _THRESHOLD


def _find_message_itself(searcher: Searcher, request: ContextRequest, audience: Audience) -> frozenset[int]:
    """Numbers of the message that is to be answered, if it was stored already, in whatever session."""
    if audience.stream is None or audience.scope in audience.private:
        return frozenset()
    with searcher.indexes.borrow([audience.scope]) as held:
        # A store lists messages by session; an index has them all in the order in which they came.
        logs = [(index, index.rows_with("kind", ("message",))) for _, index in held]
        latest = [index.seqs[row] for index, messages in logs for row in messages.nonzero()[0][-RECENT_MESSAGES:]]
        records = searcher.store.select(ItemQuery(seqs=latest))
    return frozenset(record.seq for record in records if is_message_itself(record, request, audience))


def is_message_itself(record: Record, request: ContextRequest, audience: Audience) -> bool:
    return record.text.strip() == request.message.strip() and _is_recent(record, audience)


def _is_recent(record: Record, audience: Audience) -> bool:
    stream = audience.stream
    if stream is None or record.stream != stream.id or record.position is None:
        return False
    return record.position >= stream.position - RECENT_MESSAGES


def _fill(
    builder: TextBuilder, style: Style, request: ContextRequest, candidates: Iterable[_Candidate], limit: int
) -> tuple[list[_Candidate], bool]:
    """The best that fit, and whether that is all there is room for; one that is too long makes room for the next."""
    path = style.path("retrieved")
    kept: list[_Candidate] = []
    misses = 0
    for best in candidates:
        candidate: _Candidate | None = best
        while candidate and not builder.add(Fragment(path, len(kept), style.note(candidate.note, request.now))):
            candidate = candidate.shorter
        kept += [candidate] if candidate else []
        misses = 0 if candidate else misses + 1
        if len(kept) == limit or misses == _MAX_MISSES:
            return kept, True
    return kept, builder.room is not None and builder.room < _SMALLEST_NOTE


class _Chooser:
    """Chooses the hits of one search that say something the agent does not have before it already."""

    def __init__(
        self,
        request: ContextRequest,
        audience: Audience,
        static: StaticContext,
        result: SearchResult,
        wanted: int,
    ) -> None:
        self.fault, self.notes = result.fault, result.notes
        threshold = shown_threshold(request.recipe, result.reranked)
        self._visible = audience.visible if request.sources else frozenset[Scope]()
        self._static = static.sentences
        self._known = {normalize(request.message), *static.sentences}
        fresh = [
            hit for hit in result.hits if hit.record.seq not in static.seqs and not _is_recent(hit.record, audience)
        ]
        shown = [hit for hit in fresh if hit.scope in audience.visible]
        self._messages = messages_by_place(shown)
        news = list(dropwhile(lambda hit: self._news(hit) is None, shown))
        self._hits = news[: threshold.count_passing([hit.score for hit in news])]
        # What comes after them is further away still, or there is nothing more.
        self.is_last = len(self._hits) < len(news) or len(result.hits) < wanted
        self._messages = messages_by_place(self._hits)

    def candidates(self) -> Iterator[_Candidate]:
        """Each thing once. A fact that only quotes a message which was found too gives its place to it."""
        done: set[int] = set()
        for hit in self._hits:
            candidate = self._news(hit)
            if candidate and candidate.hit.record.seq not in done:
                done.add(candidate.hit.record.seq)
                self._known |= _statements(candidate.note)
                yield candidate

    def _news(self, hit: Hit) -> _Candidate | None:
        """How a hit is to be shown, if it says anything that was not shown yet."""
        candidate = self._quoted(hit) or self._candidate(hit)
        return None if candidate is None or self._is_known(candidate.note) else candidate

    def _is_known(self, note: Note) -> bool:
        """Whether it was shown, or stands sentence by sentence in the static context."""
        return not self._known.isdisjoint(_statements(note)) or self._static.issuperset(sentence_set(note.text))

    def _candidate(self, hit: Hit) -> _Candidate | None:
        record = hit.record
        note = note_of(record, hit.scope, self._visible)
        if record.kind != "message":
            return _Candidate(hit, note)
        turns = read_turns([record._replace(text=record.content)], hit.scope)
        if not turns or is_reaction(turns[0].text):
            return None
        return _Candidate(hit, replace(note, text=turns[0].text, speaker=turns[0].name))

    def _quoted(self, fact: Hit) -> _Candidate | None:
        """The message among those found whose words a fact repeats."""
        if not fact.record.supports or not self._messages:
            return None
        hit = find_quoted(fact, self._messages, self._shown_words)
        candidate = self._candidate(hit) if hit else None
        return replace(candidate, shorter=self._candidate(fact)) if candidate else None

    def _shown_words(self, hit: Hit) -> str:
        candidate = self._candidate(hit)
        return f"{candidate.note.speaker} {candidate.note.text}" if candidate else ""


def _statements(note: Note) -> set[str]:
    """What a memory says, as duplicates are compared: a fact may quote a message with its speaker or without."""
    bare = {normalize(note.text)}
    return bare | {normalize(f"{note.speaker}: {note.text}")} if note.speaker else bare
