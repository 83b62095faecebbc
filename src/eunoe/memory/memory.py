"""Memory: the everyday verbs, their documentation, and the check of their arguments. It has no rules of its own.

The verbs that need `recall` import it when they are called, so that opening a memory is quick.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from eunoe.embed.contract import Embedder
from eunoe.engine import Engine
from eunoe.errors import InputError, ScopeError
from eunoe.llm.contract import Llm
from eunoe.memory.face import Face, Watch
from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.guard import OPEN, Guard
from eunoe.memory.verb import verb
from eunoe.model.arguments import (
    ATOM_KINDS,
    KINDS,
    RIGHTS,
    AtomKind,
    ContextFormat,
    Kind,
    LookupMode,
    MemoryType,
    RecipeName,
    Right,
    TimeLike,
    as_list,
    check_choices,
    check_count,
    check_flag,
    check_id,
    check_names,
    check_seconds,
    check_text,
    normalize_path,
    parse_optional_time,
)
from eunoe.model.atom import Atom, AtomFields, Item, parse_atom, parse_atoms
from eunoe.model.message import MessageLike, parse_messages
from eunoe.model.result import (
    Context,
    ForgetReport,
    FormReport,
    Hits,
    Lease,
    Page,
    Preview,
    Receipt,
    Status,
    check_optional_lease,
)
from eunoe.model.scope import Scope, ScopeLike, Scopes, check_users
from eunoe.model.turn import user_named_by
from eunoe.records.forgetting import ByIds, ByPerson, Everything, Selection
from eunoe.records.reading import Choice
from eunoe.store.contract import ItemQuery

if TYPE_CHECKING:
    from eunoe.memory.faces import ScopedMemory
    from eunoe.recall.recipes import Recipe
    from eunoe.recall.request import Condition, Parts, VectorLike, VectorsLike, Where

T = TypeVar("T")
_MAX_PAGE: Final = 10_000


class Memory(Face):
    """A memory that lasts. Every verb names its scope; every write says what it did.

    Use it with or without `with`, in a script, a notebook or from many threads: what a verb has returned is stored.

    >>> memory = eunoe.open(":memory:")
    >>> memory.remember({"user": "anna"}, "Anna is allergic to peanuts.").outcome
    'stored'
    >>> memory.recall({"user": "anna"}, "What must Anna not eat?")[0].text
    'Anna is allergic to peanuts.'
    >>> memory.close()
    """

    def __init__(self, engine: Engine, guard: Guard = OPEN, watches: tuple[Watch, ...] = ()) -> None:
        super().__init__(engine, guard, watches)
        self.streams = Streams(engine, guard, watches)
        """Settings and presets, clean-up, incognito sessions."""
        self.summaries = Summaries(engine, guard, watches)
        """Summaries and their revisions."""
        self.corrections = Corrections(engine, guard, watches)
        """What somebody said by hand about what was learned, and what counts from then on."""
        self.leases = Leases(engine, guard, watches)
        """Who works on what, so that each piece of work is done once."""
        self.graph = Graph(engine, guard, watches)
        """The entities of a scope and how they are tied."""
        self.admin = Admin(engine, guard, watches)
        """Export and import, re-embedding, indexes, idle sessions, access counts."""

    @property
    def guard(self) -> Guard:
        """What this memory may be used for."""
        return self._guard

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, or None."""
        return self._engine.embedder.embedder

    @property
    def llm(self) -> Llm | None:
        """The language model that forms and consolidates, or None. `status` counts what it is asked."""
        return self._engine.models.slow

    def at(self, scope: ScopeLike | None = None, /, **keys: str | int) -> ScopedMemory:
        """Bind the everyday verbs to a scope.

        >>> with eunoe.open(":memory:") as memory:
        ...     anna = memory.at(user="anna", agent="cook")
        ...     _ = anna.remember("Anna likes garlic.")
        ...     anna.recall("garlic")[0].scope
        Scope(agent='cook', user='anna')
        """
        from eunoe.memory.faces import ScopedMemory

        return ScopedMemory(self, Scope.of(keys) if scope is None else Scope.of(scope).extended(keys))

    def restricted(self, tenant: str = "", scopes: Scopes = (), rights: Iterable[Right] = RIGHTS) -> Memory:
        """Return the same memory for somebody who may do no more than this with it; the rest raises AccessError.

        Args:
            tenant: is added to every scope that is named; a scope that names another one is refused.
            scopes: what is within reach: these scopes, and those with more keys. None means all, of the tenant.
            rights: some of "read", "write", "forget" and "admin"; see docs/privacy.md.

        >>> with eunoe.open(":memory:") as memory:
        ...     acme = memory.restricted(tenant="acme", rights=["read", "write"])
        ...     _ = acme.remember("user=anna", "Anna likes tea.")
        ...     memory.scopes()
        [Scope(tenant='acme', user='anna')]
        """
        return Memory(self._engine, self._guard.narrowed(tenant, scopes, rights), self._watches)

    def watched(self, watch: Watch) -> Memory:
        """Return the same memory, which tells of each change that is made through it: the verb, the scopes, a count."""
        if not callable(watch):
            raise InputError(f"watch must be a function, not {type(watch).__name__}")
        return Memory(self._engine, self._guard, (*self._watches, watch))

    @verb("write", "POST /v1/messages", answer="receipts", keyed=True)
    def observe(self, scope: ScopeLike, messages: MessageLike | Iterable[MessageLike]) -> builtins.list[Receipt]:
        """Append messages to the log, word for word; all of them or, on an error, none.

        A message that is there already is recognised: by its id, else by its words and time, else by its words and
        place.

        >>> with eunoe.open(":memory:") as memory:
        ...     first = memory.observe("user=anna", [{"role": "user", "content": "I moved to Rome."}])
        ...     again = memory.observe("user=anna", [{"role": "user", "content": "I moved to Rome."}])
        >>> first[0].outcome, again[0].outcome
        ('stored', 'duplicate')
        """
        owner = self._guard.scope(scope)
        parsed = parse_messages(messages, owner.pairs.get("session", ""))
        self._guard.allow_users(filter(None, map(user_named_by, parsed)), owner)
        return self._run(self._engine.observe, owner, parsed)

    @verb("write")
    def remember(
        self,
        scope: ScopeLike,
        text: str,
        *,
        id: str = "",
        source_scopes: Scopes = (),
        vector: VectorsLike | None = None,
        again: bool = False,
        replace: bool = False,
        **fields: Unpack[AtomFields],
    ) -> Receipt:
        """Keep one fact or observation.

        Args:
            id: an id of your own. Atoms with an id are told apart by it, the others by what they say.
            source: ids of the messages it rests on. If one of them is forgotten, the atom is forgotten too. One in
                another scope is written `@SCOPE#ID`, and is taken only if `source_scopes` names that scope.
            vector: its vector, if you have made it with the store's model already; or a matrix, whose rows all lead to
                it, such as one for each of its fields.
            again: keep it even if it was forgotten before.
            replace: if the id is there already, it names this from now on, and what it named goes into its history.

        >>> with eunoe.open(":memory:") as memory:
        ...     receipt = memory.remember("repository=eunoe", "Tests live in tests/.", files=["tests/"])
        >>> receipt.outcome
        'stored'
        """
        owner = self._guard.scope(scope)
        atoms = self._guard.atoms([parse_atom(text, id=id, **fields)], owner, source_scopes)
        vectors = {} if vector is None else {0: vector}
        flags = check_flag(again, "again"), check_flag(replace, "replace")
        return self._run(self._engine.remember, owner, atoms, vectors, *flags)[0]

    @verb("write", "POST /v1/memories", answer="receipts", keyed=True)
    def remember_many(
        self,
        scope: ScopeLike,
        items: Iterable[str | Mapping[str, Any]],
        *,
        source_scopes: Scopes = (),
        again: bool = False,
        replace: bool = False,
        lease: Lease | None = None,
    ) -> builtins.list[Receipt]:
        """Keep many at once, each a text or a dict of what `remember` takes; all of them or, on an error, none.

        Args:
            lease: from `leases.acquire`: keep them only while it is yours, and end it in the same step.
        """
        owner = self._guard.scope(scope)
        atoms, vectors = parse_atoms(items)
        checked = self._guard.atoms(atoms, owner, source_scopes)
        flags = check_flag(again, "again"), check_flag(replace, "replace")
        held = check_optional_lease(lease)
        return self._run(self._engine.remember, owner, checked, vectors, *flags, held)

    @verb("read", "POST /v1/recall")
    def recall(
        self,
        scope: Scopes,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        kinds: Iterable[Kind] = KINDS,
        labels: Iterable[str] = (),
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        files: Iterable[str] = (),
        people: Iterable[str] = (),
        sessions: Iterable[str] = (),
        speakers: Iterable[str] = (),
        where: Where | None = None,
        as_of: TimeLike | None = None,
        known_at: TimeLike | None = None,
        now: TimeLike | None = None,
        recipe: RecipeName | Recipe | int = "default",
        vector: VectorLike | None = None,
        expired: bool = False,
        exact: bool = False,
    ) -> Hits:
        """Bring back what bears on a question, best first.

        Args:
            scope: one scope or a list of them; nothing outside them is read. One that names a user means everything
                within: their sessions, and what agents keep about them. Any other means itself alone, unless `/*`
                follows, as in `agent=cook/*`.
            limit: at most so many hits; 10 if neither this nor `tokens` is given.
            tokens: at most so many tokens of text, the best hits first.
            where: conditions on metadata, such as `{"team": "red", "size": {"gte": 3}}`; `AND`, `OR` and `NOT` join
                others. They apply before ranking.
            as_of: what was true then.
            known_at: what the store knew then.
            now: the moment the question is asked, for words such as "yesterday".
            recipe: how signals are weighed; see docs/recall.md. A number is `thorough` within so many milliseconds.
            expired: also what no longer holds, because its `valid_to` is over.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.observe("user=anna/session=s1", ["My sister lives in Turin.", "It rained all day."])
        ...     hits = memory.recall("user=anna", "Where does her sister live?", limit=1)
        >>> hits[0].text
        'My sister lives in Turin.'
        """
        from eunoe.recall.request import parse_request

        scopes = self._guard.reaches(scope, exact)
        request = parse_request(
            query,
            limit=limit,
            tokens=tokens,
            kinds=kinds,
            labels=labels,
            since=since,
            until=until,
            files=files,
            people=people,
            sessions=sessions,
            speakers=speakers,
            where=where,
            as_of=as_of,
            known_at=known_at,
            now=now,
            recipe=recipe,
            vector=vector,
            expired=check_flag(expired, "expired"),
        )
        return self._run(self._engine.recall, scopes, request, self._guard.bounds)

    @verb("read", "POST /v1/context", slow=True)
    def context(
        self,
        scope: ScopeLike,
        message: str = "",
        *,
        users: Iterable[str] = (),
        tokens: int | None = None,
        limit: int | None = None,
        recall: LookupMode = "auto",
        recipe: RecipeName | Recipe | int = "default",
        format: ContextFormat = "xml",
        sources: bool = False,
        now: TimeLike | None = None,
    ) -> Context:
        """Return what to put in front of the agent before it replies to a message.

        First what always stands there: summaries, recent observations and the latest facts of every active stream of
        the session, its user and its agent. Then what is recalled for this message. Whatever fails costs its own part
        of the context and is counted in `status`; the rest is given.

        Args:
            scope: the conversation, such as `{"session": "s1", "user": "anna", "agent": "cook"}`.
            users: who is present beside the scope's user. With more than one user, or where neither the scope nor
                `users` names one, nobody's own memory is shown.
            tokens: the most it may take; the most valuable first.
            limit: the most that is recalled for the message.
            recall: "auto" looks up what the message calls for, "off" leaves that to the agent's own tool.
            recipe: how what is looked up is ranked, as in `recall`; "thorough" is slower and finds more.
            sources: name the messages each memory rests on.
        """
        from eunoe.recall.request import parse_context_request

        request = parse_context_request(
            self._guard.scope(scope),
            message,
            users=check_users(users),
            tokens=tokens,
            limit=limit,
            lookup=recall,
            recipe=recipe,
            format=format,
            sources=check_flag(sources, "sources"),
            now=now,
            bounds=self._guard.bounds,
        )
        return self._run(self._engine.context, request)

    @verb("read", "POST /v1/look-up")
    def look_up(
        self,
        scope: ScopeLike,
        query: str | Iterable[str],
        *,
        users: Iterable[str] = (),
        memory_types: Iterable[MemoryType] = (),
        limit: int = 10,
        recipe: RecipeName | Recipe | int = "default",
        exact: bool = False,
    ) -> Hits:
        """Recall as a conversation may do it: in all the memory that its context shows, and in nothing else.

        A user's scope without a session or thread is no conversation: it means everything within.

        Args:
            query: one question or several; a memory counts by the one that it answers best.
            users: who is present, as in `context`.
            memory_types: some of "session", "user" and "collective"; all of them if none is named.
            recipe: as in `recall`; one that reranks, such as "thorough", does so once for each question.
            exact: what the context of this scope shows, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("agent=cook/user=anna", "Anna is allergic to peanuts.")
        ...     hits = memory.look_up("agent=cook/session=s1/user=anna", "peanuts")
        >>> hits[0].text
        'Anna is allergic to peanuts.'
        """
        from eunoe.recall.context import parse_lookup_request

        owner = self._guard.scope(scope)
        types = tuple(as_list(memory_types, "memory_types"))
        checked = as_list(query, "query"), check_users(users), types, limit, recipe
        return self._run(self._engine.look_up, parse_lookup_request(owner, *checked, self._guard.bounds, exact))

    @verb("read", "GET /v1/memories/{id}")
    def get(self, scope: ScopeLike, id: str, *, exact: bool = False) -> Item:
        """Return one message or atom, closed ones too. Raise NotFoundError if the scope has no such id.

        A user's scope means everything within, here and below, unless `exact` is set. Raise ConflictError if the id is
        not the user's own and several scopes within have it.
        """
        return self._run(self._engine.get, self._guard.reach(scope, exact), check_id(id))

    @verb("read", "POST /v1/by-ids", answer="items")
    def get_many(self, scope: ScopeLike, ids: str | Iterable[str], *, exact: bool = False) -> builtins.list[Item]:
        """Return those of several messages and atoms that are there, in the order of their ids; closed ones too.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.", id="tea")
        ...     [item.id for item in memory.get_many("user=anna", ["coffee", "tea"])]
        ['tea']
        """
        owner = self._guard.reach(scope, exact)
        return self._run(self._engine.get_many, owner, check_names(as_list(ids, "ids"), "ids"))

    @verb("read", "GET /v1/memories")
    def list(
        self,
        scope: ScopeLike,
        *,
        kinds: Iterable[Kind] = KINDS,
        labels: Iterable[str] = (),
        limit: int = 50,
        after: str = "",
        retired: bool = False,
        newest: bool = False,
        known_at: TimeLike | None = None,
        where: Where | None = None,
        offset: int = 0,
        exact: bool = False,
    ) -> Page[Item]:
        """Return what the scope holds, oldest first or newest first, a page at a time.

        What no longer holds is there too. Each item says its scope.

        Args:
            retired: what was superseded, archived or retracted too.
            where: conditions on metadata, as in `recall`.
            offset: so many that fit are passed over first.
            known_at: what the store held at that moment.
            exact: the one scope that is named, where a user's would mean everything within.
        """
        owner = self._guard.reach(scope, exact)
        condition, parts = (None, ()) if where is None else _parse_where(where)
        query = ItemQuery(
            kinds=check_choices(kinds, "kinds", KINDS),
            open=not check_flag(retired, "retired"),
            known_at=parse_optional_time(known_at, "known_at"),
            order="newest" if check_flag(newest, "newest") else "seq",
            limit=check_count(limit, "limit", most=_MAX_PAGE),
            offset=check_count(offset, "offset", least=0),
            metadata_parts=parts,
        )
        chosen = Choice(frozenset(check_names(as_list(labels, "labels"), "labels")), condition)
        return self._run(self._engine.list, owner, query, chosen, after, self._guard.bounds)

    @verb("read", "GET /v1/recent")
    def recent(
        self,
        /,
        *,
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        limit: int = 50,
        after: str = "",
        kinds: Iterable[AtomKind] = ATOM_KINDS,
        retired: bool = False,
        in_review: bool | None = None,
        within: ScopeLike | None = None,
        exact: bool = False,
        **keys: str,
    ) -> Page[Item]:
        """Return the facts and observations that were learned last, of all scopes or of one.

        The latest comes first, a page at a time; each says its scope. Keys name a scope as they do for `recall`: a
        user's means everything within, any other itself alone.

        Args:
            since, until: when they were recorded, `until` itself not included.
            retired: what was superseded or archived too.
            in_review: only those that wait to be looked at, or only the others.
            within: the scope, in place of its keys; `agent=cook/*` means everything within.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.")
        ...     _ = memory.remember("user=ben", "Ben likes coffee.")
        ...     [item.text for item in memory.recent().items], [item.text for item in memory.recent(user="anna").items]
        (['Ben likes coffee.', 'Anna likes tea.'], ['Anna likes tea.'])
        """
        asked, bounds = _parse_within(within, keys), self._guard.bounds
        if asked is None:
            whole = bounds.narrowed(self._guard.keys({}))
            scopes = whole and [scope.everything for scope in whole]
        else:
            scopes = [self._guard.reach(asked, exact)]
        query = ItemQuery(
            kinds=check_choices(kinds, "kinds", ATOM_KINDS),
            open=not check_flag(retired, "retired"),
            since=parse_optional_time(since, "since"),
            before=parse_optional_time(until, "until"),
            in_review=in_review is not None and check_flag(in_review, "in_review"),
            reviewed=in_review is False,
            limit=check_count(limit, "limit", most=_MAX_PAGE),
        )
        return self._run(self._engine.recent, scopes, query, after, bounds)

    @verb("read")
    def view(self, scope: ScopeLike, name: str, build: Callable[[], T]) -> T:
        """Return what `build()` makes of a scope, kept in memory until something is said, remembered, changed or
        forgotten there, by whichever process.

        `build` reads this scope and nothing else. All callers get the same object: leave it as it is.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("user=anna", "Anna likes tea.")
        ...     memory.view("user=anna", "count", lambda: len(memory.list("user=anna").items))
        1
        """
        owner, checked = self._guard.scope(scope), check_id(name, "name")
        if not callable(build):
            raise InputError(f"build must be a function, not {type(build).__name__}")
        return self._run(self._engine.view, owner, self._guard.bounds, checked, build)

    @verb("read", "POST /v1/by-files", answer="items", paged=True)
    def by_files(self, scope: ScopeLike, paths: Iterable[str], *, exact: bool = False) -> builtins.list[Atom]:
        """Return what is remembered about these files, or about files in these folders; latest first."""
        owner = self._guard.reach(scope, exact)
        if paths is None:
            raise InputError("paths is None: name a file, or several in a list")
        wanted = [normalize_path(path) for path in check_names(as_list(paths, "paths"), "paths")]
        return self._run(self._engine.by_files, owner, wanted)

    @verb("read", "GET /v1/scopes", answer="scopes", paged=True)
    def scopes(self, /, **keys: str) -> builtins.list[Scope]:
        """Return all scopes that hold something, or those of them that have these keys with these values.

        Fingerprints of what was forgotten count too: they move with an export.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember({"user": "anna", "agent": "cook"}, "Anna likes garlic.")
        ...     memory.scopes(user="anna")
        [Scope(agent='cook', user='anna')]
        """
        return self._run(self._engine.scopes, self._guard.keys(keys), self._guard.bounds)

    @verb("read", "GET /v1/memories/{id}/history", answer="versions")
    def history(self, scope: ScopeLike, id: str, *, exact: bool = False) -> builtins.list[Atom]:
        """Return all versions of an atom, oldest first."""
        return self._run(self._engine.history, self._guard.reach(scope, exact), check_id(id))

    @verb("write", "PATCH /v1/memories/{id}")
    def update(
        self,
        scope: ScopeLike,
        id: str,
        text: str | None = None,
        *,
        source_scopes: Scopes = (),
        vector: VectorsLike | None = None,
        **changes: Unpack[AtomFields],
    ) -> Receipt:
        """Close an atom and put a new one in its place; the old one stays readable.

        Takes what `remember` takes. `valid_from` says since when the new one is true; now, if it is not given.

        >>> with eunoe.open(":memory:") as memory:
        ...     old = memory.remember("user=anna", "Anna lives in Paris.")
        ...     new = memory.update("user=anna", old.id, "Anna lives in Rome.")
        ...     [version.text for version in memory.history("user=anna", new.id)]
        ['Anna lives in Paris.', 'Anna lives in Rome.']
        """
        owner = self._guard.scope(scope)
        given = changes if vector is None else {**changes, "vector": vector}
        checked, scopes = self._guard.changes(given, owner), self._guard.source_scopes(source_scopes)
        return self._run(self._engine.update, owner, check_id(id), text, checked, [*scopes])

    @verb("write", "POST /v1/expire", answer="receipts")
    def expire(self, scope: ScopeLike, ids: str | Iterable[str], at: TimeLike | None) -> builtins.list[Receipt]:
        """Set until when atoms hold, in place and without a new version; None means for ever.

        From then on `recall` leaves them out unless `expired=True`; `get`, `list` and `history` show them.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna is in Rome this week.")
        ...     _ = memory.expire("user=anna", kept.id, "2024-05-12")
        ...     len(memory.recall("user=anna", "Rome")), len(memory.recall("user=anna", "Rome", expired=True))
        (0, 1)
        """
        return self._run(self._engine.expire, self._guard.scope(scope), _check_ids(ids), parse_optional_time(at, "at"))

    @verb("write", "POST /v1/retract", answer="receipts")
    def retract(self, scope: ScopeLike, ids: str | Iterable[str], retracted: bool = True) -> builtins.list[Receipt]:
        """Take messages back that somebody edited, deleted or had answered anew; with `retracted=False` restore them.

        They stay in the log, word for word: `get` and `list(retired=True)` show them. Nothing is recalled or learned
        from them any more; what was learned from them before stays until it is changed or forgotten.

        >>> with eunoe.open(":memory:") as memory:
        ...     said = memory.observe("user=anna", ["I live in Paris.", "I live in Rome."])
        ...     _ = memory.retract("user=anna", said[0].id)
        ...     [hit.text for hit in memory.recall("user=anna", "Where do I live?")]
        ['I live in Rome.']
        """
        flag = check_flag(retracted, "retracted")
        return self._run(self._engine.retract, self._guard.scope(scope), _check_ids(ids), flag)

    @verb("write", "POST /v1/memories/{id}/pin")
    def pin(self, scope: ScopeLike, id: str, pinned: bool = True) -> Receipt:
        """Mark an atom or message as one that no clean-up may take, or take the mark off."""
        return self._run(self._engine.pin, self._guard.scope(scope), check_id(id), check_flag(pinned, "pinned"))

    @verb("write", "POST /v1/review", answer="receipts")
    def review(
        self, scope: ScopeLike, ids: str | Iterable[str], keep: bool = True, *, exact: bool = False
    ) -> builtins.list[Receipt]:
        """Keep new memories that wait for review: from then on they are recalled, and close what they were to close.

        With `keep=False` they wait again, and what they had closed is in force again. To correct or to pin one keeps
        it too; `forget` rejects it. Which streams have new memories wait is a setting, see docs/forming.md.

        >>> with eunoe.open(":memory:", llm="none") as memory:
        ...     _ = memory.streams.configure("user=anna", review="all")
        ...     _ = memory.observe("user=anna", "I am allergic to peanuts.")
        ...     _ = memory.form("user=anna")
        ...     (atom,) = memory.recent(in_review=True).items
        ...     before = len(memory.recall("user=anna", "peanuts", kinds=["fact", "observation"]))
        ...     _ = memory.review("user=anna", atom.id)
        ...     before, len(memory.recall("user=anna", "peanuts", kinds=["fact", "observation"]))
        (0, 1)
        """
        return self._run(
            self._engine.review, self._guard.reach(scope, exact), _check_ids(ids), check_flag(keep, "keep")
        )

    @verb("write", "POST /v1/extract", slow=True, repeatable=True, changes=False)
    def preview(self, scope: ScopeLike, messages: MessageLike | Iterable[MessageLike] | None = None) -> Preview:
        """Return what would be learned from messages in this scope, and is not known yet; nothing is kept.

        They are formed as `observe` and `form` would, with the settings of the streams that they feed, each on its own:
        what came before is not looked at. A language model is asked, and what that takes is counted. The answer also
        names the atoms that are doubtful, and the messages that were passed over, each with the reason.

        Args:
            messages: without any, those of the conversation that are still to be formed.

        >>> with eunoe.open(":memory:", llm="none") as memory:
        ...     found = memory.preview("user=anna", ["I am allergic to peanuts.", "What time is it?"])
        ...     [atom.text for atom in found.items], memory.scopes()
        (['anna: I am allergic to peanuts.'], [])
        >>> [(message.text, message.reason) for message in found.passed_over]
        [('What time is it?', 'it only asks')]
        """
        from eunoe.memory.preview import preview

        owner = self._guard.scope(scope)
        if messages is None:
            self._guard.allow("read")  # it shows what was said
        parsed = None if messages is None else parse_messages(messages, owner.pairs.get("session", ""))
        self._guard.allow_users(filter(None, map(user_named_by, parsed or ())), owner)
        return self._run(preview, self._engine, owner, parsed, self._guard.bounds)

    @verb("forget", "POST /v1/forget")
    def forget(
        self,
        scope: Scopes,
        ids: str | Iterable[str] = (),
        *,
        person: str = "",
        mentions: bool = False,
        everything: bool = False,
        may_return: bool = False,
        verify: bool = False,
        exact: bool = False,
    ) -> ForgetReport:
        """Remove memories for good: these ids, a person, or everything in the scope. Name exactly one of the three.

        A user's scope means everything within: their sessions, and what agents keep about them.

        An atom goes with all its versions, a message with every atom that rests on it. What was forgotten is refused
        when the same log or import is read again.

        The report names, by scope, what still has the words: a message that a memory came from stays.

        Args:
            ids: in a user's scope `@SCOPE#ID` names one of several with the same id.
            person: what they said and what is noted about them.
            mentions: with a person, what others said of them too.
            everything: all that the scopes hold.
            may_return: leave no tombstones, so that the same text may be stored again.
            verify: search every table, file, index and cache for what should be gone.
            exact: the one scope that is named, where a user's would mean everything within.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna's PIN is 4711.")
        ...     report = memory.forget("user=anna", kept.id, verify=True)
        ...     report.atoms == (kept.id,), report.verified, memory.remember("user=anna", "Anna's PIN is 4711.").outcome
        (True, True, 'forgotten')
        """
        scopes = self._guard.reaches(scope, exact)
        wanted = check_names(as_list(ids, "ids") if ids != "" else (), "ids")
        person = check_text(person, "person").strip()
        flags = {"mentions": mentions, "everything": everything, "may_return": may_return, "verify": verify}
        for name, flag in flags.items():
            check_flag(flag, name)
        if bool(wanted) + bool(person) + everything != 1:
            raise InputError("say what to forget: ids, a person, or everything=True for the whole scope")
        selection: Selection = ByIds(wanted) if wanted else ByPerson(person, mentions) if person else Everything()
        return self._run(self._engine.forget, scopes, selection, may_return, verify, self._guard.bounds)

    @verb("write", "POST /v1/form", slow=True)
    def form(self, scope: ScopeLike, *, force: bool = True) -> FormReport:
        """Turn what was said in a conversation into memories now; without `force` only if enough was said.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.observe("user=anna", ["I am allergic to peanuts.", "Please call me Ann."])
        ...     report = memory.form("user=anna")
        >>> report.messages
        2
        """
        return self._run(self._engine.form, self._guard.scope(scope), check_flag(force, "force"), self._guard.bounds)

    @verb("write", slow=True, changes=False)
    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the background has nothing left to do; return False if that took longer than the time given."""
        checked = None if timeout is None else check_seconds(timeout, "timeout")
        return self._run(self._engine.flush, checked, self._guard.bounds)

    @verb("read", "GET /v1/status")
    def status(self) -> Status:
        """Return how the store stands: what it holds, what is still due, how large it is."""
        return self._run(self._engine.status, self._guard.bounds)

    def close(self) -> None:
        """Finish what runs in the background and close the store; a restricted memory closes nothing. Twice is fine."""
        if self._guard is OPEN and not self._watches:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.target!r})"


def _check_ids(ids: str | Iterable[str]) -> builtins.list[str]:
    return [check_id(id, "ids") for id in check_names(as_list(ids, "ids"), "ids")]


def _parse_where(where: Where) -> tuple[Condition, tuple[Parts, ...]]:
    from eunoe.recall.request import needed_parts, parse_where

    return parse_where(where), needed_parts(where)


def _parse_within(within: ScopeLike | None, keys: Mapping[str, str]) -> Scope | None:
    if within is None:
        return Scope(**keys) if keys else None
    try:
        scope = Scope.of(within)
    except ScopeError as error:
        raise InputError(f"within: {error}") from None
    return (scope.extended(keys).everything if scope.within else scope.extended(keys)) if keys else scope
