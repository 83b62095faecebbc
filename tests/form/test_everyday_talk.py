"""Everyday talk, learned without a language model: what is kept of it, what a change closes, and what is not formed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eunoe
from eunoe.memory import Memory
from eunoe.server.inspector import load_sample

ANNA = "agent=cook/user=anna"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        yield memory


def learn(memory: Memory, *texts: str, session: str = "s1") -> list[str]:
    """What is known of Anna after an assistant has heard these messages."""
    for text in texts:
        memory.observe(f"{ANNA}/session={session}", [text, {"role": "assistant", "content": "Noted."}])
    memory.form(f"{ANNA}/session={session}")
    return [item.text for item in memory.list(ANNA, exact=True).items]


DENSE = [
    "The boiler is a Vallent 240, serial number VX-88213-40. The man comes back in October.",
    "He charged 185 euros. The invoice has to be paid by 14 May.",
    "Our policy number for the home insurance is HH 4470 2218.",
    "booked the flights! Reference is QK7R2M, we leave on 9 August at 6:40 from Bilbao.",
    "The hotel is Casa Lirio, three nights, 410 in total. Free cancellation until 1 August.",
    "Yusuf is in a wheelchair. They need 48 hours notice for that.",
    "My VAT number is DE 311 904 556. Tax number 27/441/00921.",
    "phone contract runs out on 31 October, I have to cancel by 31 July. 19.99 a month now",
    "doctor is Dr Amari, she put me on ibuprofen 600, twice a day after meals",
    "next appointment is 22 April at 8:15.",
    "Awa is in 3b with Mr Petersen. The trip to the zoo costs 14 euros per child.",
    "garage is Petek and Sons, they want 89 for the check. winter tyres are in their storage, number 311",
]


@pytest.mark.parametrize(
    "words",
    [
        "VX-88213-40", "back in October", "185 euros", "by 14 May", "HH 4470 2218", "QK7R2M", "6:40 from Bilbao",
        "Casa Lirio", "until 1 August", "48 hours notice", "DE 311 904 556", "27/441/00921", "cancel by 31 July",
        "19.99", "ibuprofen 600", "22 April at 8:15", "3b with Mr Petersen", "14 euros", "number 311",
    ],
)  # fmt: skip
def test_numbers_amounts_deadlines_and_second_sentences_of_a_dense_talk_are_kept(memory: Memory, words: str) -> None:
    assert any(words in text for text in learn(memory, *DENSE))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("I like tea. I like coffee.", ["I like tea.", "I like coffee."]),
        ("Likes to play cricket", ["Likes to play cricket"]),
        (
            "I live in Rome during the week. I live in Ostia on weekends.",
            ["I live in Rome during the week.", "I live in Ostia on weekends."],
        ),
        (
            "I live in Rome during the week and I live in Ostia on weekends.",
            ["I live in Rome during the week", "I live in Ostia on weekends."],
        ),
        # What somebody else wrote of themselves is not Anna's.
        ('Some review says "I ride 200 km a week and my husband hates the hum of it." Anyway.', []),
        ('They sent me "Dear Ms Quill, we are pleased to offer the menu. It has oysters."', []),
    ],
)
def test_every_plain_statement_of_a_turn_is_kept_and_what_others_wrote_is_not(
    memory: Memory, text: str, kept: list[str]
) -> None:
    found = [known.removeprefix("anna: ") for known in learn(memory, text)]
    assert [known for known in found if "…" not in known] == kept


def test_a_later_value_still_takes_the_place_of_an_earlier_turns(memory: Memory) -> None:
    assert learn(memory, "I live in Berlin.", "I live in Paris now.") == ["anna: I live in Paris now."]


@pytest.mark.parametrize("question", ["Where do I live?", "Which city do I live in?"])
def test_who_asks_about_themselves_gets_the_later_value_first(memory: Memory, question: str) -> None:
    for text in ("I live in Berlin.", "I live in Paris now."):
        memory.remember(ANNA, text)
    assert [hit.text for hit in memory.recall(ANNA, question)] == ["I live in Paris now.", "I live in Berlin."]


def test_a_question_asked_again_and_again_does_not_crowd_out_the_answer(memory: Memory) -> None:
    memory.observe(f"{ANNA}/session=s0", ["Peanuts make my throat swell up.", {"role": "assistant", "content": "Ok."}])
    for number in range(1, 13):
        said = ["What am I allergic to?", {"role": "assistant", "content": "I do not know."}]
        memory.observe(f"{ANNA}/session=s{number}", said)
        hits = memory.recall(ANNA, "What am I allergic to?", limit=5)
        assert hits[0].text == "Peanuts make my throat swell up."


def test_the_sample_has_no_nonsense_as_decision_or_instruction(memory: Memory) -> None:
    load_sample(memory)
    known = memory.list("agent=pilot/user=sample", exact=True, limit=200).items
    assert {item.text for item in known if item.label == "instruction"} == {
        "sample: Please always give lengths in millimetres.",
        "Jonas: One thing before we start spending evenings together in a shed: no cashews or pistachios near me, "
        "please.",
    }
    decisions = " ".join(item.text for item in known if item.label == "decision")
    assert "Petrel" in decisions
    for nonsense in ("Halves", "answered", "poked around", "overrule"):
        assert nonsense not in decisions


CHANGES = [
    (["I work at Fiat."], "I quit my job at Fiat.", "work at Fiat", []),
    (["I work at Fiat."], "I no longer work at Fiat.", "I work at Fiat", []),
    (["I work at Fiat."], "I got fired from Fiat yesterday.", "work at Fiat", []),
    (["I work at Fiat and my sister Eva lives in Rome."], "I quit my job at Fiat.", "work at Fiat", ["sister Eva"]),
    (["I live in Asti."], "We moved to Turin last week.", "Asti", ["Turin"]),
    (["I'm vegetarian."], "I'm not vegetarian any more.", "I'm vegetarian", ["not vegetarian"]),
    (["The launch is on 3 March."], "The launch was moved to 10 March.", "3 March", ["10 March"]),
    (["We use Postgres for billing."], "We switched billing from Postgres to MySQL.", "We use Postgres", ["MySQL"]),
]


@pytest.mark.parametrize(("before", "change", "gone", "kept"), CHANGES)
def test_a_change_closes_what_it_changes_alone(before: list[str], change: str, gone: str, kept: list[str]) -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        session = memory.at("agent=cook/session=s1/user=anna")
        for text, day in [*((text, "2024-03-01") for text in before), (change, "2024-05-01")]:
            session.observe({"role": "user", "speaker": "Anna", "content": text, "time": day})
            session.form()
        texts = [atom.text for atom in memory.list(ANNA, exact=True).items]
        memory.summaries.consolidate(ANNA)
        context = session.context().static
    assert not any(gone in text for text in texts)
    assert all(any(part in text for text in texts) for part in kept)
    assert all(part in context for part in kept)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I play tennis with Tom.", "I play tennis with Ben."),
        ("I'm allergic to peanuts.", "My son is allergic to peanuts."),
        ("I work at Fiat.", "My brother Leo quit his job at Fiat."),
        ("My sister Eva lives in Rome.", "We moved to Turin last week."),
    ],
)
def test_what_is_about_something_else_closes_nothing(one: str, other: str) -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        session = memory.at("agent=cook/session=s1/user=anna")
        for text, day in [(one, "2024-03-01"), (other, "2024-05-01")]:
            session.observe({"role": "user", "speaker": "Anna", "content": text, "time": day})
            assert session.form().superseded == 0


def test_a_superseded_statement_of_a_summary_is_not_in_the_context() -> None:
    """The context knows which statement a closed quotation became, before the summary is written anew."""
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        session = memory.at("agent=cook/session=s1/user=anna")
        for text, day in [("I live in Asti.", "2024-03-01"), ("I'm allergic to peanuts.", "2024-03-02")]:
            session.observe({"role": "user", "speaker": "Anna", "content": text, "time": day})
        session.form()
        assert "Anna lives in Asti." in memory.summaries.consolidate(ANNA).text
        assert "Anna lives in Asti." in session.context().static
        session.observe({"role": "user", "speaker": "Anna", "content": "I moved to Turin.", "time": "2024-05-01"})
        session.form()
        context = session.context().static
    assert "lives in Asti" not in context
    assert "Anna is allergic to peanuts." in context


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("I live in Turin.", "I used to live in Rome."),
        ("I live in Turin.", "I almost moved to Rome last year."),
        ("I live in Turin.", "I moved to Rome in 2010 for two years."),
        ("I work at Nordwind.", "I nearly quit my job last week."),
        ("I work at Nordwind.", "Lou wrote: I live in Berlin and I work at Google."),
        ("I live in Turin.", "In the novel, I am Detective Moss and I live in London."),
        ("I live in Turin.", "Use this test data: name Ann, I live in Prague, age 30"),
        ("I live in Turin.", "Summarise this email: 'Dear Sam, I quit my job and moved to Rome. Best, Lou'"),
    ],
)
def test_what_is_past_nearly_so_or_anothers_closes_nothing(known: str, said: str) -> None:
    with eunoe.open(":memory:", llm="none", form=False) as memory:
        for number, text in enumerate((known, said), 1):
            scope = f"agent=cook/session=s{number}/user=anna"
            memory.observe(scope, {"role": "user", "content": text, "time": f"2024-0{number}-01"})
            memory.form(scope)
        assert f"anna: {known}" in [atom.text for atom in memory.list("agent=cook/user=anna", exact=True).items]


USER = "user=anna"
OWN = [f"My dog number {number} is called Bruno{number}." for number in range(50)]


def foreign(text: str) -> dict[str, object]:
    return {"role": "user", "content": text, "metadata": {"former": "mem0"}}


def test_the_engine_neither_counts_nor_forms_them(path: Path) -> None:
    with eunoe.open(path, embedder="none", llm="none") as memory:
        memory.observe(USER, [foreign(text) for text in OWN])
        memory.flush()
        assert memory.status().due_messages == 0
        assert not memory.form(USER).stored
        assert memory.recall(USER, "Bruno7")[0].text == OWN[7]
        memory.observe(USER, "I am allergic to peanuts.")
        assert memory.status().due_messages == 1
        assert memory.form(USER).messages == 1


def test_nor_does_a_store_that_imports_them(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "anna.jsonl"
    with eunoe.open(path, embedder="none", llm="none", form=False) as memory:
        memory.observe(USER, [*map(foreign, OWN), {"role": "user", "content": "I am allergic to peanuts."}])
        memory.admin.export(USER, file)
    with eunoe.open(tmp_path / "other.db", embedder="none", llm="none", form=False) as memory:
        memory.admin.import_(file)
        assert memory.status().due_messages == 1
        assert memory.form(USER).messages == 1
