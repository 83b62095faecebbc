"""Whatever is passed to a public verb, it works as documented or says, in an error of Eunoe's own, which argument is at
fault; what is refused changes nothing."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sqlite3
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.verbs import ANNA, EXAMPLES, OTHER_EXAMPLES, call, embed, make_store

import eunoe
from eunoe.apps.projects import ProjectMemory
from eunoe.apps.tickets import Limits, Ticket, TicketMemory, read_ticket
from eunoe.errors import EunoeError, InputError, ScopeError
from eunoe.hosts.memory_tool import tool
from eunoe.memory import Memory
from eunoe.model.message import Message
from eunoe.model.stream import PRESETS

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


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "memory.db"
    make_store(path)
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


@pytest.mark.parametrize("verb", [name for name, arguments in EXAMPLES.items() if arguments])
def test_a_verb_takes_or_refuses_whatever_it_is_given(subject: Subject, verb: str) -> None:
    call(subject.memory, verb, EXAMPLES[verb])
    subject.renew()
    calls = [EXAMPLES[verb], *OTHER_EXAMPLES.get(verb, ())]
    faults = [fault for arguments in calls for fault in misuse(subject, verb, arguments)]
    assert not faults, "\n".join(faults)


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
