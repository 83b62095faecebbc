"""Until when an atom holds is set in place; what no longer holds is recalled only if it is asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eunoe import Memory
from eunoe.errors import ConflictError, InputError, NotFoundError

ANNA = "user=anna"
PAST = datetime(2024, 1, 1, tzinfo=UTC)


def recalled(memory: Memory, **options: object) -> list[str]:
    return [hit.id for hit in memory.recall(ANNA, "Anna tea", **options)]  # type: ignore[arg-type]


def test_what_expired_is_recalled_only_if_it_is_asked_for(memory: Memory) -> None:
    memory.remember(ANNA, "Anna likes tea.", id="a")
    assert recalled(memory) == ["a"]
    (receipt,) = memory.expire(ANNA, "a", PAST)
    assert (receipt.outcome, receipt.id) == ("stored", "a")
    assert recalled(memory) == []
    assert recalled(memory, expired=True) == ["a"]
    assert [item.id for item in memory.list(ANNA).items] == ["a"]
    atom = memory.get(ANNA, "a")
    assert (atom.valid_to, atom.retired, len(memory.history(ANNA, "a"))) == (PAST, None, 1)  # type: ignore[union-attr]


def test_what_expires_later_or_never_is_recalled(memory: Memory) -> None:
    memory.remember(ANNA, "Anna likes tea.", id="a", valid_to=PAST)
    memory.expire(ANNA, "a", "2100-01-01")
    assert recalled(memory) == ["a"]
    assert [receipt.outcome for receipt in memory.expire(ANNA, ["a"], "2100-01-01")] == ["duplicate"]
    memory.expire(ANNA, "a", None)
    assert memory.get(ANNA, "a").valid_to is None  # type: ignore[union-attr]


def test_what_was_closed_stays_out_of_recall(memory: Memory) -> None:
    memory.remember(ANNA, "Anna likes tea.", id="a")
    memory.remember(ANNA, "Anna likes green tea.", id="a", replace=True)
    assert [hit.text for hit in memory.recall(ANNA, "tea", expired=True)] == ["Anna likes green tea."]


def test_all_of_them_expire_or_none(memory: Memory) -> None:
    memory.observe(ANNA, {"content": "I like tea.", "id": "m"})
    memory.remember(ANNA, "Anna likes tea.", id="a")
    memory.remember(ANNA, "Anna drinks tea.", id="b")
    memory.update(ANNA, "b", "Anna drinks coffee.")
    for id, error in (("m", InputError), ("b", ConflictError), ("nobody", NotFoundError)):
        with pytest.raises(error, match=id):
            memory.expire(ANNA, ["a", id], PAST)
    assert memory.get(ANNA, "a").valid_to is None  # type: ignore[union-attr]
    assert memory.expire(ANNA, [], PAST) == []


def test_nothing_ends_before_it_began(memory: Memory) -> None:
    memory.remember(ANNA, "Anna likes tea.", id="a", valid_from="2024-06-01")
    memory.expire(ANNA, "a", PAST)
    atom = memory.get(ANNA, "a")
    assert atom.valid_to == atom.valid_from  # type: ignore[union-attr]
