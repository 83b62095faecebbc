"""An OpenAI-compatible endpoint for embeddings, behind a real HTTP server."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.embed.samples import vector
from tests.llm.model_server import ModelServer, hangs, says

from eunoe.embed.adapters import OpenAIEmbedder
from eunoe.embed.contract import to_unit_vectors
from eunoe.errors import EmbedderError
from eunoe.net import http as endpoints


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

    def test_no_key_no_header(self, endpoint: ModelServer) -> None:
        OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])
        assert "authorization" not in endpoint.headers[0]

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

    def test_odd_texts_arrive_as_valid_unicode(self, endpoint: ModelServer) -> None:
        OpenAIEmbedder("m", base_url=endpoint.url).embed(["a\ud800\0", "\ud83d\ude00"])
        assert endpoint.requests[0]["input"] == ["a\ufffd\0", "😀"]

    @pytest.mark.parametrize("status", [408, 429, 500, 503])
    def test_passing_trouble_is_retried_with_growing_pauses(
        self, status: int, endpoint: ModelServer, waits: list[float]
    ) -> None:
        endpoint.script = [says(status)] * 3
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"]).any()
        assert waits == [0.5, 1.0, 2.0]

    @pytest.mark.parametrize(("header", "wait"), [("7", 7), ("30", 30), ("Wed, 21 Oct 2015", 0.5), ("-3", 0.5)])
    def test_the_pause_a_server_asks_for_is_kept(
        self, header: str, wait: float, endpoint: ModelServer, waits: list[float]
    ) -> None:
        endpoint.script = [says(429, Retry_After=header)]
        OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])
        assert waits == [wait]

    def test_retries_end(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(503, "overloaded")] * 99
        with pytest.raises(EmbedderError, match=r'answered 503: "overloaded"'):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])
        assert len(endpoint.requests) == 5

    def test_a_query_gives_up_sooner(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(503)] * 99
        with pytest.raises(EmbedderError, match="answered 503"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed_query("a")
        assert len(endpoint.requests) == 2

    @pytest.mark.parametrize("status", [400, 401, 404, 413])
    def test_a_refusal_is_not_retried(self, status: int, endpoint: ModelServer) -> None:
        endpoint.script = [says(status, "no such model")]
        with pytest.raises(EmbedderError, match=f"answered {status}: .no such model"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])
        assert len(endpoint.requests) == 1

    def test_a_refusal_that_breaks_off_is_still_a_refusal(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(400, b"no length", Transfer_Encoding="chunked")]
        with pytest.raises(EmbedderError, match=r"answered 400: \(the answer broke off\)"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])

    def test_a_redirect_is_refused_and_the_key_goes_nowhere_else(self, endpoint: ModelServer) -> None:
        endpoint.script = [says(302, Location=endpoint.url + "/elsewhere")]
        with pytest.raises(EmbedderError, match="answered 302"):
            OpenAIEmbedder("m", base_url=endpoint.url, api_key="sk-1").embed(["a"])
        assert len(endpoint.requests) == 1

    def test_nobody_there_is_a_typed_error(self, endpoint: ModelServer, waits: list[float]) -> None:
        endpoint.shutdown()
        endpoint.server_close()
        with pytest.raises(EmbedderError, match="cannot be reached: ConnectionRefusedError"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])
        assert len(waits) == 4

    def test_a_silent_server_is_left(self, endpoint: ModelServer, waits: list[float]) -> None:
        endpoint.script = [hangs] * 2
        with pytest.raises(EmbedderError, match=r"cannot be reached: .*[Tt]ime"):
            OpenAIEmbedder("m", base_url=endpoint.url, timeout=0.05, attempts=2).embed(["a"])
        assert waits == [0.5]

    def test_an_answer_that_comes_drop_by_drop_is_left(
        self, endpoint: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ticks = itertools.count(0, 31)
        monkeypatch.setattr(endpoints, "_clock", lambda: next(ticks))
        with pytest.raises(EmbedderError, match="no whole answer in time"):
            OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"])

    def test_an_answer_that_breaks_off_is_retried(self, endpoint: ModelServer, waits: list[float]) -> None:
        endpoint.script = [says(200, b'{"data"', Content_Length="1000")]
        assert OpenAIEmbedder("m", base_url=endpoint.url).embed(["a"]).any()
        assert waits == [0.5]

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

    @pytest.mark.parametrize("status", [200, 401])
    def test_a_key_repeated_by_the_server_is_not_shown(self, status: int, endpoint: ModelServer) -> None:
        endpoint.script = [says(status, "Incorrect API key provided: sk-secret.")]
        with pytest.raises(EmbedderError, match=r"provided: \[key\]") as caught:
            OpenAIEmbedder("m", base_url=endpoint.url, api_key="sk-secret").embed(["a"])
        assert "sk-secret" not in repr(caught.value)

    def test_a_broken_key_is_refused_without_being_shown(self) -> None:
        with pytest.raises(EmbedderError, match="no key has") as caught:
            OpenAIEmbedder("m", api_key="sk-secret\nX-Other: 1")
        assert "secret" not in str(caught.value)

    def test_the_public_endpoint_needs_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(EmbedderError, match="set OPENAI_API_KEY"):
            OpenAIEmbedder("m")

    @pytest.mark.parametrize(
        "url",
        [
            "localhost:80",
            "file:///etc/passwd",
            "http://",
            "http://h:port",
            "http://h:0",
            "http://u:secret@h/v1",
            "http://h/a b",
            "http://h/\n",
            "http://a..b/v1",
            "http://[::1/v1",
            "http://h/é",
            "http://h/v1?x=1",
        ],
    )
    def test_a_malformed_address_is_refused(self, url: str) -> None:
        with pytest.raises(EmbedderError, match="base_url must look like") as caught:
            OpenAIEmbedder("m", base_url=url)
        assert "secret" not in str(caught.value)
