"""The index: what is embedded, how near a question is, and the same answers as LangGraph's own stores give."""

from __future__ import annotations

import asyncio
import hashlib
import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp, get_text_at_path
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

import eunoe
from eunoe.errors import InputError, ModelMismatchError
from eunoe.hosts.langgraph import EunoeStore

NS = ("docs",)
DIRECTIONS = {
    "east": [1.0, 0.0, 0.0],
    "north": [0.0, 2.0, 0.0],
    "west": [-3.0, 0.0, 0.0],
    "north-east": [1.0, 1.0, 0.0],
}


class Compass(Embeddings):
    """Directions have their own vectors, all else has none."""

    def __init__(self):
        self.texts = []

    def embed_documents(self, texts):
        self.texts += texts
        return [DIRECTIONS.get(text, [0.0, 0.0, 0.0]) for text in texts]

    def embed_query(self, text):
        return DIRECTIONS.get(text, [0.0, 0.0, 0.0])


def embed(texts):
    return Compass().embed_documents(texts)


async def aembed(texts):
    await asyncio.sleep(0)
    return embed(texts)


def opened(fields=("text",), given=None, **options):
    index = {"dims": 3, "embed": given or Compass(), "fields": list(fields)}
    return EunoeStore.from_conn_string(":memory:", index=index, **options)


def scores(items):
    return [(item.key, item.score if item.score is None else round(item.score, 2)) for item in items]


def test_scores_are_cosines_negative_ones_too():
    with opened() as store:
        for text in ("west", "north", "north-east", "east", "nowhere"):
            store.put(NS, text, {"text": text})
        store.put(NS, "unseen", {"text": "east"}, index=False)
        store.put(NS, "empty", {"other": "east"})
        assert scores(store.search(NS, query="east")) == [
            ("east", 1.0),
            ("north-east", round(math.sqrt(0.5), 2)),
            ("north", 0.0),
            ("nowhere", 0.0),
            ("west", -1.0),
            ("unseen", None),
            ("empty", None),
        ]
        assert scores(store.search(NS, query="east", limit=2, offset=4)) == [("west", -1.0), ("unseen", None)]


def test_cosines_are_told_to_five_digits():
    make = np.random.default_rng(7)
    rows = {
        str(number): row for number, row in enumerate(make.normal(size=(60, 200)) * 10.0 ** make.integers(-6, 6, 200))
    }
    index = {"dims": 200, "embed": lambda texts: [rows[text].tolist() for text in texts], "fields": ["text"]}
    with EunoeStore.from_conn_string(":memory:", index=index) as store:
        store.batch([PutOp(NS, key, {"text": key}) for key in rows])
        units = {key: row / np.linalg.norm(row) for key, row in rows.items()}
        for query in list(rows)[:10]:
            expected = {key: float(unit @ units[query]) for key, unit in units.items()}
            found = store.search(NS, query=query, limit=100)
            assert {item.key: item.score for item in found} == pytest.approx(expected, abs=1e-5)
            assert [item.key for item in found] == sorted(expected, key=expected.__getitem__, reverse=True)


def test_an_item_is_as_near_as_the_nearest_of_its_fields():
    with opened(["title", "meta.tags[*]", "parts[-1].text"]) as store:
        store.put(NS, "a", {"title": "west", "meta": {"tags": ["north", "east"]}})
        store.put(NS, "b", {"title": "north", "parts": [{"text": "east"}, {"text": "west"}]})
        assert scores(store.search(NS, query="east")) == [("a", 1.0), ("b", 0.0)]
        assert scores(store.search(NS, query="west")) == [("a", 1.0), ("b", 1.0)]


def test_each_put_may_say_what_is_embedded():
    compass = Compass()
    with opened(["text"], compass) as store:
        store.put(NS, "a", {"text": "east", "other": "west"}, index=["other"])
        store.put(NS, "b", {"text": "east", "other": "west"}, index=False)
        assert compass.texts == ["west"]
        assert scores(store.search(NS, query="east")) == [("a", -1.0), ("b", None)]
        store.put(NS, "a", {"text": "east"}, index=False)
        assert scores(store.search(NS, query="west")) == [("a", None), ("b", None)]
        store.memory.flush()
        assert compass.texts == ["west"]


def test_filters_apply_before_the_limit():
    with opened() as store:
        for number in range(40):
            store.put(
                NS, str(number), {"text": "east" if number < 38 else "west", "n": number, "even": number % 2 == 0}
            )
        assert scores(store.search(NS, query="east", filter={"n": 39}, limit=1)) == [("39", -1.0)]
        assert scores(store.search(NS, query="east", filter={"n": {"$gt": 36}}, limit=5)) == [
            ("37", 1.0),
            ("38", -1.0),
            ("39", -1.0),
        ]
        assert [item.key for item in store.search(NS, query="east", filter={"even": True}, limit=3)] == ["0", "2", "4"]


def test_a_function_an_async_one_and_a_lambda_may_embed():
    for function in (embed, lambda texts: embed(texts)):
        with opened(given=function) as store:
            store.put(NS, "a", {"text": "east"})
            assert scores(store.search(NS, query="north-east")) == [("a", 0.71)]
            assert scores(asyncio.run(store.asearch(NS, query="north-east"))) == [("a", 0.71)]
    with opened(given=aembed) as store:
        asyncio.run(store.aput(NS, "a", {"text": "east"}))
        assert scores(asyncio.run(store.asearch(NS, query="east"))) == [("a", 1.0)]
        with pytest.raises(ValueError, match="async"):
            store.put(NS, "b", {"text": "east"})
        assert store.get(NS, "b") is None


def test_a_failing_embedder_fails_the_put_and_nothing_is_stored():
    def fail(texts):
        raise ConnectionError("no network")

    with opened(given=fail) as store:
        with pytest.raises(ConnectionError):
            store.put(NS, "a", {"text": "east"})
        store.put(NS, "b", {"text": "east"}, index=False)
        assert [item.key for item in store.search(NS)] == ["b"]
        with pytest.raises(ConnectionError):
            store.search(NS, query="east")


def test_vectors_are_found_again_by_a_new_process(path):
    index = {"dims": 3, "embed": embed, "fields": ["text"]}
    with EunoeStore.from_conn_string(str(path), index=index) as store:
        store.put(NS, "a", {"text": "east"})
    with EunoeStore.from_conn_string(str(path), index=index) as store:
        assert scores(store.search(NS, query="east")) == [("a", 1.0)]
    with eunoe.open(path) as memory:
        assert scores(EunoeStore(memory, index=index).search(NS, query="north-east")) == [("a", 0.71)]
    with (
        pytest.raises(ModelMismatchError),
        EunoeStore.from_conn_string(str(path), index={"dims": 3, "embed": Compass()}),
    ):
        pass


def test_an_empty_memory_takes_over_the_embedder_of_an_index(memory):
    store = EunoeStore(memory, index={"dims": 3, "embed": embed, "fields": ["text"]})
    store.put(NS, "a", {"text": "west"})
    assert scores(store.search(NS, query="east")) == [("a", -1.0)]
    with pytest.raises(InputError, match="leave `embed` out"):
        EunoeStore(memory, index={"dims": 3, "embed": Compass()})


def test_an_index_without_an_embedder_uses_the_memorys_own(path):
    with eunoe.open(path, embedder=embed) as memory:
        memory.remember("agent=cook", "north")
        store = EunoeStore(memory, scope="agent=cook", index={"fields": ["text", "more"]})
        store.put(NS, "a", {"text": "west", "more": "north"})
        store.put(NS, "b", {"text": "north"}, index=False)
        assert scores(store.search(NS, query="north-east")) == [("a", 0.71), ("b", None)]
    with eunoe.open(":memory:", embedder="none") as memory, pytest.raises(InputError, match="name one"):
        EunoeStore(memory, index={"fields": ["text"]})


def test_a_distance_that_is_not_known_is_refused(memory):
    with pytest.raises(InputError, match="distance_type 'l2'"):
        EunoeStore(memory, index={"dims": 3, "embed": embed, "distance_type": "l2"})


pysqlite3 = pytest.importorskip("pysqlite3", reason="SqliteStore needs it; there are wheels for Linux alone")
NAMESPACE = st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("ab",), ("b", "x y")])
PREFIX = st.one_of(st.just(()), NAMESPACE)
KEY = st.sampled_from(["k", "l", "m", "k/1", "é"])
WORD = st.sampled_from(["tea", "green tea", "rain", "", "rain and tea", "Rome"])
SCALAR = st.one_of(WORD, st.integers(-3, 3), st.booleans(), st.none(), st.floats(-2, 2, width=16))
VALUE = st.dictionaries(
    st.sampled_from(["text", "n", "tags", "deep", "my key"]),
    st.one_of(SCALAR, st.lists(SCALAR, max_size=2), st.dictionaries(st.sampled_from("xy"), SCALAR, max_size=2)),
    max_size=3,
)
NONE = st.none()
PUT = st.builds(PutOp, NAMESPACE, KEY, VALUE, NONE, NONE)
INDEXED_PUT = st.builds(
    PutOp, NAMESPACE, KEY, VALUE, st.sampled_from([None, None, False, ["text"], ["tags[*]", "deep.x"]]), NONE
)
DELETE = st.builds(PutOp, NAMESPACE, KEY, NONE, NONE, NONE)
GET = st.builds(GetOp, NAMESPACE, KEY, st.just(False))
FILTER = st.one_of(
    st.none(),
    st.builds(lambda value: {"text": value}, SCALAR),
    st.builds(lambda value: {"n": {"$ne": value}}, SCALAR),
    st.builds(lambda value: {"tags": value}, st.lists(SCALAR, max_size=2)),
    st.builds(lambda value: {"deep": {"x": value}}, SCALAR),
    st.builds(lambda value: {"my key": {"$eq": value}, "n": 1}, SCALAR),
)
SEARCH = st.builds(SearchOp, PREFIX, FILTER, st.integers(1, 8), st.integers(0, 3), NONE, st.just(False))
QUERY = st.builds(SearchOp, PREFIX, FILTER, st.integers(1, 30), st.just(0), WORD.filter(bool), st.just(False))
CONDITION = st.builds(
    MatchCondition, st.sampled_from(["prefix", "suffix"]), st.one_of(NAMESPACE, st.just(("*", "b")), st.just(("*",)))
)
LIST = st.builds(
    ListNamespacesOp,
    st.lists(CONDITION, max_size=2).map(tuple),
    st.one_of(st.none(), st.integers(1, 2)),
    st.integers(1, 6),
    st.integers(0, 2),
)


def batches(*operations):
    return st.lists(st.lists(st.one_of(*operations), min_size=1, max_size=4), min_size=1, max_size=12)


def answers_of_memory(store, ops):
    """What InMemoryStore says, without three of its habits: a namespace that is only read comes into being, one that
    holds nothing is listed, and vectors of a value that was replaced are kept."""
    before = set(store._data)
    for op in ops:
        if isinstance(op, PutOp):
            store._vectors[op.namespace].pop(op.key, None)
    held = InMemoryStore()
    held._data.update({namespace: items for namespace, items in store._data.items() if items})
    listed = [held.batch([op])[0] if isinstance(op, ListNamespacesOp) else None for op in ops]
    answers = store.batch(ops)
    for namespace in set(store._data) - before:
        if not store._data[namespace]:
            del store._data[namespace]
    return [
        own if isinstance(op, ListNamespacesOp) else each for op, own, each in zip(ops, listed, answers, strict=True)
    ]


def plain(answer, ordered=True):
    """An answer without its times."""
    if isinstance(answer, list):
        rows = [each if isinstance(each, tuple) else (each.namespace, each.key, repr(each.value)) for each in answer]
        return rows if ordered else sorted(rows)
    return answer and (answer.namespace, answer.key, repr(answer.value))


def has_equal_texts(op):
    texts = [text for path in op.index or () for text in get_text_at_path(op.value, path)]
    return len(set(texts)) < len(texts)


def embed_anywhere(texts):
    """A vector for each text, in any direction."""
    digests = [hashlib.sha256(text.encode()).digest()[:12] for text in texts]
    return [[byte - 127.5 for byte in digest] for digest in digests]


@contextmanager
def sqlite_store(path, index=None):
    connection = pysqlite3.connect(path, isolation_level=None, check_same_thread=False)
    store = SqliteStore(connection, index=index)
    store.setup()
    yield store
    connection.close()


@settings(max_examples=30)
@given(batches(PUT, PUT, PUT, DELETE, GET, SEARCH, LIST))
def test_without_an_index_all_is_as_in_memory(operations):
    reference = InMemoryStore()
    with EunoeStore.from_conn_string(":memory:", embedder="none") as store:
        for ops in operations:
            expected = answers_of_memory(reference, ops)
            assert [plain(answer) for answer in store.batch(ops)] == [plain(answer) for answer in expected]


@settings(max_examples=25)
@given(batches(INDEXED_PUT, INDEXED_PUT, INDEXED_PUT, DELETE, QUERY, SEARCH))
def test_with_an_index_all_is_as_in_memory(operations):
    index = {"dims": 12, "embed": embed_anywhere}
    reference = InMemoryStore(index=index)
    with EunoeStore.from_conn_string(":memory:", index=index) as store:
        for op in [op for ops in operations for op in ops]:
            if isinstance(op, PutOp) and has_equal_texts(op):
                continue  # InMemoryStore cannot take it
            found, expected = store.batch([op]), answers_of_memory(reference, [op])
            assert [plain(answer) for answer in found] == [plain(answer) for answer in expected], op
            if isinstance(op, SearchOp):
                scores = [item.score for item in expected[0]]
                assert [item.score for item in found[0]] == pytest.approx(scores, abs=1e-5)


ALL_QUERIES = st.builds(SearchOp, PREFIX, st.none(), st.just(50), st.just(0), WORD.filter(bool), st.just(False))


@settings(max_examples=12)
@given(batches(PUT, PUT, DELETE, ALL_QUERIES))
def test_with_an_index_the_same_is_found_as_in_sqlite(operations):
    index = {"dims": 12, "embed": embed_anywhere}
    with sqlite_store(":memory:", index) as reference, EunoeStore.from_conn_string(":memory:", index=index) as store:
        for ops in operations:
            found, expected = store.batch(ops), reference.batch(ops)
            assert [plain(answer, ordered=False) for answer in found] == [
                plain(answer, ordered=False) for answer in expected
            ]
            scores = [item.score for answer in expected for item in answer or ()]
            assert [item.score for answer in found for item in answer or ()] == pytest.approx(scores, abs=1e-5)
