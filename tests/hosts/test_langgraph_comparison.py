"""The same operations on LangGraph's own stores and on ours, result by result."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp, get_text_at_path
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from eunoe.hosts.langgraph import EunoeStore

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


def embed(texts):
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
    index = {"dims": 12, "embed": embed}
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


TEXT_FILTER = st.one_of(NONE, st.builds(lambda word: {"text": word}, WORD))
WORDS_ONLY = st.builds(SearchOp, PREFIX, TEXT_FILTER, st.just(50), st.just(0), NONE, st.just(False))


@settings(max_examples=12)
@given(batches(PUT, PUT, DELETE, GET, WORDS_ONLY, LIST))
def test_without_an_index_the_same_is_there_as_in_sqlite(operations):
    with sqlite_store(":memory:") as reference, EunoeStore.from_conn_string(":memory:", embedder="none") as store:
        for ops in operations:
            expected = [plain(answer, ordered=False) for answer in reference.batch(ops)]
            assert [plain(answer, ordered=False) for answer in store.batch(ops)] == expected


ALL_QUERIES = st.builds(SearchOp, PREFIX, st.none(), st.just(50), st.just(0), WORD.filter(bool), st.just(False))


@settings(max_examples=12)
@given(batches(PUT, PUT, DELETE, ALL_QUERIES))
def test_with_an_index_the_same_is_found_as_in_sqlite(operations):
    index = {"dims": 12, "embed": embed}
    with sqlite_store(":memory:", index) as reference, EunoeStore.from_conn_string(":memory:", index=index) as store:
        for ops in operations:
            found, expected = store.batch(ops), reference.batch(ops)
            assert [plain(answer, ordered=False) for answer in found] == [
                plain(answer, ordered=False) for answer in expected
            ]
            scores = [item.score for answer in expected for item in answer or ()]
            assert [item.score for answer in found for item in answer or ()] == pytest.approx(scores, abs=1e-5)
