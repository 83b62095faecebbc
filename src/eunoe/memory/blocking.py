"""Memory: the everyday verbs, their documentation, and the check of their arguments. It has no rules of its own.

The verbs that need `recall` import it when they are called, so that opening a memory is quick.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from eunoe.embed.contract import Embedder
from eunoe.engine import Engine
from eunoe.errors import InputError
from eunoe.llm.contract import Llm
from eunoe.memory.amendment import Amendment
from eunoe.memory.changes import Watch, WatchedEngine
from eunoe.memory.groups import Admin, Corrections, Graph, Streams, Summaries
from eunoe.memory.guard import OPEN, Guard
from eunoe.memory.inspection import Inspection
from eunoe.memory.leases import Leases
from eunoe.model.arguments import (
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
    check_flag,
    check_seconds,
)
from eunoe.model.atom import parse_atom, parse_atoms
from eunoe.model.message import MessageLike, parse_messages
from eunoe.model.result import Context, FormReport, Hits, Lease, Receipt, Status, check_optional_lease
from eunoe.model.scope import Scope, ScopeLike, Scopes, check_users
from eunoe.model.turn import user_named_by

if TYPE_CHECKING:
    from eunoe.memory.scoped import ScopedMemory
    from eunoe.recall.metadata_filter import Where
    from eunoe.recall.ranking_recipes import Recipe
    from eunoe.recall.request import VectorLike, VectorsLike


class Memory(Inspection, Amendment):
    """A memory that lasts. Every verb names its scope; every write says what it did.

    Use it with or without `with`, in a script, a notebook or from many threads: what a verb has returned is stored.

    >>> memory = eunoe.open(":memory:")
    >>> memory.remember({"user": "anna"}, "Anna is allergic to peanuts.").outcome
    'stored'
    >>> memory.recall({"user": "anna"}, "What must Anna not eat?")[0].text
    'Anna is allergic to peanuts.'
    >>> memory.close()
    """

    def __init__(self, engine: Engine, guard: Guard = OPEN) -> None:
        super().__init__(engine, guard)
        self.streams = Streams(engine, guard)
        """Settings and presets, clean-up, incognito sessions."""
        self.summaries = Summaries(engine, guard)
        """Summaries and their revisions."""
        self.corrections = Corrections(engine, guard)
        """What somebody said by hand about what was learned, and what counts from then on."""
        self.leases = Leases(engine, guard)
        """Who works on what, so that each piece of work is done once."""
        self.graph = Graph(engine, guard)
        """The entities of a scope and how they are tied."""
        self.admin = Admin(engine, guard)
        """Export and import, re-embedding, indexes, idle sessions, access counts."""

    @property
    def guard(self) -> Guard:
        """What this memory may be used for."""
        return self._guard

    @property
    def target(self) -> str:
        """The path of the store, or ":memory:". Empty if the memory is restricted to a part of it."""
        return "" if self._guard.bounds.scopes else self._engine.store.target

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
        from eunoe.memory.scoped import ScopedMemory

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
        return Memory(self._engine, self._guard.narrowed(tenant, scopes, rights))

    def watched(self, watch: Watch) -> Memory:
        """Return the same memory, which tells of each change that is made through it: the verb, the scopes, a count."""
        if not callable(watch):
            raise InputError(f"watch must be a function, not {type(watch).__name__}")
        return Memory(cast("Engine", WatchedEngine(self._engine, watch)), self._guard)

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
        owner = self._guard.scope(scope, "write")
        parsed = parse_messages(messages, owner.pairs.get("session", ""))
        self._guard.allow_users(filter(None, map(user_named_by, parsed)), owner)
        return self._engine.run(self._engine.observe, owner, parsed)

    def remember(
        self,
        scope: ScopeLike,
        text: str,
        *,
        kind: AtomKind = "fact",
        id: str = "",
        label: str = "",
        files: Iterable[str] = (),
        pages: Iterable[str] = (),
        people: Iterable[str] = (),
        source: Iterable[str] = (),
        source_scopes: Scopes = (),
        time: TimeLike | None = None,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
        vector: VectorsLike | None = None,
        again: bool = False,
        replace: bool = False,
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
        owner = self._guard.scope(scope, "write")
        atom = parse_atom(
            text,
            kind=kind,
            id=id,
            label=label,
            files=files,
            pages=pages,
            people=people,
            source=source,
            time=time,
            valid_from=valid_from,
            valid_to=valid_to,
            pinned=pinned,
            metadata=metadata,
        )
        atoms = self._guard.atoms([atom], owner, source_scopes)
        vectors = {} if vector is None else {0: vector}
        flags = check_flag(again, "again"), check_flag(replace, "replace")
        return self._engine.run(self._engine.remember, owner, atoms, vectors, *flags)[0]

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
        owner = self._guard.scope(scope, "write")
        atoms, vectors = parse_atoms(items)
        checked = self._guard.atoms(atoms, owner, source_scopes)
        flags = check_flag(again, "again"), check_flag(replace, "replace")
        held = check_optional_lease(lease)
        return self._engine.run(self._engine.remember, owner, checked, vectors, *flags, held)

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
            as_of: what was true then. `known_at`: what the store knew then.
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

        scopes = self._guard.reaches(scope, "read", exact)
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
        return self._guard.redact(self._engine.run(self._engine.recall, scopes, request, self._guard.bounds))

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
        from eunoe.recall.context_request import parse_context_request

        request = parse_context_request(
            self._guard.scope(scope, "read"),
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
        return self._guard.redact(self._engine.run(self._engine.contexts.build, request))

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
        from eunoe.recall.conversation_recall import parse_lookup_request

        owner = self._guard.scope(scope, "read")
        types = tuple(as_list(memory_types, "memory_types"))
        checked = as_list(query, "query"), check_users(users), types, limit, recipe
        request = parse_lookup_request(owner, *checked, self._guard.bounds, exact)
        return self._guard.redact(self._engine.run(self._engine.look_up, request))

    def form(self, scope: ScopeLike, *, force: bool = True) -> FormReport:
        """Turn what was said in a conversation into memories now; without `force` only if enough was said.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.observe("user=anna", ["I am allergic to peanuts.", "Please call me Ann."])
        ...     report = memory.form("user=anna")
        >>> report.messages
        2
        """
        owner = self._guard.scope(scope, "write")
        least = 1 if check_flag(force, "force") else None
        return self._engine.run(self._engine.former.form, owner, least, force, self._guard.bounds)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the background has nothing left to do; return False if that took longer than the time given."""
        self._guard.allow("write")
        checked = None if timeout is None else check_seconds(timeout, "timeout")
        return self._engine.run(self._engine.flush, checked, self._guard.bounds)

    def status(self) -> Status:
        """Return how the store stands: what it holds, what is still due, how large it is."""
        self._guard.allow("read")
        return self._engine.run(self._engine.status, self._guard.bounds)

    def close(self) -> None:
        """Finish what runs in the background and close the store; a restricted memory closes nothing. Twice is fine."""
        if self._guard is OPEN:
            self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.target!r})"
