"""Vectors that the caller brings: one or several for an atom, and other ones for the same words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunoe
from eunoe import Memory
from eunoe.errors import EunoeError

ANNA = "user=anna"
X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


def embed(texts: list[str]) -> list[list[float]]:
    return [[0.5, 0.5, 0.5] for _ in texts]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder=embed, llm="none", form=False) as opened:
        yield opened
        assert opened.admin.check().damage == ()


def nearest(memory: Memory, vector: list[float]) -> str:
    return memory.recall(ANNA, "?", recipe="dense", vector=vector, limit=1)[0].id


@pytest.mark.parametrize("matrix", [[Y, Z], np.array([Y, Z]), [np.array(Y), Z]], ids=["lists", "array", "mixed"])
def test_every_row_of_a_matrix_leads_to_its_atom(memory: Memory, matrix: Any) -> None:
    memory.remember(ANNA, "one", id="one", vector=X)
    memory.remember(ANNA, "two", id="two", vector=matrix)
    assert [nearest(memory, vector) for vector in (X, Y, Z)] == ["one", "two", "two"]


def test_the_same_words_may_have_other_vectors(memory: Memory) -> None:
    items = [{"text": "same", "id": id, "vector": vector} for id, vector in (("x", X), ("y", Y), ("z", [Z, Z]))]
    memory.remember_many(ANNA, [*items, {"text": "same", "id": "made"}])
    assert [nearest(memory, vector) for vector in (X, Y, Z)] == ["x", "y", "z"]
    assert nearest(memory, [1.0, 1.0, 1.0]) == "made"


def test_a_replaced_atom_is_found_by_its_new_vectors_alone(memory: Memory) -> None:
    memory.remember(ANNA, "one", id="one", vector=[X, Y])
    memory.remember(ANNA, "other", id="other", vector=[1.0, 0.2, 0.0])
    memory.remember(ANNA, "one", id="one", vector=Z, metadata={"n": 1}, replace=True)
    assert [nearest(memory, vector) for vector in (X, Y, Z)] == ["other", "other", "one"]
    assert memory.remember(ANNA, "one", id="one", vector=Y, metadata={"n": 1}, replace=True).outcome == "duplicate"
    assert [nearest(memory, vector) for vector in (X, Y)] == ["other", "one"]
    assert memory.forget(ANNA, "one", verify=True).vectors == 2


@pytest.mark.parametrize(
    "vector", [[], [[]], [X, [1.0]], [[X]], [["a", "b", "c"]], [[np.nan, 0, 0]], [1.0], "xyz"], ids=str
)
def test_what_is_no_matrix_is_refused(memory: Memory, vector: Any) -> None:
    with pytest.raises(EunoeError):
        memory.remember(ANNA, "one", vector=vector)
    assert memory.list(ANNA).items == ()
