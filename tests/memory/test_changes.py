"""A watched memory tells of every change, and of no question."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Change, Memory

CHANGES = {
    "observe": lambda memory: memory.observe("user=anna", ["I like tea.", "And cake."]),
    "remember": lambda memory: memory.at("user=anna").remember("Anna likes tea."),
    "update": lambda memory: memory.update("user=anna", "one", "Anna likes coffee."),
    "expire": lambda memory: memory.expire("user=anna", "one", "2024-01-01"),
    "retract": lambda memory: memory.retract("user=anna", "said"),
    "pin": lambda memory: memory.pin("user=anna", "one"),
    "forget": lambda memory: memory.forget("user=anna", ids=["one"]),
    "form": lambda memory: memory.form("user=anna"),
    "configure": lambda memory: memory.streams.configure("user=anna", formation_messages=3),
    "set_preset": lambda memory: memory.streams.set_preset("mine", like="user"),
    "apply_retention": lambda memory: memory.streams.apply_retention("user=anna"),
    "correct": lambda memory: memory.corrections.add("user=anna", "one", "drop"),
    "set_incognito": lambda memory: memory.streams.set_incognito("user=anna/session=s1"),
    "write": lambda memory: memory.summaries.write("user=anna", "Likes tea."),
    "consolidate": lambda memory: memory.summaries.consolidate("user=anna"),
    "reindex": lambda memory: memory.admin.reindex("user=anna"),
    "import": lambda memory: memory.admin.import_([]),
    "process_cold_sessions": lambda memory: memory.admin.process_cold_sessions(),
}
QUESTIONS = [
    lambda memory: memory.recall("user=anna", "tea"),
    lambda memory: memory.context("user=anna", "tea?"),
    lambda memory: memory.look_up("user=anna", "tea"),
    lambda memory: memory.get("user=anna", "one"),
    lambda memory: memory.get_many("user=anna", ["one"]),
    lambda memory: memory.list("user=anna"),
    lambda memory: memory.recent(),
    lambda memory: memory.view("user=anna", "count", lambda: 7),
    lambda memory: memory.leases.acquire("user=anna", "work"),
    lambda memory: memory.by_files("user=anna", ["a.py"]),
    lambda memory: memory.scopes(),
    lambda memory: memory.history("user=anna", "one"),
    lambda memory: memory.status(),
    lambda memory: memory.flush(),
    lambda memory: memory.streams.list(),
    lambda memory: memory.streams.presets(),
    lambda memory: memory.summaries.revisions("user=anna"),
    lambda memory: memory.corrections.list("user=anna"),
    lambda memory: memory.graph.neighbours("user=anna"),
    lambda memory: memory.graph.size("user=anna"),
    lambda memory: memory.admin.access_counts("user=anna", ["one"]),
    lambda memory: memory.admin.check(),
]


@pytest.fixture
def changes(memory: Memory) -> list[Change]:
    memory.remember("user=anna", "Anna lives in Rome.", id="one")
    memory.observe("user=anna", {"content": "I moved.", "id": "said"})
    return []


@pytest.mark.parametrize("verb", CHANGES)
def test_every_change_is_told(memory: Memory, changes: list[Change], verb: str) -> None:
    CHANGES[verb](memory.watched(changes.append))
    assert [change.verb for change in changes] == [verb]
    assert [change.error for change in changes] == [None]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_is_told(memory: Memory, changes: list[Change], question) -> None:
    question(memory.watched(changes.append))
    assert changes == []


def test_it_tells_the_whole_scope_and_how_much(memory: Memory, changes: list[Change]) -> None:
    acme = memory.restricted(tenant="acme").watched(changes.append)
    acme.observe("user=anna", ["One.", "Two."])
    acme.observe("user=anna", ["One.", "Two."])
    assert [(str(change.scopes[0]), change.count) for change in changes] == [
        ("tenant=acme/user=anna", 2),
        ("tenant=acme/user=anna", 0),
    ]


def test_a_change_that_failed_is_told(memory: Memory, changes: list[Change]) -> None:
    with pytest.raises(NotFoundError):
        memory.watched(changes.append).update("user=anna", "nothing", "Words.")
    assert [(change.verb, type(change.error), change.count) for change in changes] == [("update", NotFoundError, 0)]


def test_whatever_is_made_from_it_is_watched_too(memory: Memory, changes: list[Change]) -> None:
    watched = memory.watched(changes.append)
    watched.restricted(tenant="acme").at(user="anna").remember("One.")
    with pytest.raises(AccessError):
        watched.restricted(rights=["read"]).remember("user=anna", "Two.")
    assert [change.verb for change in changes] == ["remember"]


def test_awaited_verbs_are_watched_too(path: Path) -> None:
    changes: list[Change] = []

    async def main() -> None:
        async with eunoe.open_async(path, embedder="none") as memory:
            watched = memory.watched(changes.append)
            await watched.remember("user=anna", "One.")
            await watched.at(user="anna").observe(["Two."])
            await watched.streams.configure("user=anna", formation_messages=3)

    asyncio.run(main())
    assert [change.verb for change in changes] == ["remember", "observe", "configure"]


def test_closing_it_closes_nothing(memory: Memory, changes: list[Change]) -> None:
    memory.watched(changes.append).close()
    assert memory.get("user=anna", "one")
