"""The recipe `thorough`: the blend finds, the reranker reads the best of it."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import eunoe
from eunoe.bench.context import run_context_bench
from eunoe.bench.recall import run_recall_bench
from eunoe.cli.app import app
from eunoe.embed import encoder as rerankers
from eunoe.embed import encoder as transformers
from eunoe.embed.encoder import FOLDER, CrossEncoder
from eunoe.errors import EmbedderError, InputError
from eunoe.hosts.memory_tool import tool
from eunoe.memory import Memory
from eunoe.model.arguments import CONTEXT_FORMATS
from eunoe.model.result import Hit
from eunoe.recall.recipes import RECIPES, Blend, GraphConfidence, Recipe, RerankSettings

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

    def test_a_longer_list_begins_like_a_shorter_one(self, told: Memory) -> None:
        reading(told, Stub(has("tail", 40.0)))
        whole = ids(told.recall(ANNA, QUESTION, recipe=recipe(depth=4)))
        for limit in range(1, 6):
            assert ids(told.recall(ANNA, QUESTION, limit=limit, recipe=recipe(depth=4))) == whole[:limit]

    def test_equal_scores_go_by_id(self, memory: Memory) -> None:
        reading(memory, Stub())
        memory.remember_many(ANNA, [{"text": "A red kite.", "id": id, "label": id} for id in "cab"])
        assert ids(memory.recall(ANNA, QUESTION, recipe=recipe())) == ["a", "b", "c"]

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

    def test_a_budget_of_tokens_takes_the_best_read(self, told: Memory) -> None:
        reading(told, Stub(has("tail", 40.0)))
        assert ids(told.recall(ANNA, QUESTION, tokens=9, recipe=recipe())) == ["tail"]

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

    def test_the_first_turn_of_a_session_is_read_alone(self, told: Memory) -> None:
        model = reading(told, Stub())
        told.recall(ANNA, QUESTION, recipe=recipe())
        assert "Ben: My red kite has a tail." in model.texts
        assert "Ben: My red kite has a tail.\nAnna: We flew a red kite in May." in model.texts

    def test_without_a_name_the_role_speaks_and_a_caption_is_read_too(self, memory: Memory) -> None:
        turn = {"role": "assistant", "content": "Look, a red kite.", "caption": "a photo of the sky"}
        memory.observe(ANNA, [turn])
        model = reading(memory, Stub())
        memory.recall(ANNA, QUESTION, recipe=recipe())
        assert model.texts == ["Assistant: Look, a red kite.\na photo of the sky"]

    def test_a_fact_is_read_as_it_is(self, memory: Memory) -> None:
        memory.remember(ANNA, "Anna owns a red kite.")
        model = reading(memory, Stub())
        memory.recall(ANNA, QUESTION, recipe=recipe())
        assert model.texts == ["Anna owns a red kite."]

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

    def test_hits_can_be_pickled(self, told: Memory) -> None:
        reading(told, Stub(has("tail", 40.0)))
        hits = told.recall(ANNA, QUESTION, recipe=recipe())
        assert pickle.loads(pickle.dumps(hits)) == hits


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

    def test_what_works_again_is_used_again(self, told: Memory) -> None:
        model = reading(told, Stub(lambda text: float("nan")))
        told.recall(ANNA, QUESTION, recipe=recipe())
        model.judge = has("tail")
        assert told.recall(ANNA, QUESTION, recipe=recipe())[0].id == "tail"
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

    @pytest.mark.parametrize("bench", [run_recall_bench, run_context_bench])
    def test_no_bench_gives_figures_of_one_stage_for_two(
        self, bench: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        turns = [{"id": "1", "session": "1", "speaker": "Anna", "text": "The kite is red."}]
        asked = [{"id": "q", "question": "What is red?", "gold": ["1"]}]
        talk = {"conversations": [{"id": "c", "turns": turns, "questions": asked}]}
        (tmp_path / "talk.json").write_text(json.dumps(talk))
        monkeypatch.setattr(rerankers, "FOLDER", tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        with pytest.raises(EmbedderError, match="without its second stage"):
            bench(tmp_path / "talk.json", recipe="thorough", embedder="none")

    def test_the_command_line_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = ["--store", str(tmp_path / "m.db"), "--embedder", "none"]
        monkeypatch.setattr(rerankers, "FOLDER", tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        run = CliRunner().invoke
        assert run(app, ["remember", "user=anna", "Anna owns a red kite.", *store]).exit_code == 0
        done = run(app, ["recall", "user=anna", QUESTION, "--recipe", "thorough", *store])
        assert done.exit_code == 0
        assert "red kite" in done.stdout
        assert "not read by the reranker" in done.stderr


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

    def test_no_cache_takes_one_recipe_for_another(self, talk: Memory) -> None:
        model = reading(talk, Stub(has("tail", 40.0)))
        plain, read = (talk.context(ANNA, QUESTION, recipe=one, now="2024-05-07") for one in ("default", recipe()))
        assert talk.context(ANNA, QUESTION, now="2024-05-07") == plain
        assert talk.context(ANNA, QUESTION, recipe=recipe(), now="2024-05-07") == read
        assert plain.text != read.text
        model.judge = has("nine")
        assert talk.context(ANNA, QUESTION, recipe=recipe()).hits[0].id == "price"

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

    def test_no_floor_is_put_under_ranks(self, talk: Memory) -> None:
        talk.remember_many(BEN, [f"Kite number {number} is red." for number in range(40)])
        ranks, low = (
            Recipe(name="ranks", method="rrf", rrf_k=0),
            Recipe(name="low", lexical_blend=Blend(term=1.0, bias=-9.0)),
        )
        for one, kept in ((ranks, 40), (low, 0)):
            hits = talk.recall(BEN, QUESTION, recipe=one, limit=50)
            assert len(hits) == 40
            assert hits[-1].score < 0.05
            assert len(talk.look_up(BEN, QUESTION, recipe=one, limit=50)) == kept

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

    def test_a_recipe_that_is_none_is_refused_as_by_recall(self, talk: Memory) -> None:
        said = set()
        for verb in (talk.recall, talk.context, talk.look_up):
            with pytest.raises(InputError) as refused:
                verb(ANNA, QUESTION, recipe="best")
            said.add(str(refused.value))
        assert len(said) == 1

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

    def test_nor_for_a_recipe_that_is_never_read(self, talk: Memory) -> None:
        model = reading(talk, Stub())
        low = replace(recipe(), method="associative", lexical_graph_confidence=GraphConfidence(bias=odds(0.07)))
        assert talk.recall(ANNA, QUESTION, recipe=low)[0].score == pytest.approx(0.07)
        assert talk.context(ANNA, QUESTION, recipe=low).hits == ()
        assert talk.look_up(ANNA, QUESTION, recipe=low) == []
        assert model.questions == []

    def test_the_shipped_reranker_reads(self) -> None:
        with eunoe.open(":memory:", embedder="none", form=False) as memory:
            memory.observe(ANNA, [*TURNS, "Hm.", "Ah.", "Oh.", "Ok."])
            context = memory.context(ANNA, "Where did the red kite land?", recipe="thorough")
            assert context.hits[0].id == "tree"
            assert "rerank" in [reason.name for reason in context.hits[0].reasons]
            assert (context.faults, memory.status().reranker_error) == ((), "")


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


def test_help_lists_every_recipe() -> None:
    for command in (["recall"], ["context"], ["bench", "recall"], ["bench", "context"]):
        shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"}).stdout
        assert [name for name in RECIPES if name not in shown] == []
