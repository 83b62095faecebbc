"""Every verb declares the right that it needs, and takes no scope that is out of reach."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

import eunoe
from eunoe.errors import AccessError, InputError, NotFoundError
from eunoe.memory import Admin, Corrections, Graph, Leases, Memory, Streams, Summaries
from eunoe.memory.guard import Guard
from eunoe.model.arguments import RIGHTS, Right
from eunoe.model.atom import Bounds
from eunoe.model.result import Lease
from eunoe.model.scope import Scope

GROUPS = {
    "": Memory,
    "streams.": Streams,
    "summaries.": Summaries,
    "corrections.": Corrections,
    "leases.": Leases,
    "graph.": Graph,
    "admin.": Admin,
}
WITHOUT_RIGHT = {"at", "restricted", "watched", "close", "leases.renewing"}
"""They read and write nothing; `renewing` begins a block that renews."""
HERE = "user=anna"
SCOPED: dict[str, tuple[Right, dict[str, Any]]] = {
    "recall": ("read", {"query": "tea"}),
    "context": ("read", {"message": "tea"}),
    "look_up": ("read", {"query": "tea"}),
    "get": ("read", {"id": "a"}),
    "get_many": ("read", {"ids": ["a"]}),
    "list": ("read", {}),
    "view": ("read", {"name": "count", "build": len}),
    "by_files": ("read", {"paths": ["a.py"]}),
    "history": ("read", {"id": "a"}),
    "summaries.revisions": ("read", {}),
    "graph.neighbours": ("read", {}),
    "graph.size": ("read", {}),
    "admin.access_counts": ("read", {"ids": ["a"]}),
    "admin.export": ("read", {"target": io.StringIO()}),
    "observe": ("write", {"messages": "Hello."}),
    "remember": ("write", {"text": "Tea is hot."}),
    "remember_many": ("write", {"items": ["Tea is hot."]}),
    "update": ("write", {"id": "a", "text": "Tea is cold."}),
    "review": ("write", {"ids": ["a"]}),
    "expire": ("write", {"ids": ["a"], "at": None}),
    "retract": ("write", {"ids": ["a"]}),
    "pin": ("write", {"id": "a"}),
    "preview": ("write", {"messages": "Hello."}),
    "form": ("write", {}),
    "corrections.add": ("write", {"id": "a", "verdict": "keep"}),
    "corrections.list": ("read", {}),
    "corrections.remove": ("write", {"id": "a"}),
    "summaries.consolidate": ("write", {}),
    "summaries.write": ("write", {"text": "Tea."}),
    "summaries.restore": ("write", {"number": 1}),
    "leases.list": ("read", {}),
    "leases.acquire": ("write", {"name": "work"}),
    "leases.renew": ("write", {"lease": Lease("work", "me")}),
    "leases.release": ("write", {"lease": Lease("work", "me")}),
    "leases.fail": ("write", {"lease": Lease("work", "me"), "error": "no answer"}),
    "leases.drop": ("write", {"name": "work"}),
    "streams.configure": ("write", {}),
    "streams.unarchive": ("write", {"id": "a"}),
    "streams.set_incognito": ("write", {}),
    "graph.extract": ("write", {"ask": False}),
    "forget": ("forget", {"everything": True}),
    "streams.apply_retention": ("forget", {}),
    "admin.reindex": ("admin", {}),
}
"""Verbs that name a scope: the right that each needs, and a call of it."""
UNSCOPED: dict[str, tuple[Right, dict[str, Any]]] = {
    "scopes": ("read", {}),
    "recent": ("read", {}),
    "status": ("read", {}),
    "streams.list": ("read", {}),
    "streams.presets": ("read", {}),
    "flush": ("write", {}),
    "admin.import_": ("write", {"source": []}),
    "admin.test_llm": ("admin", {}),
}
STORE_WIDE: dict[str, tuple[Right, dict[str, Any]]] = {
    "streams.set_preset": ("admin", {"name": "team"}),
    "admin.backup": ("admin", {"target": "backup.db"}),
    "admin.reembed": ("admin", {}),
    "admin.check": ("admin", {}),
    "admin.process_cold_sessions": ("admin", {}),
    "admin.calls": ("admin", {}),
}
ALL_VERBS = SCOPED | UNSCOPED | STORE_WIDE


class Untouched:
    """An engine that may be looked at, but does nothing."""

    def __getattr__(self, name: str) -> Untouched:
        return Untouched()

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("the engine was used")


def guarded(tenant: str = "", scopes: tuple[str, ...] = (), rights: tuple[Right, ...] = RIGHTS) -> Memory:
    bounds = Bounds(tuple(map(Scope.parse, scopes or ((f"tenant={tenant}",) if tenant else ()))))
    return Memory(Untouched(), Guard(tenant, bounds, frozenset(rights)))  # type: ignore[arg-type]


def call(memory: Memory, verb: str, *scope: Any) -> Any:
    group, _, name = verb.rpartition(".")
    options = dict(ALL_VERBS[verb][1])
    first = [options.pop("name")] if "name" in options else []
    return getattr(getattr(memory, group) if group else memory, name)(*scope, *first, **options)


def test_every_verb_declares_its_right() -> None:
    members = {
        prefix + name
        for prefix, group in GROUPS.items()
        for name, _ in inspect.getmembers(group, inspect.isfunction)
        if not name.startswith("_")
    }
    assert members == ALL_VERBS.keys() | WITHOUT_RIGHT


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_a_verb_without_its_right_does_nothing(verb: str) -> None:
    right = ALL_VERBS[verb][0]
    others = tuple(each for each in RIGHTS if each != right)
    scope = [HERE] if verb in SCOPED else []
    with pytest.raises(AccessError, match=right):
        call(guarded(rights=others), verb, *scope)
    with pytest.raises(AssertionError, match="was used"):
        call(guarded(rights=(right,)), verb, *scope)


@pytest.mark.parametrize("verb", SCOPED)
def test_a_scope_out_of_reach_is_not_touched(verb: str) -> None:
    for tenant, scopes, asked in [
        ("acme", (), "tenant=bolt/user=anna"),
        ("acme", (), {"tenant": "bolt", "user": "anna"}),
        ("acme", ("tenant=acme/user=anna",), "user=ben"),
        ("acme", ("tenant=acme/user=anna",), "session=s1"),
        ("acme", ("tenant=acme/user=anna",), "tenant=bolt/user=anna"),
        ("", ("user=anna",), "user=ben"),
        ("", ("user=anna/session=s1",), "user=anna"),
        ("", ("user=anna", "agent=cook"), "user_id=ben"),
        ("", ("user=anna",), Scope.of_pairs({"user_id": "anna"})),
    ]:
        with pytest.raises(AccessError, match="reach"):
            call(guarded(tenant, scopes), verb, asked)
    with pytest.raises(AssertionError, match="was used"):
        call(guarded("acme", ("tenant=acme/user=anna",)), verb, "user=anna/session=s1")


@pytest.mark.parametrize("verb", ["recall", "forget", "admin.export", "admin.reindex"])
def test_one_scope_out_of_reach_refuses_all(verb: str) -> None:
    with pytest.raises(AccessError):
        call(guarded("acme"), verb, ["user=anna", "tenant=bolt/user=anna"])


@pytest.mark.parametrize("verb", STORE_WIDE)
def test_a_part_of_the_store_does_nothing_to_the_whole(verb: str) -> None:
    for memory in (guarded("acme"), guarded(scopes=("user=anna",))):
        with pytest.raises(AccessError, match="whole store"):
            call(memory, verb)


@pytest.mark.parametrize("verb", ["scopes", "recent", "streams.list"])
def test_another_tenant_cannot_be_listed(verb: str) -> None:
    memory = guarded("acme")
    with pytest.raises(AccessError, match="tenant"):
        getattr(memory if verb != "streams.list" else memory.streams, verb.rpartition(".")[2])(tenant="bolt")


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
