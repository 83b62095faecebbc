"""The blocking face and the async face are one: same verbs, same signatures, same results."""

from __future__ import annotations

import asyncio
import copy
import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.steps import steps_of

import eunoe
from eunoe.errors import ClosedError, ConflictError, InputError, LlmError, NotFoundError, ScopeError
from eunoe.memory import (
    Admin,
    AsyncMemory,
    AsyncScopedMemory,
    Corrections,
    Graph,
    Leases,
    Memory,
    ScopedMemory,
    Streams,
    Summaries,
    faces,
)
from eunoe.model.arguments import parse_time
from eunoe.model.result import Lease

ANNA = {"user": "anna"}
PAIRS = [
    (Memory, AsyncMemory),
    (ScopedMemory, AsyncScopedMemory),
    (Streams, faces.AsyncStreams),
    (Summaries, faces.AsyncSummaries),
    (Corrections, faces.AsyncCorrections),
    (Leases, faces.AsyncLeases),
    (Graph, faces.AsyncGraph),
    (Admin, faces.AsyncAdmin),
]
GROUPS = {
    "streams": Streams,
    "summaries": Summaries,
    "corrections": Corrections,
    "leases": Leases,
    "graph": Graph,
    "admin": Admin,
}
BLOCKS = {"renewing"}
"""Verbs that give a block for `with`, or for `async with`."""


def public_verbs(face: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(face, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_faces_have_the_same_verbs(blocking: type, awaited: type) -> None:
    assert public_verbs(blocking) == public_verbs(awaited)


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_faces_take_the_same_arguments(blocking: type, awaited: type) -> None:
    for name in public_verbs(blocking) - {"at", "restricted", "watched", "close"} - BLOCKS:
        ours, theirs = getattr(blocking, name), getattr(awaited, name)
        assert not inspect.iscoroutinefunction(ours)
        assert inspect.iscoroutinefunction(theirs)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs)


def test_everyday_verbs_are_few() -> None:
    assert len(public_verbs(Memory)) <= 28
    for name in public_verbs(ScopedMemory) - {"at", "restricted"}:
        assert "scope" in inspect.signature(getattr(Memory, name)).parameters
        assert "scope" not in inspect.signature(getattr(ScopedMemory, name)).parameters


def test_every_type_that_a_verb_returns_is_exported() -> None:
    builtin = {"None", "bool", "int", "str", "dict", "builtins", "list", "Item", "T"}
    for face in (Memory, *GROUPS.values()):
        for name in public_verbs(face) - BLOCKS:
            returned = str(inspect.signature(getattr(face, name)).return_annotation)
            for word in set(re.findall(r"\w+", returned)) - builtin:
                assert hasattr(eunoe, word), f"{face.__name__}.{name} returns {word}"


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, len(text) % 5, len(text) % 3] for text in texts]


SCRIPT: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("observe", (ANNA, [{"content": "My dog is called Bruno.", "id": "m1"}, {"content": "Nice!", "id": "m2"}]), {}),
    ("observe", (ANNA, {"content": "My dog is called Bruno.", "id": "m1"}), {}),
    ("remember", (ANNA, "Anna has a dog."), {"id": "f1", "files": ["a.py"], "source": ["m1"], "metadata": {"n": 1}}),
    ("remember_many", (ANNA, [{"text": "Anna likes tea.", "id": "f2"}, {"text": "Anna likes tea.", "id": "f2"}]), {}),
    ("recall", (ANNA, "the dog"), {"limit": 3}),
    ("recall", (ANNA, "the dog"), {"where": {"n": {"gte": 1}}}),
    ("by_files", (ANNA, ["a.py"]), {}),
    ("graph.neighbours", (ANNA, "Bruno"), {"limit": 5}),
    ("graph.size", (ANNA,), {}),
    ("graph.extract", (ANNA,), {"limit": 2}),
    ("get", (ANNA, "m1"), {}),
    ("view", (ANNA, "number", lambda: 7), {}),
    ("remember", (ANNA, "Anna has two cats."), {"id": "f3", "replace": True, "metadata": {"n": 2}}),
    ("remember_many", (ANNA, [{"text": "Anna has a cat.", "id": "f3", "label": "pet"}]), {"replace": True}),
    ("get_many", (ANNA, ["m2", "nobody", "f1"]), {}),
    ("list", (ANNA,), {"limit": 2}),
    ("list", (ANNA,), {"where": {"n": {"gte": 2}}, "offset": 0}),
    ("list", (ANNA,), {"limit": 1, "offset": 1}),
    ("list", (ANNA,), {"newest": True, "known_at": "2024-01-02"}),
    ("recent", (), {"limit": 1, "user": "anna"}),
    ("scopes", (), {"user": "anna"}),
    ("history", (ANNA, "f1"), {}),
    ("history", (ANNA, "f3"), {}),
    ("update", (ANNA, "f2", "Anna likes coffee."), {"label": "taste"}),
    ("review", (ANNA, "f1"), {"keep": False}),
    ("review", (ANNA, ["f1"]), {}),
    ("pin", (ANNA, "f1"), {}),
    ("retract", (ANNA, ["m2", "m1"]), {}),
    ("get_many", (ANNA, ["m1", "m2"]), {}),
    ("retract", (ANNA, "m1"), {"retracted": False}),
    ("expire", (ANNA, ["f1", "f3"], "2023-01-01"), {}),
    ("recall", (ANNA, "the dog"), {"limit": 3, "expired": True}),
    ("expire", (ANNA, "f1", None), {}),
    ("admin.export", (ANNA, io.StringIO), {}),
    ("admin.backup", ("backup.db",), {}),
    ("admin.import_", ([json.dumps({"eunoe": 1})],), {}),
    ("preview", (ANNA, "I am allergic to peanuts."), {}),
    ("form", (ANNA,), {}),
    ("flush", (5,), {}),
    ("admin.process_cold_sessions", (), {"idle": 0}),
    ("streams.set_preset", ("team",), {"like": "user", "owner": ["team"]}),
    ("streams.presets", (), {}),
    ("streams.configure", (ANNA,), {"consolidation_trigger": 1}),
    ("summaries.consolidate", (ANNA,), {}),
    ("summaries.write", (ANNA, "Anna has a dog."), {"author": "anna"}),
    ("summaries.write", (ANNA, "Anna has a dog again."), {"base": 0}),
    ("remember", (ANNA, "Anna moved to Rome."), {"id": "o1", "kind": "observation"}),
    ("summaries.write", (ANNA, "Anna lives in Rome."), {"absorbed": ["o1"], "base": 1}),
    ("summaries.write", (ANNA, "Anna lives in Rome."), {"absorbed": ["nothing"]}),
    ("summaries.revisions", (ANNA,), {}),
    ("leases.acquire", (ANNA, "diary"), {"seconds": 60, "data": {"day": 1}}),
    ("leases.acquire", (ANNA, "diary"), {}),
    ("leases.list", (ANNA, "d"), {}),
    ("leases.renew", (ANNA, Lease("diary", "nobody")), {}),
    ("leases.release", (ANNA, Lease("diary", "nobody")), {}),
    ("leases.fail", (ANNA, Lease("diary", "nobody"), "no answer"), {}),
    ("remember_many", (ANNA, ["Anna has a bird."]), {"lease": Lease("diary", "nobody")}),
    ("leases.drop", (ANNA, "diary"), {}),
    ("summaries.restore", (ANNA, 1), {}),
    ("streams.list", (), {"user": "anna"}),
    ("context", (ANNA, "What is the dog called?"), {"tokens": 300}),
    ("context", (ANNA, "What is the dog called?"), {"recipe": "thorough"}),
    ("look_up", (ANNA, "the dog"), {"limit": 2}),
    ("look_up", (ANNA, "the dog"), {"recipe": "thorough"}),
    ("admin.access_counts", (ANNA, ["f1", "m1"]), {}),
    ("admin.test_llm", (), {}),
    ("admin.calls", (), {"limit": 3}),
    ("streams.apply_retention", (ANNA,), {"max_age_days": 1, "dry_run": True}),
    ("streams.unarchive", (ANNA, "nothing"), {}),
    ("corrections.add", (ANNA, "m1", "keep"), {}),
    ("corrections.list", (ANNA,), {}),
    ("corrections.remove", (ANNA, "nothing"), {}),
    ("streams.set_incognito", ({"session": "secret"},), {}),
    ("admin.reindex", (ANNA,), {}),
    ("admin.check", (), {}),
    ("admin.reembed", (), {}),
    ("forget", (ANNA, "m1"), {"verify": True}),
    ("status", (), {}),
    ("get", (ANNA, "nothing"), {}),
    ("close", (), {}),
]


def verb_of(memory: Memory | AsyncMemory, name: str) -> Callable[..., Any]:
    group, _, verb = name.rpartition(".")
    return getattr(getattr(memory, group) if group else memory, verb)


def test_the_script_has_every_verb() -> None:
    grouped = {f"{name}.{verb}" for name, group in GROUPS.items() for verb in public_verbs(group) - BLOCKS}
    assert {name for name, _, _ in SCRIPT} == (public_verbs(Memory) - {"at", "restricted", "watched"}) | grouped


@pytest.fixture
def restart_ids(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """New ids and times that are the same in both runs."""
    numbers = count()

    def restart() -> None:
        nonlocal numbers
        numbers = count()

    for module in ("atoms", "replacement"):
        name = f"eunoe.records.{module}.new_ids"
        monkeypatch.setattr(name, lambda size: [f"new{next(numbers)}" for _ in range(size)])
    monkeypatch.setattr("eunoe.engine.utc_now", lambda: parse_time("2024-01-01"))
    return restart


def without_chance(result: object) -> str:
    """A result without what is different each time: random ids, cursors and the time of day."""
    text = re.sub(r"datetime\.datetime\([^)]*\)", "TIME", repr(result).replace("two.db", "one.db"))
    return re.sub(r"\b([0-9a-f]{24}|[0-9a-f]{16})\b", "ID", re.sub(r"next='[0-9a-f:]+'", "next='CURSOR'", text))


def arguments(values: tuple[Any, ...]) -> list[Any]:
    return [value() if value is io.StringIO else value for value in values]


def test_both_faces_give_the_same_results(
    tmp_path: Path, restart_ids: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocking = []
    memory = eunoe.open(tmp_path / "one.db", embedder=embed, form=False)
    for name, args, kwargs in SCRIPT:
        try:
            blocking.append(without_chance(verb_of(memory, name)(*arguments(args), **kwargs)))
        except (ConflictError, LlmError, NotFoundError) as error:
            blocking.append(str(error))
    restart_ids()

    async def main() -> list[str]:
        results = []
        memory = eunoe.open_async(tmp_path / "two.db", embedder=embed, form=False)
        for name, args, kwargs in SCRIPT:
            try:
                results.append(without_chance(await verb_of(memory, name)(*arguments(args), **kwargs)))
            except (ConflictError, LlmError, NotFoundError) as error:
                results.append(str(error))
        return results

    assert asyncio.run(main()) == blocking


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
