"""Messages from which somebody else forms memories: they are kept and recalled, and never formed."""

from __future__ import annotations

from pathlib import Path

import eunoe

ANNA = "user=anna"
OWN = [f"My dog number {number} is called Bruno{number}." for number in range(50)]


def foreign(text: str) -> dict[str, object]:
    return {"role": "user", "content": text, "metadata": {"former": "mem0"}}


def test_the_engine_neither_counts_nor_forms_them(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none") as memory:
        memory.observe(ANNA, [foreign(text) for text in OWN])
        memory.flush()
        assert memory.status().due_messages == 0
        assert not memory.form(ANNA).stored
        assert memory.recall(ANNA, "Bruno7")[0].text == OWN[7]
        memory.observe(ANNA, "I am allergic to peanuts.")
        assert memory.status().due_messages == 1
        assert memory.form(ANNA).messages == 1


def test_nor_does_a_store_that_imports_them(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "anna.jsonl"
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.observe(ANNA, [*map(foreign, OWN), {"role": "user", "content": "I am allergic to peanuts."}])
        memory.admin.export(ANNA, file)
    with eunoe.open(tmp_path / "other.db", embedder="none", llm="none", form=False) as memory:
        memory.admin.import_(file)
        assert memory.status().due_messages == 1
        assert memory.form(ANNA).messages == 1
