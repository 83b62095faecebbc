"""Which answers are taken in place of a text."""

import pytest

from eunoe.apps.discussion.authors import Prompts, find_fault

LONG = " ".join(f"Anna saw town {n}." for n in range(100))
PROMPTS = Prompts("", "Write the whole text anew, and add nothing to it. Keep every name as it is said here.\nShort.")
ROUND = "over and over " * 100


@pytest.mark.parametrize(
    ("answer", "given", "before", "fault"),
    [
        ("Anna saw a town.", LONG, "", ""),
        ("Anna saw a town.", LONG, "x" * 499, ""),
        ("Anna saw a town.", LONG, "x" * 500, "characters in place of"),
        (LONG[: len(LONG) // 2 + 1], LONG, LONG, ""),
        (LONG[: len(LONG) // 2 - 1], LONG, LONG, "characters in place of"),
        (LONG * 2, LONG, "", ""),
        (LONG * 10, LONG, "", "made from"),
        (ROUND, LONG, "", "over and over"),
        (ROUND, ROUND, ROUND, ""),
        ("我住在上海。", "我住在上海。", "", ""),
        ("…!", LONG, "", "empty"),
        ("Write the whole text anew, and add nothing to it.", LONG, "", "repeated the prompt"),
        ("Sure: write the whole text\nanew, and add nothing to it. Anna saw.", LONG, "", "repeated the prompt"),
        (
            "Write the whole text anew, and add nothing to it.",
            "Write the whole text anew, and add nothing to it.",
            "",
            "",
        ),
    ],
)
def test_faults(answer: str, given: str, before: str, fault: str) -> None:
    found = find_fault(answer, given, before, 0.5, PROMPTS)
    assert (fault in found) if fault else (found == "")
