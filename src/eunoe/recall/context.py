"""The context: what always stands before the agent, and what is recalled for this message; and look-ups within it."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Final, TypeVar

from eunoe.errors import InputError
from eunoe.llm.models import Models, asking_for
from eunoe.model.arguments import MEMORY_TYPES, MemoryType, check_choices, check_count, check_flag, check_names, utc_now
from eunoe.model.atom import NO_BOUNDS, Bounds, Record
from eunoe.model.result import Context, Hit
from eunoe.model.scope import Scope
from eunoe.model.turn import Turn, read_turns
from eunoe.recall.audience import Audience, find_audience
from eunoe.recall.query import cut_middle, is_reaction, llm_query, rule_query
from eunoe.recall.recalled_context import (
    RecalledContext,
    is_message_itself,
    lookup_request,
    recall_for_message,
    shown_threshold,
)
from eunoe.recall.recipes import Recipe, divide_budget
from eunoe.recall.rendering import STYLES, Sentences
from eunoe.recall.request import MAX_LIMIT, ContextRequest, RecipeLike, find_recipe
from eunoe.recall.search import Searcher
from eunoe.recall.static_context import (
    StaticContext,
    StaticContextCache,
    ValueOf,
    read_sections,
    render_rest,
    render_static,
)
from eunoe.records.counters import AccessLog
from eunoe.records.log import load_session
from eunoe.records.reading import near_scope_notes
from eunoe.records.streams import stream_notes
from eunoe.store.contract import ItemQuery, Reading, Store
from eunoe.store.schema import StreamState
from eunoe.text.sentences import text_width, token_count

T = TypeVar("T")

_HISTORY_MESSAGES: Final = 10
"""Messages before this one that tell what it points back to."""
_KEPT_MESSAGES: Final = 4
"""The message itself may stand among the last of the log already."""
_SPARE_HITS: Final = 20
_NO_NOTES: Final[tuple[str, ...]] = ()
_log = logging.getLogger("eunoe")


class FaultLog:
    """What went wrong with contexts, counted by kind: each fault costs its own part of one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def counts(self) -> dict[str, int]:
        return dict(self._counts)

    def note(self, kind: str, error: Exception) -> str:
        """Count a fault; return how a context tells of it: only its kind, since an error may repeat what was said."""
        with self._lock:
            self._counts[kind] += 1
        return f"{kind}: {type(error).__name__}"


class ContextBuilder:
    """Builds contexts. What memory itself gets wrong makes a context smaller, and the context says so."""

    def __init__(self, searcher: Searcher, models: Models, access: AccessLog, value_of: ValueOf) -> None:
        self._searcher = searcher
        self._store = searcher.store
        self._models = models
        self._access = access
        self._value_of = value_of
        self.static_contexts = StaticContextCache()
        self.faults = FaultLog()

    def build(self, request: ContextRequest) -> Context:
        store, style = self._store, STYLES[request.format]
        faults: list[str] = []

        def guard(kind: str, instead: T, work: Callable[..., T], *arguments: object) -> T:
            try:
                return work(*arguments)
            except Exception as error:
                _log.warning("context: the %s part failed: %s: %s", kind, type(error).__name__, error)
                faults.append(self.faults.note(kind, error))
                return instead

        audience = guard("static", None, find_audience, store, request.scope, request.users, request.bounds)
        if audience is None:
            return Context("", 0, faults=tuple(faults))
        queries, recalled = list[str](), RecalledContext()
        if request.looks_up:
            turns = guard("query", list[Turn](), self._history, request, audience)
            chosen = guard("query", "", self._model_query, request, audience, turns)
            # What a model says is looked up beside the user's own words, never in their place.
            queries = list(dict.fromkeys(filter(None, [rule_query(request.message, turns), chosen])))
        static = guard("static", StaticContext(), self._static, request, audience, bool(queries))
        if queries:
            parts = self._searcher, request, audience, static, queries
            recalled = guard("recall", recalled, recall_for_message, *parts)
            if recalled.fault:
                faults.append(self.faults.note("rerank", recalled.fault))
        if recalled.hits and not audience.incognito:
            guard("recall", None, self._access.note, recalled.hits)
        notes = guard("static", _NO_NOTES, self._damage_notes, audience) + recalled.notes
        if not static.body and not recalled.body:
            notes += guard("static", _NO_NOTES, empty_context_notes, store, request, audience, static, queries)
        body = guard("static", recalled.body, _with_rest, request, static, recalled) if static.rest else recalled.body
        text = style.whole_text(static.body, body)
        return Context(
            text=text,
            tokens=token_count(text),
            static=style.opening(static.body),
            messages=style.chat_messages(static.body, body) if request.format == "messages" else (),
            hits=recalled.hits,
            query="\n".join(queries),
            faults=tuple(faults),
            notes=tuple(dict.fromkeys(notes)),
        )

    def _damage_notes(self, audience: Audience) -> tuple[str, ...]:
        return self._store.read((), lambda store: stream_notes(store, audience.streams))

    def _static(self, request: ContextRequest, audience: Audience, looks_up: bool) -> StaticContext:
        style, budget = STYLES[request.format], request.static_budget(looks_up)
        visible = audience.visible if request.sources else None
        key = (request.scope, audience.users, request.format, budget, visible)
        stamp = (audience.targets, tuple(stream and (stream.id, stream.version) for stream in audience.streams))
        read = partial(read_sections, self._store, audience, request.now, request.sources)
        render = partial(render_static, style, budget, value_of=self._value_of)
        return self.static_contexts.get(key, stamp, request.now, read, render)

    def _history(self, request: ContextRequest, audience: Audience) -> list[Turn]:
        """The last messages of this session, oldest first, without the one that is to be answered."""
        if audience.stream is None or audience.scope in audience.private:
            return []
        session = audience.scope.pairs.get("session", "")
        limit = _HISTORY_MESSAGES + _KEPT_MESSAGES
        query = ItemQuery(audience.stream.id, session=session, open=True, order="position", limit=limit)
        records = self._store.read([audience.scope], lambda store: store.select(query))
        before = [record for record in records if not is_message_itself(record, request, audience)]
        return read_turns(reversed(before[:_HISTORY_MESSAGES]), audience.scope)

    def _model_query(self, request: ContextRequest, audience: Audience, turns: Sequence[Turn]) -> str:
        """What the fast model would look up; nothing if there is no such model, or nothing to be found."""
        if (llm := self._models.fast) is None:
            return ""
        scopes = audience.searched_in(MEMORY_TYPES)

        def find(store: Reading) -> list[Record]:
            streams = filter(None, map(store.stream, scopes))
            queries = (ItemQuery(stream.id, open=True, reviewed=True, limit=2) for stream in streams)
            return [record for query in queries for record in store.select(query)]

        records = self._store.read(scopes, find)
        if all(is_message_itself(record, request, audience) for record in records):
            return ""
        with asking_for(request.scope):
            return llm_query(llm, request.message, turns)


def _with_rest(request: ContextRequest, static: StaticContext, recalled: RecalledContext) -> str:
    """What was recalled, and before it what the static context had no room for, as far as there is room now."""
    style = STYLES[request.format]
    room = style.room_left(static.body, request.budget)
    if room is None:
        return recalled.body
    separator = style.root.separator
    if recalled.body:
        room -= text_width(recalled.body) + text_width(separator)
    said = recalled.said if recalled.hits else Sentences(static.sentences)
    rest = render_rest(style, room, static, recalled.hits, said)
    return separator.join(filter(None, (rest, recalled.body)))


def empty_context_notes(
    store: Store, request: ContextRequest, audience: Audience, static: StaticContext, queries: Sequence[str]
) -> tuple[str, ...]:
    """Why a context is empty: what was not there, waits, or was left out. It never is without a reason."""

    def find(store: Reading) -> tuple[str, ...]:
        def holds_items(stream: StreamState | None) -> bool:
            return stream is not None and bool(store.select(ItemQuery(stream.id, open=True, limit=1)))

        searched = [request.scope, *audience.searched_in(MEMORY_TYPES), *(target.scope for target in audience.targets)]
        shown = [scope for scope in dict.fromkeys(searched) if scope not in audience.private]
        streams = [stream for stream in map(store.stream, shown) if stream and holds_items(stream)]
        notes = [*near_scope_notes(store, [request.scope], request.bounds, is_one=True)]
        if any(holds_items(store.stream(scope)) for scope in audience.private if request.bounds.covers(scope)):
            notes.append("a user's own memory is left out: several users take part, or nobody says which of them asks")
        if streams:
            waiting = sum(session.messages for each in streams if (session := load_session(store, each)))
            notes += [f"{waiting} message{'s wait' if waiting > 1 else ' waits'} for `form`"] if waiting else []
            notes += [f"tokens={request.tokens} leaves no room for a memory"] if static.rest else []
            if not queries:
                why = "recall is off" if request.lookup == "off" else "the message asks for nothing"
                notes.append(f"nothing was looked up: {why if request.message.strip() else 'there is no message'}")
            elif not static.rest:
                notes.append("nothing that may be shown here bears on the message, or it stands in the latest messages")
        elif not notes:
            notes.append(f"nothing is stored in {request.scope} yet")
        return tuple(notes)

    return store.read((), find)


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """A checked search in what a conversation may see."""

    scope: Scope
    queries: tuple[str, ...]
    users: tuple[str, ...]
    memory_types: tuple[MemoryType, ...]
    limit: int
    recipe: Recipe
    bounds: Bounds = NO_BOUNDS
    """What may be looked at beside the conversation's own scope."""
    exact: bool = False


def parse_lookup_request(
    scope: Scope,
    queries: Iterable[str],
    users: tuple[str, ...],
    memory_types: Sequence[str],
    limit: int,
    recipe: RecipeLike = "default",
    bounds: Bounds = NO_BOUNDS,
    exact: bool = False,
) -> LookupRequest:
    questions = check_names(queries, "query")
    if not questions:
        raise InputError("there is no query: ask something")
    return LookupRequest(
        scope=scope,
        queries=tuple(map(cut_middle, questions)),
        users=users,
        memory_types=check_choices(memory_types, "memory_types", MEMORY_TYPES) if memory_types else MEMORY_TYPES,
        limit=min(check_count(limit, "limit"), MAX_LIMIT),
        recipe=find_recipe(recipe),
        bounds=bounds,
        exact=check_flag(exact, "exact"),
    )


def look_up(searcher: Searcher, access: AccessLog, request: LookupRequest) -> list[Hit]:
    """What bears on one of several questions, best first, among what the audience may see: all the memory that the
    context of a conversation shows, and nothing else."""
    audience = find_audience(searcher.store, request.scope, request.users, request.bounds)
    scopes = (audience.searched_in if request.exact else audience.asked_in)(request.memory_types)
    recipe = divide_budget(request.recipe, len(request.queries))
    found: list[Hit] = []
    for query in request.queries if scopes else ():
        lookup = lookup_request(query, request.limit + _SPARE_HITS, utc_now(), recipe)
        result = searcher.search(scopes, lookup, judge=True)
        hits = [hit for hit in result.hits if hit.kind != "message" or not is_reaction(hit.record.content)]
        threshold = shown_threshold(recipe, result.reranked, result.floor_shift)
        found += hits[: threshold.count_passing([hit.score for hit in hits])]
    best: dict[int, Hit] = {}
    for hit in sorted(found, key=lambda hit: (-hit.score, hit.id)):
        best.setdefault(hit.record.seq, hit)
    shown = list(best.values())[: request.limit]
    if not audience.incognito:
        access.note(shown)
    return shown
