"""Recall by association: what no word of the question names is found through what it leads to."""

from collections.abc import Iterator

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.memory import Memory

SCOPE = {"project": "atlas"}
DOCUMENTS = {
    "film": "Stone Harbour\n\nStone Harbour is a film from 1954. It was directed by Greta Lindqvist.",
    "director": "Greta Lindqvist\n\nGreta Lindqvist worked for the stage. She was born in Uppsala in 1911.",
    "town": "Uppsala\n\nUppsala is a city on the river Fyris. Its cathedral is the tallest of the country.",
    "other": "Copper Lane\n\nCopper Lane is a film from 1961. It was directed by Tom Hadley.",
    "tom": "Tom Hadley\n\nTom Hadley was a painter. He died in Leeds.",
    "bread": "Rye bread\n\nRye bread keeps for a week. It is baked with sour dough.",
    "tea": "Green tea\n\nGreen tea is brewed below the boiling point.",
    "rain": "Rain gauges\n\nA rain gauge stands free of trees. It is read at eight in the morning.",
    "wool": "Wool\n\nWool is washed by hand. It dries on a flat board.",
    "clock": "Tower clocks\n\nA tower clock is wound twice a week. Its weights hang in a shaft.",
}
HOP = "In which town was the director of Stone Harbour born?"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none", form=False) as opened:
        opened.remember_many(SCOPE, [{"id": name, "text": text} for name, text in DOCUMENTS.items()])
        yield opened


def found(memory: Memory, query: str, **wanted: object) -> list[str]:
    return [hit.id for hit in memory.recall(SCOPE, query, recipe="associative", **wanted)]  # type: ignore[arg-type]


def test_a_passage_that_shares_no_name_with_the_question_is_found_over_a_bridge(memory: Memory) -> None:
    assert set(found(memory, HOP)[:2]) == {"film", "director"}


def test_reasons_name_the_path(memory: Memory) -> None:
    hits = {hit.id: hit for hit in memory.recall(SCOPE, HOP, recipe="associative")}
    paths = {name: [reason.detail for reason in hits[name].reasons if reason.name == "graph"] for name in hits}
    assert paths["film"] == ["Stone Harbour"]
    assert paths["director"] == ["Stone Harbour -> Greta Lindqvist"]
    assert sum(reason.share for reason in hits["director"].reasons) == pytest.approx(1, abs=0.1)


def test_an_unrelated_question_has_low_scores_throughout(memory: Memory) -> None:
    best = memory.recall(SCOPE, HOP, recipe="associative")[0].score
    strange = memory.recall(SCOPE, "Who won the football match last Sunday?", recipe="associative")
    assert best > 0.5
    assert all(hit.score < 0.3 for hit in strange)


def test_a_new_passage_is_found_at_once_and_makes_a_bridge(memory: Memory) -> None:
    query = "Who built the harp of Copper Lane's director?"
    assert "harp" not in found(memory, query)
    memory.remember(SCOPE, "Tom Hadley's harp\n\nThe harp of Tom Hadley was built by Ida Brandt.", id="harp")
    assert "harp" in found(memory, query)[:3]
    assert set(found(memory, HOP)[:2]) == {"film", "director"}


def test_a_forgotten_passage_is_no_bridge_and_leaves_nothing_in_the_graph(memory: Memory) -> None:
    found(memory, HOP)
    report = memory.forget(SCOPE, ids=["film"], verify=True)
    assert report.verified
    hits = memory.recall(SCOPE, HOP, recipe="associative")
    assert "film" not in [hit.id for hit in hits]
    assert not any("Stone" in reason.detail for hit in hits for reason in hit.reasons)


def test_forgetting_does_not_read_the_rest_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from eunoe.index import graph

    found(memory, HOP)
    monkeypatch.setattr(graph, "parse_passage", lambda *_: pytest.fail("a passage was read again"))
    memory.forget(SCOPE, ids=["wool"])
    assert set(found(memory, HOP)[:2]) == {"film", "director"}


def test_what_a_filter_hides_takes_no_part(memory: Memory) -> None:
    memory.remember(SCOPE, "Stone Harbour\n\nStone Harbour was cut by Nils Berg.", id="cut", label="secret")
    memory.remember(SCOPE, "Nils Berg\n\nNils Berg was born in Visby.", id="berg", label="open")
    query = "Where was the cutter of Stone Harbour born?"
    assert "berg" in found(memory, query)[:4]
    hits = memory.recall(SCOPE, query, recipe="associative", labels=["open"])
    assert [hit.id for hit in hits] == ["berg"]
    assert all(reason.name != "graph" for reason in hits[0].reasons)


def test_the_answer_does_not_depend_on_what_came_and_went(memory: Memory) -> None:
    before = [(hit.id, hit.score) for hit in memory.recall(SCOPE, HOP, recipe="associative")]
    memory.remember(SCOPE, "Stone Harbour\n\nStone Harbour is a hotel in Malta.", id="hotel")
    assert "hotel" in found(memory, HOP)
    memory.forget(SCOPE, ids=["hotel"])
    after = [(hit.id, hit.score) for hit in memory.recall(SCOPE, HOP, recipe="associative")]
    assert [name for name, _ in after] == [name for name, _ in before]
    assert [score for _, score in after] == pytest.approx([score for _, score in before], abs=1e-6)


def test_a_question_in_any_case_or_script_is_answered(memory: Memory) -> None:
    memory.remember(SCOPE, "東京タワー\n\n東京タワーは1958年に建てられた。設計者は内藤多仲である。", id="tower")
    assert set(found(memory, "where was the director of stone harbour born")[:2]) == {"film", "director"}
    assert found(memory, "東京タワーの設計者は誰ですか")[0] == "tower"


@pytest.mark.parametrize("query", ["?", "the of and", "\ud83d", "x" * 30_000, "Ω" * 50, "'s"])
def test_odd_questions_are_met(memory: Memory, query: str) -> None:
    try:
        hits = memory.recall(SCOPE, query, recipe="associative")
    except InputError:
        return
    assert all(0 < hit.score <= 1 for hit in hits)


def test_a_graph_that_an_extractor_broke_off_is_made_anew() -> None:
    broken = [True]

    def fails(sentence: str) -> list[tuple[str, int]]:
        if broken[0] and "Uppsala" in sentence:
            raise RuntimeError("no names today")
        return [("Greta Lindqvist", 0)]

    with eunoe.open(":memory:", llm="none", form=False, extractor=fails) as memory:
        memory.remember(SCOPE, "Greta Lindqvist came.", id="a")
        assert found(memory, "Greta Lindqvist") == ["a"]
        memory.remember(SCOPE, "Greta Lindqvist lived in Uppsala.", id="b")
        with pytest.raises(RuntimeError):
            found(memory, "Greta Lindqvist")
        assert {hit.id for hit in memory.recall(SCOPE, "Greta Lindqvist")} == {"a", "b"}
        broken[0] = False
        assert set(found(memory, "Greta Lindqvist")) == {"a", "b"}


TICKETS = {
    "login": "Ticket: Login broken. Users were logged out because the clock of the server was wrong.",
    "coupons": "Ticket: Coupons. Coupons are now applied one after the other in cart.py.",
    "search": "Ticket: Slow search. Added an index on products.name in Postgres; search takes 20 ms.",
    "mail": "Ticket: Emails bounce. The SPF record of shop.example was missing; Greta Lindqvist added it.",
    "theme": "Ticket: Dark mode. CSS variables in theme.css; the toggle is stored in localStorage.",
    "pdf": "Ticket: Invoices as PDF. WeasyPrint renders invoice.html; fonts must be in the Docker image.",
    "harbour": "Ticket: Stone Harbour warehouse. Greta Lindqvist runs the warehouse in Stone Harbour.",
    "hooks": "Ticket: Webhooks retry. Failed webhooks are retried with exponential backoff.",
}


@pytest.fixture
def tickets() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none", form=False) as opened:
        opened.remember_many(SCOPE, [{"id": name, "text": text} for name, text in TICKETS.items()])
        yield opened


def ways(memory: Memory, query: str) -> dict[str, str]:
    hits = memory.recall(SCOPE, query, recipe="associative", limit=50)
    return {hit.id: reason.detail for hit in hits for reason in hit.reasons if reason.name == "graph"}


def test_a_label_that_all_begin_with_joins_nothing(tickets: Memory) -> None:
    assert ways(tickets, "Who runs the warehouse in Stone Harbour, and what did she add?") == {
        "harbour": "Stone Harbour",
        "mail": "Stone Harbour -> Greta Lindqvist",
    }


def test_a_name_that_stands_everywhere_is_on_no_way(memory: Memory) -> None:
    before = ways(memory, HOP)
    for name, text in DOCUMENTS.items():
        memory.remember(SCOPE, f"{text} This was told by Old Mariner.", id=f"{name}-told")
    told = ways(memory, f"What did Old Mariner tell? {HOP}")
    assert before["director"] == told["director"] == "Stone Harbour -> Greta Lindqvist"
    assert not any("Mariner" in way for way in told.values())
    assert "bread-told" not in told
    assert len(found(memory, "Old Mariner", limit=50)) >= len(DOCUMENTS)


def test_what_shares_neither_word_nor_name_is_at_best_as_likely_as_not(tickets: Memory) -> None:
    hits = {hit.id: hit for hit in tickets.recall(SCOPE, "Why were users logged out?", recipe="associative", limit=50)}
    assert hits.pop("login").score > 0.9
    others = [hit for hit in hits.values() if {reason.name for reason in hit.reasons} <= {"dense"}]
    assert others
    assert max(hit.score for hit in others) <= 0.5
