"""What was recalled is not copied to the worker, at once or in pieces; names, and what was said elsewhere, may be."""

from __future__ import annotations

from functools import partial

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
PIECES = ["The staging database is called heron", "and listens behind the blue", "firewall of the northern office"]
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


def _join_words(sign: str, text: str) -> str:
    return text.replace(" ", sign)


def _dress(pattern: str, text: str) -> str:
    """Each word in a pattern: `0` is its first letter, `1` the rest, `2` the whole, `3` its number."""
    words = text.split()
    parts = ({"0": word[0], "1": word[1:], "2": word, "3": str(number)} for number, word in enumerate(words))
    return " ".join("".join(part.get(sign, sign) for sign in pattern) for part in parts)


def _shift(first: str, text: str) -> str:
    """Its small letters as those of another alphabet, which begins with this one."""
    return "".join(chr(ord(sign) - ord("a") + ord(first)) if sign.islower() else sign for sign in text)


SMALL_CAPITALS = str.maketrans("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ")
NUMBERS = "¹²₁①½Ⅳⅰ"
"""Signs of numbers that are no digits."""
DRESSES = [
    *("#2", "-2", "@2", "/2", "$2", "~2", "--2", "+2", "=2", "_2", "23", "2[3]", "3.2", "3)2", "0-1", "0.1", "0'1"),
    *("w:2", "x=2", "b/2", "2_b", "2's", "<b>2</b>", "<em>2</em>", "`2`", "v3.2", "2,3", "z/2.py", "2()", "#2 x3"),
    *("\u202e2", "0\u20631", "0\U000e00611", "0\ufe0f1", "0\u034f1", "0\u31641", "0\u00ad1", "0\u180e1", "0\u20dd1"),
]


@pytest.mark.parametrize(
    "disguise",
    [
        str.upper,
        lambda text: text.replace(" ", "\n\t "),
        lambda text: text.replace(" ", " - "),
        lambda text: f"**{text.replace(' ', '* *')}**",
        lambda text: text.replace("e", "é"),
        lambda text: text.replace("e", "e\u0301"),
        lambda text: text.replace("e", "е").replace("o", "о"),  # noqa: RUF001
        lambda text: text.replace("a", "a\u200b"),
        lambda text: text.replace("i", "\uff49"),
        lambda text: "> " + text.replace(" query", "\n> query"),
        lambda text: text.replace(" ", "\\n"),
        lambda text: "\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(text.split())),
        lambda text: text.replace(" ", " (1) "),
        lambda text: text.replace(" ", "—"),
        *(partial(_join_words, sign) for sign in "_/.:+=#@~$"),
        lambda text: _join_words("_", text).replace("_on_", " on_").replace("_that_", "_that "),
        lambda text: text.replace(" ", "%20"),
        lambda text: text.title().replace(" ", ""),
        lambda text: "notes/" + text.replace(" ", "_") + ".md",
        str.swapcase,
        lambda text: " ".join(word[0].lower() + word[1:].upper() for word in text.split()),
        lambda text: text.replace(" ", "\\"),
        lambda text: text.replace(" ", "\u200b"),
        lambda text: text.replace(" ", "\n-"),
        lambda text: text.replace(" ", " #the "),
        lambda text: text.replace(" ", " src/orders.py "),
        lambda text: text.replace("missing", "missing #9"),
        lambda text: text.translate(SMALL_CAPITALS),
        *(partial(_shift, first) for first in "ⓐ⒜\U0001d41a\U0001d482\U0001d68a\uff41"),
        lambda text: _shift("🄰", text.lower()),
        lambda text: _shift("🅐", text.lower()),
        *(partial(_dress, pattern) for pattern in DRESSES),
        *(lambda text, sign=sign: text.replace(" ", f" {sign}") for sign in NUMBERS),
        *(lambda text, sign=sign: text.replace(" ", f"{sign} ") for sign in NUMBERS),
        *(lambda text, sign=sign: text.replace(" ", f" {sign} ") for sign in NUMBERS),
        lambda text: text.replace("i", "\u2170").replace("m", "\u217f"),
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


def test_a_long_name_that_stands_in_the_memory_may_be_sent() -> None:
    name = "tests/the_index/test_the_index_on_the_orders_was_missing_so_that_every_query.py"
    assert leak_texts(f"Run {name} again.", f"{MEMORY} It is tested by {name} now.") == []


def test_a_name_that_shares_words_with_a_memory_may_be_sent() -> None:
    names = "whole_table.read_whole the_index/orders_missing.py everyQuery index.on.orders so_that"
    assert leak_texts(f"Look at {names}.", MEMORY) == []


def test_a_number_does_not_make_a_name_of_a_sentence_without_blanks() -> None:
    memory = "注文の検索が遅いのは顧客番号4711の索引がなかったからで、追加したら速くなった。"
    assert leak_texts(f"次を読んで: {memory}", memory)
    assert leak_texts("顧客番号4711を見て", memory) == []


def test_names_inside_a_copied_passage_are_kept_when_it_is_cut() -> None:
    memory = "The login broke because names were not trimmed in forms.py before they were checked by the validator."
    assert LeakGuard([memory]).redact(f"Read this: {memory} Then add a test.") == (
        "Read this: [...] forms.py [...] Then add a test."
    )


def test_a_memory_in_pieces_over_several_turns_is_seen() -> None:
    told: list[tuple[str, str]] = []
    for number, piece in enumerate(PIECES):
        guard = LeakGuard([STAGING], turns=told)
        prompt = f"Step {number}: {piece}, mind that."
        leaks = guard.find_leaks(prompt)
        if leaks:
            break
        told.append((prompt, "ok"))
    assert 0 < len(told) < len(PIECES)
    assert guard.redact(f"Step {len(told)}: {PIECES[len(told)]}, mind that.") == f"Step {len(told)}: [...] mind that."


@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_of_a_memory_in_pieces_of_any_size_at_most_half_is_sent(size: int) -> None:
    memory = f"{STAGING} {MEMORY}"
    words, sent = memory.split(), list[str]()
    for start in range(0, len(words), size):
        guard = LeakGuard([memory], turns=[(prompt, "ok") for prompt in sent])
        sent.append(guard.redact(f"Note {' '.join(words[start : start + size])}"))
    assert sum(word in words for prompt in sent for word in prompt.split()) <= len(words) / 2 + 2


def test_a_worker_that_repeats_its_prompts_does_not_make_them_its_own_words() -> None:
    turns = [(f"Step: {piece}.", f"I did: Step: {piece}.") for piece in PIECES[:2]]
    assert LeakGuard([STAGING], turns=turns).find_leaks(f"Then: {PIECES[2]}.")


def test_what_the_worker_said_first_may_be_said_in_every_later_prompt() -> None:
    turns = [("Look around.", f"I see: {STAGING}"), (f"Good: {STAGING}", "ok"), (f"Again: {STAGING}", "ok")]
    assert LeakGuard([STAGING], turns=turns).find_leaks(f"Remember: {STAGING}") == []


def test_a_sentence_of_a_long_memory_in_pieces_is_found() -> None:
    other = " ".join(f"Entry {'abcdefghij'[number]} concerns another matter somewhere else." for number in range(10))
    turns = [(PIECES[0], "ok"), (PIECES[1], "ok")]
    assert LeakGuard([f"{other} {STAGING} {other}"], turns=turns).find_leaks(PIECES[2])


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


def test_words_of_two_texts_do_not_allow_what_they_make_together() -> None:
    assert leak_texts(RUN_OF_IT, MEMORY, ticket=(RUN_OF_IT[:40], RUN_OF_IT[40:])) != []


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


def test_nothing_is_left_of_a_prompt_that_is_all_memory() -> None:
    assert LeakGuard([MEMORY]).redact(f"« {MEMORY} »") == ""


def test_what_comes_together_by_cutting_is_cut_too() -> None:
    one = "alpha beta gamma delta epsilon zeta eta theta"
    two = "one two three four five six seven eight"
    assert LeakGuard([one, two]).redact(f"one two three four {one} five six seven eight") == ""


@given(words, free, free, words)
def test_whatever_stands_around_it_a_passage_of_a_memory_is_found(
    memory: list[str], before: str, after: str, other: list[str]
) -> None:
    size = int(PASSAGE_WORDS)
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
