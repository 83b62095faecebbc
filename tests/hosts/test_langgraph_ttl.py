"""How long items live."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from eunoe.errors import InputError
from eunoe.hosts.langgraph import AsyncEunoeStore, EunoeStore
from eunoe.hosts.langgraph.items import Namespaces
from eunoe.model.arguments import utc_now
from eunoe.model.scope import Scope

NS = ("users", "anna")
ROOT = Scope(agent="cook")
SCOPE = Namespaces(ROOT).scope(NS)
OVER = -1.0


def opened(memory, **ttl):
    return EunoeStore(memory, scope=ROOT, ttl=ttl or None)


def keys(items):
    return [item.key for item in items]


def left(memory, key="a"):
    end = memory.get(SCOPE, key).valid_to
    return end and (end - utc_now()) / timedelta(minutes=1)


def end_now(memory, key):
    memory.expire(SCOPE, key, utc_now() - timedelta(minutes=1))


def test_an_item_lives_as_long_as_it_is_given(memory):
    store = opened(memory, default_ttl=5)
    store.put(NS, "a", {})
    store.put(NS, "b", {}, ttl=60)
    store.put(NS, "c", {}, ttl=None)
    assert (4.9 < left(memory) <= 5, 59 < left(memory, "b") <= 60, left(memory, "c")) == (True, True, None)
    store.put(NS, "b", {})
    assert left(memory, "b") <= 5


def test_without_a_configuration_a_put_may_have_a_ttl(memory):
    store = opened(memory)
    store.put(NS, "a", {}, ttl=5)
    store.put(NS, "b", {})
    store.get(NS, "a")
    assert (store.supports_ttl, left(memory) <= 5, left(memory, "b")) == (True, True, None)
    store.put(NS, "c", {}, ttl=1e30)
    store.put(NS, "d", {}, ttl=-1e30)
    for ttl in (float("nan"), float("-inf"), "5", True):
        with pytest.raises(InputError, match="ttl"):
            store.put(NS, "e", {}, ttl=ttl)
    assert (store.sweep_ttl(), keys(store.search(NS))) == (1, ["a", "b", "c"])


def test_an_endless_ttl_means_for_ever(memory):
    store = opened(memory, default_ttl=float("inf"))
    store.put(NS, "a", {})
    store.put(NS, "b", {}, ttl=float("inf"))
    store.get(NS, "a", refresh_ttl=True)
    assert (left(memory, "a"), left(memory, "b"), store.sweep_ttl()) == (None, None, 0)


def test_a_sweep_deletes_what_is_over_and_nothing_else(memory):
    store, other = opened(memory), EunoeStore(memory, scope="agent=gardener")
    store.put(NS, "a", {"text": "over"}, ttl=5)
    store.put(NS, "b", {}, ttl=5)
    store.put(("x",), "a", {})
    other.put(NS, "a", {}, ttl=5)
    end_now(memory, "a")
    memory.expire(Namespaces(Scope(agent="gardener")).scope(NS), "a", utc_now())
    assert keys(store.search(NS)) == ["a", "b"]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)
    assert (keys(store.search(())), keys(other.search(()))) == (["b", "a"], ["a"])
    store.put(NS, "a", {"text": "over"})
    assert store.get(NS, "a").value == {"text": "over"}


@pytest.mark.parametrize("omit", [None, False])
def test_what_is_over_is_shown_until_the_next_sweep(memory, omit):
    store = opened(memory, default_ttl=5) if omit is None else opened(memory, default_ttl=5, omit_expired=omit)
    store.put(NS, "a", {"text": "green tea"})
    end_now(memory, "a")
    assert store.get(NS, "a") is not None
    assert keys(store.search(NS)) == keys(store.search(NS, query="tea")) == ["a"]
    assert store.list_namespaces() == [NS]


def test_what_is_over_can_be_left_out(memory):
    store = opened(memory, default_ttl=5, omit_expired=True, refresh_on_read=True)
    for key in ("a", "b", "c"):
        store.put(NS, key, {"text": f"green tea {key}"})
    store.put(("over",), "a", {}, ttl=OVER)
    end_now(memory, "b")
    assert store.get(NS, "b", refresh_ttl=True) is None
    assert keys(store.search((), limit=2)) == ["a", "c"]
    assert sorted(keys(store.search(NS, query="tea"))) == ["a", "c"]
    assert store.list_namespaces() == [NS]
    assert left(memory, "b") < 0


@pytest.mark.parametrize("read", ["get", "search", "query"])
def test_a_read_gives_an_item_its_time_again(memory, read):
    store = opened(memory, default_ttl=5, refresh_on_read=True)
    reads = {
        "get": lambda refresh: store.get(NS, "a", refresh_ttl=refresh),
        "search": lambda refresh: store.search(NS, refresh_ttl=refresh),
        "query": lambda refresh: store.search(NS, query="tea", refresh_ttl=refresh),
    }
    store.put(NS, "a", {"text": "tea"})
    memory.expire(SCOPE, "a", utc_now() + timedelta(minutes=1))
    reads[read](False)
    assert left(memory) < 1
    reads[read](None)
    assert left(memory) > 4
    assert len(memory.history(SCOPE, "a")) == 1


@pytest.mark.parametrize("ttl", [{}, {"refresh_on_read": False}])
@pytest.mark.parametrize("verb", ["get", "search", "aget", "asearch"])
def test_one_read_may_refresh_though_the_store_does_not(memory, ttl, verb):
    store = opened(memory, default_ttl=5, **ttl)
    subject = {"get": (NS, "a"), "aget": (NS, "a")}.get(verb, (NS,))

    def read(**refresh):
        result = getattr(store, verb)(*subject, **refresh)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    store.put(NS, "a", {"text": "tea"})
    memory.expire(SCOPE, "a", utc_now() + timedelta(minutes=1))
    read()
    assert left(memory) < 1
    read(refresh_ttl=True)
    assert left(memory) > 4


def test_a_sweeper_sweeps_until_it_is_stopped(memory):
    store = opened(memory, default_ttl=5, sweep_interval_minutes=0.0001)
    store.put(NS, "a", {}, ttl=OVER)
    future = store.start_ttl_sweeper()
    store.start_ttl_sweeper()
    while store.get(NS, "a"):
        pass
    assert (store.stop_ttl_sweeper(timeout=20), future.result(20)) == (True, None)
    again = store.start_ttl_sweeper()
    assert again.cancel()
    assert store.stop_ttl_sweeper()
    assert opened(memory).start_ttl_sweeper().done()


def test_an_awaited_store_sweeps_too(path):
    async def live():
        ttl = {"default_ttl": 5, "sweep_interval_minutes": 0.0001}
        async with AsyncEunoeStore.from_conn_string(str(path), ttl=ttl, embedder="none") as store:
            await store.aput(NS, "a", {}, ttl=OVER)
            task = await store.start_ttl_sweeper()
            assert await store.start_ttl_sweeper() is task
            while await store.aget(NS, "a"):
                pass
            assert await store.stop_ttl_sweeper()
            await store.aput(NS, "b", {}, ttl=OVER)
            return await store.sweep_ttl()

    assert asyncio.run(live()) == 1


def test_an_awaited_store_stops_its_sweeper_when_the_block_raises(path):
    tasks = []

    async def fail():
        async with AsyncEunoeStore.from_conn_string(str(path), ttl={"default_ttl": 5}, embedder="none") as store:
            tasks.append(await store.start_ttl_sweeper())
            raise KeyError

    async def live():
        with pytest.raises(KeyError):
            await fail()
        return tasks[0].done()

    assert asyncio.run(live())


def test_an_awaited_read_refreshes_if_it_is_told_to(path):
    async def live():
        async with AsyncEunoeStore.from_conn_string(str(path), ttl={"default_ttl": 5}, embedder="none") as store:
            scope = Namespaces(Scope(store="langgraph")).scope(NS)
            await store.aput(NS, "a", {})
            ends = [store.memory.get(scope, "a").valid_to]
            for refresh in (None, True):
                await store.aget(NS, "a", refresh_ttl=refresh)
                ends.append(store.memory.get(scope, "a").valid_to)
            return ends

    first, unchanged, later = asyncio.run(live())
    assert first == unchanged < later


def test_items_whose_time_is_over_may_be_left_out_from_now_on(memory):
    store = opened(memory, default_ttl=5)
    store.put(NS, "a", {}, ttl=0)
    assert store.get(NS, "a") is not None
    store.ttl_config["omit_expired"] = True
    assert store.get(NS, "a") is None
    assert store.search(NS) == []
