"""The index of a store: what is embedded, by what, and how near a question is to it."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp, SearchOp

import eunoe
from eunoe.errors import InputError, ModelMismatchError
from eunoe.hosts.langgraph import AsyncEunoeStore, EunoeStore

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


def test_without_fields_the_whole_value_is_embedded():
    compass = Compass()
    index = {"dims": 3, "embed": compass}
    with EunoeStore.from_conn_string(":memory:", index=index) as store:
        store.batch([PutOp(NS, key, {"b": 1, "a": "é"}) for key in "xy"])
        assert compass.texts == ['{"a": "é", "b": 1}']
        assert (store.index_config["embed"], store.embeddings) == (compass, compass)


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
    for given in (embed, lambda texts: embed(texts)):
        with opened(given=given) as store:
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


def test_queries_of_a_batch_are_embedded_together_and_awaited_ones_too():
    async def search():
        async with AsyncEunoeStore.from_conn_string(":memory:", index={"dims": 3, "embed": aembed}) as store:
            await store.aput(NS, "a", {"text": "east"})
            found = await store.abatch([SearchOp(NS, query="east"), SearchOp(NS, query="west"), SearchOp(NS)])
            return [scores(items) for items in found]

    assert asyncio.run(search()) == [[("a", 0.0)], [("a", 0.0)], [("a", None)]]
