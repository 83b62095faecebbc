"""What was recalled does not reach the worker in any spelling; what the ticket or the conversation says does."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eunoe.tickets.leak import RUN, Guard

MEMORY = "Ticket: Slow search. The index on orders.customer_id was missing, so every query read the whole table."
RUN_OF_IT = "the index on orders.customer_id was missing so every query read the whole table"
SHORT = "The password of staging is heron-5499"
WORDS = [
    "index",
    "orders",
    "query",
    "table",
    "search",
    "slow",
    "customer",
    "missing",
    "whole",
    "read",
    "cache",
    "tests",
]

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40)
free = st.text(alphabet="abc xyz.,-_\n`*éΑа\u200b東京", max_size=60)


def found(prompt: str, *recalled: str, allowed: tuple[str, ...] = ()) -> list[str]:
    return [passage.text for passage in Guard(recalled, allowed).passages(prompt)]


@pytest.mark.parametrize(
    "disguise",
    [
        str.upper,
        lambda text: text.replace(" ", "\n\t "),
        lambda text: text.replace(" ", " - "),
        lambda text: text.replace(" ", ""),
        lambda text: f"**{text.replace(' ', '* *')}**",
        lambda text: text.replace("e", "é"),
        lambda text: text.replace("e", "е").replace("o", "о"),  # noqa: RUF001
        lambda text: text.replace("a", "a\u200b"),
        lambda text: text.replace("i", "\uff49"),
        lambda text: text[:9] + "-\n" + text[9:],
        lambda text: "> " + text.replace(" query", "\n> query"),
    ],
)
def test_a_disguised_passage_is_found(disguise: object) -> None:
    assert callable(disguise)
    assert len(found(f"Please note: {disguise(RUN_OF_IT)}. Go on.", MEMORY)) == 1


def test_seven_words_are_no_passage_and_eight_are() -> None:
    assert found("so every query read the whole table", MEMORY) == []
    assert found("missing so every query read the whole table", MEMORY) == [
        "missing so every query read the whole table"
    ]


def test_a_short_memory_is_a_passage_only_as_a_whole() -> None:
    assert found("Remember: the PASSWORD of staging is heron 5499!", SHORT) == ["the PASSWORD of staging is heron 5499"]
    assert found("What is the password of staging?", SHORT) == []
    assert found("Undone work", "done") == []


def test_what_the_ticket_or_the_conversation_says_may_be_said() -> None:
    assert found(f"Do this: {RUN_OF_IT}", MEMORY, allowed=("x", f"It was so: {RUN_OF_IT}!")) == []
    assert found(SHORT, SHORT, allowed=(f"we know: {SHORT}",)) == []
    assert found(SHORT, SHORT, allowed=("the password of staging", "is heron 5499")) == [SHORT]


def test_words_of_two_texts_do_not_allow_what_they_make_together() -> None:
    half = RUN_OF_IT[:40]
    assert found(RUN_OF_IT, MEMORY, allowed=(half, RUN_OF_IT[40:])) != []


def test_scripts_without_blanks_are_guarded_too() -> None:
    memory = "注文の検索が遅いのは顧客番号の索引がなかったからで、追加したら速くなった。"
    assert found(f"メモ {memory[3:24]}。続けて。", memory) == [memory[3:24]]
    assert found("注文の検索を直して。", memory) == []


def test_a_cut_prompt_keeps_the_rest() -> None:
    guard = Guard([MEMORY], [])
    assert guard.cut(f"First look at the plan:\n    {RUN_OF_IT}.\n    Then add one.") == (
        "First look at the plan:\n    [...]\n    Then add one."
    )
    assert guard.cut("\t`keep   this`") == "\t`keep   this`"


def test_nothing_is_left_of_a_prompt_that_is_all_memory() -> None:
    assert Guard([MEMORY], []).cut(f"« {MEMORY} »") == ""


def test_what_comes_together_by_cutting_is_cut_too() -> None:
    one = "alpha beta gamma delta epsilon zeta eta theta"
    two = "one two three four five six seven eight"
    guard = Guard([one, two], [])
    nested = f"one two three four {one} five six seven eight"
    assert guard.cut(nested) == ""


@given(words, free, free, words)
def test_whatever_stands_around_it_a_run_of_a_memory_is_found(
    memory: list[str], before: str, after: str, other: list[str]
) -> None:
    text = " ".join(memory)
    runs = [" ".join(memory[start : start + int(RUN)]) for start in range(max(1, len(memory) - int(RUN) + 1))]
    for run in runs:
        assert found(f"{before} {run} {after}", " ".join(other), text)


@example("0\u0345", "", False)
@given(st.text(max_size=80), free, st.booleans())
def test_a_whole_memory_is_found_in_any_script(memory: str, around: str, upper: bool) -> None:
    if any(sign.isalnum() for sign in memory):
        assert found(f"{around} {memory.upper() if upper else memory} {around}", memory)


@given(st.lists(words, max_size=4), words, free, st.lists(words, max_size=2))
def test_nothing_recalled_is_left_after_cutting(
    memories: list[list[str]], prompt: list[str], noise: str, allowed: list[list[str]]
) -> None:
    guard = Guard([" ".join(one) for one in memories], [" ".join(one) for one in allowed])
    assert guard.passages(guard.cut(noise.join(prompt))) == []


@given(st.lists(words, max_size=4), st.text(max_size=80))
def test_a_prompt_without_passages_is_not_changed(memories: list[list[str]], prompt: str) -> None:
    guard = Guard([" ".join(one) for one in memories], [])
    if not guard.passages(prompt) and any(sign.isalnum() for sign in prompt):
        assert guard.cut(prompt) == prompt


@given(words)
def test_a_text_that_is_allowed_is_never_caught(memory: list[str]) -> None:
    text = " ".join(memory)
    assert found(text, text, allowed=(text,)) == []
