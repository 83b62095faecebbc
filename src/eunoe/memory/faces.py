"""The verbs awaited, bound to a scope, or both. Written from the verbs of `Memory`: run `make faces`."""

from __future__ import annotations

from eunoe.memory.groups import Admin, Corrections, Graph, Leases, Streams, Summaries
from eunoe.memory.memory import Memory
from eunoe.memory.twins import AsyncFace, AsyncGroup, AsyncRenewal, BoundMemory, Threads, awaited, bound
from eunoe.model.scope import ScopeLike


class AsyncStreams(AsyncGroup[Streams]):
    """`Streams`, awaited."""

    list = awaited(Streams.list)
    configure = awaited(Streams.configure)
    presets = awaited(Streams.presets)
    set_preset = awaited(Streams.set_preset)
    apply_retention = awaited(Streams.apply_retention)
    unarchive = awaited(Streams.unarchive)
    set_incognito = awaited(Streams.set_incognito)


class AsyncSummaries(AsyncGroup[Summaries]):
    """`Summaries`, awaited."""

    consolidate = awaited(Summaries.consolidate)
    revisions = awaited(Summaries.revisions)
    restore = awaited(Summaries.restore)
    write = awaited(Summaries.write)


class AsyncCorrections(AsyncGroup[Corrections]):
    """`Corrections`, awaited."""

    add = awaited(Corrections.add)
    list = awaited(Corrections.list)
    remove = awaited(Corrections.remove)


class AsyncLeases(AsyncRenewal):
    """`Leases`, awaited."""

    acquire = awaited(Leases.acquire)
    renew = awaited(Leases.renew)
    release = awaited(Leases.release)
    fail = awaited(Leases.fail)
    list = awaited(Leases.list)
    drop = awaited(Leases.drop)


class AsyncGraph(AsyncGroup[Graph]):
    """`Graph`, awaited."""

    neighbours = awaited(Graph.neighbours)
    size = awaited(Graph.size)
    extract = awaited(Graph.extract)


class AsyncAdmin(AsyncGroup[Admin]):
    """`Admin`, awaited."""

    export = awaited(Admin.export)
    import_ = awaited(Admin.import_)
    backup = awaited(Admin.backup)
    reembed = awaited(Admin.reembed)
    check = awaited(Admin.check)
    reindex = awaited(Admin.reindex)
    process_cold_sessions = awaited(Admin.process_cold_sessions)
    calls = awaited(Admin.calls)
    test_llm = awaited(Admin.test_llm)
    access_counts = awaited(Admin.access_counts)


class AsyncMemory(AsyncFace):
    """Every verb of `Memory`, awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with eunoe.open_async(":memory:") as memory:
    ...         await memory.remember({"user": "anna"}, "Anna is allergic to peanuts.")
    ...         hits = await memory.recall({"user": "anna"}, "What must Anna not eat?")
    ...         return hits[0].text
    >>> asyncio.run(main())
    'Anna is allergic to peanuts.'
    """

    def __init__(self, blocking: Memory, threads: Threads | None = None) -> None:
        super().__init__(blocking, threads)
        self.streams = AsyncStreams(blocking.streams, self._threads)
        self.summaries = AsyncSummaries(blocking.summaries, self._threads)
        self.corrections = AsyncCorrections(blocking.corrections, self._threads)
        self.leases = AsyncLeases(blocking.leases, self._threads)
        self.graph = AsyncGraph(blocking.graph, self._threads)
        self.admin = AsyncAdmin(blocking.admin, self._threads)

    def at(self, scope: ScopeLike | None = None, /, **keys: str | int) -> AsyncScopedMemory:
        """Bind the everyday verbs to a scope."""
        return AsyncScopedMemory(self, self._blocking.at(scope, **keys).scope)

    observe = awaited(Memory.observe)
    remember = awaited(Memory.remember)
    remember_many = awaited(Memory.remember_many)
    recall = awaited(Memory.recall)
    context = awaited(Memory.context)
    look_up = awaited(Memory.look_up)
    get = awaited(Memory.get)
    get_many = awaited(Memory.get_many)
    list = awaited(Memory.list)
    recent = awaited(Memory.recent)
    view = awaited(Memory.view)
    by_files = awaited(Memory.by_files)
    scopes = awaited(Memory.scopes)
    history = awaited(Memory.history)
    update = awaited(Memory.update)
    expire = awaited(Memory.expire)
    retract = awaited(Memory.retract)
    pin = awaited(Memory.pin)
    review = awaited(Memory.review)
    preview = awaited(Memory.preview)
    forget = awaited(Memory.forget)
    form = awaited(Memory.form)
    flush = awaited(Memory.flush)
    status = awaited(Memory.status)


class ScopedMemory(BoundMemory[Memory]):
    """The everyday verbs of a memory, bound to one scope."""

    __slots__ = ()

    observe = bound(Memory.observe)
    remember = bound(Memory.remember)
    remember_many = bound(Memory.remember_many)
    recall = bound(Memory.recall)
    context = bound(Memory.context)
    look_up = bound(Memory.look_up)
    get = bound(Memory.get)
    get_many = bound(Memory.get_many)
    list = bound(Memory.list)
    view = bound(Memory.view)
    by_files = bound(Memory.by_files)
    history = bound(Memory.history)
    update = bound(Memory.update)
    expire = bound(Memory.expire)
    retract = bound(Memory.retract)
    pin = bound(Memory.pin)
    review = bound(Memory.review)
    preview = bound(Memory.preview)
    forget = bound(Memory.forget)
    form = bound(Memory.form)


class AsyncScopedMemory(BoundMemory[AsyncMemory]):
    """The everyday verbs of an async memory, bound to one scope."""

    __slots__ = ()

    observe = bound(AsyncMemory.observe)
    remember = bound(AsyncMemory.remember)
    remember_many = bound(AsyncMemory.remember_many)
    recall = bound(AsyncMemory.recall)
    context = bound(AsyncMemory.context)
    look_up = bound(AsyncMemory.look_up)
    get = bound(AsyncMemory.get)
    get_many = bound(AsyncMemory.get_many)
    list = bound(AsyncMemory.list)
    view = bound(AsyncMemory.view)
    by_files = bound(AsyncMemory.by_files)
    history = bound(AsyncMemory.history)
    update = bound(AsyncMemory.update)
    expire = bound(AsyncMemory.expire)
    retract = bound(AsyncMemory.retract)
    pin = bound(AsyncMemory.pin)
    review = bound(AsyncMemory.review)
    preview = bound(AsyncMemory.preview)
    forget = bound(AsyncMemory.forget)
    form = bound(AsyncMemory.form)
