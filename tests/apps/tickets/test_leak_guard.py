"""What was recalled is not copied to the worker; names, and what was said elsewhere, may be sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunoe.apps.tickets.leak_guard import PASSAGE_WORDS, LeakGuard
from eunoe.text.normalize import bare_form

MEMORY = "Ticket: Slow search. The index on the orders was missing, so that every query read the whole table."
RUN_OF_IT = "the index on the orders was missing so that every query read the whole table"
STAGING = (
    "The staging database is called heron and listens behind the blue firewall of the northern office of the company."
)
NAMES = (
    "The bug was in src/shop/orders.py and OrderTable.find_rows at customer_id 4711, fixed by commit 9f86d08 and "
    "eunoe.apps.tickets.run::test_it, see tests/shop/test_orders.py and the file .github/workflows/ci.yml as well."
)
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


def leak_texts(prompt: str, *recalled: str, ticket: tuple[str, ...] = ()) -> list[str]:
    return [leak.text for leak in LeakGuard(recalled, ticket).find_leaks(prompt)]


@pytest.mark.parametrize(
    "disguise",
    [
        str.upper,
        lambda text: text.replace(" ", "\n\t "),
        lambda text: f"**{text.replace(' ', '* *')}**",
        lambda text: text.replace("e", "e\u0301"),
        lambda text: text.replace("e", "е").replace("o", "о"),  # noqa: RUF001
        lambda text: text.replace("a", "a\u200b"),
        lambda text: text.replace("i", "\uff49"),
        lambda text: "> " + text.replace(" query", "\n> query"),
        lambda text: text.replace(" ", "\\n"),
        lambda text: "\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(text.split())),
        lambda text: text.replace(" ", " (1) "),
        lambda text: text.replace(" ", " src/orders.py "),
    ],
)
def test_a_disguised_passage_is_found(disguise: object) -> None:
    assert callable(disguise)
    guard = LeakGuard([MEMORY])
    prompt = f"Please note: {disguise(RUN_OF_IT)}. Go on."
    left = guard.redact(prompt)
    assert (left[:13], left[-6:]) == ("Please note: ", "Go on.")
    assert guard.find_leaks(prompt)
    assert "missing" not in bare_form(left)


def test_names_of_a_memory_may_be_sent() -> None:
    prompt = (
        "Look at src/shop/orders.py, OrderTable.find_rows and customer_id 4711; compare with commit 9f86d08, "
        "tests/shop/test_orders.py and .github/workflows/ci.yml, run eunoe.apps.tickets.run::test_it."
    )
    assert leak_texts(prompt, NAMES) == []
    guard = LeakGuard([NAMES], turns=[(prompt, "done")] * 3)
    assert guard.find_leaks(prompt) == []


def test_names_inside_a_copied_passage_are_kept_when_it_is_cut() -> None:
    memory = "The login broke because names were not trimmed in forms.py before they were checked by the validator."
    assert LeakGuard([memory]).redact(f"Read this: {memory} Then add a test.") == (
        "Read this: [...] forms.py [...] Then add a test."
    )


def test_a_worker_that_repeats_its_prompt_does_not_make_it_its_own_words() -> None:
    turns = [(f"Step: {STAGING}.", f"I did: Step: {STAGING}.")]
    assert LeakGuard([STAGING], turns=turns).find_leaks(f"Then: {STAGING}.")


def test_what_the_worker_said_first_may_be_said_in_every_later_prompt() -> None:
    turns = [("Look around.", f"I see: {STAGING}"), (f"Good: {STAGING}", "ok"), (f"Again: {STAGING}", "ok")]
    assert LeakGuard([STAGING], turns=turns).find_leaks(f"Remember: {STAGING}") == []


@pytest.mark.parametrize(
    "prompt",
    [
        "Find out where the staging settings are read, and print the port that the database listens on.",
        "Add an index on the customer id of orders, then measure the search again.",
        "The firewall may block the office: check whether the database can be reached, and on which port.",
        "Which database does staging use? Write its name and port into the settings, and add a test for it.",
        "The search is slow. Look at the query plan: does any query read all of a table? Is there an index?",
        "1. Look at orders.py\\n2. Run the tests (1) and (2)\\n3. Tell me what failed with 100% certainty &amp; why.",
    ],
)
def test_prompts_on_the_same_matter_in_other_words_pass(prompt: str) -> None:
    turns = [(prompt, "ok")] * 5
    assert LeakGuard([MEMORY, STAGING, NAMES], ["Fix the setup."], turns).find_leaks(prompt) == []


def test_seven_words_are_no_passage_and_eight_are() -> None:
    memory = f"{RUN_OF_IT} of the shop, which nobody had seen before the summer, when there were few customers."
    assert leak_texts("so that every query read the whole", memory) == []
    assert leak_texts("so that every query read the whole table", memory) == [
        "so that every query read the whole table"
    ]


def test_a_short_memory_is_a_passage_only_as_a_whole() -> None:
    short = "The cache is emptied at night"
    assert leak_texts("Remember: the CACHE is emptied, at night!", short) == ["the CACHE is emptied, at night"]
    assert leak_texts("Is the cache emptied at night?", short) == []
    assert leak_texts("All is done", "is done") == []


def test_what_the_ticket_says_may_be_said() -> None:
    assert leak_texts(f"Do this: {RUN_OF_IT}", MEMORY, ticket=("x", f"It was so: {RUN_OF_IT}!")) == []


def test_scripts_without_blanks_are_guarded_too() -> None:
    memory = "注文の検索が遅いのは顧客番号の索引がなかったからで、追加したら速くなった。"
    assert leak_texts(f"メモ {memory[3:24]}。続けて。", memory) == [memory[3:24]]
    assert leak_texts("注文の検索を直して。", memory) == []


def test_a_cut_prompt_keeps_the_rest() -> None:
    guard = LeakGuard([MEMORY])
    assert guard.redact(f"First look at the plan:\n    {RUN_OF_IT}.\n    Then add one.") == (
        "First look at the plan:\n    [...]\n    Then add one."
    )
    assert guard.redact("\t`keep   this`") == "\t`keep   this`"


def test_what_comes_together_by_cutting_is_cut_too() -> None:
    one = "alpha beta gamma delta epsilon zeta eta theta"
    two = "one two three four five six seven eight"
    assert LeakGuard([one, two]).redact(f"one two three four {one} five six seven eight") == ""


@given(words, free, free, words)
def test_whatever_stands_around_it_a_passage_of_a_memory_is_found(
    memory: list[str], before: str, after: str, other: list[str]
) -> None:
    size = PASSAGE_WORDS
    for start in range(len(memory) - size + 1):
        passage = " ".join(memory[start : start + size])
        assert leak_texts(f"{before} {passage} {after}", " ".join(other), " ".join(memory))


@given(st.lists(words, max_size=4), words, free, words, st.lists(words, max_size=2))
def test_nothing_recalled_is_left_after_cutting(
    memories: list[list[str]], prompt: list[str], noise: str, ticket: list[str], turns: list[list[str]]
) -> None:
    sent = [(" ".join(turn), "ok") for turn in turns]
    guard = LeakGuard([" ".join(one) for one in memories], [" ".join(ticket)], sent)
    assert guard.find_leaks(guard.redact(noise.join(prompt))) == []


@given(st.lists(words, max_size=4), st.text(max_size=80))
def test_a_prompt_without_passages_is_not_changed(memories: list[list[str]], prompt: str) -> None:
    guard = LeakGuard([" ".join(one) for one in memories])
    if not guard.find_leaks(f"Please {prompt}"):
        assert guard.redact(f"Please {prompt}") == f"Please {prompt}"


@given(words)
def test_a_text_that_is_allowed_is_never_caught(memory: list[str]) -> None:
    text = " ".join(memory)
    assert leak_texts(text, text, ticket=(text,)) == []
