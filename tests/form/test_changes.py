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
