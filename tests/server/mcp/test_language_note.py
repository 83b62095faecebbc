"""A question in another language than the one that recall reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.mcp_client import ANNA, Connect, call

import eunoe

pytestmark = pytest.mark.anyio


@pytest.fixture
def memory(tmp_path: Path):
    with eunoe.open(tmp_path / "memory.db", embedder="static", llm="none") as memory:
        memory.remember(ANNA, "Anna rented a flat in Berlin.")
        yield memory


@pytest.mark.parametrize(("question", "is_noted"), [("Wo hat Anna eine Wohnung?", True), ("Where is the flat?", False)])
async def test_recall_says_so_beside_what_it_found(connect: Connect, question: str, is_noted: bool):
    async with connect() as client:
        answer = await call(client, "recall", query=question)
    assert len(answer["memories"]) == 1
    assert ("reads English: this question (German)" in answer["note"]) == is_noted


async def test_a_small_budget_is_for_the_memories(connect: Connect):
    async with connect() as client:
        answer = await call(client, "recall", query="Wo hat Anna eine Wohnung?", max_tokens=200)
    assert answer["memories"][0]["text"] == "Anna rented a flat in Berlin."
    assert "reads English" not in answer["note"]
