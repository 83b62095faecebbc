"""Hits: their item and reasons are made when somebody looks, and nobody can tell."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial

import pytest

import eunoe
from eunoe.model.arguments import parse_time
from eunoe.model.atom import Record
from eunoe.model.result import Hit, Hits, Reason
from eunoe.model.scope import Scope

REASONS = (Reason("lexical", 0.75, "tea"), Reason("dense", 0.25))
RECORD = Record(
    kind="message", id="m1", identity=b"", text="Tea, please.", recorded=parse_time("2024-05-07"), position=0
)
ANNA = Scope(user="anna")


def make_hit(record: Record = RECORD, score: float = 0.5) -> Hit:
    return Hit(record, ANNA, score, partial(tuple, REASONS))


def test_a_hit_shows_its_item_score_and_reasons() -> None:
    hit = make_hit()
    assert (hit.id, hit.kind, hit.text, hit.source, hit.score) == ("m1", "message", "Tea, please.", ("m1",), 0.5)
    assert hit.item == RECORD.item(ANNA)
    assert hit.item.scope == hit.scope == ANNA
    assert hit.reasons == REASONS


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda hit: pickle.loads(pickle.dumps(hit))])
def test_a_copy_of_a_hit_carries_its_reasons(twin: Callable[[Hit], Hit]) -> None:
    assert twin(make_hit()) == make_hit()
    assert twin(make_hit()).reasons == REASONS


def test_hits_differ_by_item_score_and_reasons() -> None:
    assert make_hit() != make_hit(score=0.25)
    assert make_hit() != make_hit(RECORD._replace(text="Coffee."))
    assert make_hit() != Hit(RECORD, ANNA, 0.5, tuple)
    assert make_hit() != "Tea, please."


def test_a_hit_outlives_its_memory() -> None:
    with eunoe.open(":memory:") as memory:
        memory.remember("user=anna", "Anna drinks green tea.")
        (hit,) = memory.recall("user=anna", "Which tea?")
    assert hit.reasons
    assert pickle.loads(pickle.dumps(hit)) == hit


def test_metadata_of_an_item_is_the_callers_own() -> None:
    first, second = make_hit().item, make_hit().item
    first.metadata["mine"] = 1  # type: ignore[index]
    assert second.metadata == {}


def test_hits_are_short_in_a_shell_and_a_table_in_a_notebook() -> None:
    hits = Hits([make_hit(RECORD._replace(text="<b>" + "tea " * 40))], ("a note & more",))
    assert repr(hits[0]) == f"Hit(0.50, message, {('<b>' + 'tea ' * 40)[:59] + '…'!r})"
    html = hits._repr_html_()
    assert html.count("<tr>") == 2
    assert "&lt;b&gt;tea" in html
    assert "<b>" not in html
    assert "a note &amp; more" in html
    assert "lexical 0.75 (tea)" in html
