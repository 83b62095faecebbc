"""Conditions on metadata: what they mean, what is refused, and that they hold before anything is ranked."""

from __future__ import annotations

from typing import Any

import pytest

from eunoe.errors import InputError
from eunoe.memory import Memory
from eunoe.recall.request import needed_parts, parse_where
from eunoe.store.codec import dump_json

ANNA = {"user": "anna"}
KILNS: dict[str, dict[str, Any] | None] = {
    "red": {"team": "red", "size": 3, "done": True, "day": "2024-05-07", "tags": ["a", "b"], "lead": None},
    "blue": {"team": "blue", "size": 7.5, "done": False, "day": "2024-06-01", "tags": []},
    "odd": {"team": "Red", "size": "3", "done": 1},
    "bare": None,
}


@pytest.fixture
def kilns(memory: Memory) -> Memory:
    for name, metadata in KILNS.items():
        memory.remember(ANNA, f"A kiln for the pottery, number {name}.", id=name, metadata=metadata or {})
    memory.observe(ANNA, {"content": "The kiln was said to be warm.", "id": "said", "metadata": {"team": "red"}})
    return memory


def found(memory: Memory, where: Any, **more: Any) -> set[str]:
    return {hit.id for hit in memory.recall(ANNA, "Which kiln?", where=where, **more)}


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"team": "red"}, {"red", "said"}),
        ({"team": {"eq": "red"}}, {"red", "said"}),
        ({"size": 3}, {"red"}),
        ({"size": 3.0}, {"red"}),
        ({"done": True}, {"red"}),
        ({"done": 1}, {"odd"}),
        ({"tags": ["a", "b"]}, {"red"}),
        ({"tags": ("a", "b")}, {"red"}),
        ({"lead": None}, {"red"}),
        ({"team": "red", "size": 3}, {"red"}),
        ({"team": "red", "size": 4}, set()),
        ({"team": {"in": ["blue", "Red"]}}, {"blue", "odd"}),
        ({"done": {"in": [1, False]}}, {"odd", "blue"}),
        ({"team": {"in": []}}, set()),
        ({"size": {"gt": 3}}, {"blue"}),
        ({"size": {"gte": 3, "lt": 7.5}}, {"red"}),
        ({"size": {"lte": 7.5}}, {"red", "blue"}),
        ({"size": {"gte": "3"}}, {"odd"}),
        ({"done": {"gte": 0}}, {"odd"}),
        ({"day": {"gte": "2024-05-01", "lt": "2024-06-01"}}, {"red"}),
        ({"team": {"contains": "re"}}, {"red", "said"}),
        ({"team": {"icontains": "RE"}}, {"red", "said", "odd"}),
        ({"tags": {"contains": "a"}}, {"red"}),
        ({"tags": {"icontains": "A"}}, {"red"}),
        ({"size": {"contains": 3}}, set()),
        ({"lead": {"exists": True}}, {"red"}),
        ({"team": "red", "size": {"exists": False}}, {"said"}),
        ({"AND": [{"team": "red"}, {"size": {"gt": 1}}]}, {"red"}),
        ({"OR": [{"team": "blue"}, {"size": 3}]}, {"red", "blue"}),
        ({"OR": [{"team": "blue"}, {"AND": [{"team": "red"}, {"done": True}]}]}, {"red", "blue"}),
        ({"NOT": {"OR": [{"team": "blue"}, {"NOT": {"team": "red"}}]}}, {"red", "said"}),
    ],
)
def test_what_fulfils_a_condition_is_found_and_nothing_else(kilns: Memory, where: Any, ids: set[str]) -> None:
    assert found(kilns, where) == ids


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"colour": "red"}, set()),
        ({"colour": None}, set()),
        ({"colour": {"in": ["red", None]}}, set()),
        ({"colour": {"lt": 9}}, set()),
        ({"colour": {"ne": "red"}}, {"red", "blue", "odd", "bare", "said"}),
        ({"NOT": {"colour": "red"}}, {"red", "blue", "odd", "bare", "said"}),
        ({"team": {"ne": "red"}}, {"blue", "odd", "bare"}),
        ({"NOT": {"size": {"gt": 0}}}, {"odd", "bare", "said"}),
    ],
)
def test_a_memory_without_the_field_fulfils_only_what_asks_for_its_absence(
    kilns: Memory, where: Any, ids: set[str]
) -> None:
    assert found(kilns, where) == ids


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({}, "where must be a mapping"),
        ("team", "where must be a mapping"),
        ([("team", "red")], "where must be a mapping"),
        ({3: "red"}, "where has the key 3"),
        (
            {"team": {"like": "red"}},
            r"the condition on team takes eq, ne, in, gt, gte, lt, lte, contains, icontains, exists, not \['like'\]",
        ),
        ({"team": {"eq": "red", "$gt": 1}}, "the condition on team takes"),
        ({"team": {}}, "the condition on team takes"),
        ({"team": {"in": "red"}}, "`in` takes a list of values for team"),
        ({"team": {"in": {"red": 1}}}, "`in` takes a list of values for team"),
        ({"team": {"in": 3}}, "`in` takes a list of values for team"),
        ({"size": {"gt": [3]}}, "`gt` compares numbers or texts"),
        ({"size": {"lt": None}}, "`lt` compares numbers or texts"),
        ({"size": {"exists": 1}}, "`exists` of size"),
        ({"size": {"gte": True}}, "`gte` compares numbers or texts"),
        ({"size": object()}, "which is no JSON value"),
        ({"size": float("nan")}, "which is no JSON value"),
        ({"size": {"in": [1, {2}]}}, "which is no JSON value"),
        ({"AND": {"team": "red"}}, "AND takes a list of conditions"),
        ({"OR": []}, "OR takes a list of conditions"),
        ({"OR": "team"}, "OR takes a list of conditions"),
        ({"NOT": [{"team": "red"}]}, "NOT takes one condition"),
        ({"or": [{"team": "red"}]}, "write OR in capitals"),
    ],
)
def test_what_is_not_understood_is_refused(kilns: Memory, where: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        found(kilns, where)


@pytest.mark.parametrize("junction", ["NOT", "AND", "OR"])
def test_conditions_nested_too_deep_are_refused(kilns: Memory, junction: str) -> None:
    def nest(inner: Any) -> dict[str, Any]:
        return {junction: inner if junction == "NOT" else [inner]}

    deep: dict[str, Any] = {"team": "red"}
    for _ in range(20):
        deep = nest(deep)
    assert found(kilns, deep) == {"red", "said"}
    with pytest.raises(InputError, match="nested more than 20 levels deep"):
        found(kilns, nest(deep))


@pytest.mark.parametrize("recipe", ["default", "lexical", "rrf", "associative"])
def test_the_only_match_is_found_among_many_that_rank_better(memory: Memory, recipe: str) -> None:
    better = [{"text": f"The kiln in the Pottery is red, kiln {n}.", "metadata": {"team": "blue"}} for n in range(200)]
    memory.remember_many(ANNA, better)
    memory.remember(
        ANNA, "A long note about bread and rain that names a kiln once.", id="far", metadata={"team": "red"}
    )
    question = "Which kiln in the Pottery is red?"
    assert "far" not in [hit.id for hit in memory.recall(ANNA, question, limit=20, recipe=recipe)]
    (hit,) = memory.recall(ANNA, question, limit=1, where={"team": "red"}, recipe=recipe)
    assert hit.id == "far"


def test_a_change_of_metadata_is_seen(kilns: Memory) -> None:
    assert found(kilns, {"team": "green"}) == set()
    kilns.remember(ANNA, "A kiln that is new.", id="new", metadata={"team": "green"})
    assert found(kilns, {"team": "green"}) == {"new"}
    kilns.forget(ANNA, "red")
    assert found(kilns, {"team": "red"}) == {"said"}


@pytest.mark.parametrize(
    "value", [5, 5.0, -5, 0, -0.0, 0.5, 1e-7, 10**16, 1e22, True, None, "5", 'a"b\\', "ä", [1], {"x": 5}]
)
@pytest.mark.parametrize("name", ["n", "a.n", "a.b.n", 'q"', "ü"])
def test_a_store_looks_first_for_texts_that_all_fitting_metadata_has(name: str, value: Any) -> None:
    """Whatever fulfils a condition has its parts, written as a store writes it."""
    *path, last = name.split(".")
    nested: dict[str, Any] = {last: value, "z": 1}
    for part in reversed(path):
        nested = {part: nested}
    others = [
        {name: value},
        {"first": 0, name: value},
        nested,
        *({name: other} for other in (5, 5.0, True, 1, 0, -0.0)),
    ]
    operands: list[Any] = [value, {"eq": value}, {"in": [value, 7]}, {"ne": 8}]
    for operand in [operand for operand in operands if operand != {"x": 5}]:
        where: dict[str, Any] = {"AND": [{name: operand}, {"NOT": {"other": 1}}]}
        fits, parts = parse_where(where), needed_parts(where)
        for metadata in others:
            text = dump_json(metadata)
            if fits(metadata):
                assert all(any(part in text for part in group) for group in parts), (metadata, parts)


def test_a_dot_leads_into_a_mapping() -> None:
    condition = parse_where({"a.b": 1})
    assert condition({"a": {"b": 1}})
    assert condition({"a.b": 1})
    assert not condition({"a.b": 2, "a": {"b": 1}})
    assert not condition({"a": {"b": 2}})
    assert not condition({"a": [1]})
    assert parse_where({"a.b": {"ne": 1}})({})
