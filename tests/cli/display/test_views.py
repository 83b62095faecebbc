"""Results as plain data."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import eunoe
from eunoe.cli.display import hit_entries, item_entries, reason_lines, when


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, ""),
        (datetime(2024, 5, 7, tzinfo=UTC), "2024-05-07"),
        (datetime(2024, 5, 7, 18, 30, tzinfo=UTC), "2024-05-07 18:30"),
    ],
)
def test_a_moment_to_the_minute_or_the_day(moment: datetime | None, text: str) -> None:
    assert when(moment) == text


def test_entries_of_items_and_hits() -> None:
    with eunoe.open(":memory:", embedder="none") as memory:
        memory.remember("user=anna", "Anna prefers tea.", id="tea", label="preference", time="2024-05-07", pinned=True)
        [entry] = item_entries(memory.list("user=anna").items).rows
        [hit] = memory.recall("user=anna", "tea")
    assert entry.cells == ("fact: preference\n2024-05-07",)
    assert entry.note == "tea · pinned"
    [row] = hit_entries([hit], why=True, most=1).rows
    assert (row.text, row.note) == ("Anna prefers tea.", "tea")
    assert list(row.reasons) == [*reason_lines(hit, 1), "kept as preference"]
    assert "% shares words with the question" in row.reasons[0]
