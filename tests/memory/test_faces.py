"""The faces of a memory: closing, awaiting, binding."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import ClosedError, InputError, NotFoundError, ScopeError
from eunoe.memory import (
    Memory,
)

ANNA = {"user": "anna"}


def test_a_closed_memory_says_so(path: Path) -> None:
    with eunoe.open(path, embedder="none") as memory:
        memory.observe(ANNA, "hi")
    memory.close()
    with pytest.raises(ClosedError):
        memory.list(ANNA)

    async def main() -> None:
        memory = eunoe.open_async(path)
        await memory.close()
        await memory.close()
        with pytest.raises((ClosedError, RuntimeError)):
            await memory.list(ANNA)

    asyncio.run(main())


def test_a_memory_that_nobody_closes_loses_nothing(path: Path) -> None:
    script = (
        "import sys, eunoe\n"
        "memory = eunoe.open(sys.argv[1])\n"
        "print(memory.remember('user=anna', 'Anna plays the cello.').outcome)\n"
        "print(memory.observe('user=anna', 'I play the cello.')[0].outcome)\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["stored", "stored"]
    with eunoe.open(path) as memory:
        assert len(memory.list(ANNA).items) == 2
        assert {hit.kind for hit in memory.recall(ANNA, "Which instrument?")} == {"message", "fact"}


def test_the_blocking_face_works_inside_a_running_loop(path: Path) -> None:
    async def main() -> list[str]:
        with eunoe.open(path, embedder="none") as memory:
            memory.observe(ANNA, "hi")
            return [item.text for item in memory.list(ANNA).items]

    assert asyncio.run(main()) == ["hi"]


def test_an_async_memory_has_a_blocking_face(path: Path) -> None:
    async def main() -> None:
        async with eunoe.open_async(path, embedder="none") as memory:
            memory.blocking.remember(ANNA, "one")
            assert [item.text for item in (await memory.list(ANNA)).items] == ["one"]

    asyncio.run(main())


def test_errors_are_those_of_the_verb(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="nothing"):
        memory.get(ANNA, "nothing")
    with pytest.raises(TypeError):
        memory.get(ANNA)  # type: ignore[call-arg]


def test_the_async_verbs_do_not_block_the_loop(path: Path) -> None:
    async def main() -> None:
        async with eunoe.open_async(path, embedder="none") as memory:
            await memory.remember(ANNA, "one")
            store = steps_of(memory.blocking)
            inside, go_on = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def hold() -> None:
                with store.writing():
                    loop.call_soon_threadsafe(inside.set)
                    asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

            holder = loop.run_in_executor(None, hold)
            await inside.wait()
            waiting = asyncio.ensure_future(memory.remember(ANNA, "two"))
            assert (await memory.get(ANNA, (await memory.list(ANNA)).items[0].id)).text == "one"
            assert not waiting.done()
            go_on.set()
            await holder
            assert (await waiting).outcome == "stored"

    asyncio.run(main())


class TestScopedMemory:
    def test_its_verbs_need_no_scope(self, memory: Memory) -> None:
        anna = memory.at(user="anna", agent="cook")
        receipt = anna.remember("Anna likes garlic.", id="f1")
        assert receipt.outcome == "stored"
        assert anna.get("f1") == memory.get("agent=cook/user=anna", "f1")
        assert [hit.id for hit in anna.recall("garlic")] == ["f1"]
        assert anna.update("f1", "Anna likes no garlic.").outcome == "superseded"
        assert anna.forget(everything=True).total == 2

    def test_it_takes_a_scope_as_any_verb_does(self, memory: Memory) -> None:
        assert memory.at("user=anna").scope == memory.at({"user": "anna"}).scope == memory.at(user_id="anna").scope
        assert memory.at("user=anna", session="7").scope == eunoe.Scope(user="anna", session="7")
        with pytest.raises(ScopeError):
            memory.at()
        with pytest.raises(ScopeError):
            memory.at(user="")

    def test_it_cannot_be_changed(self, memory: Memory) -> None:
        anna = memory.at(user="anna")
        with pytest.raises(AttributeError, match="bind another"):
            anna.scope = eunoe.Scope(user="ben")
        with pytest.raises(AttributeError):
            anna.other = 1  # type: ignore[attr-defined]
        narrower = anna.at(session="7")
        assert (anna.scope.text, narrower.scope.text) == ("user=anna", "session=7/user=anna")

    def test_it_can_be_awaited(self, path: Path) -> None:
        async def main() -> tuple[str, str]:
            async with eunoe.open_async(path, embedder="none") as memory:
                anna = memory.at(user="anna").at(agent="cook")
                await anna.observe("I like garlic.")
                hits = await anna.recall("garlic")
                return hits[0].text, repr(anna)

        text, shown = asyncio.run(main())
        assert text == "I like garlic."
        assert shown == f"AsyncMemory({str(path)!r}).at('agent=cook/user=anna')"


def test_both_faces_say_that_they_are_closed() -> None:
    memory = eunoe.open_async(":memory:", embedder="none")
    asyncio.run(memory.close())
    with pytest.raises(ClosedError):
        asyncio.run(memory.recall(ANNA, "tea"))
    with pytest.raises(ClosedError):
        memory.blocking.recall(ANNA, "tea")


def test_a_bound_memory_stays_what_it_is() -> None:
    with eunoe.open(":memory:", embedder="none") as memory:
        anna = memory.at(user="anna")
        for change in (lambda: delattr(anna, "scope"), lambda: setattr(anna, "scope", eunoe.Scope(user="ben"))):
            with pytest.raises(AttributeError, match="cannot be changed"):
                change()
        assert copy.copy(anna) == anna == memory.at(user="anna") != memory.at(user="ben")
        assert len({anna, memory.at(user="anna"), memory.at(user="ben")}) == 2


def test_a_scope_that_all_share_cannot_be_changed() -> None:
    scope = eunoe.Scope.parse("user=ben")
    for change in (lambda: setattr(scope, "text", "user=anna"), lambda: delattr(scope, "pairs")):
        with pytest.raises(AttributeError, match="cannot be changed"):
            change()
    assert eunoe.Scope.parse("user=ben").text == "user=ben"


def test_other_names_of_keys_are_understood_where_scopes_are_looked_for() -> None:
    with eunoe.open(":memory:", embedder="none") as memory:
        memory.remember({"user_id": "anna"}, "Anna likes tea.")
        assert memory.scopes(user_id="anna") == memory.scopes(user="anna") == [eunoe.Scope(user="anna")]
        assert len(memory.streams.list(user_id="anna")) == 1
        memory.observe(ANNA, {"role": "user", "content": "Hello.", "session_id": "s1"})
        assert [hit.id for hit in memory.recall(ANNA, "hello", sessions=["s1"])]


def test_what_a_verb_returns_is_short_to_look_at() -> None:
    with eunoe.open(":memory:", embedder="none") as memory:
        memory.remember_many(ANNA, [f"fact {number} " + "word " * 500 for number in range(50)])
        assert len(repr(memory.list(ANNA))) < 800
        assert len(repr(memory.recall(ANNA, "word", limit=1))) < 200
        assert repr(memory.streams) == "Streams of ':memory:'"
        assert "holds nothing" in repr(memory.recall("agent=x/user=anna", "word"))


def test_a_time_limit_that_is_no_number_is_refused() -> None:
    with eunoe.open(":memory:", embedder="none") as memory, pytest.raises(InputError, match="timeout"):
        memory.flush("soon")  # type: ignore[arg-type]
