"""Recall by association, and the recipe `documents`: one order and one scale out of the blend's and the graph's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.recall.documents import GraphRanking, combine_scores

PROJECT = {"project": "brindle"}
SERVICES = [
    "Marrow\n\nMarrow is the payment gateway. The team Pinecone owns it.",
    "Pinecone\n\nPinecone is a team of five in Ghent. Its lead is Casimir Doyle.",
    "Casimir Doyle\n\nCasimir Doyle sits in the room Larch and prefers to be phoned.",
    "Backups\n\nThey are encrypted and kept for ninety days.",
    "Photos\n\nThe folder for photos that failed the scan fills the disk of the host.",
]


def by_graph(total: list[float], has_names: bool) -> GraphRanking:
    order, is_about = np.array(total), np.zeros(len(total), np.bool_)
    return GraphRanking(order, lambda: np.zeros(len(order)), lambda row, details: (), has_names, is_about)


def combined(blend: list[float], own: list[float], total: list[float], has_names: bool) -> np.ndarray:
    return combine_scores(np.array(blend), np.array(own), by_graph(total, has_names))


@pytest.fixture(params=["static", "none"])
def memory(request: pytest.FixtureRequest) -> Iterator[eunoe.Memory]:
    with eunoe.open(":memory:", embedder=request.param, llm="none", form=False) as memory:
        memory.remember_many(PROJECT, SERVICES)
        yield memory


def order(scores: np.ndarray) -> list[int]:
    return [int(row) for row in np.argsort(-scores, kind="stable") if scores[row] > 0]


def test_a_known_name_leaves_the_order_to_the_graph_and_else_both_count() -> None:
    blend, own = [0.9, 0.6, 0.1], [2.0, 1.0, 0.0]
    assert order(combined(blend, own, [0.0, 1.0, 2.0], has_names=True)) == [2, 1, 0]
    assert order(combined(blend, own, [0.0, 1.0, 2.0], has_names=False)) == [0, 1, 2]
    assert order(combined(blend, own, [0.0, 3.0, 9.0], has_names=False)) == [2, 1, 0]


@pytest.mark.parametrize("has_names", [True, False])
def test_the_best_scores_what_bears_most_on_the_question_among_the_first_three(has_names: bool) -> None:
    scores = combined([0.5] * 4, [-1.0, 0.8, -2.0, 5.0], [9.0, 8.0, 7.0, -5.0], has_names)
    assert order(scores) == [0, 1, 2, 3]
    assert scores[0] == pytest.approx(1 / (1 + np.exp(-0.8)))


def test_no_document_scores_more_than_the_one_before_it() -> None:
    chance = np.random.default_rng(3)
    own, total = chance.normal(0, 3, 400), np.sort(chance.normal(0, 3, 400))[::-1]
    for has_names in (True, False):
        assert order(combined([0.5] * 400, own.tolist(), total.tolist(), has_names)) == list(range(400))


def test_what_one_of_them_does_not_find_comes_last_and_what_none_finds_not_at_all() -> None:
    inf = np.inf
    scores = combined([0.0, 0.99, 0.3, 0.0], [0.0, 9.0, 1.0, 0.0], [1.0, -inf, 1.0, -inf], has_names=False)
    assert order(scores) == [2, 0, 1]
    assert scores[3] == 0
    assert not combined([0.0] * 2, [0.0] * 2, [-inf, -inf], has_names=False).any()
    assert not len(combined([], [], [], has_names=False))


def test_names_lead_from_one_passage_to_the_next(memory: eunoe.Memory) -> None:
    hits = memory.recall(PROJECT, "In which room does the lead of the team that owns Marrow sit?", recipe="documents")
    assert {hit.text.split("\n")[0] for hit in hits[:3]} == {"Marrow", "Pinecone", "Casimir Doyle"}
    assert hits[0].score > 0.5
    assert any(reason.name == "graph" for reason in hits[0].reasons)


def test_what_does_not_bear_on_the_question_scores_far_less_than_what_does(memory: eunoe.Memory) -> None:
    scores = [
        hit.score for hit in memory.recall(PROJECT, "photos that failed the scan fill the disk", recipe="documents")
    ]
    assert scores[0] > 0.9
    assert all(score < 0.2 for score in scores[1:])


def test_stop_words_alone_find_nothing(memory: eunoe.Memory) -> None:
    assert not list(memory.recall(PROJECT, "what is it and who are they", recipe="documents"))


def test_several_scopes_are_ranked_together(memory: eunoe.Memory) -> None:
    memory.remember({"project": "other"}, "Photos\n\nPhotos of the disk are kept in the cellar.")
    hits = memory.recall([PROJECT, {"project": "other"}], "disk is full of photos", recipe="documents")
    assert len({hit.scope for hit in hits[:2]}) == 2
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


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
def atlas() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none", form=False) as opened:
        opened.remember_many(SCOPE, [{"id": name, "text": text} for name, text in DOCUMENTS.items()])
        yield opened


def found(memory: Memory, query: str, **wanted: object) -> list[str]:
    return [hit.id for hit in memory.recall(SCOPE, query, recipe="associative", **wanted)]  # type: ignore[arg-type]


def test_a_passage_that_shares_no_name_with_the_question_is_found_over_a_bridge(atlas: Memory) -> None:
    assert set(found(atlas, HOP)[:2]) == {"film", "director"}


def test_reasons_name_the_path(atlas: Memory) -> None:
    hits = {hit.id: hit for hit in atlas.recall(SCOPE, HOP, recipe="associative")}
    paths = {name: [reason.detail for reason in hits[name].reasons if reason.name == "graph"] for name in hits}
    assert paths["film"] == ["Stone Harbour"]
    assert paths["director"] == ["Stone Harbour -> Greta Lindqvist"]
    assert sum(reason.share for reason in hits["director"].reasons) == pytest.approx(1, abs=0.1)


def test_an_unrelated_question_has_low_scores_throughout(atlas: Memory) -> None:
    best = atlas.recall(SCOPE, HOP, recipe="associative")[0].score
    strange = atlas.recall(SCOPE, "Who won the football match last Sunday?", recipe="associative")
    assert best > 0.5
    assert all(hit.score < 0.3 for hit in strange)


def test_a_new_passage_is_found_at_once_and_makes_a_bridge(atlas: Memory) -> None:
    query = "Who built the harp of Copper Lane's director?"
    assert "harp" not in found(atlas, query)
    atlas.remember(SCOPE, "Tom Hadley's harp\n\nThe harp of Tom Hadley was built by Ida Brandt.", id="harp")
    assert "harp" in found(atlas, query)[:3]
    assert set(found(atlas, HOP)[:2]) == {"film", "director"}


def test_a_forgotten_passage_is_no_bridge_and_leaves_nothing_in_the_graph(atlas: Memory) -> None:
    found(atlas, HOP)
    report = atlas.forget(SCOPE, ids=["film"], verify=True)
    assert report.verified
    hits = atlas.recall(SCOPE, HOP, recipe="associative")
    assert "film" not in [hit.id for hit in hits]
    assert not any("Stone" in reason.detail for hit in hits for reason in hit.reasons)


def test_forgetting_does_not_read_the_rest_again(atlas: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from eunoe.index import graph

    found(atlas, HOP)
    monkeypatch.setattr(graph, "parse_passage", lambda *_: pytest.fail("a passage was read again"))
    atlas.forget(SCOPE, ids=["wool"])
    assert set(found(atlas, HOP)[:2]) == {"film", "director"}


def test_what_a_filter_hides_takes_no_part(atlas: Memory) -> None:
    atlas.remember(SCOPE, "Stone Harbour\n\nStone Harbour was cut by Nils Berg.", id="cut", label="secret")
    atlas.remember(SCOPE, "Nils Berg\n\nNils Berg was born in Visby.", id="berg", label="open")
    query = "Where was the cutter of Stone Harbour born?"
    assert "berg" in found(atlas, query)[:4]
    hits = atlas.recall(SCOPE, query, recipe="associative", labels=["open"])
    assert [hit.id for hit in hits] == ["berg"]
    assert all(reason.name != "graph" for reason in hits[0].reasons)


def test_the_answer_does_not_depend_on_what_came_and_went(atlas: Memory) -> None:
    before = [(hit.id, hit.score) for hit in atlas.recall(SCOPE, HOP, recipe="associative")]
    atlas.remember(SCOPE, "Stone Harbour\n\nStone Harbour is a hotel in Malta.", id="hotel")
    assert "hotel" in found(atlas, HOP)
    atlas.forget(SCOPE, ids=["hotel"])
    after = [(hit.id, hit.score) for hit in atlas.recall(SCOPE, HOP, recipe="associative")]
    assert [name for name, _ in after] == [name for name, _ in before]
    assert [score for _, score in after] == pytest.approx([score for _, score in before], abs=1e-6)


def test_a_question_in_any_case_or_script_is_answered(atlas: Memory) -> None:
    atlas.remember(SCOPE, "東京タワー\n\n東京タワーは1958年に建てられた。設計者は内藤多仲である。", id="tower")
    assert set(found(atlas, "where was the director of stone harbour born")[:2]) == {"film", "director"}
    assert found(atlas, "東京タワーの設計者は誰ですか")[0] == "tower"


@pytest.mark.parametrize("query", ["?", "the of and", "\ud83d", "x" * 30_000, "Ω" * 50, "'s"])
def test_odd_questions_are_met(atlas: Memory, query: str) -> None:
    try:
        hits = atlas.recall(SCOPE, query, recipe="associative")
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


def test_a_name_that_stands_everywhere_is_on_no_way(atlas: Memory) -> None:
    before = ways(atlas, HOP)
    for name, text in DOCUMENTS.items():
        atlas.remember(SCOPE, f"{text} This was told by Old Mariner.", id=f"{name}-told")
    told = ways(atlas, f"What did Old Mariner tell? {HOP}")
    assert before["director"] == told["director"] == "Stone Harbour -> Greta Lindqvist"
    assert not any("Mariner" in way for way in told.values())
    assert "bread-told" not in told
    assert len(found(atlas, "Old Mariner", limit=50)) >= len(DOCUMENTS)


def test_what_shares_neither_word_nor_name_is_at_best_as_likely_as_not(tickets: Memory) -> None:
    hits = {hit.id: hit for hit in tickets.recall(SCOPE, "Why were users logged out?", recipe="associative", limit=50)}
    assert hits.pop("login").score > 0.9
    others = [hit for hit in hits.values() if {reason.name for reason in hit.reasons} <= {"dense"}]
    assert others
    assert max(hit.score for hit in others) <= 0.5
