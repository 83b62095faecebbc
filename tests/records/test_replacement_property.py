"""Whatever is stored, replaced, updated, expired and forgotten, in whatever order: the memory says what a simple model
says, and nothing is damaged."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eunoe
from eunoe import Memory

ANNA = "user=anna"
IDS = ("a", "b", "c")
TEXTS = ("a red fox", "a blue fox", "a green owl")


@dataclass
class Line:
    """The versions of one memory, oldest first, and the id that names the last."""

    names: list[str]
    """Every id that was given to it."""
    id: str
    texts: list[str] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)


class Model:
    """What a memory should hold: lines in the order in which they were first stored."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def line_of(self, id: str) -> Line | None:
        return next((line for line in self.lines if id in line.names), None)

    def replace(self, id: str, text: str, number: int | None) -> str:
        line = self.line_of(id)
        if line is None:
            self.lines.append(Line([id], id, [text], [number]))
            return "stored"
        if line.id == id and (line.texts[-1], line.numbers[-1]) == (text, number):
            return "duplicate"
        line.id = id
        line.texts.append(text)
        line.numbers.append(number)
        return "superseded"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "replace", "replace", "remember", "update", "expire", "forget", "reopen"]),
        st.sampled_from(IDS),
        st.sampled_from(TEXTS),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=14,
)


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, float(len(text)), 0.5] for text in texts]


def opened(path: Path) -> Memory:
    return eunoe.open(path, embedder=embed, llm="none", form=False)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_memory_says_what_the_model_says(steps: list[tuple[str, str, str, int | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "memory.db", Model()
        memory = opened(path)
        try:
            for word, id, text, number in steps:
                if word == "reopen":
                    memory.close()
                    memory = opened(path)
                else:
                    take_step(memory, model, word, id, text, number)
            compare(memory, model)
            if model.lines:
                check_moves(memory, model, Path(folder))
            for line in list(model.lines):
                memory.forget(ANNA, line.id, may_return=True)
            assert memory.list(ANNA, retired=True).items == ()
            assert memory.admin.check().damage == ()
        finally:
            memory.close()


def take_step(memory: Memory, model: Model, word: str, id: str, text: str, number: int | None) -> None:
    metadata = {} if number is None else {"n": number}
    line = model.line_of(id)
    match word:
        case "replace":
            receipt = memory.remember(ANNA, text, id=id, metadata=metadata, replace=True)
            assert receipt.outcome == model.replace(id, text, number)
        case "remember":
            outcome = memory.remember(ANNA, text, id=id, metadata=metadata).outcome
            if line is None:
                assert outcome == model.replace(id, text, number)
            else:
                assert outcome in ("duplicate", "conflict")
        case "update" if line and line.id == id:
            receipt = memory.update(ANNA, id, text, metadata=metadata)
            if receipt.outcome == "superseded":
                line.id = receipt.id
                line.names.append(receipt.id)
                line.texts.append(text)
                line.numbers.append(number)
        case "expire" if line:
            memory.expire(ANNA, line.id, "2100-01-01")
            memory.expire(ANNA, line.id, None)
        case "forget" if line:
            memory.forget(ANNA, id, may_return=True)
            model.lines.remove(line)


def compare(memory: Memory, model: Model) -> None:
    assert memory.admin.check().damage == ()
    held: list[Any] = list(memory.list(ANNA).items)
    now = {line.id: (line.texts[-1], line.numbers[-1]) for line in model.lines}
    assert {item.id: (item.text, item.metadata.get("n")) for item in held} == now
    assert {item.id for item in memory.get_many(ANNA, [*now, "nobody"])} == now.keys()
    for line in model.lines:
        history = memory.history(ANNA, line.id)
        assert [version.text for version in history] == line.texts
        assert [version.metadata.get("n") for version in history] == line.numbers
        assert [version.retired is None for version in history] == [False] * (len(history) - 1) + [True]
    for text in TEXTS:
        found = {hit.id for hit in memory.recall(ANNA, text, recipe="lexical", limit=10) if hit.text == text}
        assert found == {line.id for line in model.lines if line.texts[-1] == text}


def check_moves(memory: Memory, model: Model, folder: Path) -> None:
    memory.admin.export(ANNA, folder / "export.jsonl")
    with opened(folder / "copy.db") as copy:
        copy.admin.import_(folder / "export.jsonl")
        compare(copy, model)
