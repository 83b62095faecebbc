"""The blocking face and the async face are one: same verbs, same signatures, same results."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import re

import pytest

import eunoe
from eunoe.engine import Memory
from eunoe.errors import ClosedError, LlmError, NotFoundError
from eunoe.memory import Memory

ANNA = {"user": "anna"}
VERBS = sorted(
    name for name, verb in inspect.getmembers(Memory, inspect.iscoroutinefunction) if not name.startswith("_")
)


def test_the_verbs_are_these():
    wanted = {
        "observe",
        "remember",
        "remember_many",
        "recall",
        "by_files",
        "get",
        "list",
        "scopes",
        "history",
        "update",
    }
    wanted |= {"pin", "forget", "export", "import_", "status", "reindex", "re_embed", "close"}
    assert wanted <= set(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_blocking_twin(name):
    ours, theirs = getattr(Memory, name), getattr(Memory, name)
    assert not inspect.iscoroutinefunction(ours)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert inspect.getdoc(ours) == inspect.getdoc(theirs)


def test_there_is_no_verb_on_one_face_only():
    public = {name for name, verb in inspect.getmembers(Memory, callable) if not name.startswith("_")}
    assert public == set(VERBS)


def embed(texts):
    return [[1.0, len(text) % 5, len(text) % 3] for text in texts]


SCRIPT = [
    ("observe", (ANNA, [{"content": "My dog is called Bruno.", "id": "m1"}, {"content": "Nice!", "id": "m2"}]), {}),
    ("observe", (ANNA, {"content": "My dog is called Bruno.", "id": "m1"}), {}),
    ("remember", (ANNA, "Anna has a dog."), {"id": "f1", "files": ["a.py"], "source": ["m1"]}),
    ("remember_many", (ANNA, [{"text": "Anna likes tea.", "id": "f2"}, {"text": "Anna likes tea.", "id": "f2"}]), {}),
    ("recall", (ANNA, "the dog"), {"limit": 3}),
    ("by_files", (ANNA, ["a.py"]), {}),
    ("graph", (ANNA, "Bruno"), {"limit": 5}),
    ("associate", (ANNA,), {"limit": 2}),
    ("get", (ANNA, "m1"), {}),
    ("list", (ANNA,), {"limit": 2}),
    ("scopes", (), {"user": "anna"}),
    ("history", (ANNA, "f1"), {}),
    ("update", (ANNA, "f2", "Anna likes coffee."), {"label": "taste"}),
    ("pin", (ANNA, "f1"), {}),
    ("export", (ANNA, io.StringIO), {}),
    ("import_", ([json.dumps({"eunoe": 1})],), {}),
    ("form", (ANNA,), {}),
    ("flush", (5,), {}),
    ("process_cold_sessions", (), {"idle": 0}),
    ("preset", ("team",), {"like": "user", "owner": ["team"]}),
    ("presets", (), {}),
    ("configure", (ANNA,), {"consolidation_trigger": 1}),
    ("consolidate", (ANNA,), {}),
    ("revise", (ANNA, "Anna has a dog."), {"author": "anna"}),
    ("revisions", (ANNA,), {}),
    ("restore", (ANNA, 1), {}),
    ("streams", (), {"user": "anna"}),
    ("context", (ANNA, "What is the dog called?"), {"tokens": 300}),
    ("context", (ANNA, "What is the dog called?"), {"recipe": "thorough"}),
    ("look_up", (ANNA, "the dog"), {"limit": 2}),
    ("look_up", (ANNA, "the dog"), {"recipe": "thorough"}),
    ("uses", (ANNA, ["f1", "m1"]), {}),
    ("tidy", (ANNA,), {"max_age_days": 1, "dry_run": True}),
    ("unarchive", (ANNA, "nothing"), {}),
    ("incognito", ({"session": "secret"},), {}),
    ("reindex", (ANNA,), {}),
    ("re_embed", (), {}),
    ("forget", (ANNA, "m1"), {"verify": True}),
    ("status", (), {}),
    ("get", (ANNA, "nothing"), {}),
    ("close", (), {}),
]


@pytest.fixture
def steady(monkeypatch):
    """New ids and times that are the same in both runs."""
    numbers = iter(range(10_000))
    monkeypatch.setattr("eunoe.records.atoms.new_ids", lambda count: [f"new{next(numbers)}" for _ in range(count)])
    monkeypatch.setattr("eunoe.core.now", lambda: eunoe.model.time.parse_time("2024-01-01"))

    def again():
        nonlocal numbers
        numbers = iter(range(10_000))

    return again


def made(arguments):
    return [one() if one is io.StringIO else one for one in arguments]


def plain(result):
    """What a verb gave, without what is different each time: ids made by chance and the time of day."""
    text = re.sub(r"datetime\.datetime\([^)]*\)|last=\d{16}", "TIME", repr(result).replace("two.db", "one.db"))
    return re.sub(r"\b[0-9a-f]{24}\b", "ID", text)


def test_both_faces_give_the_same_results(tmp_path, steady):
    assert {name for name, _, _ in SCRIPT} == set(VERBS)
    blocking = []
    memory = eunoe.open(tmp_path / "one.db", embedder=embed).sync
    for name, args, kwargs in SCRIPT:
        try:
            blocking.append(plain(getattr(memory, name)(*made(args), **kwargs)))
        except (LlmError, NotFoundError) as error:
            blocking.append(str(error))
    steady()

    async def main():
        results = []
        memory = eunoe.open(tmp_path / "two.db", embedder=embed)
        for name, args, kwargs in SCRIPT:
            try:
                results.append(plain(await getattr(memory, name)(*made(args), **kwargs)))
            except (LlmError, NotFoundError) as error:
                results.append(str(error))
        return results

    assert asyncio.run(main()) == blocking


def test_a_closed_memory_says_so(path):
    memory = eunoe.open(path, embedder="none")
    with memory as face:
        face.observe(ANNA, "hi")
    face.close()
    with pytest.raises(ClosedError):
        face.list(ANNA)

    async def main():
        with pytest.raises(ClosedError):
            await memory.list(ANNA)
        await memory.close()

    asyncio.run(main())


def test_the_blocking_face_works_inside_a_running_loop(path):
    async def main():
        with eunoe.open(path, embedder="none") as memory:
            memory.observe(ANNA, "hi")
            return [item.text for item in memory.list(ANNA).items]

    assert asyncio.run(main()) == ["hi"]


def test_one_memory_has_one_blocking_face(path):
    memory = eunoe.open(path, embedder="none")
    assert memory.sync is memory.sync
    assert memory.sync.memory is memory
    memory.sync.close()


def test_errors_are_those_of_the_verb(memory):
    with pytest.raises(NotFoundError, match="nothing"):
        memory.get(ANNA, "nothing")
    with pytest.raises(TypeError):
        memory.get(ANNA)


def test_the_async_verbs_do_not_block_the_loop(path):
    async def main():
        async with eunoe.open(path, embedder="none") as memory:
            await memory.remember(ANNA, "one")
            store = memory._engine.store
            inside, go_on = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def hold():
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
