"""A restricted memory, what it tells, and what is made from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.memory.test_verbs import guarded

import eunoe
from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.memory import Memory


@pytest.mark.parametrize("verb", ["scopes", "recent", "streams.list"])
def test_another_tenant_cannot_be_listed(verb: str) -> None:
    memory = guarded("acme")
    with pytest.raises(AccessError, match="tenant"):
        getattr(memory if verb != "streams.list" else memory.streams, verb.rpartition(".")[2])(tenant="bolt")


HERE = "user=anna"


def test_an_error_names_nothing_but_what_was_asked() -> None:
    with pytest.raises(AccessError) as missing:
        guarded("acme", ("tenant=acme/user=anna",)).get("user=ben", "a")
    assert "acme" not in str(missing.value)
    assert "anna" not in str(missing.value)


@pytest.fixture
def opened() -> Iterator[Memory]:
    with eunoe.open(":memory:", embedder="none", form=False) as memory:
        yield memory


def test_a_restriction_can_only_be_narrowed(opened: Memory) -> None:
    acme = opened.restricted("acme", ["user=anna", "agent=cook"], ["read", "write"])
    with pytest.raises(AccessError):
        acme.restricted("bolt")
    with pytest.raises(AccessError):
        acme.restricted(scopes="user=ben")
    with pytest.raises(AccessError):
        acme.restricted(scopes="tenant=bolt/user=anna")
    narrow = acme.restricted(scopes="user=anna/session=s1", rights=["read", "forget"])
    with pytest.raises(AccessError, match="forget"):
        narrow.forget("user=anna/session=s1", everything=True)
    with pytest.raises(AccessError, match="reach"):
        narrow.list("user=anna")
    assert acme.restricted().list("user=anna").items == ()
    with pytest.raises(AccessError, match="reach"):
        acme.restricted().list("user=ben")
    with pytest.raises(AccessError):
        opened.restricted(scopes="tenant=bolt/user=anna").restricted("acme")


def test_what_is_no_restriction_is_refused(opened: Memory) -> None:
    for wrong in ({"tenant": " "}, {"tenant": None}, {"rights": []}, {"rights": ["all"]}, {"scopes": None}):
        with pytest.raises(InputError):
            opened.restricted(**wrong)  # type: ignore[arg-type]


def test_closing_a_restricted_memory_closes_nothing(opened: Memory) -> None:
    with opened.restricted("acme") as acme:
        acme.remember(HERE, "Tea is hot.")
    opened.restricted().close()
    assert len(acme.list(HERE).items) == 1


def test_a_bound_memory_can_be_restricted(opened: Memory) -> None:
    reader = opened.at(HERE).restricted("acme", rights=["read"])
    opened.remember("tenant=acme/user=anna", "Tea is hot.", id="a")
    assert reader.get("a").text == "Tea is hot."
    with pytest.raises(AccessError):
        reader.remember("Tea is cold.")


def test_the_async_face_shares_its_threads(opened: Memory) -> None:
    async def main() -> None:
        memory = eunoe.AsyncMemory(opened)
        async with memory.restricted("acme") as acme, memory.restricted("bolt", rights=["read"]) as bolt:
            await acme.remember(HERE, "Tea is hot.", id="a")
            with pytest.raises(NotFoundError):
                await bolt.get(HERE, "a")
            with pytest.raises(AccessError):
                await bolt.at(HERE).pin("a")
            assert acme._threads is bolt._threads is memory._threads
        assert (await memory.get("tenant=acme/user=anna", "a")).text == "Tea is hot."
        memory._threads.shutdown()

    asyncio.run(main())
