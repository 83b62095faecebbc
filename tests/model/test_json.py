"""What is written as JSON is read back equal; what is newer or older than this version is understood."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from eunoe.model.atom import Atom, Item
from eunoe.model.json import json_value, noun_of
from eunoe.model.message import Message
from eunoe.model.result import (
    CheckReport,
    Context,
    Damage,
    Entity,
    ForgetReport,
    FormReport,
    Link,
    Mention,
    Neighbourhood,
    Page,
    Receipt,
    Relation,
    RetentionReport,
    Status,
    Usage,
)
from eunoe.model.scope import Scope
from eunoe.model.stream import Revision, Settings, Stream

ANNA = Scope.of_pairs({"user": "a/b%", "user_id": "an old key"})
NOW = datetime(2024, 5, 7, 18, 30, 0, 123456, tzinfo=UTC)
ATOM = Atom(
    text="Anna likes tea.", id="a1", files=("a.py",), time=NOW, metadata={"n": [1, None]}, scope=ANNA, pinned=True
)
MESSAGE = Message(text="hi", speaker="Anna", role="user", time=NOW, id="m1", scope=ANNA, position=3, recorded=NOW)
STATUS = Status("x", 1, 2, 3, 4, 5, 6, 7, "none", 0, 9, vectors={"m": 2}, usage=(Usage("form", "m", cost=0.1),))
NOUNS: list[tuple[Any, Any]] = [
    (Atom, ATOM),
    (Item, MESSAGE),
    (Page[Item], Page((MESSAGE, ATOM), "7", ("note",))),
    (list[Receipt], [Receipt("superseded", "a2", False, "a1")]),
    (
        ForgetReport,
        ForgetReport(("m1",), ("a1",), 2, {ANNA: ("m1",)}, {ANNA: ("m3",)}, verified=False),
    ),
    (FormReport, FormReport(2, ("a1",), consolidated=(ANNA,))),
    (RetentionReport, RetentionReport((("a1", "older than 90 days"),), 4, True)),
    (CheckReport, CheckReport(3, (Damage("item", "a1", "user=anna", "unreadable"),))),
    (Stream, Stream(ANNA, "user", Settings(owner=("user",)), 4, 1, "Anna.", 2, 3)),
    (dict[str, Settings], {"team": Settings(owner=("team",), extraction_fields=("fact",))}),
    (Revision | None, Revision(2, "Anna.", 1, ("a1",), "hand", NOW, True)),
    (Revision | None, None),
    (
        Neighbourhood,
        Neighbourhood(
            "anna",
            (Entity("anna", "Anna", 2, 0.5),),
            (Link("a", "b", 1.0),),
            (Mention("a", "fact", "x", True),),
            (Relation("a", "feeds", "b", 2),),
        ),
    ),
    (Status, STATUS),
    (Context, Context("x", 1, messages=({"role": "user", "content": "x"},), faults=("f",))),
]


@pytest.mark.parametrize(
    ("kind", "noun"), NOUNS, ids=lambda value: "" if isinstance(value, str) else type(value).__name__
)
def test_a_noun_comes_back_as_it_was(kind: Any, noun: Any) -> None:
    read = noun_of(kind, json.loads(json.dumps(json_value(noun))))
    assert read == noun
    assert type(read) is type(noun)


def test_fields_of_another_version_do_no_harm() -> None:
    newer = json_value(ATOM) | {"mood": "merry"}
    older = {"kind": "fact", "text": "Anna likes tea.", "id": "a1"}
    assert noun_of(Item, newer) == ATOM
    assert noun_of(Item, older) == Atom(text="Anna likes tea.", id="a1")
