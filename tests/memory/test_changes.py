"""What a watched memory tells of a change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import eunoe
from eunoe.errors import AccessError, NotFoundError
from eunoe.memory import Change, Memory


@pytest.fixture
def changes(memory: Memory) -> list[Change]:
    memory.remember("user=anna", "Anna lives in Rome.", id="one")
    memory.observe("user=anna", {"content": "I moved.", "id": "said"})
    return []


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
    assert [change.verb for change in changes] == ["remember", "observe", "streams.configure"]


def test_closing_it_closes_nothing(memory: Memory, changes: list[Change]) -> None:
    memory.watched(changes.append).close()
    assert memory.get("user=anna", "one")
