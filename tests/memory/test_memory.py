"""A memory as a whole: opened and closed, awaited, bound, restricted, watched."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.memory.test_verbs import guarded
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import AccessError, ClosedError, InputError, NotFoundError, ScopeError
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


THREADS = 8
OPEN_AND_LIST_MODULES = """
import sys, eunoe
with eunoe.open(":memory:", embedder="none") as memory:
    memory.remember("user=anna", "Anna likes tea.")
    print(*sys.modules)
"""


def test_opening_and_writing_loads_neither_recall_nor_forming_nor_the_network() -> None:
    output = subprocess.run([sys.executable, "-c", OPEN_AND_LIST_MODULES], capture_output=True, text=True, check=True)
    loaded = set(output.stdout.split())
    assert "eunoe.engine" in loaded
    assert loaded.isdisjoint({"asyncio", "email", "http.client", "pydantic", "ssl", "tomllib", "urllib.request"})
    assert not [name for name in loaded if name.startswith(("eunoe.form", "eunoe.index", "eunoe.recall"))]


@pytest.mark.parametrize("part", ["searcher", "contexts", "former", "background"])
def test_threads_share_one_of_each_part(part: str) -> None:
    with eunoe.open(":memory:", embedder="none") as memory, ThreadPoolExecutor(THREADS) as pool:
        start = Barrier(THREADS)

        def take(_: int) -> object:
            start.wait()
            return getattr(memory._engine, part)

        assert len(set(map(id, pool.map(take, range(THREADS))))) == 1


def test_a_memory_that_never_formed_anything_closes() -> None:
    memory = eunoe.open(":memory:", embedder="none")
    memory.close()
    assert "background" not in vars(memory._engine)


def test_an_extractor_that_is_none_is_refused_when_it_is_named() -> None:
    with pytest.raises(InputError, match="finds no names"):
        eunoe.open(":memory:", embedder="none", extractor="nonsense")
