"""Records get their vectors, or the mark that these are to be made, whatever happens to the store's model meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.letters import Letters

import eunoe
from eunoe.memory import Memory
from eunoe.records.insertion import VectorBatch, pack_vectors

ANNA = "user=anna"


def change_model_meanwhile(monkeypatch: pytest.MonkeyPatch, memory: Memory, path: Path, *models: Any) -> None:
    """Let another process change the model after the vectors of a write are made, and before it."""
    embed = memory._engine.pending.embed

    def embed_and_wait(*args: Any) -> VectorBatch:
        batch = embed(*args)
        with eunoe.open(path) as other:
            for model in models:
                other.admin.reembed(model)
        return batch

    monkeypatch.setattr(memory._engine.pending, "embed", embed_and_wait)


def test_what_is_written_while_the_store_gets_its_first_model_waits_for_a_vector(monkeypatch, path):
    with eunoe.open(path, embedder="none") as memory:
        memory.remember(ANNA, "Anna drinks tea.")
        change_model_meanwhile(monkeypatch, memory, path, Letters())
        assert not memory.remember(ANNA, "Anna eats rice.").embedded
        assert (memory.status().unembedded, memory.status().vectors) == (1, {"letters": 1})
        assert not memory.observe(ANNA, "Anna ate rice.")[0].embedded
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.flush()
        assert (memory.status().unembedded, memory.status().vectors) == (0, {"letters": 3})


def test_what_is_written_while_the_store_loses_its_model_waits_for_nothing(monkeypatch, path):
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "Anna drinks tea.")
        change_model_meanwhile(monkeypatch, memory, path, "none")
        assert memory.remember(ANNA, "Anna eats rice.").embedded
        assert (memory.status().unembedded, memory.status().vectors) == (0, {})


def test_vectors_of_another_size_than_the_store_keeps_by_now_are_made_later(monkeypatch, path):
    with eunoe.open(path, embedder=Letters()) as memory:
        memory.remember(ANNA, "Anna drinks tea.")
        change_model_meanwhile(monkeypatch, memory, path, "none", Letters(alphabet="abc"))
        assert not memory.remember(ANNA, "Anna eats rice.").embedded
        assert (memory.status().unembedded, memory.status().vectors) == (1, {"letters": 1})


def test_a_long_text_has_the_mean_of_its_parts_as_one_vector():
    packed = pack_vectors(np.array([[1, 0], [0, 1], [0, -1], [0, 1]], np.float32), [2, 2])
    vectors = VectorBatch("letters", 2, dict(zip(("long", "nowhere"), packed, strict=True)))
    mean = vectors.mean("long")
    assert mean is not None
    assert mean.dtype == np.float32
    assert mean.tolist() == pytest.approx([0.5**0.5, 0.5**0.5])
    assert vectors.mean("nowhere").tolist() == [0, 0]
    assert vectors.mean("unknown") is None
