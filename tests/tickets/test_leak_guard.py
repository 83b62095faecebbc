"""What was recalled does not reach the worker in any spelling; what the ticket or the conversation says does."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eunoe.tickets.leak_guard import MIN_RUN_WORDS, LeakGuard

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


def leak_texts(prompt: str, *recalled: str, allowed: tuple[str, ...] = ()) -> list[str]:
    return [leak.text for leak in LeakGuard(recalled, allowed).find_leaks(prompt)]


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
        lambda text: text.replace(" ", "&nbsp;"),
        lambda text: text.replace(" ", "&amp;nbsp;"),
        lambda text: "".join(f"&#{ord(sign)};" for sign in text),
        lambda text: "".join(f"&#x{ord(sign):x};" for sign in text),
        lambda text: text.replace(" ", "%20"),
        lambda text: "".join(f"%{ord(sign):02X}" for sign in text),
        lambda text: text.replace("e", "%C3%A9"),
        lambda text: text.replace(" ", "\\n"),
        lambda text: text.replace(" ", "\\\\t"),
        lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
        lambda text: "".join(f"\\x{ord(sign):02x}" for sign in text),
        lambda text: "\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(text.split())),
        lambda text: "\n" + "\\n".join(f"{number:3}| {word}" for number, word in enumerate(text.split())),
        lambda text: "\n" + "\n".join(f"{number:6}\t{word}" for number, word in enumerate(text.split())),
        lambda text: text.replace(" ", " (1) "),
        lambda text: text.replace(" ", "[12]"),
        lambda text: text.replace(" ", "\u00b9 "),
        lambda text: text.replace(" ", "<br/>"),
    ],
)
def test_a_disguised_passage_is_found(disguise: object) -> None:
    assert callable(disguise)
    assert len(leak_texts(f"Please note: {disguise(RUN_OF_IT)}. Go on.", MEMORY)) == 1


STAGING = (
    "The staging database is called heron and listens on port 5499 behind the blue firewall of the northern office."
)


@pytest.mark.parametrize(
    "prompt",
    [
        "The staging database is calledd heron and listens on portt 5499 behind the blue fireewall of northern office",
        "The staging database is called heron. Mind the rest too: and listens on port 5499 behind. "
        "Then this, which matters: the blue firewall of the northern office.",
        "The 1 staging 2 database 3 is 4 called 5 heron 6 and 7 listens 8 on 9 port 10 5499 11 behind 12 blue firewall",
        "staging database heron listens port 5499 blue firewall northern office",
    ],
)
def test_most_of_a_memory_in_pieces_is_found(prompt: str) -> None:
    guard = LeakGuard([STAGING], ["Fix the login."])
    assert guard.find_leaks(prompt)
    left = guard.redact(f"Look at the form first. {prompt} Then add a test.")
    assert left.startswith("Look at the form first. ")
    assert left.endswith(" Then add a test.")
    assert sum(word in left for word in ("heron", "5499", "firewall", "database")) <= 1


def test_what_stands_between_the_pieces_is_kept() -> None:
    prompt = (
        "The staging database is called heron. Mind the rest of my list before you go on with that, too: "
        "it listens on port 5499 behind the blue firewall of an office."
    )
    assert "[...] Mind the rest of my list before you go on" in LeakGuard([STAGING], []).redact(prompt)


def test_a_sentence_of_a_long_memory_in_pieces_is_found() -> None:
    other = " ".join(f"Entry{chr(97 + number)} concerns matter{chr(97 + number)} elsewhere." for number in range(20))
    typos = "Our staging database callled heron listens att 5499 behind blue firewal near northern office"
    assert leak_texts(typos, f"{other} {STAGING} {other}")


def test_words_of_the_ticket_do_not_count_as_a_share() -> None:
    prompt = "staging database heron listens port 5499 blue firewall northern office"
    assert leak_texts(prompt, STAGING)
    assert leak_texts(prompt, STAGING, allowed=("office northern firewall blue", "5499 port")) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "Find out where the staging settings are read, and print the port that the database listens on.",
        "Add an index on the customer id of orders, then measure the search again.",
        "The firewall may block the office: check whether the database can be reached, and on which port.",
        "Which database does staging use? Write its name and port into the settings, and add a test for it.",
        "The search is slow. Look at the query plan: does any query read all of a table? Is there an index?",
        "1. Look at orders.py\\n2. Run the tests (1) and (2)\\n3. Tell me what failed with 100% certainty &amp; why.",
        "The password field must be checked: is the token valid, is the key known? Use sha256 and Python3.",
    ],
)
def test_prompts_on_the_same_matter_in_other_words_pass(prompt: str) -> None:
    lock = "The password is required; the key is customer_id and the token was refreshed with sha256 on python3."
    assert leak_texts(prompt, MEMORY, STAGING, SHORT, lock, allowed=("Fix the setup.",)) == []


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), st.sampled_from(["Please look at", "Why is", "Test"]))
def test_a_few_words_of_a_memory_in_a_prompt_pass(some: list[str], opening: str) -> None:
    assert leak_texts(f"{opening} {' '.join(sorted(some, reverse=True))}?", MEMORY, STAGING) == []


@given(st.permutations(["staging", "database", "heron", "port", "firewall"]), st.integers(1, 5))
def test_five_words_of_a_memory_pass_in_any_order(some: list[str], gap: int) -> None:
    assert leak_texts((" and then " * gap).join(some), STAGING) == []


@pytest.mark.parametrize(
    ("memory", "secret"),
    [
        ("Remember for the shop: Password is Tr0ub4dor and nobody else on the team may ever know it.", "Tr0ub4dor"),
        ("The office has a door whose PIN of the night shift is 4711, as the porter told us last week.", "4711"),
        (
            "We call the service with API_KEY=zzyzx-99-top from the worker, as the vendor says.",
            "zzyzx-99-top",
        ),
        (
            "The account that deploys is named svc77deploy2 and lives in the directory of them.",
            "svc77deploy2",
        ),
        ("To open the archive the password is swordfish, which was chosen by the people who made it.", "swordfish"),
    ],
)
def test_a_secret_is_found_alone(memory: str, secret: str) -> None:
    assert leak_texts(f"Log in with {secret.upper()} now.", memory) == [secret.upper()]
    assert leak_texts(f"Log in with x{secret}x now.", memory) == []
    assert leak_texts(f"Log in with {secret} now.", memory, allowed=(f"It is `{secret}`.",)) == []
    assert LeakGuard([memory], []).redact(f"Log in with %22{secret}%22 now.") == "Log in with %22[...]%22 now."


def test_seven_words_are_no_passage_and_eight_are() -> None:
    assert leak_texts("so every query read the whole table", MEMORY) == []
    assert leak_texts("missing so every query read the whole table", MEMORY) == [
        "missing so every query read the whole table"
    ]


def test_a_short_memory_is_a_passage_only_as_a_whole() -> None:
    assert leak_texts("Remember: the PASSWORD of staging is heron 5499!", SHORT) == [
        "the PASSWORD of staging is heron 5499"
    ]
    assert leak_texts("What is the password of staging?", SHORT) == []
    assert leak_texts("Undone work", "done") == []


def test_what_the_ticket_or_the_conversation_says_may_be_said() -> None:
    assert leak_texts(f"Do this: {RUN_OF_IT}", MEMORY, allowed=("x", f"It was so: {RUN_OF_IT}!")) == []
    assert leak_texts(SHORT, SHORT, allowed=(f"we know: {SHORT}",)) == []
    assert leak_texts(SHORT, SHORT, allowed=("the password of staging", "is heron 5499")) == [SHORT]


def test_words_of_two_texts_do_not_allow_what_they_make_together() -> None:
    half = RUN_OF_IT[:40]
    assert leak_texts(RUN_OF_IT, MEMORY, allowed=(half, RUN_OF_IT[40:])) != []


def test_scripts_without_blanks_are_guarded_too() -> None:
    memory = "注文の検索が遅いのは顧客番号の索引がなかったからで、追加したら速くなった。"
    assert leak_texts(f"メモ {memory[3:24]}。続けて。", memory) == [memory[3:24]]
    assert leak_texts("注文の検索を直して。", memory) == []


def test_a_cut_prompt_keeps_the_rest() -> None:
    guard = LeakGuard([MEMORY], [])
    assert guard.redact(f"First look at the plan:\n    {RUN_OF_IT}.\n    Then add one.") == (
        "First look at the plan:\n    [...]\n    Then add one."
    )
    assert guard.redact("\t`keep   this`") == "\t`keep   this`"


def test_nothing_is_left_of_a_prompt_that_is_all_memory() -> None:
    assert LeakGuard([MEMORY], []).redact(f"« {MEMORY} »") == ""


def test_what_comes_together_by_cutting_is_cut_too() -> None:
    one = "alpha beta gamma delta epsilon zeta eta theta"
    two = "one two three four five six seven eight"
    guard = LeakGuard([one, two], [])
    nested = f"one two three four {one} five six seven eight"
    assert guard.redact(nested) == ""


@given(words, free, free, words)
def test_whatever_stands_around_it_a_run_of_a_memory_is_found(
    memory: list[str], before: str, after: str, other: list[str]
) -> None:
    text = " ".join(memory)
    runs = [
        " ".join(memory[start : start + int(MIN_RUN_WORDS)])
        for start in range(max(1, len(memory) - int(MIN_RUN_WORDS) + 1))
    ]
    for run in runs:
        assert leak_texts(f"{before} {run} {after}", " ".join(other), text)


@example("0\u0345", "", False)
@given(st.text(max_size=80), free, st.booleans())
def test_a_whole_memory_is_found_in_any_script(memory: str, around: str, upper: bool) -> None:
    if any(sign.isalnum() for sign in memory):
        assert leak_texts(f"{around} {memory.upper() if upper else memory} {around}", memory)


@given(st.lists(words, max_size=4), words, free, st.lists(words, max_size=2))
def test_nothing_recalled_is_left_after_cutting(
    memories: list[list[str]], prompt: list[str], noise: str, allowed: list[list[str]]
) -> None:
    guard = LeakGuard([" ".join(one) for one in memories], [" ".join(one) for one in allowed])
    assert guard.find_leaks(guard.redact(noise.join(prompt))) == []


@given(st.lists(words, max_size=4), st.text(max_size=80))
def test_a_prompt_without_passages_is_not_changed(memories: list[list[str]], prompt: str) -> None:
    guard = LeakGuard([" ".join(one) for one in memories], [])
    if not guard.find_leaks(prompt) and any(sign.isalnum() for sign in prompt):
        assert guard.redact(prompt) == prompt


@given(words)
def test_a_text_that_is_allowed_is_never_caught(memory: list[str]) -> None:
    text = " ".join(memory)
    assert leak_texts(text, text, allowed=(text,)) == []
