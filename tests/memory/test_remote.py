"""A memory behind a server is the memory in the process: same verbs, same arguments, same results, same errors."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.live_server import LiveServer
from tests.verbs import EXAMPLES, call, embed, method, verbs

import eunoe
from eunoe.errors import AccessError, ClosedError, EunoeError, InputError, NotFoundError, ScopeError
from eunoe.memory import Memory
from eunoe.model.result import Lease
from eunoe.server.config import ServerConfig

ANNA = "user=anna"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    store = tmp_path_factory.mktemp("server") / "memory.db"
    server = LiveServer(ServerConfig(target=str(store), port=0, embedder=embed, llm="none"))
    yield server
    server.stop()


@pytest.fixture
def remote(server: LiveServer) -> Iterator[Memory]:
    with eunoe.connect(server.origin, server.owner) as memory:
        yield memory


def test_a_server_has_no_leases_and_says_so(remote: Memory) -> None:
    for verb in verbs(group="leases"):
        with pytest.raises(AccessError, match="has no leases"):
            call(remote, verb.name, EXAMPLES[verb.name])
    with pytest.raises(AccessError):
        remote.leases.renewing(ANNA, Lease("diary", "nobody"))
    with pytest.raises(InputError, match="Lease cannot be sent"):
        remote.remember_many(ANNA, ["Anna likes tea."], lease=Lease("diary", "nobody"))


def test_hits_are_equal_in_every_part(server: LiveServer, remote: Memory) -> None:
    remote.observe("user=parts", [{"content": "My dog is called Bruno.", "name": "Anna", "time": "2024-05-01"}])
    remote.remember("user=parts", "Anna has a dog.", people=["Anna"], files=["a.py"], metadata={"n": [1, {"x": None}]})
    here = server.services.memory.blocking.recall("user=parts", "the dog", now="2024-06-01")
    there = remote.recall("user=parts", "the dog", now="2024-06-01")
    assert there == here
    assert [hit.item for hit in there] == [hit.item for hit in here]
    assert [(hit.scope, hit.source, hit.time, hit.reasons) for hit in there] == [
        (hit.scope, hit.source, hit.time, hit.reasons) for hit in here
    ]
    assert remote.list("user=parts") == server.services.memory.blocking.list("user=parts")


def arguments(values: tuple[Any, ...]) -> list[Any]:
    return [value() if value is io.StringIO else value for value in values]


BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("observe", ({}, "hi"), {}),
    ("observe", (ANNA, 7), {}),
    ("observe", (ANNA, [{"content": "a"}, {"role": "user"}]), {}),
    ("remember", (ANNA, " "), {}),
    ("remember", (ANNA, "half \ud800 pair"), {}),
    ("remember", (ANNA, "x"), {"metadata": {"a": {1, 2}}}),
    ("remember", (ANNA, "x"), {"source": ["@user=eve#m1"]}),
    ("remember_many", (ANNA, [{"txt": "x"}]), {}),
    ("recall", (ANNA, ""), {}),
    ("recall", (ANNA, "x"), {"limit": 0}),
    ("recall", (ANNA, "x"), {"since": "soon"}),
    ("recall", (ANNA, "x"), {"recipe": "none such"}),
    ("recall", ([], "x"), {}),
    ("context", (ANNA, "x"), {"format": "pdf"}),
    ("get", (ANNA, ""), {}),
    ("list", (ANNA,), {"after": "xyz"}),
    ("list", (ANNA,), {"kinds": ["dream"]}),
    ("update", (ANNA, "nothing", "x"), {}),
    ("forget", (ANNA,), {}),
    ("forget", (ANNA, "a"), {"everything": True}),
    ("scopes", (), {"user": ""}),
    ("streams.configure", (ANNA,), {"no_such_setting": 1}),
    ("summaries.restore", (ANNA, 9), {}),
    ("graph.neighbours", (ANNA, "Nobody"), {}),
    ("admin.export", ("user=nobody", io.StringIO), {}),
    ("admin.import", (["no JSON"],), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_errors_are_the_same(
    server: LiveServer, remote: Memory, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    told = []
    for memory in (server.services.memory.blocking, remote):
        with pytest.raises(EunoeError) as caught:
            method(memory, name)(*arguments(args), **kwargs)
        told.append(caught.type)
    assert told[0] == told[1]


def test_arguments_are_taken_in_every_form(remote: Memory) -> None:
    scope = eunoe.Scope(user="forms", session=7)
    remote.observe(scope, (each for each in [eunoe.Message(text="one", speaker="Ann", id="m/1 ?#%2F")]))
    assert remote.get({"user": "forms", "session": 7}, "m/1 ?#%2F").text == "one"
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    remote.remember(scope, "two", time=moment.timestamp(), vector=np.array([1, 0, 0], np.float32), files={"a.py"})
    assert [atom.text for atom in remote.by_files(scope, "a.py")] == ["two"]
    assert [atom.time for atom in remote.list(scope, kinds="fact", labels=None).items] == [moment]  # type: ignore[arg-type]
    assert [hit.text for hit in remote.recall([scope], "two", since=moment, vector=np.array([1, 0, 0]))] == ["two"]
    assert remote.look_up(scope, ["two", "one"]) != []


def test_a_recipe_of_ones_own_cannot_be_sent(remote: Memory) -> None:
    from eunoe.recall.recipes import RECIPES

    with pytest.raises(InputError, match="cannot be sent"):
        remote.recall(ANNA, "x", recipe=RECIPES["default"])


def test_a_long_page_is_put_together(remote: Memory) -> None:
    remote.remember_many("user=many", [f"Fact {number}." for number in range(700)])
    page = remote.list("user=many", limit=600)
    assert [item.text for item in page.items] == [f"Fact {number}." for number in range(600)]
    assert [item.text for item in remote.list("user=many", after=page.next).items][:1] == ["Fact 600."]


def test_an_export_moves_to_another_server(remote: Memory, tmp_path: Path) -> None:
    remote.remember("user=moves", "Anna\u2028likes tea.", id="f1")
    told: list[int] = []
    assert remote.admin.export("user=moves", tmp_path / "export.jsonl", progress=told.append) >= 1
    remote.forget("user=moves", everything=True, may_return=True)
    assert remote.admin.import_(tmp_path / "export.jsonl").stored == 1
    assert remote.get("user=moves", "f1").text == "Anna\u2028likes tea."


def test_an_export_of_many_scopes_fits_in_a_request(remote: Memory) -> None:
    scopes: list[Any] = [f"user=anna/session=a-session-with-a-long-name-{number}" for number in range(300)]
    remote.observe(scopes[0], "hi")
    for scope in scopes[1:5]:
        remote.observe(scope, "hi")
    with pytest.raises(ScopeError, match="holds nothing of"):
        remote.admin.export(scopes, io.StringIO())


def test_a_backup_lies_with_the_server(server: LiveServer, remote: Memory) -> None:
    report = remote.admin.backup("weekly.db")
    assert Path(report.path).parent.parent == Path(server.services.memory.target).parent
    with pytest.raises(InputError, match="without a folder"):
        remote.admin.backup("../weekly.db")


def test_a_key_says_what_may_be_done(server: LiveServer) -> None:
    _, key = server.services.keys.create("reader", tenant="acme", rights=["read"])
    with eunoe.connect(server.origin, key) as memory:
        assert memory.scopes() == []
        with pytest.raises(AccessError, match="'write'"):
            memory.remember(ANNA, "x")
        with pytest.raises(AccessError, match="the key"):
            memory.restricted("other")
    with eunoe.connect(server.origin, "eun_wrong") as memory, pytest.raises(AccessError, match="refuses the key"):
        memory.status()


def test_a_closed_memory_says_so(server: LiveServer) -> None:
    memory = eunoe.connect(server.origin, server.owner)
    memory.close()
    memory.close()
    with pytest.raises(ClosedError):
        memory.status()


def test_it_can_be_awaited_and_bound(server: LiveServer) -> None:
    async def main() -> list[str]:
        async with eunoe.connect_async(server.origin, server.owner) as memory:
            anna = memory.at(user="awaited")
            await asyncio.gather(*(anna.remember(f"Fact {number}.") for number in range(20)))
            await memory.streams.configure("user=awaited", consolidation_trigger=3)
            with pytest.raises(NotFoundError):
                await anna.get("nothing")
            return sorted(item.text for item in (await anna.list()).items)

    assert asyncio.run(main()) == sorted(f"Fact {number}." for number in range(20))
