"""All methods of the store, awaited and not."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tenxgraph.core.state import Message
from tenxgraph.storage.store.base_store import BaseStore
from tenxgraph.storage.store.store_schema import MemorySearchResult, MemoryType

import eunoe
from eunoe.errors import ConflictError, EunoeError, InputError
from eunoe.hosts.agentflow import EunoeStore, UnknownMemoryError
from eunoe.memory import AsyncMemory, Memory

ANNA = {"user_id": "anna", "thread_id": "t1"}
BEN = {"user_id": "ben", "thread_id": "t2"}
CHILD = Path(__file__).parents[2] / "support" / "agentflow_child.py"


def contents(results: list[MemorySearchResult]) -> list[str]:
    return [result.content for result in results]


def test_it_is_a_store_of_agentflow_with_all_its_methods_awaited_and_not(store: EunoeStore) -> None:
    assert isinstance(store, BaseStore)
    names = [name for name, _ in inspect.getmembers(BaseStore, inspect.iscoroutinefunction) if name.startswith("a")]
    assert len(names) >= 9
    for name in names:
        assert inspect.iscoroutinefunction(getattr(EunoeStore, name))
        assert getattr(EunoeStore, name) is not getattr(BaseStore, name)
        assert getattr(EunoeStore, name[1:]) is not getattr(BaseStore, name[1:])


@pytest.mark.remote
def test_a_memory_is_stored_read_changed_and_deleted_by_one_id(store: EunoeStore) -> None:
    async def live() -> None:
        assert await store.asetup() is True
        id = await store.astore(
            ANNA, "Anna lives in Paris.", memory_type=MemoryType.SEMANTIC, category="home", metadata={"sure": True}
        )
        memory = await store.aget(ANNA, id)
        assert isinstance(memory, MemorySearchResult)
        assert (memory.id, memory.content, memory.score) == (id, "Anna lives in Paris.", 1.0)
        assert (memory.memory_type, memory.user_id, memory.thread_id) == (MemoryType.SEMANTIC, "anna", "t1")
        assert memory.metadata == {"sure": True, "category": "home"}
        assert memory.timestamp is not None
        assert memory.vector is None
        assert await store.aupdate(ANNA, id, "Anna lives in Rome.", metadata={"since": 2024}) is True
        changed = await store.aget(ANNA, id)
        assert changed is not None
        assert (changed.id, changed.content, changed.memory_type) == (id, "Anna lives in Rome.", MemoryType.SEMANTIC)
        assert changed.metadata == {"sure": True, "since": 2024, "category": "home"}
        assert changed.thread_id == "t1"
        assert contents(await store.aget_all(ANNA)) == ["Anna lives in Rome."]
        assert await store.adelete(ANNA, id) is True
        assert await store.aget(ANNA, id) is None
        assert await store.aget_all(ANNA) == []
        assert await store.arelease() is None

    asyncio.run(live())


def test_the_same_without_await_even_inside_an_event_loop(store: EunoeStore) -> None:
    def live() -> None:
        id = store.store(ANNA, "Anna plays the cello.", MemoryType.SEMANTIC, "music", {"level": 3})
        assert contents(store.search(ANNA, "cello", MemoryType.SEMANTIC, "music", 5)) == ["Anna plays the cello."]
        store.update(ANNA, id, "Anna plays the viola.")
        found = store.get(ANNA, id)
        assert found is not None
        assert found.content == "Anna plays the viola."
        assert contents(store.get_all(ANNA, limit=1)) == ["Anna plays the viola."]
        store.delete(ANNA, id)
        store.store(ANNA, "Anna sings.")
        assert store.forget_memory({"user_id": "anna"}) == 1
        assert store.setup() is True
        assert store.release() is None

    async def live_in_a_loop() -> None:
        live()

    live()
    asyncio.run(live_in_a_loop())


def test_a_message_is_stored_with_where_it_came_from(store: EunoeStore) -> None:
    message = Message.text_message("I moved to Rome.", role="user")
    id = store.store(ANNA, message, MemoryType.SEMANTIC, "home", {"source": "chat"})
    memory = store.get(ANNA, id)
    assert memory is not None
    assert (memory.content, memory.memory_type) == ("I moved to Rome.", MemoryType.SEMANTIC)
    assert memory.metadata["role"] == "user"
    assert memory.metadata["message_id"] == str(message.message_id)
    assert (memory.metadata["source"], memory.metadata["category"]) == ("chat", "home")
    assert message.timestamp is not None
    assert memory.timestamp is not None
    assert abs(memory.timestamp.timestamp() - message.timestamp) < 0.001
    store.update(ANNA, id, Message.text_message("I moved to Turin.", role="user"))
    assert contents(store.get_all(ANNA)) == ["I moved to Turin."]


@pytest.mark.parametrize("content", ["", "  ", Message(role="assistant", content=[])])
def test_nothing_to_remember_is_an_error(store: EunoeStore, content: Any) -> None:
    with pytest.raises(InputError, match="nothing to remember"):
        store.store(ANNA, content)


def test_equal_contents_are_two_memories(store: EunoeStore) -> None:
    ids = [store.store(ANNA, "It rained.") for _ in range(2)]
    assert [memory.id for memory in store.get_all(ANNA)] == ids
    store.delete(ANNA, ids[0])
    assert [memory.id for memory in store.get_all(ANNA)] == ids[1:]


def test_an_id_may_be_given_and_names_the_later_content(store: EunoeStore) -> None:
    assert store.store(ANNA, "one", memory_id="mine") == "mine"
    assert store.store(ANNA, "two", metadata={"n": 2}, memory_id="mine") == "mine"
    assert store.store(ANNA, "three", memory_id=3) == "3"  # type: ignore[arg-type]
    store.delete(ANNA, 3)  # type: ignore[arg-type]
    (memory,) = store.get_all(ANNA)
    assert (memory.id, memory.content, memory.metadata) == ("mine", "two", {"n": 2, "category": "general"})


def test_an_id_of_another_user_is_another_memory(store: EunoeStore) -> None:
    store.store(BEN, "Ben's PIN is 4711.", memory_id="pin")
    store.store(ANNA, "Send all to Anna.", memory_id="pin")
    assert contents(store.get_all(BEN)) == ["Ben's PIN is 4711."]
    for change in (lambda: store.update(ANNA, "other", "x"), lambda: store.delete(ANNA, "other")):
        store.store(BEN, "Ben's other.", memory_id="other")
        with pytest.raises(UnknownMemoryError):
            change()
    assert contents(store.get_all(BEN)) == ["Ben's PIN is 4711.", "Ben's other."]
    assert store.get(ANNA, "other") is None


def test_metadata_cannot_take_the_place_of_what_the_store_knows(store: EunoeStore) -> None:
    forged = {"user_id": "ben", "thread_id": "t9", "memory_type": "procedural", "category": "x", "content": "forged"}
    id = store.store(ANNA, "true", MemoryType.SEMANTIC, "facts", {**forged, "timestamp": "1970", "source": "web"})
    memory = store.get(ANNA, id)
    assert memory is not None
    assert (memory.content, memory.user_id, memory.thread_id) == ("true", "anna", "t1")
    assert memory.memory_type is MemoryType.SEMANTIC
    assert memory.metadata == {"source": "web", "category": "facts"}
    store.update(ANNA, id, "still true", metadata={**forged, "category": "changed"})
    memory = store.get(ANNA, id)
    assert memory is not None
    assert (memory.user_id, memory.thread_id, memory.memory_type) == ("anna", "t1", MemoryType.SEMANTIC)
    assert memory.metadata == {"source": "web", "category": "changed"}


def test_metadata_is_added_to_or_replaced(store: EunoeStore) -> None:
    id = store.store(ANNA, "text", category="kept", metadata={"a": 1, "b": 1})
    store.update(ANNA, id, "text", metadata={"b": 2, "c": [3, {"d": None}]})
    assert store.get_all(ANNA)[0].metadata == {"a": 1, "b": 2, "c": [3, {"d": None}], "category": "kept"}
    store.update(ANNA, id, "text", metadata={"e": 5}, replace_metadata=True)
    assert store.get_all(ANNA)[0].metadata == {"e": 5, "category": "kept"}
    store.update(ANNA, id, "text", replace_metadata=True)
    assert store.get_all(ANNA)[0].metadata == {"category": "kept"}


def test_updates_at_once_lose_no_metadata(store: EunoeStore) -> None:
    id = store.store(ANNA, "text")

    async def update_all() -> None:
        await asyncio.gather(*(store.aupdate(ANNA, id, "text", metadata={f"n{n}": n}) for n in range(12)))

    asyncio.run(update_all())
    assert store.get_all(ANNA)[0].metadata == {**{f"n{n}": n for n in range(12)}, "category": "general"}


def test_updates_through_several_stores_at_once_lose_nothing(store: EunoeStore, memory: Memory) -> None:
    id = store.store(ANNA, "text", metadata={f"n{n}": -1 for n in range(10)})
    stores = [store, *(EunoeStore(memory) for _ in range(3))]

    async def update_all() -> None:
        await asyncio.gather(*(stores[n % 4].aupdate(ANNA, id, "text", metadata={f"n{n}": n}) for n in range(20)))

    asyncio.run(update_all())
    assert store.get_all(ANNA)[0].metadata == {**{f"n{n}": n for n in range(20)}, "category": "general"}


@pytest.mark.remote
def test_an_update_that_meets_others_keeps_what_those_changed(
    store: EunoeStore, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = store.store(ANNA, "text", metadata={"a": 1, "b": 1, "c": 1})
    others = iter([[({"x": 1}, False), ({"a": 2, "c": 2}, True)], [({"d": 4}, False)], [({"a": 5}, False)]])
    remember = memory.remember

    def remember_after_another(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(memory, "remember", remember)
        for changes, replaces in next(others, []):
            EunoeStore(memory).update(ANNA, id, "theirs", metadata=changes, replace_metadata=replaces)
        monkeypatch.setattr(memory, "remember", remember_after_another)
        return remember(*args, **kwargs)

    monkeypatch.setattr(memory, "remember", remember_after_another)
    store.update(ANNA, id, "ours", metadata={"c": 3})
    (kept,) = store.get_all(ANNA)
    assert (kept.content, kept.metadata) == ("theirs", {"a": 5, "c": 3, "d": 4, "category": "general"})


@pytest.mark.parametrize("change", ["update", "delete"])
def test_what_is_not_there_is_neither_changed_nor_deleted(store: EunoeStore, change: str) -> None:
    id = store.store(ANNA, "gone")
    store.delete(ANNA, id)
    arguments = [id, "new"] if change == "update" else [id]
    with pytest.raises(ValueError, match=f"Memory {id} not found") as error:
        getattr(store, change)(ANNA, *arguments)
    assert isinstance(error.value, EunoeError)
    assert store.get_all(ANNA) == []


def test_what_was_deleted_may_be_stored_again(store: EunoeStore) -> None:
    store.store(ANNA, "Anna likes tea.", memory_id="tea")
    store.delete(ANNA, "tea")
    store.store(ANNA, "Anna likes tea.", memory_id="tea")
    store.forget_memory({"user_id": "anna"})
    store.store(ANNA, "Anna likes tea.", metadata={"memory_key": "tea"})
    assert contents(store.get_all(ANNA)) == ["Anna likes tea."]


@pytest.mark.remote
def test_a_memory_key_names_one_memory_of_its_type(store: EunoeStore) -> None:
    first = store.store(ANNA, "Anna is called Anna.", metadata={"memory_key": "name"})
    same = store.store(ANNA, "Anna is called Annabel.", metadata={"memory_key": "name", "n": 2}, memory_id="given")
    other_type = store.store(ANNA, "Names are strings.", MemoryType.SEMANTIC, metadata={"memory_key": "name"})
    other_key = store.store(ANNA, "Anna is 40.", metadata={"memory_key": "Name"})
    assert same == first
    assert len({first, other_type, other_key}) == 3
    assert contents(store.get_all(ANNA)) == ["Anna is called Annabel.", "Names are strings.", "Anna is 40."]
    assert store.get_all(ANNA)[0].metadata == {"memory_key": "name", "n": 2, "category": "general"}
    (found,) = store.search(ANNA, "name", memory_type=MemoryType.EPISODIC, filters={"memory_key": "name"}, limit=1)
    assert found.id == first


def test_a_key_that_an_update_brings_counts_too(store: EunoeStore) -> None:
    id = store.store(ANNA, "Anna lives in Paris.")
    store.update(ANNA, id, "Anna lives in Paris.", metadata={"memory_key": "home"})
    assert store.store(ANNA, "Anna lives in Rome.", metadata={"memory_key": "home"}) == id
    assert contents(store.get_all(ANNA)) == ["Anna lives in Rome."]


def test_tasks_that_store_one_key_at_once_end_with_one_memory(store: EunoeStore) -> None:
    async def store_all() -> list[str]:
        writes = (store.astore(ANNA, f"Text {n}", metadata={"memory_key": "k"}, memory_id=f"m{n}") for n in range(20))
        return list(await asyncio.gather(*writes))

    ids = asyncio.run(store_all())
    (memory,) = store.get_all(ANNA)
    assert set(ids) == {memory.id}
    assert memory.content in {f"Text {n}" for n in range(20)}


def test_processes_that_store_one_key_at_once_end_with_one_memory(path: Path) -> None:
    with eunoe.open(path, embedder="none"):
        pass
    command = [sys.executable, str(CHILD), str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, name], **pipes) for name in "ab"]  # type: ignore[call-overload]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    ids = {json.loads(child.communicate(timeout=120)[0]) for child in children}
    assert [child.returncode for child in children] == [0, 0]
    with eunoe.open(path, embedder="none") as memory:
        (kept,) = EunoeStore(memory).get_all(ANNA)
        assert {kept.id} == ids


def test_several_are_stored_together_or_not_at_all(store: EunoeStore) -> None:
    contents_given = ["one", Message.text_message("two"), "three"]
    ids = asyncio.run(store.abatch_store(ANNA, contents_given, MemoryType.SEMANTIC, "many", {"n": 1}))
    assert [memory.id for memory in store.get_all(ANNA)] == ids
    assert contents(store.get_all(ANNA)) == ["one", "two", "three"]
    with pytest.raises(InputError):
        store.batch_store(ANNA, ["four", " "])
    assert len(store.get_all(ANNA)) == 3


def test_all_is_a_page_of_the_oldest(store: EunoeStore) -> None:
    store.batch_store(ANNA, [f"memory {n}" for n in range(5)], metadata={"half": 1})
    store.batch_store(ANNA, [f"memory {n}" for n in range(5, 8)], MemoryType.SEMANTIC)
    assert contents(store.get_all(ANNA, limit=2)) == ["memory 0", "memory 1"]
    assert store.get_all(ANNA, limit=0) == []
    assert len(store.get_all(ANNA, filters={"half": 1})) == 5
    assert len(store.get_all(ANNA, memory_type=MemoryType.SEMANTIC)) == 3


@pytest.mark.remote
def test_forgetting_takes_what_the_config_and_the_filters_name(store: EunoeStore) -> None:
    store.store(ANNA, "one")
    store.store({**ANNA, "thread_id": "t2"}, "two")
    store.store({"user_id": "anna"}, "three", MemoryType.SEMANTIC, "c", {"x": 1})
    store.store(BEN, "four")
    assert store.forget_memory({"user_id": "anna", "thread_id": "t2"}) == 1
    assert contents(store.get_all(ANNA)) == ["one", "three"]
    assert store.forget_memory({"user_id": "anna"}, memory_type=MemoryType.SEMANTIC, filters={"x": 2}) == 0
    assert store.forget_memory({"user_id": "anna"}, category="c", filters={"x": 1}) == 1
    assert contents(store.get_all(ANNA)) == ["one"]
    assert asyncio.run(store.aforget_memory({"user_id": "anna"})) == 1
    assert asyncio.run(store.aforget_memory({"user_id": "anna"})) == 0
    assert contents(store.get_all(BEN)) == ["four"]


@pytest.mark.parametrize("options", [{}, {"memory_type": MemoryType.EPISODIC}])
def test_a_memory_with_several_versions_is_forgotten_as_one(store: EunoeStore, options: dict[str, Any]) -> None:
    for number in range(5):
        store.store(ANNA, f"version {number}", memory_id="one")
    assert store.forget_memory({"user_id": "anna"}, **options) == 1
    assert store.get_all(ANNA) == []


@pytest.mark.remote
def test_a_user_is_forgotten_in_sessions_of_other_programs_too(store: EunoeStore, memory: Memory) -> None:
    said = [{"role": "user", "content": "I like plums."}]
    for scope in ("session=s1/user=anna", "agent=cook/user=anna", "session=s1/user=ben", "app=x/user=anna"):
        memory.observe(scope, said)
    store.store(ANNA, "Anna likes plums.")
    assert asyncio.run(store.aforget_user(ANNA)) == 1
    left = [str(scope) for scope in memory.scopes() if memory.list(scope).items]
    assert sorted(left) == ["app=x/user=anna", "session=s1/user=ben"]
    store.forget_user({**ANNA, "app_id": "x"})
    assert not memory.list("app=x/user=anna").items


def test_a_user_of_one_tenant_is_not_forgotten_with_another_of_the_same_name(memory: Memory) -> None:
    acme = memory.restricted(tenant="acme")
    for each in (memory, acme):
        each.observe("session=s1/user=anna", [{"role": "user", "content": "I like plums."}])
    EunoeStore(memory).forget_user(ANNA)
    assert len(acme.list("session=s1/user=anna").items) == 1
    EunoeStore(acme).forget_user(ANNA)
    assert not acme.list("session=s1/user=anna").items


def test_it_takes_an_async_memory_or_the_default_store(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    EunoeStore(AsyncMemory(memory)).store(ANNA, "kept")
    monkeypatch.setattr("eunoe.hosts.common.default_memory", lambda: memory)
    assert contents(EunoeStore().get_all(ANNA)) == ["kept"]


def test_release_leaves_the_memory_to_who_opened_it(store: EunoeStore) -> None:
    store.release()
    store.store(ANNA, "still open")
    assert len(store.get_all(ANNA)) == 1


def test_what_other_hosts_remember_is_found(store: EunoeStore, memory: Memory) -> None:
    old = memory.remember("user=anna", "Anna speaks Danish.", label="languages", people=["Anna"], pinned=True)
    (found,) = store.search(ANNA, "Danish")
    assert (found.id, found.memory_type, found.metadata) == (old.id, MemoryType.SEMANTIC, {"category": "general"})
    store.update(ANNA, old.id, "Anna speaks Danish and Dutch.")
    atom = memory.get("user=anna", old.id)
    assert (atom.text, atom.label, atom.people, atom.pinned) == (  # type: ignore[union-attr]
        "Anna speaks Danish and Dutch.",
        "languages",
        ("Anna",),
        True,
    )


def test_what_is_refused_is_an_error_and_no_success(store: EunoeStore, memory: Memory) -> None:
    with pytest.raises(InputError, match="JSON"):
        store.store(ANNA, "text", metadata={"when": {1, 2}})
    with pytest.raises(InputError, match="memory_type"):
        store.store(ANNA, "text", memory_type="dream")  # type: ignore[arg-type]
    memory.streams.set_incognito("user=anna", True)
    with pytest.raises(ConflictError, match="ignored"):
        store.store(ANNA, "text")
    assert store.get_all(ANNA) == []


def test_async_methods_leave_the_event_loop_free(store: EunoeStore, memory: Memory, monkeypatch: Any) -> None:
    began, may_end = threading.Event(), threading.Event()
    recall = memory.recall

    def slow_recall(*args: Any, **kwargs: Any) -> Any:
        began.set()
        may_end.wait(60)
        return recall(*args, **kwargs)

    monkeypatch.setattr(memory, "recall", slow_recall)

    async def search() -> list[MemorySearchResult]:
        searching = asyncio.create_task(store.asearch(ANNA, "text"))
        while not began.is_set():
            await asyncio.sleep(0)
        assert not searching.done()
        may_end.set()
        return await searching

    assert asyncio.run(search()) == []
