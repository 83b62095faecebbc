"""Filters: whose memory is meant, conditions on metadata, and that neither ever widens a search."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from eunoe.errors import InputError
from eunoe.hosts.mem0 import Memory

ITEMS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a": ({"user_id": "anna"}, {"topic": "home", "size": 3, "tags": ["x", "y"]}),
    "b": ({"user_id": "anna", "run_id": "r1"}, {"topic": "Homework", "size": 7, "done": True}),
    "c": ({"user_id": "anna", "agent_id": "cook"}, {"topic": "work"}),
    "d": ({"user_id": "ben", "run_id": "r1"}, {"topic": "home", "size": 3}),
    "e": ({"agent_id": "cook"}, {"topic": "home"}),
}


@pytest.fixture
def filled(memory: Memory) -> Memory:
    for name, (ids, metadata) in ITEMS.items():
        memory.add(f"The kiln of {name} is red.", **ids, metadata=metadata, infer=False)  # type: ignore[arg-type]
    return memory


def names(results: dict[str, Any]) -> str:
    return "".join(sorted(each["memory"].split()[3] for each in results["results"]))


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"user_id": "anna"}, "abc"),
        ({"user_id": " anna "}, "abc"),
        ({"run_id": "r1"}, "bd"),
        ({"agent_id": "cook"}, "ce"),
        ({"user_id": "anna", "run_id": "r1"}, "b"),
        ({"user_id": "anna", "agent_id": "cook", "run_id": "r1"}, ""),
        ({"user_id": "ann"}, ""),
        ({"user_id": "anna", "topic": "home"}, "a"),
        ({"user_id": "anna", "size": {"gt": 3}}, "b"),
        ({"user_id": "anna", "size": {"gte": 3, "lt": 8}}, "ab"),
        ({"user_id": "anna", "size": {"lte": 3}}, "a"),
        ({"user_id": "anna", "topic": {"eq": "work"}}, "c"),
        ({"user_id": "anna", "topic": {"ne": "work"}}, "ab"),
        ({"user_id": "anna", "topic": {"in": ["work", "home"]}}, "ac"),
        ({"user_id": "anna", "topic": ["work", "home"]}, "ac"),
        ({"user_id": "anna", "topic": {"nin": ["work"]}}, "ab"),
        ({"user_id": "anna", "topic": {"contains": "ome"}}, "ab"),
        ({"user_id": "anna", "topic": {"contains": "home"}}, "a"),
        ({"user_id": "anna", "topic": {"icontains": "HOME"}}, "ab"),
        ({"user_id": "anna", "tags": {"contains": "x"}}, "a"),
        ({"user_id": "anna", "done": "*"}, "b"),
        ({"user_id": "anna", "done": True}, "b"),
        ({"user_id": "*"}, "abcd"),
        ({"user_id": {"in": ["anna", "ben"]}, "topic": "home"}, "ad"),
        ({"user_id": {"ne": "ben"}, "run_id": "r1"}, "b"),
        ({"AND": [{"user_id": "anna"}, {"topic": "home"}]}, "a"),
        ({"OR": [{"user_id": "ben"}, {"agent_id": "cook"}]}, "cde"),
        ({"user_id": "anna", "OR": [{"topic": "work"}, {"size": 7}]}, "bc"),
        ({"user_id": "anna", "$or": [{"topic": "work"}, {"size": 7}]}, "bc"),
        ({"user_id": "anna", "NOT": [{"topic": "work"}, {"size": 7}]}, "a"),
        ({"user_id": "anna", "NOT": [{"run_id": "r1"}]}, "ac"),
        ({"user_id": "anna", "AND": [{"OR": [{"topic": "home"}, {"done": True}]}, {"size": {"lt": 5}}]}, "a"),
    ],
)
def test_what_filters_mean_is_found_and_nothing_else(filled: Memory, filters: dict[str, Any], found: str) -> None:
    assert names(filled.get_all(filters=filters)) == found
    assert names(filled.search("kiln", filters=filters, threshold=0.0)) == found


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"OR": [{"user_id": "anna"}, {"topic": "home"}]},
        {"NOT": [{"user_id": "anna"}]},
        {"AND": [{"topic": "home"}]},
        {"OR": []},
    ],
)
def test_filters_that_leave_open_whose_memory_is_meant_are_refused(filled: Memory, filters: dict[str, Any]) -> None:
    for call in (lambda: filled.get_all(filters=filters), lambda: filled.search("kiln", filters=filters)):
        with pytest.raises(ValueError, match=r"must (contain|name) at least one of|non-empty list"):
            call()


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"user_id": "anna", "topic": {"like": "home"}}, "Unsupported metadata filter operator"),
        ({"user_id": {"gt": "a"}}, "Unsupported metadata filter operator"),
        ({"user_id": "anna", "AND": "x"}, "AND operator requires a list"),
        ({"user_id": "anna", "NOT": []}, "NOT operator requires a non-empty list"),
        ({"user_id": {"in": "anna"}}, "takes a list"),
        ("user_id=anna", "filters must be a dict"),
    ],
)
def test_filters_that_are_not_understood_are_refused(filled: Memory, filters: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        filled.get_all(filters=filters)


def test_filters_nested_without_end_are_refused(memory: Memory) -> None:
    deep: dict[str, Any] = {"user_id": "anna"}
    for _ in range(3000):
        deep = {"AND": [deep]}
    with pytest.raises(ValueError, match="nested too deeply"):
        memory.get_all(filters=deep)


def test_nobody_ever_sees_the_memories_of_another(memory: Memory) -> None:
    """Ids that look like parts of scopes, and many combinations: each search finds what has all its ids."""
    chance = random.Random(7)
    values = {
        "user_id": ["anna", "ann", "anna/agent=cook", "anna%2F", "*anna", "user=anna", "ANNA"],
        "agent_id": ["cook", "cook/user=anna", "anna"],
        "run_id": ["1", "01", "anna"],
    }
    kept: dict[str, dict[str, str]] = {}
    for number in range(60):
        chosen = chance.sample(sorted(values), chance.randint(1, 3))
        ids = {name: chance.choice(values[name]) for name in chosen}
        memory.add(f"The kiln of m{number} is red.", **ids, infer=False)  # type: ignore[arg-type]
        kept[f"m{number}"] = ids
    for _ in range(60):
        wanted = {name: chance.choice(values[name]) for name in chance.sample(sorted(values), chance.randint(1, 3))}
        due = {name for name, ids in kept.items() if wanted.items() <= ids.items()}
        results = memory.get_all(filters=wanted, top_k=100)["results"]
        assert {each["memory"].split()[3] for each in results} == due
        assert all({name: each[name] for name in wanted} == wanted for each in results)


OPEN: list[Any] = [
    {"user_id": {}},
    {"user_id": {"nin": []}},
    {"user_id": {"nin": ["zzz"]}},
    {"user_id": {"ne": "zzz"}},
    {"user_id": {"ne": None}},
    {"user_id": {"eq": None}},
    {"user_id": {"in": [None]}},
    {"user_id": {"eq": {}}},
    {"user_id": {"in": {}}},
    {"user_id": ()},
    {"user_id": True},
    {"user_id": None},
    {"agent_id": {}, "run_id": {"nin": []}},
    {"OR": [{"user_id": "anna"}, {"user_id": {}}]},
    {"OR": [{"user_id": "anna"}, {"user_id": {"ne": "zzz"}}]},
    {"AND": [{"user_id": "anna"}, {"user_id": {}}]},
    {"AND": [{"user_id": {"nin": []}}]},
    {"user_id": "anna", "NOT": [{"user_id": {}}]},
    {"NOT": [{"user_id": {"ne": "anna"}}]},
    {"$or": [{"user_id": "anna"}], "OR": [{"user_id": "ben"}]},
]


@pytest.fixture
def kilns(memory: Memory) -> Memory:
    for user in ("anna", "ben"):
        memory.add(f"The kiln of {user} is red.", user_id=user, infer=False)
    return memory


def users(results: dict[str, Any]) -> list[str]:
    return sorted(each["user_id"] for each in results["results"])


def everybody(memory: Memory) -> list[str]:
    return users(memory.get_all(filters={"user_id": "*"}))


@pytest.mark.parametrize("filters", OPEN)
def test_filters_that_name_nobody_are_refused(kilns: Memory, filters: Any) -> None:
    with pytest.raises(InputError):
        kilns.get_all(filters=filters)
    with pytest.raises(InputError):
        kilns.search("kiln", filters=filters)


@pytest.mark.parametrize("value", [{}, [], (), {"ne": "zzz"}, ["anna"], {"in": ["anna"]}, True, 1.5, "", b"anna"])
def test_an_argument_that_is_no_id_is_refused(kilns: Memory, value: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: kilns.get_all(user_id=value),
        lambda: kilns.get_all(user_id=value, filters={"user_id": "anna"}),
        lambda: kilns.search("kiln", user_id=value),
        lambda: kilns.add("x", user_id=value, infer=False),
        lambda: kilns.add("x", user_id=value, agent_id="cook", infer=False),
        lambda: kilns.delete_all(user_id=value),
        lambda: kilns.delete_all(user_id=value, agent_id="cook"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="user_id"):
            call()
    assert everybody(kilns) == ["anna", "ben"]


def test_a_star_means_everybody_in_filters_alone(kilns: Memory) -> None:
    for call in (lambda: kilns.add("x", user_id="*", infer=False), lambda: kilns.delete_all(user_id="*")):
        with pytest.raises(InputError, match=r"user_id.*\*"):
            call()
    assert kilns.get_all(user_id="*") == kilns.search("kiln", user_id="*") == {"results": []}
    assert users(kilns.get_all(user_id="*", filters={"user_id": "anna"})) == []
    assert users(kilns.get_all(filters={"user_id": {"eq": "*"}})) == []
    assert users(kilns.get_all(filters={"user_id": ["*"]})) == []
    assert users(kilns.search("kiln", filters={"user_id": "*"})) == ["anna", "ben"]
