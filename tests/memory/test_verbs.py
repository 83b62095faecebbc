"""Every verb, by its declaration and its example: its faces, its right, what it tells of itself, and what it gives."""

from __future__ import annotations

import asyncio
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.support.live_server import LiveServer
from tests.verbs import EXAMPLES, OTHER_EXAMPLES, call, embed, fresh, make_store, method, verbs
from tools.faces import FACES, python_faces

import eunoe
from eunoe.engine import Engine
from eunoe.errors import AccessError, ConflictError, EunoeError, LlmError, NotFoundError
from eunoe.memory import AsyncMemory, AsyncScopedMemory, Change, Memory, ScopedMemory
from eunoe.memory.guard import Guard
from eunoe.memory.remote import RemoteMemory
from eunoe.memory.verb import VERBS, Verb
from eunoe.model.arguments import RIGHTS, Right, parse_time
from eunoe.model.atom import Bounds
from eunoe.model.scope import Scope
from eunoe.server.config import ServerConfig

BY_FUNCTION = {"preview", "corrections_add"}
"""Steps that are too many for the engine."""
HERE_ALONE = {name for name, verb in VERBS.items() if verb.group == "leases"}
"""A worker behind a server has the server's own queue."""
ALL = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
SCOPED = pytest.mark.parametrize(
    "verb", [each for each in VERBS.values() if each.is_scoped], ids=lambda verb: verb.name
)


class Untouched:
    """An engine that may be looked at, but does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def step(*_: object) -> None: ...

        step.__name__ = name
        return step

    def run(self, *_: object) -> NoReturn:
        raise AssertionError("the engine was used")


def guarded(tenant: str = "", scopes: tuple[str, ...] = (), rights: tuple[Right, ...] = RIGHTS) -> Memory:
    bounds = Bounds(tuple(map(Scope.parse, scopes or ((f"tenant={tenant}",) if tenant else ()))))
    return Memory(Untouched(), Guard(tenant, bounds, frozenset(rights)))  # type: ignore[arg-type]


def example(verb: Verb, **others: Any) -> dict[str, Any]:
    """An example that only needs the right of the verb itself."""
    arguments = fresh(EXAMPLES[verb.name]) | {"source_scopes": ()} | others
    return {name: each for name, each in arguments.items() if name != "source_scopes" or name in EXAMPLES[verb.name]}


def test_every_verb_has_an_example_with_all_its_arguments() -> None:
    assert EXAMPLES.keys() == VERBS.keys()
    for name, verb in VERBS.items():
        given = {argument for each in (EXAMPLES[name], *OTHER_EXAMPLES.get(name, ())) for argument in each}
        assert verb.arguments.keys() <= given, name


def test_every_public_method_is_a_verb_and_has_its_steps() -> None:
    faces = [
        Memory,
        *(type(each) for each in vars(guarded()).values() if type(each).__module__ == "eunoe.memory.groups"),
    ]
    public = {each for face in faces for name, each in inspect.getmembers(face, inspect.isfunction) if name[0] != "_"}
    others = {Memory.at, Memory.restricted, Memory.watched, Memory.close, eunoe.memory.Leases.renewing}
    assert public - others == {verb.function for verb in VERBS.values()}
    assert {verb.step for verb in VERBS.values()} - BY_FUNCTION - {"remember_many"} <= set(dir(Engine))


@ALL
def test_a_verb_says_what_it_does_and_returns(verb: Verb) -> None:
    assert verb.summary.endswith(".") or ":" in verb.summary
    for each in verb.arguments.values():
        assert (each.kind in ("choice", "choices", "recipe")) == bool(each.choices)
    returned = str(inspect.signature(verb.function).return_annotation)
    for word in set(re.findall(r"\w+", returned)) - {
        "None",
        "bool",
        "int",
        "str",
        "dict",
        "builtins",
        "list",
        "Item",
        "T",
    }:
        assert hasattr(eunoe, word), f"{verb.name} returns {word}"


def test_the_faces_are_those_of_the_verbs() -> None:
    assert FACES.read_text(encoding="utf-8") == python_faces(), "run make faces"


@ALL
def test_all_faces_take_the_same_arguments_and_say_the_same(verb: Verb) -> None:
    memory = guarded()
    ours, theirs = method(memory, verb.name), method(AsyncMemory(memory), verb.name)
    assert inspect.iscoroutinefunction(theirs)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert inspect.getdoc(ours) == inspect.getdoc(theirs)
    if verb.name not in ("admin.backup", "admin.export", "admin.import", "view", "flush", "remember"):
        there = method(RemoteMemory(None), verb.name)  # type: ignore[arg-type]
        assert inspect.signature(there) == inspect.signature(ours)
    for face in (ScopedMemory, AsyncScopedMemory):
        bound = getattr(face, verb.name, None)
        assert (bound is not None) == (verb.is_scoped and not verb.group)
        assert bound is None or "scope" not in inspect.signature(bound).parameters


@ALL
def test_a_verb_without_its_right_does_nothing(verb: Verb) -> None:
    with pytest.raises(AccessError, match=verb.right):
        call(guarded(rights=tuple(each for each in RIGHTS if each != verb.right)), verb.name, example(verb))
    with pytest.raises(AssertionError, match="was used"):
        call(guarded(rights=(verb.right,)), verb.name, example(verb))


@SCOPED
def test_a_scope_out_of_reach_is_not_touched(verb: Verb) -> None:
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
            call(guarded(tenant, scopes), verb.name, example(verb, scope=asked))
    reached = example(verb, scope="user=anna/session=s1")
    with pytest.raises(AssertionError, match="was used"):
        call(guarded("acme", ("tenant=acme/user=anna",)), verb.name, reached)


@pytest.mark.parametrize("verb", ["recall", "forget", "admin.export", "admin.reindex"])
def test_one_scope_out_of_reach_refuses_all(verb: str) -> None:
    with pytest.raises(AccessError):
        call(guarded("acme"), verb, example(VERBS[verb], scope=["user=anna", "tenant=bolt/user=anna"]))


@pytest.mark.parametrize("verb", verbs(whole=True), ids=lambda verb: verb.name)
def test_a_part_of_the_store_does_nothing_to_the_whole(verb: Verb) -> None:
    for memory in (guarded("acme"), guarded(scopes=("user=anna",))):
        with pytest.raises(AccessError, match="whole store"):
            call(memory, verb.name, example(verb))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "memory.db"
    make_store(path)
    return path


@pytest.fixture
def copy_store(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Copies the store, and has new ids and times be the same in each run."""
    monkeypatch.chdir(tmp_path)
    numbers = count()
    monkeypatch.setattr("eunoe.records.atoms.new_ids", lambda size: [f"new{next(numbers)}" for _ in range(size)])
    monkeypatch.setattr("eunoe.engine.utc_now", lambda: parse_time("2024-01-01"))

    def copy(name: str) -> Path:
        nonlocal numbers
        numbers = count()
        return Path(shutil.copy(template, tmp_path / name))

    return copy


def calls() -> Iterator[tuple[Verb, dict[str, Any]]]:
    """All examples, in an order in which those that take away come last."""
    last = ("forget", "admin.reembed", "status")
    for verb in sorted(VERBS.values(), key=lambda verb: (verb.name in last, verb.right != "read")):
        for arguments in (EXAMPLES[verb.name], *OTHER_EXAMPLES.get(verb.name, ())):
            yield verb, fresh(arguments)


def run_all(memory: Any, result_of: Callable[[Any], Any] = lambda result: result) -> list[str]:
    """What each example gives, without what is different each time: ids, cursors, the time of day, places."""
    told = []
    for verb, arguments in calls():
        if verb.name in HERE_ALONE or "lease" in arguments:
            continue
        try:
            result = repr(result_of(call(memory, verb.name, arguments)))
        except EunoeError as error:
            result = type(error).__name__
        result = re.sub(r"datetime\.datetime\([^)]*\)", "TIME", result)
        result = re.sub(r"\b([0-9a-f]{24}|[0-9a-f]{16})\b", "ID", re.sub(r"next='[0-9a-f:]+'", "next=''", result))
        told.append(f"{verb.name}: {'' if verb.name == 'admin.backup' else result.split(', bytes=')[0]}")
    return told


def test_every_face_gives_the_same(copy_store: Callable[[str], Path]) -> None:
    with eunoe.open(copy_store("here.db"), embedder=embed, llm="none", form=False) as memory:
        here = run_all(memory)
    with asyncio.Runner() as loop:
        awaited = eunoe.open_async(copy_store("awaited.db"), embedder=embed, llm="none", form=False)
        in_turn = run_all(awaited, loop.run)
        loop.run(awaited.close())
    target = copy_store("there.db")
    server = LiveServer(ServerConfig(target=str(target), port=0, embedder=embed, llm="none", worker=False))
    try:
        with eunoe.connect(server.origin, server.owner) as memory:
            there = run_all(memory)
    finally:
        server.stop()
    assert in_turn == [each.replace("here.db", "awaited.db") for each in here]
    assert there == [each.replace("here.db", "there.db") for each in here]


@ALL
def test_a_watched_memory_tells_of_changes_and_of_no_question(copy_store: Callable[[str], Path], verb: Verb) -> None:
    changes: list[Change] = []
    opened = eunoe.open(copy_store("one.db"), embedder=embed, llm="none", form=False)
    with opened as memory, suppress(ConflictError, NotFoundError, LlmError):
        call(memory.watched(changes.append), verb.name, example(verb))
    expected = "remember" if verb.name == "remember_many" else verb.name
    assert [change.verb for change in changes] == ([expected] if verb.changes else [])
    named = [scope.alone for change in changes for scope in change.scopes]
    assert named == ([Scope.of(EXAMPLES[verb.name]["scope"])] if verb.changes and verb.is_scoped else [])
