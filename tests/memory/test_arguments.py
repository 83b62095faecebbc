"""Whatever is passed to a public verb, it works as documented or says, in an error of Eunoe's own, which argument is at
fault; what is refused changes nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import Limits, Ticket, TicketMemory, read_ticket
from eunoe.errors import EunoeError, InputError, ScopeError
from eunoe.hosts.memory_tool import tool
from eunoe.memory import Admin, Corrections, Graph, Leases, Memory, Streams, Summaries
from eunoe.model.message import Message
from eunoe.model.result import Lease
from eunoe.model.stream import PRESETS

ANNA = "agent=cook/session=s1/user=anna"
LONG = "x" * 200_000
MAX_ERROR_CHARACTERS = 1000
LENIENT = frozenset(
    {"scope", "query", "time", "valid_from", "valid_to", "since", "until", "as_of", "known_at", "now", "user", "at"}
)
"""Arguments that may be given in several types: scopes, moments, and one question or several."""
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "2**70": lambda: 2**70,
    "-2**70": lambda: -(2**70),
    "empty text": lambda: "",
    "blank text": lambda: " \n",
    "'no'": lambda: "no",
    "'1'": lambda: "1",
    "a lone surrogate": lambda: "\ud800",
    "a NUL": lambda: "a\0b",
    "bytes": lambda: b"x",
    "[]": list,
    "{}": dict,
    "an object": object,
    "a class": lambda: dict,
    "a naive datetime": lambda: datetime(2024, 5, 7),
    "the first datetime": lambda: datetime.min,
    "a long text": lambda: LONG,
    "a generator": lambda: (number for number in range(3)),
    "[None]": lambda: [None],
    "[[]]": lambda: [[]],
    "a list of surrogates": lambda: ["\ud800"],
    "{1: 2}": lambda: {1: 2},
    "{'a': object}": lambda: {"a": object()},
    "a set": lambda: {1, 2},
}
CALLS: dict[str, dict[str, Any]] = {
    "observe": {"scope": ANNA, "messages": ["Hello."]},
    "remember": {
        "scope": ANNA,
        "text": "Anna likes jam.",
        "kind": "fact",
        "id": "new",
        "label": "taste",
        "files": ["a.py"],
        "pages": ["p"],
        "people": ["Anna"],
        "source": ["m1"],
        "source_scopes": ["user=eve"],
        "time": 0,
        "valid_from": 0,
        "valid_to": 1,
        "pinned": False,
        "metadata": {"a": 1},
        "vector": [1.0, 2.0, 3.0],
        "again": False,
        "replace": False,
    },
    "remember_many": {
        "scope": ANNA,
        "items": ["Anna likes jam."],
        "source_scopes": ["user=eve"],
        "again": False,
        "replace": False,
    },
    "recall": {
        "exact": False,
        "scope": ANNA,
        "query": "the dog",
        "limit": 3,
        "tokens": 100,
        "kinds": ["fact"],
        "labels": ["taste"],
        "since": 0,
        "until": 1,
        "files": ["a.py"],
        "people": ["Anna"],
        "sessions": ["s1"],
        "speakers": ["Anna"],
        "where": {"a": 1},
        "as_of": 1,
        "known_at": 1,
        "now": 1,
        "recipe": "default",
        "vector": [1.0, 2.0, 3.0],
        "expired": False,
    },
    "context": {
        "scope": ANNA,
        "message": "What is the dog called?",
        "users": ["ben"],
        "tokens": 300,
        "limit": 3,
        "recall": "auto",
        "recipe": "default",
        "format": "xml",
        "sources": False,
        "now": 1,
    },
    "look_up": {
        "exact": False,
        "scope": ANNA,
        "query": "the dog",
        "users": ["ben"],
        "memory_types": ["session"],
        "limit": 3,
        "recipe": "default",
    },
    "get": {"exact": False, "scope": ANNA, "id": "f1"},
    "get_many": {"exact": False, "scope": ANNA, "ids": ["f1", "m1"]},
    "list": {
        "exact": False,
        "scope": ANNA,
        "kinds": ["fact"],
        "labels": ["taste"],
        "limit": 3,
        "after": "",
        "retired": False,
        "newest": True,
        "known_at": 1,
        "where": {"a": 1},
        "offset": 1,
    },
    "recent": {
        "exact": False,
        "since": 1,
        "until": "2124-01-01",
        "limit": 3,
        "after": "",
        "kinds": ["fact"],
        "retired": False,
        "within": "user=anna",
        "in_review": False,
        "user": "anna",
    },
    "by_files": {"exact": False, "scope": ANNA, "paths": ["a.py"]},
    "scopes": {"user": "anna"},
    "history": {"exact": False, "scope": ANNA, "id": "f1"},
    "update": {
        "scope": ANNA,
        "id": "f1",
        "text": "Anna has a cat.",
        "kind": "fact",
        "label": "pet",
        "files": ["a.py"],
        "source": ["m1"],
        "source_scopes": ["user=eve"],
        "time": 0,
        "valid_from": 0,
        "pinned": True,
        "metadata": {},
        "vector": [1.0, 2.0, 3.0],
    },
    "preview": {"scope": ANNA, "messages": [{"role": "user", "content": "I like tea."}]},
    "review": {"exact": False, "scope": ANNA, "ids": ["f1"], "keep": True},
    "expire": {"scope": ANNA, "ids": ["f1"], "at": 1},
    "pin": {"scope": ANNA, "id": "f1", "pinned": True},
    "forget": {"exact": False, "scope": ANNA, "ids": ["f1"], "may_return": False, "verify": False},
    "form": {"scope": ANNA, "force": True},
    "flush": {"timeout": 5.0},
    "at": {"scope": ANNA},
    "restricted": {"tenant": "acme", "scopes": ["user=anna"], "rights": ["read"]},
    "watched": {"watch": print},
    "streams.list": {"user": "anna"},
    "streams.configure": {
        "scope": ANNA,
        "preset": "session",
        "is_active": True,
        "extraction_prompt": "All.",
        "fact_extraction_max": 3,
        "max_age_days": 1.5,
        "extraction_fields": ["fact"],
    },
    "streams.set_preset": {"name": "team", "like": "user", "owner": ["team"], "consolidated_max_words": 50},
    "streams.apply_retention": {
        "exact": False,
        "scope": ANNA,
        "max_age_days": 1.5,
        "max_idle_days": 1.5,
        "keep_best": 3,
        "dry_run": True,
    },
    "streams.unarchive": {"scope": ANNA, "id": "f1"},
    "streams.set_incognito": {"scope": "session=secret", "on": True},
    "corrections.add": {"scope": ANNA, "id": "f1", "verdict": "keep", "sentence": ""},
    "corrections.list": {"scope": ANNA},
    "corrections.remove": {"scope": ANNA, "id": "c1"},
    "summaries.consolidate": {"scope": ANNA, "force": True},
    "summaries.revisions": {"scope": ANNA},
    "summaries.restore": {"scope": ANNA, "number": 1},
    "summaries.write": {"scope": ANNA, "text": "Anna has a dog.", "author": "anna", "parent": 1},
    "retract": {"scope": ANNA, "ids": ["m1"], "retracted": True},
    "view": {"scope": ANNA, "name": "count", "build": lambda: 7},
    "leases.acquire": {"scope": ANNA, "name": "work", "seconds": 5.0, "ignore_pause": False, "data": {"a": 1}},
    "leases.renew": {"scope": ANNA, "lease": Lease("work", "me")},
    "leases.release": {"scope": ANNA, "lease": Lease("work", "me")},
    "leases.fail": {"scope": ANNA, "lease": Lease("work", "me"), "error": "no answer"},
    "leases.list": {"scope": ANNA, "prefix": "w"},
    "leases.drop": {"scope": ANNA, "name": "work"},
    "leases.renewing": {"scope": ANNA, "lease": Lease("work", "me")},
    "graph.neighbours": {"exact": False, "scope": ANNA, "entity": "Bruno", "depth": 1, "limit": 3},
    "graph.size": {"exact": False, "scope": ANNA},
    "graph.extract": {"scope": ANNA, "limit": 3, "ask": False},
    "admin.export": {"exact": False, "scope": ANNA, "target": io.StringIO(), "progress": None, "skip_damaged": False},
    "admin.backup": {"target": "backup.db", "progress": None},
    "admin.check": {"progress": None},
    "admin.import_": {"source": ['{"eunoe": 1}'], "progress": None},
    "admin.reembed": {"model": "none", "progress": None},
    "admin.reindex": {"scope": ANNA},
    "admin.process_cold_sessions": {"idle": 1e6, "minimum": 4, "limit": 2, "concurrency": 1},
    "admin.calls": {"limit": 3, "after": ""},
    "admin.access_counts": {"exact": False, "scope": ANNA, "ids": ["f1"]},
}
"""A call of every verb that takes arguments, with all that it may take."""
POSITIONAL = {"streams.configure": "scope", "streams.set_preset": "name", "update": "scope", "at": "scope"}
OTHER_CALLS: dict[str, list[dict[str, Any]]] = {
    "remember_many": [{"scope": ANNA, "items": ["Anna likes jam."], "lease": Lease("work", "me")}],
    "summaries.write": [
        {"scope": ANNA, "text": "Anna has a dog.", "lease": Lease("work", "me")},
        {"scope": ANNA, "text": "Anna has a dog.", "absorbed": ["nothing"], "base": 1},
    ],
    "forget": [
        {"scope": ANNA, "everything": True},
        {"scope": ANNA, "person": "Ben"},
        {"scope": ANNA, "person": "Ben", "mentions": True},
    ],
}
"""Arguments that exclude those of the first call."""
GROUPS = {
    "": Memory,
    "streams.": Streams,
    "summaries.": Summaries,
    "corrections.": Corrections,
    "leases.": Leases,
    "graph.": Graph,
    "admin.": Admin,
}
VOLATILE = ('INSERT INTO "access', 'INSERT INTO "usage', "INSERT INTO \"meta\" VALUES('file_stamp'")
"""What only counts: what was read, what was spent, and how often the file was opened for writing."""
SAME_WORD = {
    "messages": "message",
    "items": "item",
    "source": "line|cannot read",
    "path": "cannot read",
    "docs": "document",
    "queries": "query",
}
"""What an error may call an argument, where it names one of several."""


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, len(text) % 5, len(text) % 3] for text in texts]


CORRECTION = {
    "scope": ANNA,
    "kind": "fact",
    "id": "c1",
    "text": "It rained.",
    "label": "correction",
    "recorded": "2024-05-01",
    "retired": "2024-05-01",
    "metadata": {"correction": {"verdict": "drop"}},
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "memory.db"
    with eunoe.open(path, embedder=embed, llm="none", form=False) as memory:
        memory.observe(ANNA, [{"content": "My dog is called Bruno.", "id": "m1", "time": 0}, "It rained."])
        memory.remember(ANNA, "Anna has a dog.", id="f1", label="taste", files=["a.py"], source=["m1"])
        memory.remember(ANNA, "Anna saw Bruno.", id="o1", kind="observation")
        memory.admin.import_([json.dumps(CORRECTION)])
        memory.summaries.write(ANNA, "Anna has a dog.")
        memory.observe("user=eve", [{"content": "I am Eve.", "id": "m1", "time": 5}])
    return path


class Subject:
    """A memory to be misused, made anew whenever a call has changed it."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template, self._path = template, folder / "memory.db"
        self._reader: sqlite3.Connection | None = None
        self.memory: Memory | None = None
        self.renew()

    def renew(self) -> None:
        self.close()
        shutil.copy(self._template, self._path)
        self.memory = eunoe.open(self._path, embedder=embed, llm="none", form=False)
        self._reader = sqlite3.connect(self._path)
        self._content, self._version = self._read(), self._data_version()

    def has_changed(self) -> bool:
        """Whether anything but counts was written since it was made anew."""
        version = self._data_version()
        if version == self._version:
            return False
        self._version = version
        return self._read() != self._content

    def _data_version(self) -> int:
        """A number that changes with every write of another connection."""
        assert self._reader
        return int(self._reader.execute("PRAGMA data_version").fetchone()[0])

    def _read(self) -> list[str]:
        assert self._reader
        return [line for line in self._reader.iterdump() if not line.startswith(VOLATILE)]

    def close(self) -> None:
        if self.memory and self._reader:
            self._reader.close()
            self.memory.close()


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are taken for paths name files in a folder of their own, and nothing at all one's own store there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EUNOE_STORE", str(tmp_path / "own.db"))


@pytest.fixture
def subject(template: Path, tmp_path: Path) -> Iterator[Subject]:
    made = Subject(template, tmp_path)
    yield made
    made.close()


def call(memory: Any, verb: str, arguments: dict[str, Any]) -> Any:
    function = memory
    for name in verb.split("."):
        function = getattr(function, name)
    first = POSITIONAL.get(verb)
    rest = {name: value for name, value in arguments.items() if name != first}
    return function(*([arguments[first]] if first in arguments else []), **rest)


def fault_of(where: str, name: str, value: Any, example: Any, attempt: Callable[[], Any]) -> str:
    """What is wrong with how a call took an argument; empty if nothing is."""
    try:
        attempt()
    except EunoeError as error:
        words = str(error)
        names = (name, SAME_WORD.get(name, name))
        if len(words) > MAX_ERROR_CHARACTERS:
            return f"{where} says {len(words)} characters"
        is_named = any(re.search(rf"\b(?:{each})\b", words) for each in names)
        if isinstance(error, InputError | ScopeError) and not is_named:
            return f"{where} does not name it: {words[:200]}"
        return ""
    except Exception as error:
        return f"{where}: {type(error).__name__}: {str(error)[:200]}"
    # None may mean that nothing was given, and every whole number is a number.
    is_other = type(example) in (bool, int, float, str) and not isinstance(value, type(example)) and value is not None
    is_number = isinstance(example, float) and isinstance(value, int) and not isinstance(value, bool)
    is_flag_for_number = type(example) is int and isinstance(value, bool)
    if ((is_other and not is_number) or is_flag_for_number) and name not in LENIENT:
        return f"{where} was taken"
    return ""


def misuse(subject: Subject, verb: str, arguments: dict[str, Any]) -> list[str]:
    """Replace every argument of a call by everything that it is not; return what went wrong."""
    faults = []
    for name in arguments:
        for title, make in WRONG.items():
            where, value = f"{verb}({name}={title})", make()
            given = {**arguments, name: value}
            refused: list[bool] = []

            def attempt(given: dict[str, Any] = given, refused: list[bool] = refused) -> None:
                refused.append(True)
                call(subject.memory, verb, given)
                refused.clear()

            faults.append(fault_of(where, name, value, arguments[name], attempt))
            if subject.has_changed():
                if refused:
                    faults.append(f"{where} was refused and changed the store")
                subject.renew()
    return list(filter(None, faults))


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_takes_or_refuses_whatever_it_is_given(subject: Subject, verb: str) -> None:
    call(subject.memory, verb, CALLS[verb])
    subject.renew()
    calls = [CALLS[verb], *OTHER_CALLS.get(verb, ())]
    faults = [fault for arguments in calls for fault in misuse(subject, verb, arguments)]
    assert not faults, "\n".join(faults)


def test_every_verb_and_every_argument_is_misused() -> None:
    for group, face in GROUPS.items():
        for name, verb in inspect.getmembers(face, inspect.isfunction):
            calls = [CALLS.get(group + name, {}), *OTHER_CALLS.get(group + name, ())]
            given = {argument for arguments in calls for argument in arguments}
            parameters = inspect.signature(verb).parameters.values()
            wanted = {each.name for each in parameters if each.kind != each.VAR_KEYWORD} - {"self"}
            assert name.startswith("_") or wanted <= given, f"{group}{name} lacks {wanted - given}"


MESSAGE = {
    "text": "Hello.",
    "role": "user",
    "speaker": "Anna",
    "time": 0,
    "id": "m9",
    "session": "s1",
    "caption": "A dog.",
    "metadata": {"a": 1},
}


@pytest.mark.parametrize("kind", ["dict", "Message"])
def test_a_message_takes_or_refuses_whatever_its_fields_hold(subject: Subject, kind: str) -> None:
    faults = []
    for name, example in MESSAGE.items():
        for title, make in WRONG.items():
            value = make()
            fields: dict[str, Any] = {**MESSAGE, name: value}
            message = fields if kind == "dict" else Message(**fields)
            where = f"{kind}({name}={title})"

            def attempt(message: Any = message) -> Any:
                repr(message)
                return subject.memory.observe(ANNA, [message]) if subject.memory else None

            # A dict may hold what other systems write: None for nothing, and a list of parts as its text.
            is_free = kind == "dict" and (value is None or name == "text")
            faults.append(fault_of(where, name, value, None if is_free else example, attempt))
            if subject.has_changed():
                subject.renew()
    assert not any(faults), "\n".join(filter(None, faults))


def test_a_time_without_a_zone_is_utc_however_it_is_given(subject: Subject) -> None:
    naive = datetime(2024, 5, 7, 18, 30)
    given: list[Any] = [
        Message(text="One.", time=naive),
        {"text": "Two.", "time": naive},
        {"text": "Three.", "time": "2024-05-07T18:30"},
        {"text": "Four.", "time": datetime(2024, 5, 7, 20, 30, tzinfo=timezone(timedelta(hours=2)))},
        {"text": "Five.", "time": naive.replace(tzinfo=UTC).timestamp()},
    ]
    assert subject.memory
    receipts = subject.memory.observe("user=zoe", given)
    times = {subject.memory.get("user=zoe", receipt.id).time for receipt in receipts}
    times.add(subject.memory.get("user=zoe", subject.memory.remember("user=zoe", "Six.", time=naive).id).time)
    assert times == {naive.replace(tzinfo=UTC)}


def test_a_fact_takes_or_refuses_whatever_its_fields_hold(subject: Subject) -> None:
    faults = []
    arguments = CALLS["remember"]
    for name in set(arguments) - {"scope", "source_scopes", "again"}:
        for title, make in WRONG.items():
            fields = {"text": "Anna likes jam.", name: (value := make())}

            def attempt(fields: dict[str, Any] = fields) -> Any:
                return subject.memory.remember_many(ANNA, [fields]) if subject.memory else None

            faults.append(fault_of(f"remember_many([{name}={title}])", name, value, arguments[name], attempt))
            if subject.has_changed():
                subject.renew()
    assert not any(faults), "\n".join(filter(None, faults))


@pytest.mark.parametrize("verb", CALLS)
def test_the_other_faces_refuse_in_the_same_way(subject: Subject, verb: str) -> None:
    assert subject.memory
    memory = eunoe.AsyncMemory(subject.memory)
    name = next(iter(CALLS[verb]))
    expected = fault_and_error(lambda: call(subject.memory, verb, {**CALLS[verb], name: object()}))

    async def wait() -> Any:
        result = call(memory, verb, {**CALLS[verb], name: object()})
        return await result if inspect.isawaitable(result) else result

    assert fault_and_error(lambda: asyncio.run(wait())) == expected
    if hasattr(eunoe.ScopedMemory, verb) and verb not in ("at", "restricted"):
        bound, rest = subject.memory.at(ANNA), {each: CALLS[verb][each] for each in CALLS[verb] if each != "scope"}
        for each in rest:
            wrong = {**rest, each: b"x"}
            assert fault_and_error(lambda wrong=wrong: getattr(bound, verb)(**wrong)) == fault_and_error(
                lambda wrong=wrong: call(subject.memory, verb, {"scope": ANNA, **wrong})
            )


def fault_and_error(attempt: Callable[[], Any]) -> tuple[type[Exception], str] | None:
    try:
        attempt()
    except EunoeError as error:
        return type(error), re.sub(r"0x[0-9a-f]+", "", str(error))
    return None


def check_arguments(function: Callable[..., Any], arguments: dict[str, Any], free: Container[str] = ()) -> None:
    """Replace each argument of a function that keeps nothing by everything that it is not."""
    function(**arguments)
    faults = []
    for name, example in arguments.items():
        for title, make in WRONG.items():
            given = {**arguments, name: (value := make())}
            where = f"{getattr(function, '__qualname__', function)}({name}={title})"
            expected = None if name in free else example
            faults.append(fault_of(where, name, value, expected, lambda given=given: function(**given)))  # type: ignore[misc]
    assert not any(faults), "\n".join(filter(None, faults))


def test_the_nouns_take_or_refuse_whatever_they_are_given() -> None:
    check_arguments(eunoe.Scope, {"user": "anna", "session": "s1"}, free={"user", "session"})
    check_arguments(lambda scope: eunoe.Scope.of(scope), {"scope": "user=anna"}, free={"scope"})
    check_arguments(lambda scope: eunoe.Scope.parse(scope), {"scope": "user=anna"})
    settings = {each.name: getattr(PRESETS["user"], each.name) for each in dataclasses.fields(eunoe.Settings)}
    check_arguments(eunoe.Settings, settings)
    check_arguments(PRESETS["user"].changed, settings)


def test_opening_takes_or_refuses_whatever_it_is_given(tmp_path: Path) -> None:
    def open_it(**arguments: Any) -> None:
        target = arguments.pop("target")
        folder = tmp_path / "stores"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        is_name = isinstance(target, str) and target.strip() and target != ":memory:"
        eunoe.open(folder / target if is_name and "\0" not in target else target, **arguments).close()

    options = {"embedder": "none", "llm": "none", "fast_llm": "none", "extractor": "builtin"}
    arguments = {"target": "a.db", "form": False, "create": True, "cache_bytes": 10_000, **options}
    check_arguments(open_it, arguments, free=set(options) | {"target", "form"})


def test_restoring_takes_or_refuses_whatever_it_is_given(template: Path, tmp_path: Path) -> None:
    backup = shutil.copy(template, tmp_path / "backup.db")
    arguments = {"source": str(backup), "target": "restored.db", "keep": False, "progress": None}
    check_arguments(eunoe.restore, arguments, free={"source", "target"})


def test_project_memory_takes_or_refuses_whatever_it_is_given() -> None:
    with ProjectMemory.open(":memory:", embedder="none", llm="none") as memory:
        memory.index("shop", [{"text": "The login broke.", "id": "d1"}])
        check_arguments(memory.index, {"project": "shop", "docs": ["The till broke."]}, free={"project"})
        check_arguments(memory.keep, {"project": "shop", "docs": ["The till broke."]}, free={"project"})
        wanted = {"project": "shop", "queries": ["Why?"], "num_to_retrieve": 3}
        check_arguments(memory.retrieve, wanted, free={"project"})
        gone = {"project": "shop", "docs_or_ids": ["nothing"], "missing_ok": True}
        check_arguments(memory.delete, gone, free={"project"})
        check_arguments(memory.ticket_documents, {"project": "shop", "ticket": "t1"}, free={"project"})
        check_arguments(memory.remove_project, {"project": "nothing"}, free={"project"})
        fields = {
            "text": "It broke.",
            "id": "d2",
            "title": "Login",
            "ticket": "t1",
            "label": "bug",
            "time": 0,
            "metadata": {},
        }
        check_arguments(lambda **document: memory.keep("other", [document]), fields, free=set(fields))


def test_tickets_take_or_refuse_whatever_they_are_given(tmp_path: Path) -> None:
    fields = {"id": "t1", "title": "Fix it", "description": "It broke.", "project": "shop", "file": "a.md"}
    check_arguments(Ticket, fields)
    check_arguments(Ticket(**fields).document, {"lesson": "It works."})
    (tmp_path / "t1.md").write_text("# Fix it")
    check_arguments(read_ticket, {"path": str(tmp_path / "t1.md"), "project": "shop"}, free={"path"})
    check_arguments(Limits, {each.name: each.default for each in dataclasses.fields(Limits)})
    check_arguments(lambda **given: TicketMemory(None, **given), {"project": "shop", "limit": 3})


def test_the_recall_tool_takes_or_refuses_whatever_it_is_given(subject: Subject) -> None:
    assert subject.memory
    arguments = {"memory": subject.memory, "scope": ANNA, "users": ["ben"], "recipe": "default"}
    check_arguments(tool, arguments, free=set(arguments))
    search = tool(subject.memory, ANNA)
    good = {"query": "the dog", "memory_types": ["session"], "match_count": 3}
    for name in good:
        for make in WRONG.values():
            assert isinstance(search.call({**good, name: make()}), str)
    for make in WRONG.values():
        assert isinstance(search.call(make()), str)
