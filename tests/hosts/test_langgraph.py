"""EunoeStore in the place of LangGraph's stores: items, namespaces, searches, times to live."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.langgraph import AsyncEunoeStore, EunoeStore
from eunoe.hosts.langgraph.items import Namespaces, id_of
from eunoe.model.arguments import utc_now
from eunoe.model.scope import Scope

NS = ("users", "anna")


@pytest.fixture
def store(memory):
    return EunoeStore(memory, scope="agent=cook")


def keys(items):
    return [item.key for item in items]


def test_an_item_comes_back_as_it_was_put(store):
    store.put(NS, "diet", {"text": "no peanuts", "since": 2019, "nested": {"list": [1, None, True, 1.5]}})
    item = store.get(NS, "diet")
    assert (item.namespace, item.key) == (NS, "diet")
    assert item.value == {"text": "no peanuts", "since": 2019, "nested": {"list": [1, None, True, 1.5]}}
    assert item.created_at == item.updated_at <= datetime.now(UTC)
    assert store.get(NS, "other") is None
    assert store.get(("users",), "diet") is None


def test_a_value_that_is_put_again_takes_the_place_of_the_old_one(store):
    store.put(NS, "a", {"n": 1})
    store.put(NS, "b", {"n": 2})
    first = store.get(NS, "a")
    store.put(NS, "a", {"n": 3})
    second = store.get(NS, "a")
    assert second.value == {"n": 3}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert keys(store.search(NS)) == ["a", "b"]


def test_what_was_deleted_may_be_put_again_and_comes_last(store):
    for key in ("a", "b"):
        store.put(NS, key, {"text": key})
    store.delete(NS, "a")
    store.delete(NS, "a")
    store.put(NS, "a", {"text": "a"})
    assert keys(store.search(NS)) == ["b", "a"]


def test_what_is_given_back_is_a_copy(store):
    value = {"list": [1]}
    store.put(NS, "a", value)
    value["list"].append(2)
    store.get(NS, "a").value["list"].append(3)
    store.search(NS)[0].value["list"].append(4)
    assert store.get(NS, "a").value == store.search(NS)[0].value == {"list": [1]}


def test_a_batch_reads_what_was_there_before_it(store):
    store.put(NS, "a", {"n": 1})
    found = store.batch(
        [PutOp(NS, "a", {"n": 2}), PutOp(NS, "b", {"n": 3}), GetOp(NS, "a"), SearchOp(NS), ListNamespacesOp()]
    )
    assert [found[0], found[1], found[2].value, keys(found[3]), found[4]] == [None, None, {"n": 1}, ["a"], [NS]]
    assert [store.get(NS, key).value for key in ("a", "b")] == [{"n": 2}, {"n": 3}]


def test_of_several_puts_in_a_batch_the_last_one_counts(store):
    store.batch([PutOp(NS, "a", {"n": 1}), PutOp(NS, "b", {"n": 1}), PutOp(NS, "a", {"n": 2}), PutOp(NS, "b", None)])
    assert [(item.key, item.value) for item in store.search(NS)] == [("a", {"n": 2})]


def test_a_batch_with_something_wrong_does_nothing(store):
    wrongs = (PutOp(("a.b",), "k", {}), PutOp(NS, "k", {"bad": object()}), GetOp(("",), "k"), "no operation")
    for wrong, reason in zip(wrongs, ("periods", "value", "empty", "Unknown operation"), strict=True):
        with pytest.raises(ValueError, match=reason):
            store.batch([PutOp(NS, "a", {"n": 1}), wrong])
    assert store.search(()) == []


def test_roots_never_see_each_other(memory, store):
    other, default = EunoeStore(memory, scope="agent=cook/user=ben"), EunoeStore(memory)
    for number, each in enumerate((store, other, default)):
        each.put(NS, "a", {"n": number})
    for number, each in enumerate((store, other, default)):
        assert [item.value for item in each.search(())] == [{"n": number}]
        assert each.list_namespaces() == [NS]
        assert [item.value for item in each.search((), query=str(number))] == [{"n": number}]
    store.delete(NS, "a")
    assert (store.search(()), other.get(NS, "a").value) == ([], {"n": 1})


def test_what_else_the_root_holds_is_no_item(memory, store):
    memory.remember("agent=cook", "The cook likes garlic.")
    memory.remember(Namespaces(Scope(agent="cook")).scope(NS), "Written by hand.", id="hand")
    store.put(NS, "a", {"text": "garlic"})
    assert (keys(store.search(())), keys(store.search((), query="garlic hand"))) == (["a"], ["a"])
    assert store.get(NS, "hand") is None


def test_a_prefix_ends_at_a_label(store):
    for namespace in [("foo",), ("foo", "child"), ("foobar",), ("Foo",), ("fo",)]:
        store.put(namespace, "k", {})
    assert [item.namespace for item in store.search(("foo",))] == [("foo",), ("foo", "child")]
    assert [item.namespace for item in store.search(["foo"])] == [("foo",), ("foo", "child")]
    assert len(store.search(())) == 5


def test_namespaces_are_listed_as_long_as_they_hold_something(store):
    for namespace in [("b", "c", "d"), ("a", "b"), ("a", "c"), ("b", "c", "e")]:
        store.put(namespace, "k", {})
    store.get(("only", "read"), "k")
    store.delete(("a", "c"), "k")
    assert store.list_namespaces() == [("a", "b"), ("b", "c", "d"), ("b", "c", "e")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("b", "c")]
    assert store.list_namespaces(prefix=("b", "*", "e")) == [("b", "c", "e")]
    assert store.list_namespaces(prefix=["b"], suffix=("*", "d")) == [("b", "c", "d")]
    assert store.list_namespaces(limit=1, offset=1) == [("b", "c", "d")]
    with pytest.raises(ValueError, match="match type"):
        store.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])


LABEL = st.text(min_size=1).filter(lambda text: "." not in text and "\0" not in text)


@settings(max_examples=40)
@given(st.lists(st.one_of(LABEL, st.sampled_from(["~", "~20;", " ", "a" * 499, "b" * 500, "é" * 1200, "\ud800"]))))
def test_every_namespace_has_a_scope_of_its_own(labels):
    names, namespace = Namespaces(Scope(agent="cook")), tuple(labels)
    scope = names.scope(namespace)
    assert Scope(**scope.pairs) == scope
    assert names.namespace(scope) == namespace
    assert names.keys(namespace).items() <= scope.pairs.items()
    assert names.namespace(Scope(agent="cook", user="anna")) is None


ODD_KEYS = ["", " ", "~", "~6b;", "a/b#c@d=e", "x" * 5000, "line\nbreak", "\0", "\ud800", "日本", id_of("")]


def test_any_key_may_be_used(store):
    for number, key in enumerate(ODD_KEYS):
        store.put(NS, key, {"n": number})
    assert [store.get(NS, key).value["n"] for key in ODD_KEYS] == list(range(len(ODD_KEYS)))
    assert keys(store.search(NS, limit=100)) == ODD_KEYS
    store.delete(NS, "\ud800")
    assert store.get(NS, "\ud800") is None


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    when: datetime


def test_values_become_what_json_has_for_them(store):
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    store.put(NS, "a", {"tuple": (1, 2), "id": UUID(int=7), "colour": Colour.RED, "point": Point(1, moment)})
    assert store.get(NS, "a").value == {
        "tuple": [1, 2],
        "id": "00000000-0000-0000-0000-000000000007",
        "colour": "red",
        "point": {"x": 1, "when": "2026-05-01T00:00:00+00:00"},
    }


@pytest.mark.parametrize(
    "value", [{}, {"": ""}, {"a.b": {"": [[]]}}, {"n": 10**40}, {"é": "🙂" * 20_000}, {"t": "a\0b"}]
)
def test_all_that_json_can_say_is_kept_exactly(store, value):
    store.put(NS, "a", value)
    assert store.get(NS, "a").value == value


LOOP: dict[str, object] = {}
LOOP["loop"] = LOOP


@pytest.mark.parametrize(
    "value",
    [
        {"n": float("nan")},
        {"n": [float("inf")]},
        {"t": "\ud800"},
        {"a": {(1,): 2}},
        {1: 2, "1": 3},
        {"o": object()},
        {"b": b"x"},
        LOOP,
        "text",
    ],
)
def test_what_json_cannot_say_is_refused(store, value):
    with pytest.raises(InputError, match="value"):
        store.batch([PutOp(NS, "b", {}), PutOp(NS, "a", value)])
    assert store.search(()) == []


def test_errors_of_namespaces_are_langgraphs_own(store):
    for namespace in [(), ("a.b",), ("",), ("langgraph",), ("a", 1), ("a\0",)]:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
    store.batch([PutOp(("langgraph",), "k", {}), PutOp((), "k", {"n": 1})])
    assert (store.list_namespaces(), store.get((), "k").value) == ([(), ("langgraph",)], {"n": 1})


def test_filters_look_into_values(store):
    store.put(NS, "a", {"color": "red", "size": 3, "tags": ["x"], "deep": {"b": {"c": 1}}, "my key": 1, "on": True})
    store.put(NS, "b", {"color": "blue", "size": 4, "tags": ["x", "y"], "deep": {"b": {"c": 2}}})
    for wanted, found in [
        ({"color": "red"}, ["a"]),
        ({"color": {"$ne": "red"}}, ["b"]),
        ({"size": {"$gte": 3, "$lt": 4}}, ["a"]),
        ({"size": 3.0}, ["a"]),
        ({"size": {"$eq": 4}}, ["b"]),
        ({"tags": ["x"]}, ["a"]),
        ({"deep": {"b": {"c": 2}}}, ["b"]),
        ({"deep.b.c": 2}, ["b"]),
        ({"deep.b.c.d": None}, ["a", "b"]),
        ({"my key": 1, "on": 1}, ["a"]),
        ({"my key": None}, ["b"]),
        ({"color": "red' OR '1'='1"}, []),
        ({}, ["a", "b"]),
    ]:
        assert keys(store.search(NS, filter=wanted)) == found, wanted
        assert sorted(keys(store.search(NS, filter=wanted, query="red"))) == found, wanted
    for wanted in ({"color": {"$gt": 1}}, {"tags": {"$lt": 1}}, {"size": {"$gt": float("nan")}}):
        assert keys(store.search(NS, filter=wanted)) == [], wanted


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"filter": {"size": {"$in": [3]}}}, "Unsupported operator"),
        ({"filter": "red"}, "filter must be a mapping"),
        ({"offset": -1}, "offset is -1"),
        ({"limit": "5"}, "limit is '5'"),
    ],
)
def test_a_search_that_cannot_be_answered_is_refused(store, options, wrong):
    with pytest.raises(InputError, match=wrong):
        store.search(NS, **options)


def test_without_an_index_recall_ranks_and_the_rest_follows(store):
    store.put(NS, "rain", {"text": "It rained all day."})
    store.put(NS, "tea", {"text": "Anna likes green tea."})
    store.put(NS, "more", {"text": "A cup of green tea, please."}, index=False)
    first, second, third = store.search(NS, query="green tea")
    assert {first.key, second.key} == {"tea", "more"}
    assert 1 >= first.score >= second.score > 0
    assert (third.key, third.score) == ("rain", None)


def test_a_new_process_finds_what_was_put(path):
    with EunoeStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(NS, "a", {"n": 1})
        before = store.get(NS, "a")
    with EunoeStore.from_conn_string(str(path)) as store:
        assert store.get(NS, "a") == before
        assert store.list_namespaces() == [NS]


def test_a_store_without_a_memory_is_the_one_of_the_command_line(monkeypatch, path):
    monkeypatch.setenv("EUNOE_STORE", str(path))
    store = EunoeStore()
    store.put(NS, "a", {"n": 1})
    with eunoe.open(path) as memory:
        assert EunoeStore(memory).get(NS, "a").value == {"n": 1}
    store.memory.close()


ROOT = Scope(agent="cook")
SCOPE = Namespaces(ROOT).scope(NS)
OVER = -1.0


def opened(memory, **ttl):
    return EunoeStore(memory, scope=ROOT, ttl=ttl or None)


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


def test_processes_see_each_others_items_at_once(path, start):
    with EunoeStore.from_conn_string(str(path), embedder="none") as store:
        child = start("share_items", path)
        store.put(("shared", "parent"), "a", {"n": 1})
        assert child.ask("one") == {"found": [["shared", "parent", "a", {"n": 1}]]}
        assert store.get(("shared", "child"), "told").value == {"line": "one"}
        assert store.list_namespaces() == [("shared", "child"), ("shared", "parent")]
        store.delete(("shared", "parent"), "a")
        assert child.ask("two") == {"found": [["shared", "child", "told", {"line": "one"}]]}
        assert [item.value for item in store.search(())] == [{"line": "two"}]
