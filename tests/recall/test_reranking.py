"""The recipe `thorough`, or a time in its place: the blend finds, the reranker reads the best of it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import eunoe
from eunoe.embed import encoder as rerankers
from eunoe.embed import encoder as transformers
from eunoe.embed.encoder import FOLDER, CrossEncoder
from eunoe.errors import EmbedderError, InputError
from eunoe.hosts.memory_tool import tool
from eunoe.memory import Memory
from eunoe.model.arguments import CONTEXT_FORMATS
from eunoe.model.result import Hit
from eunoe.recall.recipes import MAX_BUDGET_MS, RECIPES, Blend, Recipe, RerankSettings

ANNA, BEN = {"user": "anna"}, {"user": "ben"}
TURNS = [
    {"speaker": "Ben", "content": "Where did the red kite land in the end?", "id": "asked", "session": "one"},
    {"speaker": "Anna", "content": "The red kite is in a tree.", "id": "tree", "session": "one"},
    {"speaker": "Anna", "content": "A red kite costs nine euros.", "id": "price", "session": "one"},
    {"speaker": "Ben", "content": "My red kite has a tail.", "id": "tail", "session": "two"},
    {"speaker": "Anna", "content": "We flew a red kite in May.", "id": "may", "session": "two"},
]
QUESTION = "What about the red kite?"


class Stub:
    """Reads what it is told to, and keeps what it was given."""

    name = "stub"

    def __init__(self, judge: Callable[[str], float] = lambda text: 0.0) -> None:
        self.judge = judge
        self.questions: list[str] = []
        self.texts: list[str] = []

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.questions.append(question)
        self.texts = list(texts)
        return np.array([self.judge(text) for text in texts], np.float32)


def has(word: str, score: float = 10.0) -> Callable[[str], float]:
    return lambda text: score if word in text.splitlines()[-1] else 0.0


def recipe(depth: int = 30, weight: float = 1.0, usual: float = 0.0) -> Recipe:
    return Recipe(
        name="tried",
        blend=RECIPES["default"].blend,
        lexical_blend=RECIPES["default"].lexical_blend,
        rerank=RerankSettings(depth=depth, weight=weight, baseline=usual),
    )


def reading(memory: Memory, model: Stub) -> Stub:
    memory._engine.reranker.model = model
    return model


@pytest.fixture
def told(memory: Memory) -> Memory:
    memory.observe(ANNA, TURNS)
    return memory


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def odds(score: float) -> float:
    return log(score / (1 - score))


class TestOrder:
    def test_what_reads_well_comes_first(self, told: Memory) -> None:
        reading(told, Stub(has("tail", 40.0)))
        hits = told.recall(ANNA, QUESTION, recipe=recipe())
        assert hits[0].id == "tail"
        assert sorted(ids(hits)) == sorted(ids(told.recall(ANNA, QUESTION)))

    def test_both_stages_count(self, told: Memory) -> None:
        plain = {hit.id: hit.score for hit in told.recall(ANNA, QUESTION)}
        reading(told, Stub(has("tail", 3.0)))
        read = {hit.id: hit.score for hit in told.recall(ANNA, QUESTION, recipe=recipe(weight=0.5, usual=1.0))}
        for id, score in read.items():
            assert odds(score) - odds(plain[id]) == pytest.approx(0.5 * (2.0 if id == "tail" else -1.0))

    def test_what_is_not_read_follows_in_its_order_with_scores_that_fall(self, told: Memory) -> None:
        plain = ids(told.recall(ANNA, QUESTION))
        model = reading(told, Stub(lambda text: -20.0))
        hits = told.recall(ANNA, QUESTION, recipe=recipe(depth=2))
        assert len(model.texts) == 2
        assert ids(hits) == plain
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)

    def test_several_scopes_are_read_together(self, told: Memory) -> None:
        told.remember(BEN, "Ben has a red kite of silk.", id="silk")
        model = reading(told, Stub(has("silk")))
        hits = told.recall([ANNA, BEN], QUESTION, recipe=recipe())
        assert (hits[0].id, hits[0].scope) == ("silk", eunoe.Scope(user="ben"))
        assert len(model.questions) == 1
        assert len(model.texts) == len(hits) == 6

    def test_a_quote_is_still_folded(self, told: Memory) -> None:
        told.remember(ANNA, "Anna: The red kite is in a tree.", id="quote", source=["tree"])
        reading(told, Stub(has("tree")))
        hits = ids(told.recall(ANNA, QUESTION, recipe=recipe()))
        assert hits[0] == "tree"
        assert "quote" not in hits

    def test_nothing_found_is_nothing_to_read(self, told: Memory) -> None:
        model = reading(told, Stub())
        assert told.recall(ANNA, "Zebra?", recipe=recipe()) == []
        assert told.recall({"user": "nobody"}, QUESTION, recipe=recipe()) == []
        assert model.questions == []


class TestPassages:
    def test_a_turn_is_read_with_who_speaks_and_the_end_of_the_turn_before(self, memory: Memory) -> None:
        long = " ".join(f"w{number}" for number in range(40))
        memory.observe(ANNA, [{"speaker": "Ben", "content": long}, {"speaker": "Anna", "content": "A red kite."}])
        model = reading(memory, Stub())
        memory.recall(ANNA, QUESTION, recipe=recipe(), limit=1)
        expected = f"Ben: {' '.join(f'w{number}' for number in range(28, 40))}\nAnna: A red kite."
        assert expected in model.texts
        assert model.questions == [QUESTION]

    def test_without_a_name_the_role_speaks_and_a_caption_is_read_too(self, memory: Memory) -> None:
        turn = {"role": "assistant", "content": "Look, a red kite.", "caption": "a photo of the sky"}
        memory.observe(ANNA, [turn])
        model = reading(memory, Stub())
        memory.recall(ANNA, QUESTION, recipe=recipe())
        assert model.texts == ["Assistant: Look, a red kite.\na photo of the sky"]

    def test_what_is_filtered_out_is_not_read_with_its_neighbour(self, told: Memory) -> None:
        model = reading(told, Stub())
        hits = told.recall(ANNA, QUESTION, recipe=recipe(), speakers=["Anna"])
        assert sorted(ids(hits)) == ["may", "price", "tree"]
        assert "Anna: The red kite is in a tree." in model.texts
        assert not any("Ben" in text for text in model.texts)


class TestReasons:
    def test_a_hit_says_what_reading_gave(self, told: Memory) -> None:
        reading(told, Stub(has("tail", 40.0)))
        hits = told.recall(ANNA, QUESTION, recipe=recipe())
        assert hits[0].reasons[0].name == "rerank"
        assert sum(reason.share for reason in hits[0].reasons) == pytest.approx(1, abs=0.11)
        assert all(reason.name != "rerank" for hit in hits[1:] for reason in hit.reasons)

    def test_what_reading_took_is_no_reason(self, told: Memory) -> None:
        plain = {hit.id: hit.reasons for hit in told.recall(ANNA, QUESTION)}
        reading(told, Stub(lambda text: -2.0))
        assert {hit.id: hit.reasons for hit in told.recall(ANNA, QUESTION, recipe=recipe())} == plain


class Broken(Stub):
    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        raise RuntimeError(f"cannot read {texts[0]}")


class TestFailure:
    def test_recall_goes_on_and_status_says_why_without_a_word_of_what_was_read(self, told: Memory) -> None:
        plain = told.recall(ANNA, QUESTION)
        reading(told, Broken())
        assert told.recall(ANNA, QUESTION, recipe=recipe()) == plain
        assert told.status().reranker_error == "stub failed: RuntimeError"

    def test_numbers_that_are_none_are_not_used(self, told: Memory) -> None:
        plain = told.recall(ANNA, QUESTION)
        reading(told, Stub(lambda text: float("nan")))
        assert told.recall(ANNA, QUESTION, recipe=recipe()) == plain
        assert "gave something else" in told.status().reranker_error

    @pytest.mark.parametrize(("huge", "place"), [(1e30, 0), (-1e30, -1)])
    def test_numbers_of_any_size_are_used(self, told: Memory, huge: float, place: int) -> None:
        model = reading(told, Stub(has("tail", huge)))
        assert told.recall(ANNA, QUESTION, recipe=recipe())[place].id == "tail"
        model.judge = lambda text: huge
        hits = told.recall(ANNA, QUESTION, recipe=recipe(depth=3))
        assert sorted(ids(hits)) == sorted(ids(told.recall(ANNA, QUESTION)))
        assert all(0 <= hit.score <= 1 for hit in hits)
        assert told.status().reranker_error == ""

    @pytest.mark.parametrize("content", [None, b"", b"\0" * 64])
    def test_a_missing_or_broken_file_costs_only_the_second_stage(
        self, content: bytes | None, told: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if content is not None:
            (tmp_path / "reranker.onnx").write_bytes(content)
        monkeypatch.setattr(rerankers, "FOLDER", tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        assert told.recall(ANNA, QUESTION, recipe="thorough") == told.recall(ANNA, QUESTION)
        error = told.status().reranker_error
        assert "eunoe-reranker-2 cannot be loaded" in error
        assert "pip install" in error


class TestContext:
    @pytest.fixture
    def talk(self, told: Memory) -> Memory:
        """The turns are old enough to be recalled, and a fact always stands there."""
        told.observe(ANNA, ["Hm.", "Ah.", "Oh.", "Ok."])
        told.remember(ANNA, "Anna is a vet.")
        return told

    def test_what_reads_well_comes_first_in_every_format(self, talk: Memory) -> None:
        reading(talk, Stub(has("tail", 40.0)))
        for format in CONTEXT_FORMATS:
            plain = talk.context(ANNA, QUESTION, format=format, tokens=2000)
            read = talk.context(ANNA, QUESTION, format=format, tokens=2000, recipe=recipe())
            assert plain.hits[0].id != "tail"
            assert read.hits[0].id == "tail"
            assert sorted(ids(read.hits)) == sorted(ids(plain.hits))
            assert (read.query, read.static, read.faults) == (plain.query, plain.static, ())
            assert read.text.index("has a tail") < plain.text.index("has a tail")

    def test_it_is_read_once_and_by_what_is_looked_up(self, talk: Memory) -> None:
        model = reading(talk, Stub())
        asked = talk.context(ANNA, "And the red kite?", recipe=recipe()).query
        assert model.questions == [asked]
        talk.context(ANNA, QUESTION)
        talk.context(ANNA, recipe=recipe())
        talk.context(ANNA, QUESTION, recall="off", recipe=recipe())
        assert model.questions == [asked]

    def test_what_reads_badly_does_not_bear_on_the_message(self, talk: Memory) -> None:
        reading(talk, Stub(has("tail", 40.0)))
        assert ids(talk.context(ANNA, QUESTION, recipe=recipe(usual=20.0)).hits) == ["tail"]
        assert ids(talk.look_up(ANNA, QUESTION, recipe=recipe(usual=20.0))) == ["tail"]

    def test_the_tool_reads_as_its_host_says(self, talk: Memory) -> None:
        model = reading(talk, Stub(has("tail", 40.0)))
        asked = {"query": [QUESTION, "kite"], "match_count": 1}
        assert "has a tail" not in tool(talk, ANNA).call(asked)
        assert model.questions == []
        search = tool(talk, ANNA, recipe="thorough")
        assert "has a tail" in search.call(asked)
        assert model.questions == [QUESTION, "kite"]
        assert "no argument recipe" in search.call({**asked, "recipe": "default"})
        with pytest.raises(InputError, match="there is no recipe 'best': choose one of default, thorough"):
            tool(talk, ANNA, recipe="best")

    def test_without_its_second_stage_it_is_the_default_and_says_so(
        self, talk: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        plain = talk.context(ANNA, QUESTION, now="2024-05-07")
        reading(talk, Broken())
        with caplog.at_level(logging.DEBUG, "eunoe"):
            read = talk.context(ANNA, QUESTION, recipe=recipe(), now="2024-05-07")
        assert (read.text, ids(read.hits)) == (plain.text, ids(plain.hits))
        assert read.faults == ("rerank: EmbedderError",)
        status = talk.status()
        assert status.faults == {"rerank": 1}
        assert status.reranker_error == "stub failed: RuntimeError"
        assert "kite" not in caplog.text
        assert ids(talk.look_up(ANNA, QUESTION, recipe=recipe())) == ids(talk.look_up(ANNA, QUESTION))
        reading(talk, Stub(has("tail", 40.0)))
        assert talk.context(ANNA, QUESTION, recipe=recipe()).faults == ()
        assert talk.status().reranker_error == ""

    def test_floors_are_lower_only_for_what_was_read(self, talk: Memory) -> None:
        question, even = "Where is the red kite?", Blend(term=1.0)
        best = talk.recall(ANNA, question, recipe=replace(recipe(depth=0), lexical_blend=even))[0].score
        low = replace(recipe(), lexical_blend=replace(even, bias=odds(0.07) - odds(best)))
        reading(talk, Stub())
        assert talk.context(ANNA, question, recipe=low).hits[0].score == pytest.approx(0.07)
        assert talk.look_up(ANNA, question, recipe=low)[0].score == pytest.approx(0.07)
        reading(talk, Broken())
        assert talk.context(ANNA, question, recipe=low).hits == ()
        assert talk.look_up(ANNA, question, recipe=low) == []


class TestReranker:
    @pytest.fixture
    def talk(self) -> Iterator[Memory]:
        with eunoe.open(":memory:", embedder="none") as memory:
            memory.observe(ANNA, TURNS)
            yield memory

    def test_a_question_it_cannot_read_leaves_the_order_alone(self) -> None:
        assert len(set(CrossEncoder().scores("😭", ["The kite is red.", "It rains."]).tolist())) == 1

    def test_what_answers_scores_above_what_does_not(self) -> None:
        texts = [
            "Ben: What should I cook?\nAnna: Anything but fish, I get a rash from it.",
            "Anna: The fish shop closes at six.",
            "Anna: It rained all day.",
        ]
        answer, *others = CrossEncoder().scores("Which food is Anna allergic to?", texts)
        assert answer > max(others) + 3

    def test_its_words_and_first_layers_are_those_of_the_encoder_beside_it(self) -> None:
        onnx = pytest.importorskip("onnx", reason="reads the files")
        own, other = (
            {tensor.name: tensor for tensor in onnx.load(FOLDER / name, load_external_data=False).graph.initializer}
            for name in ("reranker.onnx", "encoder.onnx")
        )
        shared = {name: tensor for name, tensor in own.items() if tensor.external_data}
        assert shared.keys() >= {"words", "words.scale", *(f"encoder.layer.{n}.output.dense.weight" for n in range(3))}
        data = (FOLDER / "encoder.onnx").read_bytes()
        for name, tensor in shared.items():
            place = {entry.key: entry.value for entry in tensor.external_data}
            start, length = int(place["offset"]), int(place["length"])
            assert place["location"] == "encoder.onnx"
            assert data[start : start + length] == other[name].raw_data

    @pytest.mark.parametrize("place", [20_000, -1])
    def test_beside_another_encoder_it_is_not_used(
        self, place: int, talk: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its file alone would not tell: the words of any table of that size would do."""
        for name in ("reranker.onnx", "tokenizer.json"):
            shutil.copy(FOLDER / name, tmp_path)
        other = bytearray((FOLDER / "encoder.onnx").read_bytes())
        other[place] ^= 1
        (tmp_path / "encoder.onnx").write_bytes(other)
        monkeypatch.setattr(rerankers, "FOLDER", tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        with pytest.raises(EmbedderError, match=r"encoder\.onnx is not the file .*pip install --force-reinstall eunoe"):
            CrossEncoder().scores(QUESTION, ["A red kite."])
        assert talk.recall(ANNA, QUESTION, recipe="thorough") == talk.recall(ANNA, QUESTION)
        assert "encoder.onnx is not the file" in talk.status().reranker_error
        shutil.copy(FOLDER / "encoder.onnx", tmp_path)
        assert talk.recall(ANNA, QUESTION, recipe="thorough") != talk.recall(ANNA, QUESTION)
        assert talk.status().reranker_error == ""

    def test_a_score_depends_neither_on_company_nor_on_threads(self) -> None:
        texts = [f"Anna: {'word ' * number}kite" for number in range(40)]
        together = CrossEncoder(threads=4).scores(QUESTION, texts)
        assert np.array_equal(together, CrossEncoder(threads=1).scores(QUESTION, texts))
        assert np.array_equal(together, np.concatenate([CrossEncoder().scores(QUESTION, [text]) for text in texts]))

    def test_odd_and_long_texts_get_a_number(self) -> None:
        texts = ["", " ", "\ud800", "\0", "[SEP] [CLS]", "x" * 100_000, "word " * 20_000]
        assert np.isfinite(CrossEncoder().scores("word " * 5_000, texts)).all()
        assert np.isfinite(CrossEncoder().scores("", texts)).all()
        assert CrossEncoder().scores(QUESTION, []).shape == (0,)

    def test_the_recipe_reads(self, talk: Memory) -> None:
        hits = talk.recall(ANNA, "Where did the red kite land?", recipe="thorough")
        assert hits[0].id == "tree"
        assert talk.status().reranker_error == ""
        assert hits == talk.recall(ANNA, "Where did the red kite land?", recipe="thorough")

    def test_other_recipes_do_not_load_it(self, talk: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transformers, "_loaded", {})
        for name in set(RECIPES) - {"thorough"}:
            talk.recall(ANNA, QUESTION, recipe=name)
        assert transformers._loaded == {}


ANNA = {"user": "anna"}
COUNT = 20


class Reader:
    """Reads each text in so many seconds of a clock that only it moves."""

    name = "reader"

    def __init__(self, seconds: float, judge: Callable[[str], float] = lambda text: 0.0, loading: float = 0.0) -> None:
        self.seconds, self.judge, self.loading = seconds, judge, loading
        self.now = 0.0
        self.texts: list[str] = []

    def clock(self) -> float:
        return self.now

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        self.now += self.loading + self.seconds * len(texts)
        self.loading = 0.0
        self.texts += texts
        return np.array([self.judge(text) for text in texts], np.float32)


def timed(memory: Memory, reader: Reader) -> Reader:
    memory._engine.reranker.model = reader
    memory._engine.reranker._clock = reader.clock
    return reader


@pytest.fixture
def kites(memory: Memory) -> Memory:
    turns = [f"The red kite number {number} flew {'very ' * (number % 7)}high." for number in range(COUNT)]
    memory.observe(ANNA, [{"content": text, "id": f"k{number}"} for number, text in enumerate(turns)])
    return memory


def kite_ids(memory: Memory, recipe: Any, limit: int = COUNT) -> list[str]:
    return [hit.id for hit in memory.recall(ANNA, QUESTION, limit=limit, recipe=recipe)]


def test_time_enough_gives_what_thorough_gives(kites: Memory) -> None:
    timed(kites, Reader(0.001, lambda text: float(len(text) % 5)))
    hits = kites.recall(ANNA, QUESTION, limit=COUNT, recipe=MAX_BUDGET_MS)
    assert [hit.id for hit in hits] == kite_ids(kites, "thorough")
    assert hits.notes == kites.recall(ANNA, QUESTION, recipe="thorough").notes


def test_the_best_are_read_first_and_no_longer_than_the_budget(kites: Memory) -> None:
    reader = timed(kites, Reader(0.010))
    for budget in (100, 60, 150, 100):
        began, reader.texts = reader.now, []
        hits = kites.recall(ANNA, QUESTION, limit=COUNT, recipe=budget)
        read = len(reader.texts)
        assert 2 <= read < COUNT
        assert reader.now - began <= 1.5 * budget / 1000
        assert f"read by the reranker within {budget} ms: {read} of the {COUNT} best" in hits.notes
        first = [hit.text for hit in kites.recall(ANNA, QUESTION, limit=read)]
        assert [text.splitlines()[-1].removeprefix("User: ") for text in reader.texts] == first


def test_too_little_time_is_the_default(kites: Memory) -> None:
    reader = timed(kites, Reader(5.0))
    kite_ids(kites, 9)  # now it knows how slow it is
    reader.texts = []
    hits = kites.recall(ANNA, QUESTION, limit=COUNT, recipe=1)
    assert reader.texts == []
    plain = kites.recall(ANNA, QUESTION, limit=COUNT)
    assert [(hit.id, hit.score) for hit in hits] == [(hit.id, hit.score) for hit in plain]
    assert f"read by the reranker within 1 ms: 0 of the {COUNT} best" in hits.notes


def test_a_slow_moment_is_forgotten(kites: Memory) -> None:
    reader = timed(kites, Reader(0.001))
    kite_ids(kites, 200)
    reader.seconds = 10.0
    kite_ids(kites, 200)
    reader.seconds, reader.texts = 0.001, []
    for _ in range(60):
        kite_ids(kites, 20)
    reader.texts = []
    kite_ids(kites, 20)
    assert len(reader.texts) >= 5


def test_what_was_not_read_stands_above_what_reads_badly_and_below_what_reads_well(kites: Memory) -> None:
    plain = kite_ids(kites, "default")
    bad, good = kites.get(ANNA, plain[0]).text, kites.get(ANNA, plain[2]).text

    def judge(text: str) -> float:
        return -40.0 if bad in text else 40.0 if good in text else RECIPES["thorough"].rerank.baseline

    reader = timed(kites, Reader(0.010, judge))
    order = kite_ids(kites, 80)
    read = len(reader.texts)
    assert 3 <= read < COUNT
    assert order[0] == plain[2]
    assert order.index(plain[0]) > order.index(plain[read])
    unread = [id for id in order if id in plain[read:]]
    assert unread == plain[read:]


def test_a_lookup_for_several_questions_has_one_budget(kites: Memory) -> None:
    reader = timed(kites, Reader(0.010))
    kite_ids(kites, 100)
    began = reader.now
    kites.look_up(
        {"session": "s", **ANNA},
        ["the red kite", "kites that are red", "red"],
        limit=COUNT,
        recipe=150,
    )
    assert 0 < reader.now - began <= 0.2


@pytest.mark.parametrize(
    "wrong", [0, -1, nan, inf, -inf, 1.5, 100.0, True, False, "100", "", b"9", None, [5], 60_001, 10**30]
)
def test_what_is_no_time_is_refused(memory: Memory, wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: memory.recall(ANNA, "x", recipe=wrong),
        lambda: memory.context(ANNA, "x", recipe=wrong),
        lambda: memory.look_up(ANNA, "x", recipe=wrong),
        lambda: tool(memory, ANNA, recipe=wrong),
    ]
    for call in calls:
        with pytest.raises(InputError, match="recipe"):
            call()


def test_context_and_the_tool_take_a_time(kites: Memory) -> None:
    timed(kites, Reader(0.001))
    assert "kite" in kites.context(ANNA, QUESTION, recipe=500).text
    assert "kite" in tool(kites, ANNA, recipe=500).call({"query": QUESTION})


def test_a_recipe_of_ones_own_may_have_a_budget(kites: Memory) -> None:
    reader = timed(kites, Reader(0.010))
    own = replace(RECIPES["thorough"], rerank=RerankSettings(depth=5, weight=1.0, budget_ms=nan))
    assert kite_ids(kites, own) == kite_ids(kites, "default")
    kite_ids(kites, replace(own, rerank=replace(own.rerank, budget_ms=1000.0)))
    assert len(reader.texts) == 5
