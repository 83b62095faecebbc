"""Embedders out of what a user has, and every setting that names one."""

import functools
import math
from typing import Any

import numpy as np
import pytest
from tests.embed.samples import has_encoder, has_minilm, vector
from tests.llm.model_server import ModelServer

from eunoe.embed import Embedder, load_embedder
from eunoe.embed.adapters import from_callable
from eunoe.embed.contract import to_unit_vectors
from eunoe.embed.encoder import Encoder
from eunoe.errors import EmbedderError


def lengths(texts: list[str]) -> list[list[float]]:
    return [vector(text) for text in texts]


class LangChainLike:
    model_name = "tiny"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.0, 5.0]


class Own:
    name = "own-1"

    def embed(self, texts: list[str]) -> Any:
        return [[2.0, 0.0] for _ in texts]

    def embed_query(self, text: str) -> Any:
        return [0.0, math.nan if text == "bad" else 2.0]


class TestAdapters:
    def test_a_function_is_an_embedder(self) -> None:
        embedder = from_callable(lengths)
        assert embedder.name.endswith("test_adapters.lengths")
        assert np.array_equal(
            embedder.embed(["a", " ", "bb"]), to_unit_vectors([vector("a"), [0, 0, 0], vector("bb")], "it")
        )
        assert embedder.embed_query("bb") == pytest.approx(embedder.embed(["bb"])[0])

    def test_a_function_may_give_an_array_and_carry_its_name(self) -> None:
        named = functools.partial(lambda texts: np.full((len(texts), 4), 9, np.float16))
        named.name = "halves"  # type: ignore[attr-defined]
        assert from_callable(named).name == "halves"
        assert from_callable(named).embed(["a"]).tolist() == [[0.5] * 4]

    @pytest.mark.parametrize("nameless", [lambda texts: [], functools.partial(lengths), [].append])
    def test_a_function_without_a_name_is_refused(self, nameless: Any) -> None:
        with pytest.raises(EmbedderError, match="needs a name"):
            from_callable(nameless)
        assert from_callable(nameless, name="given").name == "given"

    def test_an_async_function_is_refused(self) -> None:
        async def later(texts: list[str]) -> list[list[float]]:
            return lengths(texts)

        with pytest.raises(EmbedderError, match="not async"):
            from_callable(later)  # type: ignore[arg-type]

    def test_its_failure_is_a_typed_error_with_the_cause(self) -> None:
        def broken(texts: list[str]) -> list[list[float]]:
            raise RuntimeError("out of memory")

        with pytest.raises(EmbedderError, match="failed: RuntimeError: out of memory") as caught:
            from_callable(broken).embed(["a"])
        assert isinstance(caught.value.__cause__, RuntimeError)

    def test_its_own_typed_error_passes_unchanged(self) -> None:
        trouble = EmbedderError("no")

        def broken(texts: list[str]) -> list[list[float]]:
            raise trouble

        with pytest.raises(EmbedderError) as caught:
            from_callable(broken).embed_query("a")
        assert caught.value is trouble

    @pytest.mark.parametrize("given", [[], [[1.0], [1.0]], [[math.inf]], [[]], None, [None]])
    def test_what_is_no_vector_is_a_typed_error(self, given: Any) -> None:
        with pytest.raises(EmbedderError, match="odd gave"):
            from_callable(lambda texts: given, name="odd").embed(["a"])
        with pytest.raises(EmbedderError, match="odd gave"):
            from_callable(lambda texts: given, name="odd").embed_query("a")

    def test_odd_texts_reach_it_as_valid_unicode(self) -> None:
        seen: list[str] = []
        from_callable(lambda texts: seen.extend(texts) or lengths(texts), name="spy").embed(["a\ud800"])
        assert seen == ["a\ufffd"]


class TestLoad:
    @pytest.mark.parametrize("spec", [None, "none"])
    def test_none(self, spec: str | None) -> None:
        assert load_embedder(spec) is None

    @pytest.mark.parametrize("spec", ["static", "wordllama"])
    def test_static(self, spec: str) -> None:
        assert load(spec).name == "wordllama-256"

    @has_encoder
    def test_the_encoder(self) -> None:
        assert load("eunoe").name == load(Encoder.name).name == Encoder.name

    @has_minilm
    def test_minilm(self) -> None:
        assert load("minilm").name == "minilm-l6-v2"

    def test_openai_with_an_address(self, endpoint: ModelServer) -> None:
        embedder = load(f"openai:org/model:v1@{endpoint.url}")
        embedder.embed(["a"])
        assert embedder.name == "openai:org/model:v1"
        assert endpoint.requests[0]["model"] == "org/model:v1"

    def test_openai_without_an_address(self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        load("openai:m").embed(["a"])
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(
        ("spec", "message"), [("openai:", "model is missing"), ("openai:m@localhost:80", "must begin with http")]
    )
    def test_half_an_openai_spec_is_refused(self, spec: str, message: str) -> None:
        with pytest.raises(EmbedderError, match=message):
            load_embedder(spec)

    def test_a_function(self) -> None:
        assert load(lengths).embed_query("a") == pytest.approx(to_unit_vectors([vector("a")], "")[0])

    def test_a_langchain_object(self) -> None:
        embedder = load(LangChainLike())
        assert embedder.name == "langchain:LangChainLike:tiny"
        assert embedder.embed(["a", "b"]).tolist() == [[1, 0], [1, 0]]
        assert embedder.embed_query("a").tolist() == [0, 1]

    def test_a_langchain_object_without_a_model_goes_by_its_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LangChainLike, "model_name", None)
        assert load(LangChainLike()).name == "langchain:LangChainLike"

    def test_an_embedder_of_the_user_is_checked(self) -> None:
        embedder = load(Own())
        assert embedder.name == "own-1"
        assert embedder.embed(["a"]).tolist() == [[1, 0]]
        assert embedder.embed_query("a").tolist() == [0, 1]
        with pytest.raises(EmbedderError, match="NaN"):
            embedder.embed_query("bad")

    def test_an_embedder_without_a_name_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Own, "name", "")
        with pytest.raises(EmbedderError, match="type Own needs a `name`"):
            load_embedder(Own())

    @pytest.mark.parametrize("spec", ["static", "openai:m@http://h/v1", lengths, LangChainLike(), Own()])
    def test_what_was_loaded_loads_as_itself(self, spec: Any) -> None:
        embedder = load_embedder(spec)
        assert load_embedder(embedder) is embedder

    @pytest.mark.parametrize("spec", ["", "sttic", "static:", "openai", "minilm:x", 7, [], {}, LangChainLike, Own])
    def test_anything_else_is_refused_with_the_choices(self, spec: Any) -> None:
        with pytest.raises(
            EmbedderError, match='is not an embedder; choose one of: "none", "eunoe", "static", "minilm"'
        ):
            load_embedder(spec)


def load(spec: Any) -> Embedder:
    embedder = load_embedder(spec)
    assert embedder is not None
    return embedder


class TestUnitVectors:
    def test_rows_get_unit_length_and_zero_rows_stay(self) -> None:
        assert to_unit_vectors([[3, 4], [0, 0]], "it").tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]

    @pytest.mark.parametrize("size", [1e300, 1e-300])
    def test_extreme_sizes_are_no_trouble(self, size: float) -> None:
        assert to_unit_vectors([[size, size]], "it").tolist() == [[pytest.approx(math.sqrt(0.5))] * 2]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_non_finite_numbers_are_refused(self, bad: float) -> None:
        with pytest.raises(EmbedderError, match="it gave a vector with NaN or infinity"):
            to_unit_vectors([[1, 0], [0, bad]], "it")

    @pytest.mark.parametrize("bad", [[1, 2], [[1], [1, 2]], [["x"]], None, [[10**400]], "text"])
    def test_what_is_not_a_matrix_is_refused(self, bad: Any) -> None:
        with pytest.raises(EmbedderError, match="it gave"):
            to_unit_vectors(bad, "it")
