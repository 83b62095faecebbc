"""Whose memory is meant: a call that does not name somebody is refused, and never reaches everybody's memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eunoe.errors import InputError
from eunoe.hosts.mem0 import Memory

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
def filled(memory: Memory) -> Memory:
    for user in ("anna", "ben"):
        memory.add(f"The kiln of {user} is red.", user_id=user, infer=False)
    return memory


def users(results: dict[str, Any]) -> list[str]:
    return sorted(each["user_id"] for each in results["results"])


def everybody(memory: Memory) -> list[str]:
    return users(memory.get_all(filters={"user_id": "*"}))


@pytest.mark.parametrize("filters", OPEN)
def test_filters_that_name_nobody_are_refused(filled: Memory, filters: Any) -> None:
    with pytest.raises(InputError):
        filled.get_all(filters=filters)
    with pytest.raises(InputError):
        filled.search("kiln", filters=filters)


@pytest.mark.parametrize("value", [{}, [], (), {"ne": "zzz"}, ["anna"], {"in": ["anna"]}, True, 1.5, "", b"anna"])
def test_an_argument_that_is_no_id_is_refused(filled: Memory, value: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: filled.get_all(user_id=value),
        lambda: filled.get_all(user_id=value, filters={"user_id": "anna"}),
        lambda: filled.search("kiln", user_id=value),
        lambda: filled.add("x", user_id=value, infer=False),
        lambda: filled.add("x", user_id=value, agent_id="cook", infer=False),
        lambda: filled.delete_all(user_id=value),
        lambda: filled.delete_all(user_id=value, agent_id="cook"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="user_id"):
            call()
    assert everybody(filled) == ["anna", "ben"]


def test_a_star_means_everybody_in_filters_alone(filled: Memory) -> None:
    for call in (lambda: filled.add("x", user_id="*", infer=False), lambda: filled.delete_all(user_id="*")):
        with pytest.raises(InputError, match=r"user_id.*\*"):
            call()
    assert filled.get_all(user_id="*") == filled.search("kiln", user_id="*") == {"results": []}
    assert users(filled.get_all(user_id="*", filters={"user_id": "anna"})) == []
    assert users(filled.get_all(filters={"user_id": {"eq": "*"}})) == []
    assert users(filled.get_all(filters={"user_id": ["*"]})) == []
    assert users(filled.search("kiln", filters={"user_id": "*"})) == ["anna", "ben"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"user_id": {"eq": "anna"}}, ["anna"]),
        ({"user_id": {"in": ["anna", "zzz"]}}, ["anna"]),
        ({"user_id": {"in": ["anna", "ben"], "ne": "ben"}}, ["anna"]),
        ({"user_id": {"in": []}}, []),
        ({"user_id": "*", "NOT": [{"user_id": "anna"}]}, ["ben"]),
        ({"user_id": None, "agent_id": "cook"}, []),
    ],
)
def test_conditions_on_ids(filled: Memory, filters: dict[str, Any], found: list[str]) -> None:
    filled.add("The kiln of nobody is red.", user_id="None", agent_id="cook", infer=False)
    assert [user for user in users(filled.get_all(filters=filters)) if user != "None"] == found
    assert users(filled.get_all(filters={"user_id": None, "agent_id": "cook"})) == []
