"""Stores that are awaited: nothing blocks the event loop, and calls that are made at the same time are one batch."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langgraph.store.base import InvalidNamespaceError, PutOp

from eunoe.errors import InputError
from eunoe.hosts.langgraph import AsyncEunoeStore, EunoeStore
from eunoe.memory import AsyncMemory

NS = ("users", "anna")


def run(path, work, **options):
    async def live():
        async with AsyncEunoeStore.from_conn_string(str(path), embedder="none", **options) as store:
            await store.setup()
            return await work(store)

    return asyncio.run(live())


def test_every_method_has_an_awaited_twin(path):
    async def work(store):
        await store.aput(NS, "a", {"n": 1})
        await store.aput(NS, "b", {"n": 2})
        await store.adelete(NS, "b")
        found = await store.asearch(("users",), filter={"n": 1})
        return (await store.aget(NS, "a")).value, [item.key for item in found], await store.alist_namespaces()

    assert run(path, work) == ({"n": 1}, ["a"], [NS])


def test_the_blocking_store_can_be_awaited_and_used_in_the_loop(memory):
    async def work():
        store = EunoeStore(AsyncMemory(memory))
        store.put(NS, "a", {"n": 1})
        await store.aput(NS, "b", {"n": 2})
        with pytest.raises(InvalidNamespaceError):
            await store.aput(("a.b",), "k", {})
        return [item.key for item in await store.asearch(NS)], (await store.alist_namespaces(max_depth=1))

    assert asyncio.run(work()) == (["a", "b"], [("users",)])


def test_an_opening_serves_with_and_async_with(path):
    async def work():
        async with EunoeStore.from_conn_string(str(path), embedder="none") as store:
            await store.aput(NS, "a", {"n": 1})
            return type(store)

    assert asyncio.run(work()) is AsyncEunoeStore
    with EunoeStore.from_conn_string(str(path)) as store:
        assert store.get(NS, "a").value == {"n": 1}


def test_blocking_calls_in_the_loop_of_an_awaited_store_are_refused(path):
    async def work(store):
        calls = [
            lambda: store.put(NS, "a", {}),
            lambda: store.get(NS, "a"),
            lambda: store.delete(NS, "a"),
            lambda: store.search(NS),
            lambda: store.list_namespaces(),
            lambda: store.batch([PutOp(NS, "a", {})]),
        ]
        for call in calls:
            with pytest.raises(asyncio.InvalidStateError):
                call()
        await asyncio.to_thread(store.put, NS, "a", {"n": 1})
        return (await asyncio.to_thread(store.get, NS, "a")).value

    assert run(path, work) == {"n": 1}


def test_calls_of_one_moment_are_one_batch(path):
    async def work(store):
        batches, abatch = [], store._operations.arun

        async def noted(ops, **how):
            batches.append(list(ops))
            return await abatch(batches[-1], **how)

        store._operations.arun = noted
        await asyncio.gather(*(store.aput(NS, "a", {"n": number}) for number in range(5)), store.aput(NS, "b", {}))
        found = await asyncio.gather(store.aget(NS, "a"), store.aget(NS, "a"), store.aget(NS, "c"))
        return [len(batch) for batch in batches], [item and item.value for item in found]

    assert run(path, work) == ([2, 2], [{"n": 4}, {"n": 4}, None])


def test_what_is_refused_takes_nothing_else_of_its_moment_with_it(path):
    async def work(store):
        calls = [
            store.aput(NS, "kept", {"n": 1}),
            store.aput(NS, "nan", {"n": float("nan")}),
            store.aput(NS, "old", {}, ttl=float("nan")),
            store.asearch(NS, offset=-1),
            store.asearch(NS, filter={"n": {"$in": [1]}}),
            store.alist_namespaces(offset=-1),
            store.asearch(NS, filter={"n": {"$gt": "one"}}),
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        return [isinstance(each, InputError) for each in results], [each.key for each in await store.asearch(NS)]

    assert run(path, work) == ([False, True, True, True, True, True, False], ["kept"])


def test_the_loop_goes_on_while_the_store_waits(memory):
    store, release, entered = EunoeStore(memory), threading.Event(), threading.Event()
    get_many = memory.get_many

    def slow(*arguments, **how):
        entered.set()
        assert release.wait(20)
        return get_many(*arguments, **how)

    store._operations.memory = type("Slow", (), {"get_many": staticmethod(slow)})()

    async def work():
        task = asyncio.create_task(store.aget(NS, "a"))
        while not entered.is_set():
            await asyncio.sleep(0)
        assert not task.done()
        release.set()
        return await task

    assert asyncio.run(work()) is None
