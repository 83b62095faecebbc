"""Records get their vectors, or the mark that these are to be made, whatever happens to the store's model meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.letters import Letters

import eunoe
from eunoe.memory import Memory
from eunoe.records.insertion import VectorBatch

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
