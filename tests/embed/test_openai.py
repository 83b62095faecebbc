"""An OpenAI-compatible endpoint for embeddings, behind a real HTTP server."""

import math
from typing import Any

import numpy as np
import pytest
from tests.embed.samples import vector
from tests.llm.model_server import ModelServer, says

from eunoe.embed.adapters import OpenAIEmbedder
from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import EmbedderError


class TestOpenAI:
    def test_rows_come_by_index_and_in_unit_length(self, endpoint: ModelServer) -> None:
        rows = OpenAIEmbedder("m", base_url=endpoint.url + "/", api_key="sk-1").embed(["a", "bbb"])
        assert np.array_equal(rows, to_unit_vectors([vector("a"), vector("bbb")], "it"))
        assert endpoint.requests == [{"path": "/v1/embeddings", "model": "m", "input": ["a", "bbb"]}]
        assert endpoint.headers[0]["authorization"] == "Bearer sk-1"

    def test_a_query_is_one_row(self, endpoint: ModelServer) -> None:
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed_query("abc") == pytest.approx(
            to_unit_vectors([vector("abc")], "")[0]
        )

    def test_settings_come_from_the_environment(self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", " sk-env\n")
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        OpenAIEmbedder("m").embed(["a"])
        assert endpoint.headers[0]["authorization"] == "Bearer sk-env"

    def test_servers_that_number_nothing_are_taken_in_order(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(200, {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]})]
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed(["a", "b"]).tolist() == [[1, 0], [0, 1]]

    def test_many_texts_go_in_batches(self, endpoint: ModelServer) -> None:
        texts = [str(i) * (1 + i % 3) for i in range(300)]
        rows = OpenAIEmbedder("m", base_url=endpoint.url).embed(texts)
        assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]
        assert np.array_equal(rows, to_unit_vectors([vector(text) for text in texts], "it"))

    def test_long_texts_are_cut_and_batched_by_size(self, endpoint: ModelServer) -> None:
        OpenAIEmbedder("m", base_url=endpoint.url).embed(["x" * 10_000_000] * 30)
        sizes = [[len(text) for text in request["input"]] for request in endpoint.requests]
        assert sizes == [[8000] * 25, [8000] * 5]

    def test_blank_texts_are_not_sent(self, endpoint: ModelServer) -> None:
        embedder = OpenAIEmbedder("m", base_url=endpoint.url)
        rows = embedder.embed(["", "ab", " \n"])
        assert rows.any(axis=1).tolist() == [False, True, False]
        assert [request["input"] for request in endpoint.requests] == [["ab"]]
        assert embedder.embed_query(" ").shape == (3,)
        assert len(endpoint.requests) == 1

    def test_only_blank_texts_still_have_the_right_width(self, endpoint: ModelServer) -> None:
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed([" "]).tolist() == [[0, 0, 0]]
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed([]).shape == (0, 3)

    def test_a_query_gives_up_sooner(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(503)] * 99
        with pytest.raises(EmbedderError, match="answered 503"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed_query("a")
        assert len(endpoint.requests) == 2

    @pytest.mark.parametrize(
        "body",
        [
            b"<html>gateway</html>",
            b"\xff\xfe",
            b"",
            b"[" * 100_000,
            [],
            {"data": None},
            {"data": []},
            {"data": ["x"]},
            {"data": [{"index": 0}]},
            {"data": [{"index": "0", "embedding": [1]}]},
            {"data": [{"index": 1, "embedding": [1]}]},
            {"data": [{"index": 0, "embedding": [1]}] * 2},
        ],
    )
    def test_garbage_is_a_typed_error(self, body: Any, endpoint: ModelServer) -> None:
        endpoint.script = [says(200, body)]
        with pytest.raises(EmbedderError, match="gave no embeddings for 1 texts"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])

    @pytest.mark.parametrize(
        "vectors", [[[1, 2], [1]], [[math.nan], [1]], [[1e999], [1]], [[], []], [["x"], ["y"]], [1, 2], [None, None]]
    )
    def test_what_is_no_vector_is_a_typed_error(self, vectors: Any, endpoint: ModelServer) -> None:
        endpoint.script = [says(200, {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]})]
        with pytest.raises(EmbedderError, match="openai:m gave"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a", "b"])

    def test_dimensions_may_not_change_between_calls(self, endpoint: ModelServer) -> None:
        embedder = OpenAIEmbedder("m", base_url=endpoint.url)
        embedder.embed(["a"])
        endpoint.script = [says(200, {"data": [{"index": 0, "embedding": [1, 2]}]})]
        with pytest.raises(EmbedderError, match="2 dimensions; due: 3 as before"):
            embedder.embed(["a"])

    def test_a_broken_key_is_refused_without_being_shown(self) -> None:
        with pytest.raises(EmbedderError, match="no key has") as caught:
            OpenAIEmbedder("m", api_key="sk-secret\nX-Other: 1")
        assert "secret" not in str(caught.value)

    def test_the_public_endpoint_needs_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(EmbedderError, match="set OPENAI_API_KEY"):
            OpenAIEmbedder("m")
