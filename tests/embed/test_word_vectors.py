"""Static word vectors: the embedder, and words of like meaning."""

import json
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.embed.samples import TEXTS, python

from eunoe.embed import word_vectors
from eunoe.embed.encoder import Encoder
from eunoe.embed.word_vectors import StaticEmbedder
from eunoe.errors import EmbedderError
from eunoe.recall.query import Synonyms


class TestStatic:
    def test_agrees_with_wordllama_itself(self) -> None:
        theirs = np.array(json.loads(python(WORDLLAMA, json.dumps(TEXTS))))
        assert np.abs(StaticEmbedder().embed(TEXTS) - theirs).max() < 1e-5

    def test_a_vector_does_not_depend_on_its_batch_at_all(self) -> None:
        order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
        together = StaticEmbedder().embed(TEXTS)
        assert np.array_equal(StaticEmbedder().embed([TEXTS[i] for i in order]), together[order])
        assert np.array_equal(np.stack([StaticEmbedder().embed_query(text) for text in TEXTS]), together)

    def test_a_long_text_counts_to_its_end(self) -> None:
        start, end = "The garden needs water. ", "The rocket left its orbit. "
        both, first = StaticEmbedder().embed([start * 2000 + end * 2000, start * 2000])
        query = StaticEmbedder().embed_query(end)
        assert query @ both > query @ first + 0.1

    def test_cutting_a_long_text_into_pieces_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "The garden  needs water. " * 40
        whole = StaticEmbedder().embed_query(text)
        monkeypatch.setattr(word_vectors, "_PIECE_CHARACTERS", 100)
        assert len(list(word_vectors._pieces(text))) > 10
        assert np.abs(StaticEmbedder().embed_query(text) - whole).max() < 1e-6

    def test_says_nothing_imports_nothing_heavy_and_leaves_the_root_logger_alone(self) -> None:
        assert python(QUIET) == "[] False True"

    def test_threads_share_one_table(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(word_vectors, "_loaded", None)
        tables: list[Any] = []
        threads = [threading.Thread(target=lambda: tables.append(word_vectors._load_table())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(tables) == 8
        assert len(set(map(id, tables))) == 1

    def test_missing_vectors_are_named_with_the_cure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(word_vectors, "find_spec", lambda name: None)
        with pytest.raises(EmbedderError, match="pip install wordllama"):
            StaticEmbedder()

    def test_damaged_vectors_are_a_typed_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(word_vectors, "_folder", lambda: tmp_path)
        monkeypatch.setattr(word_vectors, "_loaded", None)
        with pytest.raises(EmbedderError, match="cannot be loaded"):
            StaticEmbedder().embed(["x"])


WORDLLAMA = """
import json, pathlib, sys, wordllama
folder = pathlib.Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
print(json.dumps(model.embed(json.loads(sys.argv[1]), norm=True).tolist()))
"""

QUIET = """
import logging, sys
from eunoe import embed
embedder = embed.load_embedder()
heavy = {"wordllama", "requests", "torch", "onnx", "onnxruntime", "tokenizers", "safetensors"}
before = sorted(heavy & set(sys.modules))
row = embedder.embed_query("hello")
after = bool({"wordllama", "requests", "torch"} & set(sys.modules))
print(before, after, not logging.getLogger().handlers)
"""


def test_static_vectors_know_words_of_like_meaning() -> None:
    static = StaticEmbedder()
    (similar,) = static.similar_words(["illness"])
    fits = dict(similar)
    assert "sick" in fits
    assert "illness" not in fits
    assert all(0 < fit < 1 for fit in fits.values())
    assert list(fits.values()) == sorted(fits.values(), reverse=True)
    assert static.similar_words(["doctor", "illness", "illness"])[1:] == [similar, similar]
    assert static.similar_words([]) == []


@pytest.mark.parametrize("embedder", [StaticEmbedder, Encoder])
def test_recall_asks_it_for_synonyms(embedder: type[StaticEmbedder] | type[Encoder]) -> None:
    assert isinstance(embedder(), Synonyms)
