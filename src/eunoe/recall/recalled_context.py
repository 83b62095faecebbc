"""The part of a context that is recalled for one message: the best hits that say something new and find room."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import dropwhile, groupby, takewhile, zip_longest
from math import inf, log
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from eunoe.errors import EunoeError
from eunoe.index.cache import HeldIndex, IndexCache
from eunoe.model.arguments import MEMORY_TYPES
from eunoe.model.atom import Record, SourcePlace, source_place
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.turn import USER_ROLES, read_turns
from eunoe.recall.audience import Audience, is_conversation
from eunoe.recall.query import is_reaction
from eunoe.recall.ranking import LENT_REASONS
from eunoe.recall.recipes import Recipe, divide_budget
from eunoe.recall.rendering import GAP, STYLES, Fragment, Note, Sentences, Style, TextBuilder
from eunoe.recall.request import DEFAULT_LIMIT, ContextRequest, Filter, RecallRequest
from eunoe.recall.search import Searcher, SearchResult, find_quoted, messages_by_place, shift
from eunoe.recall.static_context import StaticContext, note_of
from eunoe.store.contract import ItemQuery, Reading
from eunoe.text import analyzer
from eunoe.text.analyzer import text_terms
from eunoe.text.languages import STOP_WORDS, detect_language, stop_words
from eunoe.text.normalize import normalize
from eunoe.text.sentences import (
    CHARACTERS_PER_TOKEN,
    LONG_TEXT_WORDS,
    split_into_parts,
    split_line,
    split_sentences,
    text_width,
    word_count,
)

RECENT_MESSAGES: Final = 4
"""Messages that the host has in its own history anyway."""

_SMALLEST_NOTE: Final = 12 * CHARACTERS_PER_TOKEN
"""Less room than this holds no memory worth showing."""
_USUAL_NOTE: Final = 24 * CHARACTERS_PER_TOKEN
_SPARE: Final = 20
_MAX_MISSES: Final = 20
"""After so many in a row that do not fit, what is left of the room stays empty."""
_MAX_HITS: Final = 1000
_WORD_WIDTH: Final = 6.0
"""What a word takes with the blank after it."""
_LONG_TEXT: Final = LONG_TEXT_WORDS * _WORD_WIDTH
"""A longer message may be told by what fits the question."""
_SHARE_OF_ROOM: Final = 3
"""A long message takes at most this part of the room that is left, if others wait: the best get most."""
_MAX_ODDS_BEHIND: Final = 200.0
"""How many times lower than those of an answer that the agent has already the odds of another may be. With 20 one own
question in a hundred gets nothing (LoCoMo), with 200 none."""
_TINY: Final = 1e-9
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

    def above(self, best: float) -> Threshold:
        """The threshold for what follows a best hit that the agent has before it already. That one says whether the
        memory has an answer; the next may score half of what a best has to, and must not be far behind it."""
        if best < self.best or self.best == -inf:
            return self
        odds = best / max(1 - best, _TINY) / _MAX_ODDS_BEHIND
        return Threshold(max(self.best / 2, odds / (1 + odds)), self.rest)


_THRESHOLD: Final = Threshold(0.1, 0.005)
"""Far lower than for an answer alone (`apps/projects/memory.py`): the budget of a context limits it anyway."""
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
    said: Sentences = field(default_factory=Sentences)
    """What the static context and the hits say."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    hit: Hit
    note: Note
    shorter: _Candidate | None = None
    """A fact that quotes it, shown in its place where there is no room for the whole."""
    query: str = ""
    """What it was found by,"""
    part_cosines: Sequence[float] = ()
    """and, if it is long, how near each of its parts is to that."""
    superseded: Sequence[SupersededAtom] = ()
    """What was made from it and is over: behind its words stands since when."""

    def in_passages(self, words: int) -> _Candidate:
        """A long message by what fits the question, and by less of it where there is no room for that."""

        def cut(words: int) -> _Candidate:
            text = fitting_passages(self.note.text, self.query, self.part_cosines, words)
            return replace(self, note=replace(self.note, text=text))

        least = cut(MIN_WORDS)
        return replace(cut(words), shorter=least) if words > MIN_WORDS else least


def recall_for_message(
    searcher: Searcher, request: ContextRequest, audience: Audience, static: StaticContext, queries: Sequence[str]
) -> RecalledContext:
    """Search for more until there is no room left, the limit is reached, or nothing else is found. What several
    queries find takes turns, so that none can crowd out another."""
    style = STYLES[request.format]
    room = style.room_left(static.body, request.budget)
    scopes = audience.searched_in(MEMORY_TYPES)
    if not scopes or (room is not None and room < _SMALLEST_NOTE):
        return RecalledContext()
    limit = request.limit or (DEFAULT_LIMIT if room is None else _MAX_HITS)

    # A message that was kept before it is answered must not speak for what was said around it.
    def find_itself(store: Reading, held: Sequence[HeldIndex]) -> frozenset[int]:
        # A store lists messages by session; an index has them all in the order in which they came.
        logs = [(each.index, each.index.rows_with("kind", ("message",))) for each in held]
        latest = [index.seqs[row] for index, messages in logs for row in messages.nonzero()[0][-RECENT_MESSAGES:]]
        records = store.select(ItemQuery(seqs=latest))
        return frozenset(record.seq for record in records if is_message_itself(record, request, audience))

    itself = frozenset[int]()
    if audience.stream is not None and audience.scope not in audience.private:
        itself = searcher.indexes.read([audience.scope], find_itself)
    superseded = find_superseded(searcher.indexes, scopes)
    recipe = divide_budget(request.recipe, len(queries))
    # In a room it is twice as many as may fit: to read some more costs far less than to search again.
    count = limit + _SPARE if room is None else 2 * (min(limit, int(room // _USUAL_NOTE)) + _SPARE)
    while True:
        count = min(count, _MAX_HITS)
        choosers = []
        for query in queries:
            lookup = lookup_request(query, count, request.now, recipe, itself)
            result = searcher.search(scopes, lookup, fold=False, judge=True)
            choosers.append(_Chooser(request, audience, static, lookup, result, superseded))
        builder, said = TextBuilder(room, style.root.separator), choosers[0].said.copy()
        kept, is_full = _fill(builder, style, request, _with_passages(builder, choosers, limit), limit, said)
        if is_full or count == _MAX_HITS or all(chooser.is_last for chooser in choosers):
            break
        count *= 2
    hits = tuple(each.hit for each in kept)
    return RecalledContext(builder.text(), hits, choosers[0].fault, choosers[0].notes, said)


def _with_passages(builder: TextBuilder, choosers: Sequence[_Chooser], limit: int) -> Iterator[_Candidate]:
    """The first candidate of each chooser, then the second, and so on; where there is no room for all of them, long
    messages by what fits the question."""
    turns = zip_longest(*(chooser.candidates() for chooser in choosers))
    candidates = [candidate for each in turns for candidate in each if candidate]
    if builder.room is None or not any(chooser.has_long_texts for chooser in choosers):
        yield from candidates
        return
    count = min(limit, len(candidates))
    is_scarce = sum(text_width(each.note.text) + _USUAL_NOTE for each in candidates[:count]) > builder.room
    for place, candidate in enumerate(candidates):
        if is_scarce and len(candidate.note.text) > _LONG_TEXT:
            share = max(builder.room / _SHARE_OF_ROOM, builder.room / max(count - place, 1))
            yield candidate.in_passages(int(share / _WORD_WIDTH))
        else:
            yield candidate


def lookup_request(
    query: str, limit: int, now: datetime, recipe: Recipe, excluded: frozenset[int] = frozenset()
) -> RecallRequest:
    """Ask for what is nearest to a query, whether it bears on it or not."""
    return RecallRequest(query, Filter(excluded=excluded), recipe, now.timestamp(), limit)


def shown_threshold(recipe: Recipe, reranked: bool, floor_shift: float = 0.0) -> Threshold:
    """The threshold below which something is only the nearest of what does not bear on the question."""
    if recipe.method in _OWN_SCALES:
        return Threshold(-inf, -inf)
    best, rest = _RERANKED_THRESHOLD if reranked else _THRESHOLD
    return Threshold(max(shift(best, floor_shift), rest) if recipe.method == "blend" else best, rest)


def is_message_itself(record: Record, request: ContextRequest, audience: Audience) -> bool:
    return record.text.strip() == request.message.strip() and _is_recent(record, audience)


def _is_recent(record: Record, audience: Audience) -> bool:
    stream = audience.stream
    if stream is None or record.stream != stream.id or record.position is None:
        return False
    return record.position >= stream.position - RECENT_MESSAGES


def _fill(
    builder: TextBuilder,
    style: Style,
    request: ContextRequest,
    candidates: Iterable[_Candidate],
    limit: int,
    said: Sentences,
) -> tuple[list[_Candidate], bool]:
    """The best that fit and say something new, and whether that is all there is room for; one that is too long makes
    room for the next."""
    path = style.path("retrieved")
    kept: list[_Candidate] = []
    misses = 0
    for best in candidates:
        if not said.new_part(best.note.text, best.note.speaker):
            continue
        candidate: _Candidate | None = best
        while candidate and not _add(builder, Fragment(path, len(kept), ""), style, candidate, request.now, said):
            candidate = candidate.shorter
        kept += [candidate] if candidate else []
        misses = 0 if candidate else misses + 1
        if len(kept) == limit or misses == _MAX_MISSES:
            return kept, True
    return kept, builder.room is not None and builder.room < _SMALLEST_NOTE


def _add(
    builder: TextBuilder, place: Fragment, style: Style, candidate: _Candidate, now: datetime, said: Sentences
) -> bool:
    """Add what is new in a candidate; return whether it fits and says anything."""
    note = candidate.note
    text = said.new_part(note.text, note.speaker)
    over = [atom for atom in candidate.superseded if atom.words in text]
    for atom in () if note.superseded else over:
        text = text.replace(atom.words, atom.words + atom.mark)
    if not text or not builder.add(
        place._replace(text=style.note(note if text == note.text else replace(note, text=text), now))
    ):
        return False
    said.add(note.text, note.speaker)
    for atom in over:
        said.add(atom.text + atom.mark)
    return True


class _Chooser:
    """Chooses the hits of one search that say something the agent does not have before it already."""

    def __init__(
        self,
        request: ContextRequest,
        audience: Audience,
        static: StaticContext,
        lookup: RecallRequest,
        result: SearchResult,
        superseded: Superseded,
    ) -> None:
        self.fault, self.notes = result.fault, result.notes
        self._candidates: dict[int, _Candidate | None] = {}
        self._lookup = lookup
        self._asked = content_terms(lookup.query)
        self._now = request.now
        self._part_cosines = result.part_cosines
        self._superseded = superseded
        self._visible = audience.visible if request.sources else frozenset[Scope]()
        self._static = static
        self._message = normalize(request.message)
        self.said = Sentences(static.sentences)
        self._formed: dict[SourcePlace, list[str]] = {}
        for note in static.notes:
            for place in note.rests_on:
                self._formed.setdefault(place, []).append(note.text)
        shown = [hit for hit in result.hits if hit.scope in audience.visible]
        if is_conversation(audience.scope):  # whose host has the latest messages in its own history
            shown = [hit for hit in shown if not _is_recent(hit.record, audience)]
        threshold = shown_threshold(request.recipe, result.reranked, result.floor_shift)
        self._messages = messages_by_place(shown)
        news = list(dropwhile(lambda hit: self._is_static(hit) or self._news(hit) is None, shown))
        best = next((hit for hit in shown if self._is_static(hit) or self._candidate(hit)), None)
        self._hits = _passing(news, best if best and self._is_static(best) else None, threshold, self._asked)
        # What comes after them is further away still, or there is nothing more.
        self.is_last = len(self._hits) < len(news) or len(result.hits) < lookup.limit
        self._messages = messages_by_place(self._hits)
        self.has_long_texts = any(len(hit.record.text) > _LONG_TEXT for hit in self._hits)

    def candidates(self) -> Iterator[_Candidate]:
        """Each thing once. A fact that only quotes a message which was found too gives its place to it."""
        done: set[int] = set()
        for hit in self._hits:
            candidate = None if hit.record.seq in self._static.seqs else self._news(hit)
            if candidate and candidate.hit.record.seq not in done:
                done.add(candidate.hit.record.seq)
                yield candidate

    def _news(self, hit: Hit) -> _Candidate | None:
        """How a hit is to be shown, if it says anything that was not shown yet."""
        candidate = self._quoted(hit) or self._candidate(hit)
        if candidate is None or normalize(candidate.note.text) == self._message or self._is_in_static(candidate):
            return None
        return candidate

    def _is_static(self, hit: Hit) -> bool:
        """Whether the static context says it."""
        if hit.record.seq in self._static.seqs:
            return True
        candidate = self._candidate(hit)
        return candidate is not None and self._is_in_static(candidate)

    def _is_in_static(self, candidate: _Candidate) -> bool:
        """Word for word, sentence by sentence, or by the observations and facts that were formed from it."""
        note, hit = candidate.note, candidate.hit
        if not self.said.new_part(note.text, note.speaker):
            return True
        formed = self._formed.get((hit.scope, hit.id)) if hit.kind == "message" else None
        return bool(formed) and says_no_more(note.text, formed or ())

    def _candidate(self, hit: Hit) -> _Candidate | None:
        """How a hit is shown, read once; None if it tells nothing."""
        if hit.record.seq not in self._candidates:
            self._candidates[hit.record.seq] = self._read(hit)
        return self._candidates[hit.record.seq]

    def _read(self, hit: Hit) -> _Candidate | None:
        record = hit.record
        note = note_of(record, hit.scope, self._visible)
        if record.kind != "message":
            return _Candidate(hit, note)
        turns = read_turns([record._replace(text=record.content)], hit.scope)
        if not turns or is_reaction(turns[0].text) or is_old_question(record, self._asked):
            return None
        end = self._superseded.end_of((hit.scope, hit.id), turns[0].text, self._now)
        told = replace(note, text=turns[0].text, speaker=turns[0].name, superseded=end)
        near = self._part_cosines.get(record.seq, ())
        over = self._superseded.atoms_of((hit.scope, hit.id), self._now)
        return _Candidate(hit, told, None, self._lookup.query, near, over)

    def _quoted(self, fact: Hit) -> _Candidate | None:
        """The message among those found whose words a fact repeats."""
        if not fact.record.supports or not self._messages:
            return None
        hit, sources = find_quoted(fact, self._messages, self._shown_words), fact.record.sources
        if hit is None and fact.kind == "observation" and len(sources) == 1:  # it and its message are one memory
            hit = self._messages.get(source_place(sources[0], fact.scope))
        candidate = self._candidate(hit) if hit else None
        return replace(candidate, shorter=self._candidate(fact)) if candidate else None

    def _shown_words(self, hit: Hit) -> str:
        candidate = self._candidate(hit)
        return f"{candidate.note.speaker} {candidate.note.text}" if candidate else ""


def _passing(news: Sequence[Hit], known: Hit | None, threshold: Threshold, asked: frozenset[str]) -> list[Hit]:
    """The hits that score enough beside a best hit that the static context tells; else the message from which that one
    was formed, which may say more. Beside one that has every word of the question, the turns around it score nearly as
    much whatever they say: so one of the hits must score enough by what it says itself."""
    bar = threshold.above(known.score) if known else threshold
    passing = news[: bar.count_passing([hit.score for hit in news])]
    if known and asked <= content_terms(known.text):
        # Whether most of what speaks for each is in the turns around it and in its session.
        best = takewhile(lambda hit: hit.score >= bar.best, passing)
        lent = (sum(reason.share for reason in hit.reasons if reason.name in LENT_REASONS) for hit in best)
        passing = () if all(share > 0.5 for share in lent) else passing
    if passing or known is None:
        return list(passing)
    places = {source_place(name, known.scope) for name in known.record.sources}
    return [hit for hit in news if (hit.scope, hit.id) in places and hit.score >= threshold.best][:1]


_QUESTION_ENDS: Final = ("?", "？", "؟")  # noqa: RUF001
_QUESTION_WORDS: Final = frozenset(
    (Path(__file__).parent / "words" / "question_words.txt").read_text("utf-8").casefold().split()
)
_CLAUSE: Final = re.compile(r"[,;:–—]\s")
_STATEMENT_END: Final = re.compile(r"(?:[!…。！]|\w{4}\.)\s")  # noqa: RUF001
"""Most messages that end in a question say something before it, which is quicker to see than to split."""
_WORD: Final = re.compile(r"[^\W_]+")
_MAX_CALL_WORDS: Final = 2
"""So many words before a comma are a greeting or a name; more say something."""
_WORDS_BEFORE: Final = 5
"""How far into a question its question word may stand: "Do you still know where I live?"."""
_MAX_QUESTION_CHARACTERS: Final = 300
_SAME_SHARE: Final = 0.9
"""A message of whose words an atom has this share says no more than the atom."""
_MAX_SUPERSEDED: Final = 200
"""The latest superseded atoms of a stream that are looked at: older ones are seldom said again."""
_STOP_WORDS: Final = frozenset[str]().union(*STOP_WORDS.values())


def is_old_question(record: Record, asked: frozenset[str]) -> bool:
    """Whether a user's message only asks, and tells nothing that is not asked again; `asked` are terms of what is."""
    text = record.text
    if record.kind != "message" or record.role.lower() not in USER_ROLES or len(text) > _MAX_QUESTION_CHARACTERS:
        return False
    if not text.rstrip(" \"'”’»)").endswith(_QUESTION_ENDS) or _STATEMENT_END.search(text):
        return False
    for sentence in split_sentences(text):
        *before, last = [_WORD.findall(clause.casefold()) for clause in _CLAUSE.split(sentence)]
        asks = sentence.rstrip(" \"'”’»)").endswith(_QUESTION_ENDS)
        if not asks or any(len(words) > _MAX_CALL_WORDS for words in before):
            return False
        if _QUESTION_WORDS.isdisjoint(last[:_WORDS_BEFORE]) and not content_terms(sentence) <= asked:
            return False
    return True


def content_terms(text: str) -> frozenset[str]:
    """The stems of the words of a text that name something."""
    words = [token.strip(".,;:!?\"'’“”()[]…") for token in text.split()]
    telling = [word for word in words if word and word.casefold().replace("’", "'") not in _STOP_WORDS]
    return frozenset(term for terms in analyzer.terms_of_each(telling) for term in terms)


def says_no_more(message: str, atoms: Iterable[str]) -> bool:
    """Whether atoms tell nearly everything that a message says."""
    said = content_terms(message)
    known = frozenset[str]().union(*map(content_terms, atoms))
    return len(said & known) >= _SAME_SHARE * len(said)


class SupersededAtom(NamedTuple):
    """An atom in whose place another is true, and since when."""

    text: str
    until: datetime

    @property
    def words(self) -> str:
        """Without the speaker's name."""
        return self.text.partition(": ")[2] or self.text

    @property
    def mark(self) -> str:
        return f" (until {self.until:%Y-%m-%d})"


class Superseded(NamedTuple):
    """What was superseded, by the messages it rests on."""

    by_place: Mapping[SourcePlace, Sequence[SupersededAtom]]

    def atoms_of(self, place: SourcePlace, now: datetime) -> tuple[SupersededAtom, ...]:
        return tuple(atom for atom in self.by_place.get(place, ()) if atom.until <= now)

    def end_of(self, place: SourcePlace, text: str, now: datetime) -> datetime | None:
        """Since when what a message says is not true any more; None if it still is, or says more than that."""
        atoms = self.atoms_of(place, now)
        is_over = atoms and says_no_more(text, [atom.text for atom in atoms])
        return max(atom.until for atom in atoms) if is_over else None


def find_superseded(indexes: IndexCache, scopes: Sequence[Scope]) -> Superseded:
    """The atoms of these scopes that were superseded, the latest of each."""

    def find(store: Reading, held: Sequence[HeldIndex]) -> Superseded:
        by_place: dict[SourcePlace, list[SupersededAtom]] = {}
        for each in held:
            rows = np.flatnonzero(~np.isnan(each.index.columns["retired"]))[-_MAX_SUPERSEDED:]
            seqs = [each.index.seqs[row] for row in rows.tolist()]
            for record in store.select(ItemQuery(seqs=seqs, skip_damaged=True)) if seqs else ():
                if record.superseded_by and record.retired:
                    atom = SupersededAtom(record.text, record.valid_to or record.retired)
                    for name in record.sources:
                        by_place.setdefault(source_place(name, each.owners[record.stream]), []).append(atom)
        return Superseded(by_place)

    return indexes.read(scopes, find)


MIN_WORDS: Final = 60
"""Fewer words hardly tell what a passage is about; as many as a part has."""

_MAX_LINE_WORDS: Final = 80
"""A line up to so long is told as a whole."""
_SENTENCES_AROUND: Final = 2
"""Of a longer line so many sentences before and after the one that fits are told with it."""
_DENSE_WEIGHT: Final = 4.0
"""What a cosine above that of the whole text counts, against the share of the question's words."""
_NEIGHBOUR_SHARE: Final = 0.5
"""What a sentence gets of the words of the sentence beside it: an answer often stands beside the words that were
asked."""


class _Sentence(NamedTuple):
    """A sentence of a text, or a piece of a long one, and where it stands."""

    start: int
    text: str
    line: int
    words: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def fitting_passages(text: str, question: str, cosines: Sequence[float], limit: int) -> str:
    """Of a text the sentences that fit a question best, about so many words, with a mark where some were left out.

    `cosines` are those of the parts of the text, or nothing.

    >>> fitting_passages("I rose at six. The kayak is red. Then I slept.", "Which colour is the kayak?", [], 4)
    '[…] The kayak is red. […]'
    """
    sentences = list(_sentences(text, limit))
    if sum(sentence.words for sentence in sentences) <= limit:
        return text
    scores = _scores(text, sentences, question, cosines)
    kept: set[int] = set()
    room = limit
    best = max(range(len(sentences)), key=lambda place: (scores[place], -place))
    for place in sorted(range(len(sentences)), key=lambda place: (-scores[place], abs(place - best))):
        around = range(max(place - _MAX_LINE_WORDS, 0), min(place + _MAX_LINE_WORDS + 1, len(sentences)))
        line = [each for each in around if sentences[each].line == sentences[place].line]
        if sum(sentences[each].words for each in line) > _MAX_LINE_WORDS:
            line = [each for each in line if abs(each - place) <= _SENTENCES_AROUND]
        added = [each for each in line if each not in kept]
        size = sum(sentences[each].words for each in added)
        if size > room and kept:
            break
        if size > room:  # rather the sentence alone than nothing
            added, size = [place], sentences[place].words
        kept.update(added)
        room -= size
    told: list[str] = []
    for is_kept, group in groupby(range(len(sentences)), kept.__contains__):
        places = list(group)
        told.append(text[sentences[places[0]].start : sentences[places[-1]].end].strip() if is_kept else GAP)
    return " ".join(told)


def _sentences(text: str, limit: int) -> Iterator[_Sentence]:
    """The sentences of a text; one that is too long is cut between words where there are any."""
    at = 0
    for number, line in enumerate(text.splitlines()):
        for sentence in split_line(line):
            at = text.index(sentence, at)
            words = word_count(sentence)
            step = -(-len(sentence) // -(-words // limit))
            start = 0
            while start < len(sentence):
                end = min(start + step, len(sentence))
                blank = sentence.rfind(" ", start + step // 2, end) if end < len(sentence) else -1
                end = end if blank < 0 else blank + 1
                yield _Sentence(at + start, sentence[start:end], number, -(-words * (end - start) // len(sentence)))
                start = end
            at += len(sentence)


def _scores(text: str, sentences: Sequence[_Sentence], question: str, cosines: Sequence[float]) -> list[float]:
    """The share of the question's words that each sentence has, those in few sentences counting for more, with a part
    of its neighbours' shares; and how near the part of the text that it stands in is to the question."""
    language = detect_language(question)
    asked = text_terms(question, language).difference(text_terms(" ".join(stop_words(language)), language))
    found = [asked & text_terms(sentence.text, language) for sentence in sentences]
    counts = Counter(term for terms in found for term in terms)
    weights = {term: log(1 + len(sentences) / count) for term, count in counts.items()}
    total = sum(weights.values()) or 1.0
    shares = [sum(weights[term] for term in sorted(terms)) / total for terms in found]
    around = [0.0, *shares, 0.0]
    lexical = [
        own + _NEIGHBOUR_SHARE * max(before, after)
        for before, own, after in zip(around, around[1:], around[2:], strict=False)
    ]
    parts = split_into_parts(text) if len(cosines) > 1 else []
    if not parts or len(parts) != len(cosines):  # some could not be embedded
        return lexical
    usual, scores = sum(cosines) / len(cosines), list[float]()
    number, start = 0, 0  # parts have the same sentences in the same order
    for sentence, score in zip(sentences, lexical, strict=True):
        at = parts[number].find(sentence.text, start)
        if at < 0 and number + 1 < len(parts) and (later := parts[number + 1].find(sentence.text)) >= 0:
            number, at = number + 1, later
        start = at + len(sentence.text) if at >= 0 else start
        scores.append(score + _DENSE_WEIGHT * (cosines[number] - usual))
    return scores
