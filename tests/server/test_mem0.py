"""mem0's paths, called as its own client and older programs call them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.live_server import Answer, LiveServer

_ROME = {"messages": [{"role": "user", "content": "I moved to Rome."}], "user_id": "anna", "infer": False}


def test_a_memory_lives_as_it_does_there(server: LiveServer) -> None:
    added = _call(server, "POST", "/memories", {**_ROME, "metadata": {"topic": "home"}}).json["results"]
    assert [(each["memory"], each["event"]) for each in added] == [("I moved to Rome.", "ADD")]
    id = added[0]["id"]
    item = _call(server, "GET", f"/memories/{id}").json
    assert (item["memory"], item["user_id"], item["metadata"]) == ("I moved to Rome.", "anna", {"topic": "home"})
    assert item["role"] == "user"
    changed = _call(server, "PUT", f"/memories/{id}", {"text": "I moved to Turin."})
    assert changed.json == {"message": "Memory updated successfully!"}
    assert _call(server, "GET", f"/memories/{id}").json["memory"] == "I moved to Turin."
    listed = _call(server, "GET", "/memories", user_id="anna").json["results"]
    assert [(each["id"], each["memory"]) for each in listed] == [(id, "I moved to Turin.")]
    history = _call(server, "GET", f"/memories/{id}/history").json
    assert [(each["event"], each["old_memory"], each["new_memory"]) for each in history] == [
        ("ADD", None, "I moved to Rome."),
        ("UPDATE", "I moved to Rome.", "I moved to Turin."),
    ]
    assert _call(server, "DELETE", f"/memories/{id}").json == {"message": "Memory deleted successfully"}
    assert _call(server, "GET", f"/memories/{id}").status == 404
    (row,) = _call(server, "GET", f"/memories/{id}/history").json
    assert (row["event"], row["old_memory"], row["is_deleted"]) == ("DELETE", None, True)
    assert _call(server, "POST", "/memories", _ROME).json["results"][0]["event"] == "ADD"


def test_what_is_said_is_learned(server: LiveServer) -> None:
    body = {"messages": "I am allergic to peanuts. Please call me Ann.", "user_id": "anna"}
    assert _call(server, "POST", "/memories", body).json["results"]
    found = _call(server, "POST", "/search", {"query": "peanuts", "filters": {"user_id": "anna"}}).json["results"]
    assert "peanuts" in found[0]["memory"]


@pytest.mark.parametrize(
    "body",
    [
        {"user_id": "anna"},
        {"filters": {"user_id": "anna"}},
        {"filters": {"AND": [{"user_id": "anna"}, {"topic": {"in": ["home", "work"]}}]}},
        {"filters": {"OR": [{"user_id": "anna"}, {"agent_id": "nobody"}]}, "limit": 5},
        {"filters": {"user_id": "*", "topic": {"nin": ["work"]}}, "top_k": 5},
        {"filters": {"user_id": {"in": ["anna"]}, "NOT": [{"topic": "work"}]}},
        {"filters": {"user_id": {"in": ["anna", "ben"], "ne": "ben"}}, "threshold": 0.0},
    ],
)
def test_search_takes_old_and_new_arguments(server: LiveServer, body: dict[str, Any]) -> None:
    _call(server, "POST", "/memories", {**_ROME, "metadata": {"topic": "home"}})
    _call(server, "POST", "/memories", {**_ROME, "user_id": "ben", "metadata": {"topic": "work"}})
    results = _call(server, "POST", "/search", {"query": "Rome", **body}).json["results"]
    assert [each["user_id"] for each in results] == ["anna"]
    assert 0 < results[0]["score"] <= 1


def test_somebody_has_to_be_named(server: LiveServer) -> None:
    for method, path, body in (
        ("POST", "/memories", {"messages": "x"}),
        ("GET", "/memories", None),
        ("DELETE", "/memories", None),
        ("POST", "/search", {"query": "x"}),
        ("POST", "/search", {"query": "x", "filters": {"topic": "home"}}),
        ("POST", "/search", {"query": "x", "filters": {"OR": [{"user_id": "anna"}, {"topic": "home"}]}}),
    ):
        answer = _call(server, method, path, body)
        assert (answer.status, "At least one identifier" in answer.json["detail"]) == (400, True)


@pytest.mark.parametrize("id", [{}, {"nin": []}, {"ne": "zzz"}])
def test_filters_that_name_nobody_reach_nobody(server: LiveServer, id: Any) -> None:
    _call(server, "POST", "/memories", _ROME)
    for filters in ({"user_id": id}, {"OR": [{"user_id": "ben"}, {"user_id": id}]}):
        assert _call(server, "POST", "/search", {"query": "Rome", "filters": filters}).status in (400, 422)
    assert _call(server, "POST", "/search", {"query": "Rome", "user_id": id}).status == 422


def test_a_star_beside_filters_is_nobody(server: LiveServer) -> None:
    _call(server, "POST", "/memories", _ROME)
    assert _call(server, "GET", "/memories", user_id="*").json == {"results": []}
    assert _call(server, "POST", "/search", {"query": "Rome", "user_id": "*"}).json == {"results": []}
    assert _call(server, "POST", "/memories", {**_ROME, "user_id": "*"}).status == 422
    assert _call(server, "DELETE", "/memories", user_id="*").status == 422
    assert _call(server, "DELETE", "/entities/user/*").status == 422
    assert len(_call(server, "GET", "/memories", user_id="anna").json["results"]) == 1


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_id_is_refused_and_not_left_aside(server: LiveServer, blank: str) -> None:
    _call(server, "POST", "/memories", {**_ROME, "agent_id": "cook"})
    ids = {"user_id": blank, "agent_id": "cook"}
    assert _call(server, "GET", "/memories", **ids).status == 422
    assert _call(server, "DELETE", "/memories", **ids).status == 422
    assert _call(server, "POST", "/memories", {**_ROME, **ids}).status == 422
    assert _call(server, "POST", "/search", {"query": "Rome", **ids}).status == 422
    assert len(_call(server, "GET", "/memories", agent_id="cook").json["results"]) == 1


def test_deleting_takes_one_person_only(server: LiveServer) -> None:
    for user in ("anna", "ben"):
        _call(server, "POST", "/memories", {**_ROME, "user_id": user, "run_id": "r1"})
    assert _call(server, "DELETE", "/memories", user_id="anna").json == {"message": "All relevant memories deleted"}
    entities = _call(server, "GET", "/entities").json
    assert [(each["type"], each["id"], each["total_memories"]) for each in entities] == [
        ("run", "r1", 1),
        ("user", "ben", 1),
    ]
    assert _call(server, "DELETE", "/entities/run/r1").status == 200
    assert _call(server, "GET", "/entities").json == []


def test_ids_of_others_are_as_unknown_as_any(server: LiveServer) -> None:
    id = _call(server, "POST", "/memories", _ROME).json["results"][0]["id"]
    key = server.services.keys.create("other", tenant="acme")[1]
    unknown = _call(server, "GET", f"/memories/{id[:-4]}AAAA", key=key)
    for method in ("GET", "DELETE"):
        answer = _call(server, method, f"/memories/{id}", key=key)
        assert (
            (answer.status, answer.json["detail"])
            == (unknown.status, unknown.json["detail"])
            == (404, "Memory not found")
        )
    assert _call(server, "GET", "/memories", user_id="anna", key=key).json == {"results": []}


def test_reset_needs_the_right_and_keeps_within_the_tenant(server: LiveServer) -> None:
    _call(server, "POST", "/memories", _ROME)
    admin = server.services.keys.create("admin", tenant="acme")[1]
    plain = server.services.keys.create("plain", tenant="acme", rights=["read", "write", "forget"])[1]
    _call(server, "POST", "/memories", _ROME, key=admin)
    assert _call(server, "POST", "/reset", key=plain).status == 403
    assert _call(server, "POST", "/reset", key=admin).json == {"message": "All memories reset"}
    assert _call(server, "GET", "/memories", user_id="anna", key=admin).json["results"] == []
    assert len(_call(server, "GET", "/memories", user_id="anna").json["results"]) == 1


def test_configure_says_that_it_changed_nothing(server: LiveServer) -> None:
    assert _call(server, "POST", "/configure", {"version": "v1.1"}).json["code"] == "not_supported"


def _call(server: LiveServer, method: str, path: str, body: Any = None, *, key: str = "", **query: str) -> Answer:
    address = f"/compat/mem0{path}" + (f"?{urlencode(query)}" if query else "")
    return server.call(method, address, body, headers={"X-API-Key": key or server.owner})
