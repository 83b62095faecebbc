"""AsyncMemory: the verbs of Memory, awaited, on a loop that is never held up."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import ClosedError
from eunoe.hosts.mem0 import AsyncMemory, Memory, ValidationError
from eunoe.llm.contract import ScriptedLlm

ANNA = {"user_id": "anna"}


def test_a_memory_lives_as_it_does_there(path: Path) -> None:
    async def main() -> None:
        async with AsyncMemory({"vector_store": {"provider": "eunoe", "config": {"path": str(path)}}}) as memory:
            (added,) = (await memory.add("I moved to Rome.", user_id="anna", infer=False))["results"]
            await memory.update(added["id"], "I moved to Turin.")
            assert (await memory.get(added["id"]))["memory"] == "I moved to Turin."
            assert len((await memory.search("Turin", filters=ANNA))["results"]) == 1
            assert len((await memory.get_all(filters=ANNA))["results"]) == 1
            assert await memory.delete(added["id"]) == {"message": "Memory deleted successfully!"}
            assert [row["event"] for row in await memory.history(added["id"])] == ["DELETE"]
            await memory.delete_all(user_id="anna")
            await memory.reset()
            with pytest.raises(ValidationError):
                await memory.add("x")
            with pytest.raises(NotImplementedError):
                await memory.chat("x")

    asyncio.run(main())


def test_it_has_the_verbs_and_the_arguments_of_the_blocking_one() -> None:
    verbs = [name for name in vars(Memory) if not name.startswith("_") and name not in ("close", "from_config", "chat")]
    for name in verbs:
        assert inspect.iscoroutinefunction(getattr(AsyncMemory, name))
        assert inspect.signature(getattr(AsyncMemory, name)) == inspect.signature(getattr(Memory, name))


def test_older_programs_await_the_making() -> None:
    async def main() -> Any:
        memory = await AsyncMemory.from_config({"vector_store": {"provider": "eunoe", "config": {"path": ":memory:"}}})
        await memory.add("I like tea.", user_id="anna", infer=False)
        found = await memory.get_all(filters=ANNA)
        await asyncio.to_thread(memory.close)
        return found

    assert len(asyncio.run(main())["results"]) == 1


def test_a_closed_memory_says_so(path: Path) -> None:
    async def main() -> None:
        memory = AsyncMemory({"vector_store": {"provider": "eunoe", "config": {"path": str(path)}}})
        await memory.add("I like tea.", user_id="anna", infer=False)
        await asyncio.to_thread(memory.close)
        for call in (memory.get_all(filters=ANNA), memory.add("x", user_id="anna")):
            with pytest.raises(ClosedError, match="was closed: open it again"):
                await call

    asyncio.run(main())


def test_what_many_learn_at_once_is_one_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have looked whether it is known before the first one writes."""
    looked, recall = threading.Barrier(4), eunoe.Memory.recall

    def recall_together(*args: Any, **kwargs: Any) -> Any:
        hits = recall(*args, **kwargs)
        looked.wait(30)
        return hits

    async def main() -> None:
        store = eunoe.open_async(path, embedder="none", llm="none", form=False)
        async with store, AsyncMemory(memory=store) as memory:
            monkeypatch.setattr(eunoe.Memory, "recall", recall_together)
            adding = [memory.add("I am allergic to peanuts.", user_id="anna") for _ in range(4)]
            events = [each for added in await asyncio.gather(*adding) for each in added["results"]]
            found = (await memory.get_all(filters=ANNA))["results"]
        assert [each["memory"] for each in found] == ["I am allergic to peanuts."]
        assert [each["id"] for each in events] == [found[0]["id"]]

    asyncio.run(main())


def test_slow_language_models_hold_up_neither_the_loop_nor_a_search(path: Path) -> None:
    """Eight conversations wait for the model; it answers only after the searches are through."""
    may_answer = threading.Event()

    def answer(prompt: Any) -> Any:
        assert may_answer.wait(30)
        return {"memories": []}

    async def main() -> None:
        store = eunoe.open_async(path, embedder="none", llm=ScriptedLlm(answer), form=False)
        async with store, AsyncMemory(memory=store) as memory:
            adding = [asyncio.create_task(memory.add("I like tea.", user_id=f"u{n}")) for n in range(8)]
            for _ in range(5):
                assert (await memory.search("tea", filters=ANNA))["results"] == []
            assert not any(task.done() for task in adding)
            may_answer.set()
            await asyncio.gather(*adding)

    asyncio.run(main())
