"""Everyday talk, learned without a language model: what is kept of it, and what is not."""

from collections.abc import Iterator

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
