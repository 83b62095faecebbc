"""The context: what always stands before the agent, and what is recalled for this message."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import dropwhile
from math import inf
from threading import Lock
from typing import Any, Final, TypeVar

from eunoe.errors import EunoeError, InputError
from eunoe.kit import Kit
from eunoe.model.atom import names_of
from eunoe.model.context import FORMATS, Context
from eunoe.model.result import Hit
from eunoe.model.scope import Scope
from eunoe.model.time import TimeLike, moment
from eunoe.model.time import now as current
from eunoe.recall import lookup
from eunoe.recall.ranking import Found as Near
from eunoe.recall.recipes import Reading, Recipe
from eunoe.recall.relevance import SHOWN, SHOWN_READ, Floor
from eunoe.recall.rendering import (
    RETRIEVED,
    STYLES,
    Piece,
    Sheet,
    Style,
    beginning,
    chat,
    room_left,
    sentences,
    statically,
    whole,
)
from eunoe.recall.request import DEFAULT_LIMIT, Request, recipe_of, request_of
from eunoe.recall.reranking import Reader
from eunoe.recall.search import find
from eunoe.recall.static_context import KINDS_OF_MEMORY, Note, Scene, Static, note_of, parts, scene
from eunoe.records.rows import passage, source_place, sources
from eunoe.records.turns import Turn, turns_of
from eunoe.store.contract import Row, Store
from eunoe.text.normalize import clean, normalised, tokens

T = TypeVar("T")

_RECALLS: Final = ("auto", "off")
_HISTORY: Final = 10
_RECENT: Final = 4
"""Messages that the host has in its own history anyway."""
_NINE: Final = 9
_SMALLEST: Final = 12 * _NINE
"""Less room than this holds no memory worth telling."""
_USUAL: Final = 24 * _NINE
"""What a memory takes, about, once it is told."""
_SPARE: Final = 20
_MISSES: Final = 20
"""After so many in a row that do not fit, what is left of the room stays empty."""
_MOST: Final = 1000
_RANKED: Final = frozenset({"lexical", "dense", "rrf"})
"""Ways to rank whose scores are on scales of their own, where no floor means anything."""
_log = logging.getLogger("eunoe")
_counting = Lock()
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checked wish for a context."""

    scope: Scope
    message: str
    users: tuple[str, ...]
    tokens: int | None
    limit: int | None
    recall: str
    recipe: Recipe
    format: str
    sources: bool
    now: datetime

    @property
    def recalls(self) -> bool:
        """Whether something is to be looked up for the message."""
        return self.recall == "auto" and bool(self.message.strip())

    @property
    def budget(self) -> int | None:
        """In ninths of a token."""
        return None if self.tokens is None else self.tokens * _NINE

    @property
    def share(self) -> int | None:
        """The part of it that the static layer may take: the same for every message."""
        if self.budget is None or not self.recalls:
            return self.budget
        return self.budget * 2 // 5


def wanted_of(
    scope: Scope,
    message: str,
    *,
    users: Iterable[str],
    tokens: int | None,
    limit: int | None,
    recall: str,
    recipe: str | Recipe,
    format: str,
    sources: bool,
    now: TimeLike | None,
) -> Wanted:
    if recall not in _RECALLS:
        raise InputError(f"recall is {recall!r}: it must be one of {', '.join(_RECALLS)}")
    if format not in FORMATS:
        raise InputError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    for name, value in (("tokens", tokens), ("limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{name} is {value!r}: it must be a whole number of at least 1, or None")
    return Wanted(
        scope=scope,
        message=_message(message),
        users=names_of(users, "users"),
        tokens=tokens,
        limit=limit,
        recall=recall,
        recipe=recipe_of(recipe),
        format=format,
        sources=bool(sources),
        now=current() if now is None else moment(now, "now"),
    )


def _message(message: object) -> str:
    """The message to reply to. It is not kept, so that one with a cut sign in it is mended rather than refused."""
    if not isinstance(message, str):
        raise InputError(f"the message must be text, not {type(message).__name__}")
    return clean(message)


class Trouble:
    """What went wrong with one context: each fault costs its own part, is logged, and counted."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self.lines: list[str] = []

    def guard(self, kind: str, work: Callable[[], T], instead: T) -> T:
        try:
            return work()
        except Exception as error:
            _log.warning("context: the %s part failed: %s: %s", kind, type(error).__name__, error)
            self.count(kind, error)
            return instead

    def count(self, kind: str, error: Exception) -> None:
        """An error may repeat what was said, so that only its kind is told to whoever reads the context."""
        with _counting:
            self._counts[kind] += 1
        self.lines.append(f"{kind}: {type(error).__name__}")


def assemble(kit: Kit, wanted: Wanted) -> Context:
    """Never raises for what memory itself gets wrong: the context is smaller then, and says why."""
    trouble = Trouble(kit.faults)
    seen = trouble.guard("static", partial(scene, kit.store, wanted.scope, wanted.users), None)
    if seen is None:
        return Context("", 0, faults=tuple(trouble.lines))
    style = STYLES[wanted.format]
    static = trouble.guard("static", partial(_static, kit, wanted, seen), Static())
    query = _query(kit, wanted, seen, trouble) if wanted.recalls else ""
    found = Found()
    if query:
        second = _Second(kit.reader, partial(trouble.count, "reading"))
        found = trouble.guard("recall", partial(_found, kit, wanted, seen, static, query, second), found)
    if found.hits and not seen.hidden:
        trouble.guard("recall", partial(kit.uses.note, found.hits), None)
    return _context(style, wanted, static, found, query, trouble)


def _context(style: Style, wanted: Wanted, static: Static, found: Found, query: str, trouble: Trouble) -> Context:
    text = whole(style, static.body, found.body)
    return Context(
        text=text,
        tokens=tokens(text),
        static=beginning(style, static.body),
        messages=chat(style, static.body, found.body) if wanted.format == "messages" else (),
        hits=found.hits,
        query=query,
        faults=tuple(trouble.lines),
    )


def _static(kit: Kit, wanted: Wanted, seen: Scene) -> Static:
    style = STYLES[wanted.format]
    covered = frozenset(seen.covered) if wanted.sources else None
    key = (wanted.scope, seen.users, wanted.format, wanted.share, covered)
    stamp = (seen.shown, tuple(row and (row.id, row.version) for row in seen.rows))

    read = partial(parts, kit.store, seen, wanted.now, wanted.sources)
    write = partial(statically, style, wanted.share)
    return kit.statics.get(key, stamp, wanted.now, read, write)


def _query(kit: Kit, wanted: Wanted, seen: Scene, trouble: Trouble) -> str:
    nothing: list[Turn] = []
    turns = trouble.guard("query", partial(_history, kit.store, wanted, seen), nothing)
    asked = trouble.guard("query", partial(_asked, kit, wanted.message, turns), None)
    return lookup.by_rule(wanted.message, turns) if asked is None else asked


def _asked(kit: Kit, message: str, turns: Sequence[Turn]) -> str | None:
    """What the fast model would look up; None if there is no such model."""
    llm = kit.models.fast
    return None if llm is None else lookup.by_model(llm, message, turns)


def _history(store: Store, wanted: Wanted, seen: Scene) -> list[Turn]:
    """The last messages of this session, oldest first, without the one that is to be answered."""
    if seen.here is None or seen.scope in seen.private:
        return []
    with store.reading():
        rows = store.tail(seen.here.id, seen.scope.get("session", ""), _HISTORY + _RECENT)
    before = [row for row in rows if not _is_itself(row, wanted, seen)]
    return turns_of(reversed(before[:_HISTORY]), seen.scope)


def _itself(kit: Kit, wanted: Wanted, seen: Scene) -> frozenset[int]:
    """Numbers of the message that is to be answered, if it was kept already, in whatever session."""
    if seen.here is None or seen.scope in seen.private:
        return frozenset()
    with kit.shelf.borrow([seen.scope]) as held:
        # A store lists messages by session; an index has them all in the order in which they came.
        log = [(index, index.alive & index.kind.among(("message",))) for _, index in held]
        latest = [index.seqs[row] for index, messages in log for row in messages.nonzero()[0][-_RECENT:]]
        rows = kit.store.by_seq(latest)
    return frozenset(row.seq for row in rows if _is_itself(row, wanted, seen))


def _is_itself(row: Row, wanted: Wanted, seen: Scene) -> bool:
    return row.text.strip() == wanted.message.strip() and _is_recent(row, seen)


@dataclass(frozen=True, slots=True)
class Found:
    """The dynamic layer, written out, and the hits in it."""

    body: str = ""
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """A hit as it is to be told."""

    hit: Hit
    note: Note
    shorter: Recalled | None = None
    """A fact that quotes it, told in its place where there is no room for the whole."""


class _Second:
    """The second stage of a recipe; without it the context is what the first one gives."""

    def __init__(self, reader: Reader, failed: Callable[[EunoeError], None] = lambda error: None) -> None:
        self._reader = reader
        self._failed = failed
        self.has_read = False
        """Whether the last scores are those of both stages."""

    def reread(self, question: str, near: list[Near], texts: Sequence[str], reading: Reading) -> list[Near]:
        try:
            near = self._reader.read(question, near, texts, reading)
            self.has_read = True
        except EunoeError as error:
            self._failed(error)
            self.has_read = False
        return near


def _found(kit: Kit, wanted: Wanted, seen: Scene, static: Static, query: str, second: _Second) -> Found:
    """Goes on to more until there is no room left, the limit is reached, or nothing else is found."""
    scopes = list(dict.fromkeys(scope for scopes in seen.searched.values() for scope in scopes))
    style = STYLES[wanted.format]
    room = room_left(style, static.body, wanted.budget)
    if not scopes or (room is not None and room < _SMALLEST):
        return Found()
    limit = wanted.limit or (DEFAULT_LIMIT if room is None else _MOST)
    # In a room twice as many as may fit: to read some more costs far less than to search again.
    count = min(_MOST, limit + _SPARE if room is None else 2 * (min(limit, room // _USUAL) + _SPARE))
    # A message that was kept before it is answered must not speak for what was said around it.
    itself = _itself(kit, wanted, seen)
    while True:
        request = _request(query, count, wanted.now, wanted.recipe, besides=itself)
        near = find(kit.store, kit.shelf, kit.embedding, scopes, request, fold=False, reread=second.reread)
        floor = _floor(wanted.recipe, second.has_read)
        telling = _Telling(_owners(kit.store, seen), wanted, seen, static, near, floor)
        sheet = Sheet(room, style.root.between)
        kept, full = _filled(sheet, style, wanted, telling.all(), limit)
        if full or telling.ended or len(near) < count or count == _MOST:
            return Found(sheet.text(), tuple(each.hit for each in kept))
        count = min(_MOST, 2 * count)


def _request(query: str, limit: int, now: datetime, recipe: Recipe, besides: frozenset[int] = frozenset()) -> Request:
    """Asks for what is nearest to a query, whether it bears on it or not."""
    request = request_of(query, limit=limit, now=now, recipe=recipe, **_UNFILTERED)
    return replace(request, filter=replace(request.filter, besides=besides))


def _floor(recipe: Recipe, has_read: bool) -> Floor:
    """Without which something is only the nearest of what does not bear on what was looked up."""
    if recipe.method in _RANKED:
        return Floor.fixed(-inf)
    return SHOWN_READ if has_read else SHOWN


_UNFILTERED: Final[dict[str, Any]] = {
    "tokens": None,
    "kinds": ("message", "fact", "observation"),
    **dict.fromkeys(("labels", "files", "people", "sessions", "speakers"), ()),
    **dict.fromkeys(("since", "until", "as_of", "known_at", "vector")),
}


def _filled(
    sheet: Sheet, style: Style, wanted: Wanted, found: Iterable[Recalled], limit: int
) -> tuple[list[Recalled], bool]:
    """The best that fit, and whether that is all there is room for; one that is too long makes room for the next."""
    path = style.path(RETRIEVED)
    kept: list[Recalled] = []
    missed = 0
    for best in found:
        each: Recalled | None = best
        while each and not sheet.put(Piece(path, len(kept), style.item(each.note, wanted.now))):
            each = each.shorter
        kept += [each] if each else []
        missed = 0 if each else missed + 1
        if len(kept) == limit or missed == _MISSES:
            return kept, True
    return kept, sheet.room is not None and sheet.room < _SMALLEST


def _owners(store: Store, seen: Scene) -> dict[int, Scope]:
    """Whose the streams are that this company may see, by their numbers."""
    with store.reading():
        rows = ((scope, store.stream(str(scope))) for scope in seen.covered)
        return {row.id: scope for scope, row in rows if row}


class _Telling:
    """The hits of one search that tell the agent something it does not have before it already."""

    def __init__(
        self,
        owners: Mapping[int, Scope],
        wanted: Wanted,
        seen: Scene,
        static: Static,
        hits: Sequence[Hit],
        floor: Floor,
    ) -> None:
        self._owners = owners
        self._covered = seen.covered if wanted.sources else frozenset[Scope]()
        self._static = static.words
        self._known = {normalised(wanted.message), *static.words}
        fresh = (hit for hit in hits if hit._row.seq not in static.seqs and not _is_recent(hit._row, seen))
        shown = [hit for hit in fresh if hit._row.stream in self._owners]
        self._said = self._messages(shown)
        told = list(dropwhile(lambda hit: self._news(hit) is None, shown))
        self._hits = told[: floor.passed([hit.score for hit in told])]
        self.ended = len(self._hits) < len(told)  # what comes after them is further away still
        self._said = self._messages(self._hits)

    def all(self) -> Iterator[Recalled]:
        """Each thing once. A fact that only quotes a message which was found too gives its place to it."""
        done: set[int] = set()
        for hit in self._hits:
            each = self._news(hit)
            if each and each.hit._row.seq not in done:
                done.add(each.hit._row.seq)
                self._known |= _spoken(each.note)
                yield each

    def _news(self, hit: Hit) -> Recalled | None:
        """How a hit is to be told, if it says anything that was not told yet."""
        each = self._quoted(hit) or self._told(hit)
        return None if each is None or self._is_known(each.note) else each

    def _is_known(self, note: Note) -> bool:
        """Whether it was told, or stands sentence by sentence in the static layer."""
        return not self._known.isdisjoint(_spoken(note)) or self._static.issuperset(sentences(note.text))

    def _messages(self, hits: Iterable[Hit]) -> dict[tuple[Scope, str], Hit]:
        return {(self._owner(hit), hit.id): hit for hit in hits if hit.kind == "message"}

    def _owner(self, hit: Hit) -> Scope:
        return self._owners[hit._row.stream]

    def _told(self, hit: Hit) -> Recalled | None:
        row, scope = hit._row, self._owner(hit)
        note = note_of(row, scope, self._covered)
        if row.kind != "message":
            return Recalled(hit, note)
        turns = turns_of([row._replace(text=passage(row))], scope)
        if not turns or lookup.says_nothing(turns[0].text):
            return None
        return Recalled(hit, replace(note, text=turns[0].text, speaker=turns[0].name))

    def _quoted(self, fact: Hit) -> Recalled | None:
        """The message among those found whose words a fact repeats."""
        for name in sources(fact._row) if fact._row.source and self._said else ():
            said = self._said.get(source_place(name, self._owner(fact)))
            message = self._told(said) if said else None
            if message and _words(fact.text) <= _words(f"{message.note.speaker} {message.note.text}"):
                return replace(message, shorter=self._told(fact))
        return None


def _spoken(note: Note) -> set[str]:
    """What a memory says, as duplicates are compared: a fact may quote a message with its speaker or without."""
    bare = {normalised(note.text)}
    return bare | {normalised(f"{note.speaker}: {note.text}")} if note.speaker else bare


def _is_recent(row: Row, seen: Scene) -> bool:
    here = seen.here
    return bool(here and row.stream == here.id and row.position is not None and row.position >= here.position - _RECENT)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


@dataclass(frozen=True, slots=True)
class Search:
    """A checked search in what a conversation may see."""

    scope: Scope
    queries: tuple[str, ...]
    users: tuple[str, ...]
    layers: tuple[str, ...]
    limit: int
    recipe: Recipe


def search_of(
    scope: Scope,
    queries: Iterable[str],
    users: Iterable[str],
    layers: Iterable[str],
    limit: int,
    recipe: str | Recipe = "default",
) -> Search:
    asked = names_of(queries, "query")
    if not asked:
        raise InputError("there is no query: ask something")
    kinds = names_of(layers, "memory_types")
    if unknown := [kind for kind in kinds if kind not in KINDS_OF_MEMORY]:
        raise InputError(f"memory_types {unknown} must be some of {', '.join(KINDS_OF_MEMORY)}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError(f"limit is {limit!r}: it must be a whole number of at least 1")
    return Search(
        scope=scope,
        queries=tuple(map(lookup.ends, asked)),
        users=names_of(users, "users"),
        layers=kinds or KINDS_OF_MEMORY,
        limit=limit,
        recipe=recipe_of(recipe),
    )


def look_up(kit: Kit, search: Search) -> list[Hit]:
    """What bears on one of several questions, best first, among what this company may see."""
    seen = scene(kit.store, search.scope, search.users)
    scopes = list(dict.fromkeys(place for layer in search.layers for place in seen.searched[layer]))
    best: dict[int, Hit] = {}
    for query in search.queries if scopes else ():
        request = _request(query, search.limit + _SPARE, current(), search.recipe)
        second = _Second(kit.reader)
        found = find(kit.store, kit.shelf, kit.embedding, scopes, request, reread=second.reread)
        telling = [hit for hit in found if not _is_idle(hit._row)]
        floor = _floor(search.recipe, second.has_read)
        for hit in telling[: floor.passed([hit.score for hit in telling])]:
            known = best.get(hit._row.seq)
            best[hit._row.seq] = hit if known is None or hit.score > known.score else known
    told = sorted(best.values(), key=lambda hit: (-hit.score, hit.id))[: search.limit]
    if not seen.hidden:
        kit.uses.note(told)
    return told


def _is_idle(row: Row) -> bool:
    return row.kind == "message" and lookup.says_nothing(passage(row))
