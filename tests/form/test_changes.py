"""A change closes what it changes and keeps what else was said: from the message to the summary, without an LLM."""

import pytest

import eunoe

ANNA = "agent=cook/user=anna"
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
        texts = [atom.text for atom in memory.list(ANNA).items]
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
