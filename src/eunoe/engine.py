"""Memory: the front door. It puts the parts together and keeps no rules of its own."""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar

from eunoe.core import Core
from eunoe.embed.store_embedder import AUTO, Progress
from eunoe.errors import EunoeError, InputError, StoreBusyError
from eunoe.form.background import Background
from eunoe.gate import Gate
from eunoe.model.atom import KINDS, Atom, atom_and_vector, names_of, path_of
from eunoe.model.context import Context
from eunoe.model.graph import Neighbourhood, ReadReport
from eunoe.model.message import Message, MessageLike, message_of
from eunoe.model.result import ForgetReport, Hit, ImportReport, Item, Page, Receipt, Status
from eunoe.model.scope import Scope, ScopeLike, scopes_of
from eunoe.model.settings import Settings
from eunoe.model.stream import FormReport, Revision, Stream, TidyReport
from eunoe.model.time import TimeLike
from eunoe.records import forgetting
from eunoe.store.books import Use
from eunoe.store.contract import Store
from eunoe.text.normalize import checked

if TYPE_CHECKING:
    from eunoe.embed import Embedder
    from eunoe.llm.contract import Llm
    from eunoe.sync import SyncMemory

T = TypeVar("T")
Scopes = ScopeLike | builtins.list[ScopeLike] | tuple[ScopeLike, ...]

_ALL = ("message", *KINDS)
_THREADS = 4
_MOST = 10_000
_log = logging.getLogger("eunoe")


here: ContextVar[bool] = ContextVar("here", default=False)
"""True where a verb is to do its blocking work in the calling thread: set by the blocking face alone."""


class Memory:
    """A memory that lasts. Every verb names its scope; every write says what it did.

    >>> import asyncio, eunoe
    >>> async def main():
    ...     async with eunoe.open(":memory:") as memory:
    ...         await memory.remember({"user": "anna"}, "Anna is allergic to peanuts.")
    ...         hits = await memory.recall({"user": "anna"}, "What must Anna not eat?")
    ...         return hits[0].text
    >>> asyncio.run(main())
    'Anna is allergic to peanuts.'
    """

    def __init__(
        self,
        store: Store,
        *,
        embedder: Any = AUTO,
        llm: Any = AUTO,
        fast_llm: Any = None,
        form: bool = True,
        cache_bytes: int | None = None,
        extractor: Any = "builtin",
    ) -> None:
        if cache_bytes is not None and (not isinstance(cache_bytes, int) or cache_bytes < 1):
            raise InputError(f"cache_bytes is {cache_bytes!r}: give a number of bytes, or leave it out")
        self._core = Core(store, embedder, cache_bytes, llm, fast_llm, extractor)
        if form:
            self._core.background = Background(self._core)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe")
        # A language model may take its time: what waits for one must not hold up the rest.
        self._slow = ThreadPoolExecutor(_THREADS, thread_name_prefix="eunoe-slow")
        self._sync: SyncMemory | None = None
        self._gate = Gate()

    @property
    def target(self) -> str:
        """Where the memory rests."""
        return self._core.store.target

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors, or None."""
        return self._core.embedding.embedder

    @property
    def embedder_error(self) -> str:
        """Why no vectors can be made at the moment, if so: what `status` says, without counting the whole store."""
        return self._core.embedding.error

    @property
    def reranker_error(self) -> str:
        """Why the last recall that asked for the reranker did without, if it did: what `status` says too."""
        return self._core.reader.error

    @property
    def llm(self) -> Llm | None:
        """The language model that forms and consolidates, or None. What it is asked is counted in `status`."""
        return self._core.models.slow

    @property
    def sync(self) -> SyncMemory:
        """The same memory with blocking verbs."""
        from eunoe.sync import SyncMemory

        if self._sync is None:
            self._sync = SyncMemory(self)
        return self._sync

    async def observe(self, scope: ScopeLike, messages: MessageLike | Iterable[MessageLike]) -> builtins.list[Receipt]:
        """Appends messages to the log, word for word; all of them or, on an error, none.

        Known messages are recognised: by id, else by words and time, else by words and place.

        >>> with eunoe.open(":memory:") as memory:
        ...     first = memory.observe("user=anna", [{"role": "user", "content": "I moved to Rome."}])
        ...     again = memory.observe("user=anna", [{"role": "user", "content": "I moved to Rome."}])
        >>> first[0].outcome, again[0].outcome
        ('stored', 'duplicate')
        """
        owner = Scope.of(scope)
        many = _several(messages, "messages", str | Message | Mapping)
        read = [_numbered(place, value) for place, value in enumerate(many)]
        return await self._run(self._core.observe, owner, [_in_session(owner, message) for message in read])

    async def remember(
        self,
        scope: ScopeLike,
        text: str,
        *,
        kind: str = "fact",
        id: str = "",
        label: str = "",
        files: Iterable[str] = (),
        pages: Iterable[str] = (),
        people: Iterable[str] = (),
        source: Iterable[str] = (),
        time: TimeLike | None = None,
        valid_from: TimeLike | None = None,
        valid_to: TimeLike | None = None,
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
        vector: Any = None,
        again: bool = False,
    ) -> Receipt:
        """Keeps one fact or observation.

        Args:
            id: an id of your own. Atoms with one are told apart by it, the others by what they say.
            source: ids of the messages it rests on; forgetting one of them takes it along.
            vector: its vector, if you have made it with the store's model already.
            again: keep it even if it was forgotten before.

        >>> with eunoe.open(":memory:") as memory:
        ...     receipt = memory.remember("repository=eunoe", "Tests live in tests/.", files=["tests/"])
        >>> receipt.outcome
        'stored'
        """
        item = {
            "text": text,
            "kind": kind,
            "id": id,
            "label": label,
            "files": files,
            "pages": pages,
            "people": people,
            "source": source,
            "time": time,
            "valid_from": valid_from,
            "valid_to": valid_to,
            "pinned": pinned,
            "metadata": metadata,
        }
        owner = Scope.of(scope)
        atom, _ = atom_and_vector(item)
        vectors = {} if vector is None else {text: vector}
        return (await self._run(self._core.remember, owner, [atom], vectors, again))[0]

    async def remember_many(
        self, scope: ScopeLike, items: Iterable[str | Mapping[str, Any]], *, again: bool = False
    ) -> builtins.list[Receipt]:
        """Keeps many at once, each a text or a dict of what `remember` takes; all of them or, on an error, none."""
        owner = Scope.of(scope)
        read, vectors = [], {}
        for place, item in enumerate(_several(items, "items", str | Mapping)):
            atom, vector = _counted(place, item)
            read.append(atom)
            if vector is not None:
                vectors[atom.text] = vector
        return await self._run(self._core.remember, owner, read, vectors, again)

    async def recall(
        self,
        scope: Scopes,
        query: str,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        kinds: Iterable[str] = _ALL,
        labels: Iterable[str] = (),
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        files: Iterable[str] = (),
        people: Iterable[str] = (),
        sessions: Iterable[str] = (),
        speakers: Iterable[str] = (),
        as_of: TimeLike | None = None,
        known_at: TimeLike | None = None,
        now: TimeLike | None = None,
        recipe: str = "default",
        vector: Any = None,
    ) -> builtins.list[Hit]:
        """Brings back what bears on a question, best first.

        Args:
            scope: one scope or a list of them; nothing outside them is read.
            limit: at most so many hits; 10 if neither this nor `tokens` is given.
            tokens: at most so many tokens of text, the best hits first.
            as_of: what was true then. `known_at`: what the store knew then.
            now: the moment the question is asked, for words such as "yesterday".
            recipe: how signals are weighed; see `eunoe.recall.recipes`.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.observe("user=anna", ["My sister lives in Turin.", "It rained all day."])
        ...     hits = memory.recall("user=anna", "Where does her sister live?", limit=1)
        >>> hits[0].text
        'My sister lives in Turin.'
        """
        from eunoe.recall.request import request_of

        owners = scopes_of(scope)
        request = request_of(
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
            as_of=as_of,
            known_at=known_at,
            now=now,
            recipe=recipe,
            vector=vector,
        )
        return await self._run(self._core.recall, owners, request)

    async def by_files(self, scope: ScopeLike, paths: Iterable[str]) -> builtins.list[Atom]:
        """What is remembered about these files, or about files in these folders; latest first."""
        wanted = [path_of(path) for path in names_of(_several(paths, "paths"), "paths")]
        return await self._run(self._core.by_files, Scope.of(scope), wanted)

    async def graph(self, scope: ScopeLike, entity: str = "", *, depth: int = 1, limit: int = 50) -> Neighbourhood:
        """What stands around a name: the names in the same passages, and the passages; without one the names that are
        tied to most. Raises NotFoundError if the scope has no passage with that name.

        Args:
            depth: how many steps from passage to passage to go.
            limit: at most so many other names, and so many passages.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("project=atlas", "Anna Berg met Felix Cole. They went to Rome.")
        ...     near = memory.graph("project=atlas", "anna berg")
        >>> [entity.name for entity in near.entities]
        ['Anna Berg', 'Felix Cole', 'Rome']
        """
        from eunoe.recall.neighbourhood import check

        check(entity, depth, limit)
        return await self._run(self._core.graph, Scope.of(scope), entity, depth, limit)

    async def associate(self, scope: ScopeLike, *, limit: int | None = None, ask: bool = True) -> ReadReport:
        """Has the language model read the passages that it has not read yet, at most so many, for names and for what
        is said of them; the graph takes both in. Without this it finds names by itself.

        A passage whose metadata holds `entities` (names) or `triples` (lists of three) is not asked about; without
        `ask` only these are taken in. One whose answer cannot be used stays due. Raises LlmError if there is nothing in
        metadata and no language model.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InputError(f"limit is {limit!r}: it must be a whole number of at least 1")
        return await self._run_slow(self._core.associate, Scope.of(scope), limit, ask)

    async def get(self, scope: ScopeLike, id: str) -> Item:
        """One message or atom, closed ones too. Raises NotFoundError if the scope has no such id."""
        return await self._run(self._core.get, Scope.of(scope), id)

    async def list(
        self,
        scope: ScopeLike,
        *,
        kinds: Iterable[str] = _ALL,
        labels: Iterable[str] = (),
        limit: int = 50,
        after: str = "",
        retired: bool = False,
    ) -> Page[Item]:
        """What the scope holds, oldest first, a page at a time."""
        if not isinstance(limit, int) or not 1 <= limit <= _MOST:
            raise InputError(f"limit is {limit!r}: ask for 1 to {_MOST:,} at a time")
        return await self._run(self._core.list, Scope.of(scope), _kinds(kinds), _labels(labels), limit, after, retired)

    async def scopes(self, /, **keys: str) -> builtins.list[Scope]:
        """All scopes that hold something, if only fingerprints of what was forgotten, which move with an export; or
        those of them that have these keys with these values.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember({"user": "anna", "agent": "cook"}, "Anna likes garlic.")
        ...     memory.scopes(user="anna")
        [Scope(agent='cook', user='anna')]
        """
        return await self._run(self._core.scopes, keys)

    async def history(self, scope: ScopeLike, id: str) -> builtins.list[Atom]:
        """All versions of an atom, oldest first."""
        return await self._run(self._core.history, Scope.of(scope), id)

    async def update(self, /, scope: ScopeLike, id: str, text: str | None = None, **changes: Any) -> Receipt:
        """Closes an atom and puts a new one in its place; the old one stays readable.

        Takes what `remember` takes. `valid_from` says since when the new one is true; now, if it is not given.

        >>> with eunoe.open(":memory:") as memory:
        ...     old = memory.remember("user=anna", "Anna lives in Paris.")
        ...     new = memory.update("user=anna", old.id, "Anna lives in Rome.")
        ...     [version.text for version in memory.history("user=anna", new.id)]
        ['Anna lives in Paris.', 'Anna lives in Rome.']
        """
        return await self._run(self._core.update, Scope.of(scope), id, text, changes)

    async def pin(self, scope: ScopeLike, id: str, pinned: bool = True) -> Receipt:
        """Marks an atom or message as one that no clean-up may take, or takes the mark off."""
        return await self._run(self._core.pin, Scope.of(scope), id, pinned)

    async def forget(
        self,
        scope: Scopes,
        ids: str | Iterable[str] = (),
        *,
        person: str = "",
        mentions: bool = False,
        everything: bool = False,
        may_return: bool = False,
        verify: bool = False,
    ) -> ForgetReport:
        """Removes memories for good: these ids, a person, or everything in the scope. Name exactly one of the three.

        An atom goes with all its versions, a message with every atom that rests on it. What was forgotten is refused
        when the same log or import is read again.

        Args:
            person: what they said and what is noted about them. `mentions` also takes what others said of them.
            may_return: leave no tombstones, so that the same text may be stored again.
            verify: search every table, file, index and cache for what should be gone.

        >>> with eunoe.open(":memory:") as memory:
        ...     kept = memory.remember("user=anna", "Anna's PIN is 4711.")
        ...     report = memory.forget("user=anna", kept.id, verify=True)
        ...     report.atoms == (kept.id,), report.verified, memory.remember("user=anna", "Anna's PIN is 4711.").outcome
        (True, True, 'forgotten')
        """
        wanted = names_of(_several(ids, "ids") if ids else (), "ids")
        person = checked(person, "person").strip()
        if sum((bool(wanted), bool(person), everything)) != 1:
            raise InputError("say what to forget: ids, a person, or everything=True for the whole scope")
        selection = _selection(wanted, person, mentions)
        return await self._run(self._core.forget, scopes_of(scope), selection, everything, person, may_return, verify)

    async def export(
        self, scope: Scopes, target: str | Path | TextIO, *, progress: Callable[[int], None] | None = None
    ) -> int:
        """Writes scopes as JSON Lines, without loss; gives the number of lines. For all: `await memory.scopes()`."""
        if not isinstance(target, str | Path) and not hasattr(target, "write"):
            raise InputError(f"export to a path or an open file, not {type(target).__name__}")
        return await self._run(self._core.export, scopes_of(scope), target, progress)

    async def import_(
        self, source: str | Path | Iterable[str], *, progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Reads an export. Read twice it changes nothing; what was forgotten here stays forgotten."""
        if not isinstance(source, Path | Iterable):
            raise InputError(f"import from a path or from lines, not {type(source).__name__}")
        return await self._run(self._core.import_, source, progress)

    async def form(self, scope: ScopeLike, *, force: bool = True) -> FormReport:
        """Turns what was said in a conversation into memories now; without `force` only if enough was said.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.observe("user=anna", ["I am allergic to peanuts.", "Please call me Ann."])
        ...     report = memory.form("user=anna")
        >>> report.messages
        2
        """
        return await self._run_slow(self._core.form, Scope.of(scope), force)

    async def flush(self, timeout: float | None = None) -> bool:
        """Waits until the background has nothing left to do; False if that took longer than the time given."""
        return await self._run_slow(self._flush, timeout)

    async def process_cold_sessions(
        self, *, idle: float = 600, minimum: int = 4, limit: int = 100, concurrency: int = 3
    ) -> FormReport:
        """Forms conversations that have been quiet for `idle` seconds and have at least `minimum` new messages.

        One that fails is reported and stays due; the others go on. At most `limit` are taken, `concurrency` at a time.
        """
        checks = {"minimum": minimum, "limit": limit, "concurrency": concurrency}
        for name, value in checks.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}: it must be a whole number of at least 1")
        if not isinstance(idle, int | float) or isinstance(idle, bool) or not 0 <= idle < inf:
            raise InputError(f"idle is {idle!r}: give a number of seconds")
        return await self._run_slow(self._core.cold_sessions, float(idle), minimum, limit, concurrency)

    async def consolidate(self, scope: ScopeLike, *, force: bool = True) -> Revision | None:
        """Writes a stream's waiting observations into its summary now; without `force` only if enough wait.

        Gives the new revision, or None if there was nothing to do.
        """
        return await self._run_slow(self._core.consolidate, Scope.of(scope), force)

    async def context(
        self,
        scope: ScopeLike,
        message: str = "",
        *,
        users: Iterable[str] = (),
        tokens: int | None = None,
        limit: int | None = None,
        recall: str = "auto",
        recipe: str = "default",
        format: str = "xml",
        sources: bool = False,
        now: TimeLike | None = None,
    ) -> Context:
        """What to put in front of the agent before it replies to a message.

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
            format: "xml", "markdown", "json" or "messages".
            sources: name the messages each memory rests on.
        """
        from eunoe.recall.context import wanted_of

        wanted = wanted_of(
            Scope.of(scope),
            message,
            users=_several(users, "users"),
            tokens=tokens,
            limit=limit,
            recall=recall,
            recipe=recipe,
            format=format,
            sources=sources,
            now=now,
        )
        return await self._run_slow(self._core.context, wanted)

    async def look_up(
        self,
        scope: ScopeLike,
        query: str | Iterable[str],
        *,
        users: Iterable[str] = (),
        memory_types: Iterable[str] = (),
        limit: int = 10,
        recipe: str = "default",
    ) -> builtins.list[Hit]:
        """Recall as a conversation may do it: in all the memory that its context shows, and in nothing else.

        Args:
            query: one question or several; a memory counts by the one that it answers best.
            users: who is present, as in `context`.
            memory_types: some of "session", "user" and "collective"; all of them if none is named.
            recipe: as in `recall`; a recipe that reads, such as "thorough", does so once for each question.

        >>> with eunoe.open(":memory:") as memory:
        ...     _ = memory.remember("agent=cook/user=anna", "Anna is allergic to peanuts.")
        ...     hits = memory.look_up("agent=cook/session=s1/user=anna", "peanuts")
        >>> hits[0].text
        'Anna is allergic to peanuts.'
        """
        from eunoe.recall.context import search_of

        asked, present = _several(query, "query"), _several(users, "users")
        search = search_of(Scope.of(scope), asked, present, memory_types, limit, recipe)
        return await self._run(self._core.look_up, search)

    async def streams(self, /, **keys: str) -> builtins.list[Stream]:
        """The streams of all scopes, or of those that have these keys: settings, summary, what waits."""
        return await self._run(self._core.streams, keys)

    async def configure(self, /, scope: ScopeLike, preset: str = "", **changes: Any) -> Stream:
        """Changes the settings of one stream, and makes it if it is new: so an agent gets a shard.

        >>> with eunoe.open(":memory:") as memory:
        ...     stream = memory.configure("agent=cook/shard=recipes", extraction_prompt="Recipes and tricks.")
        >>> stream.preset, stream.settings.consolidation_trigger
        ('agent', 16)
        """
        return await self._run(self._core.configure, Scope.of(scope), preset, changes)

    async def presets(self) -> dict[str, Settings]:
        """The kinds of streams there are, and the settings each starts with."""
        return await self._run(self._core.presets)

    async def preset(self, /, name: str, like: str = "", **changes: Any) -> Settings:
        """Changes a kind of stream, or makes a new one, like another one if that is named.

        >>> with eunoe.open(":memory:") as memory:
        ...     settings = memory.preset("team", like="user", owner=["team"], consolidated_max_words=200)
        >>> settings.owner, settings.consolidation_trigger
        (('team',), 5)
        """
        return await self._run(self._core.preset, name, like, changes)

    async def revisions(self, scope: ScopeLike) -> builtins.list[Revision]:
        """Every version of a stream's summary, oldest first."""
        return await self._run(self._core.revisions, Scope.of(scope))

    async def restore(self, scope: ScopeLike, number: int) -> Revision:
        """Makes an earlier version of the summary the current one, as a new revision.

        What later versions had taken in waits again to be consolidated.
        """
        return await self._run(self._core.restore, Scope.of(scope), number)

    async def revise(self, scope: ScopeLike, text: str, *, author: str = "hand", parent: int | None = None) -> Revision:
        """Writes a summary by hand, as a new revision. With `parent` only if that is still the current one."""
        return await self._run(self._core.revise, Scope.of(scope), checked(text), author, parent)

    async def tidy(self, /, scope: ScopeLike, *, dry_run: bool = False, **policy: float) -> TidyReport:
        """Archives atoms that are too old, unused for too long or beyond the number to keep; never pinned ones.

        Takes `max_age_days`, `max_idle_days` and `keep_best`; the stream's own settings for those not given.
        """
        return await self._run(self._core.tidy, Scope.of(scope), policy, dry_run)

    async def unarchive(self, scope: ScopeLike, id: str) -> Receipt:
        """Brings an archived atom back."""
        return await self._run(self._core.unarchive, Scope.of(scope), id)

    async def uses(self, scope: ScopeLike, ids: Iterable[str]) -> dict[str, Use]:
        """How often memories were recalled, and when last (microseconds since 1970; 0 if never)."""
        return await self._run(self._core.used, Scope.of(scope), builtins.list(_several(ids, "ids")))

    async def incognito(self, scope: ScopeLike, on: bool = True) -> None:
        """Marks a session as one of which nothing is kept, or takes the mark off.

        The mark itself is a fingerprint that says nothing. A session that already has messages is refused: forget
        them first.
        """
        await self._run(self._core.incognito, Scope.of(scope), on)

    async def status(self) -> Status:
        """How the store stands: what it holds, what still waits for a vector, how large it is."""
        return await self._run(self._core.status)

    async def reindex(self, scope: Scopes) -> int:
        """Drops the indexes of these scopes and builds them anew from the rows; gives how many."""
        return await self._run(self._core.reindex, scopes_of(scope))

    async def re_embed(self, model: Any = None, *, progress: Progress | None = None) -> int:
        """Makes vectors with another model, or those still missing if none is named; gives how many were made.

        Can be stopped and called again: it goes on where it was. Recall uses the old vectors until the new are there.
        """
        return await self._run(self._core.re_embed, model, progress)

    async def close(self) -> None:
        """Finishes what runs in the background and closes the store. Closing twice is fine."""
        if here.get():
            self._close()
        else:
            await asyncio.get_running_loop().run_in_executor(None, self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> SyncMemory:
        return self.sync

    def __exit__(self, *_: object) -> None:
        self.sync.close()

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        """Everything that reads or writes happens in a thread, so that no verb ever blocks the event loop."""
        return await self._in(self._threads, work, *args)

    async def _run_slow(self, work: Callable[..., T], *args: Any) -> T:
        return await self._in(self._slow, work, *args)

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[..., T], *args: Any) -> T:
        with self._gate:
            if here.get():
                done = work(*args)
            else:
                done = await asyncio.get_running_loop().run_in_executor(threads, work, *args)
        self._tend()
        return done

    def _flush(self, timeout: float | None) -> bool:
        background = self._core.background
        until = None if timeout is None else monotonic() + timeout
        done = background.flush(timeout) if background else True
        done = self._core.embedding.finish(until) and done
        self._core.settle()
        return done

    def _close(self) -> None:
        if self._gate.close():
            if self._core.background:
                self._core.background.close()
            self._slow.shutdown()
            self._threads.shutdown()
            with suppress(EunoeError):  # the next opening makes them
                self._core.embedding.finish_little()
            with suppress(EunoeError):  # counts, nothing more
                self._core.settle()
            self._core.store.close()

    def _tend(self) -> None:
        """Makes missing vectors and writes counts down behind the reply, when it is time to."""
        if self._core.embedding.claim():
            try:
                self._threads.submit(self._fill)
            except RuntimeError:  # the pool is closing: what is not made now waits for the next opening
                self._core.embedding.let_go()
        if self._core.uses.due():
            with suppress(RuntimeError):  # closing writes the counts itself
                self._threads.submit(self._core.uses.save)

    def _fill(self) -> None:
        """One step at a time, so that the other work of this memory gets its turn."""
        try:
            self._core.embedding.step()
        except StoreBusyError:  # the next verb tries again
            return
        except EunoeError as error:
            _log.warning("missing vectors have to wait: %s", error)
            return
        except Exception:
            _log.exception("missing vectors could not be made")
            return
        finally:
            self._core.embedding.let_go()
        self._tend()


def _several(values: Any, name: str, one: Any = str) -> Iterable[Any]:
    """One or many; what is neither is refused."""
    if isinstance(values, one):
        return (values,)
    if not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, not {type(values).__name__}")
    return values


def _numbered(place: int, value: MessageLike) -> Message:
    try:
        return message_of(value)
    except InputError as error:
        raise InputError(f"message {place}: {error}; nothing was stored") from None


def _in_session(scope: Scope, message: Message) -> Message:
    session = scope.get("session", "")
    return replace(message, session=session) if session and not message.session else message


def _counted(place: int, item: str | Mapping[str, Any]) -> tuple[Atom, Any]:
    try:
        return atom_and_vector(item)
    except InputError as error:
        raise InputError(f"item {place}: {error}; nothing was stored") from None


def _kinds(kinds: str | Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(_several(kinds, "kinds"))
    if not chosen or set(chosen) - set(_ALL):
        raise InputError(f"kinds {chosen!r} must be some of {', '.join(_ALL)}")
    return chosen


def _labels(labels: str | Iterable[str]) -> set[str]:
    return set(names_of(_several(labels, "labels"), "labels")) if labels else set()


def _selection(ids: Sequence[str], person: str, mentions: bool) -> forgetting.Selection:
    if ids:
        return lambda store, stream: forgetting.named(store, stream, ids)
    if person:
        return lambda store, stream: forgetting.of_person(store, stream, person, mentions)
    return forgetting.everything
