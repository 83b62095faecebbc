"""Two atoms are the same only if a reader would say so: when they are stored, and after one was forgotten."""

import pytest
from tests.support.readings import DISGUISED, OTHER, OTHER_SIGNS

from eunoe.form.likeness import is_duplicate, similarity
from eunoe.memory import Memory

ANNA = "user=anna"


@pytest.mark.parametrize(("text", "other"), OTHER)
def test_both_are_stored(memory: Memory, text: str, other: str) -> None:
    receipts = [memory.remember(ANNA, each) for each in (text, other, text, other)]
    assert [receipt.outcome for receipt in receipts] == ["stored", "stored", "duplicate", "duplicate"]
    assert [receipt.id for receipt in receipts[:2]] == [receipt.id for receipt in receipts[2:]]


@pytest.mark.parametrize(("text", "other"), [*OTHER, *((other, text) for text, other in OTHER)])
def test_forgetting_one_leaves_the_other(memory: Memory, text: str, other: str) -> None:
    memory.forget(ANNA, memory.remember(ANNA, text).id)
    assert memory.remember(ANNA, text).outcome == "forgotten"
    assert memory.remember(ANNA, other).outcome == "stored"


@pytest.mark.parametrize(("text", "disguised"), [*DISGUISED, *((other, text) for text, other in DISGUISED)])
def test_a_forgotten_text_does_not_come_back_in_a_disguise(memory: Memory, text: str, disguised: str) -> None:
    memory.forget(ANNA, memory.remember(ANNA, text).id)
    assert memory.remember(ANNA, disguised).outcome == "forgotten"
    assert memory.remember(ANNA, disguised, kind="observation").outcome == "forgotten"
    assert memory.remember(ANNA, disguised, again=True).outcome == "stored"


@pytest.mark.parametrize(("text", "other"), OTHER)
def test_one_cannot_stand_for_the_other(text: str, other: str) -> None:
    assert not is_duplicate(text, other)
    assert similarity(text, other) < 1
    assert is_duplicate(text, text)


@pytest.mark.parametrize(("text", "other"), OTHER_SIGNS)
def test_vectors_do_not_overrule_a_sign(text: str, other: str) -> None:
    assert not is_duplicate(text, other, cosine=1.0)
