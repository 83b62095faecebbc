"""One sensible call of each verb, for the tests that go over all of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import eunoe
from eunoe.memory.verb import VERBS, Verb
from eunoe.model.result import Lease

ANNA = "agent=cook/session=s1/user=anna"
EXAMPLES: dict[str, dict[str, Any]] = {
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
        "pages": ["p"],
        "people": ["Anna"],
        "source": ["m1"],
        "source_scopes": ["user=eve"],
        "time": 0,
        "valid_from": 0,
        "valid_to": "2124-01-01",
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
    "status": {},
    "streams.list": {"user": "anna"},
    "streams.presets": {},
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
    "graph.neighbours": {"exact": False, "scope": ANNA, "entity": "Bruno", "depth": 1, "limit": 3},
    "graph.size": {"exact": False, "scope": ANNA},
    "graph.extract": {"scope": ANNA, "limit": 3, "ask": False},
    "admin.export": {"exact": False, "scope": ANNA, "target": io.StringIO(), "progress": None, "skip_damaged": False},
    "admin.backup": {"target": "backup.db", "progress": None},
    "admin.check": {"progress": None},
    "admin.import": {"source": ['{"eunoe": 1}'], "progress": None},
    "admin.reembed": {"model": "none", "progress": None},
    "admin.reindex": {"scope": ANNA},
    "admin.process_cold_sessions": {"idle": 1e6, "minimum": 4, "limit": 2, "concurrency": 1},
    "admin.calls": {"limit": 3, "after": ""},
    "admin.test_llm": {},
    "admin.access_counts": {"exact": False, "scope": ANNA, "ids": ["f1"]},
}
"""A call of every verb, with all that it may take."""
OTHER_EXAMPLES: dict[str, list[dict[str, Any]]] = {
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


def call(memory: Any, verb: str, arguments: dict[str, Any]) -> Any:
    """Call a verb of a memory of any face by its name."""
    return method(memory, verb)(**arguments)


def method(memory: Any, verb: str) -> Callable[..., Any]:
    declared = VERBS[verb]
    return getattr(getattr(memory, declared.group) if declared.group else memory, declared.function.__name__)


def fresh(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with an open file of their own."""
    return {name: io.StringIO() if isinstance(each, io.StringIO) else each for name, each in arguments.items()}


def verbs(**wanted: Any) -> Sequence[Verb]:
    """The verbs whose fields are these."""
    return [each for each in VERBS.values() if all(getattr(each, name) == value for name, value in wanted.items())]


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


def make_store(path: Path) -> None:
    """A store that the examples are about."""
    with eunoe.open(path, embedder=embed, llm="none", form=False) as memory:
        memory.observe(ANNA, [{"content": "My dog is called Bruno.", "id": "m1", "time": 0}, "It rained."])
        memory.remember(ANNA, "Anna has a dog.", id="f1", label="taste", files=["a.py"], source=["m1"])
        memory.remember(ANNA, "Anna saw Bruno.", id="o1", kind="observation")
        memory.admin.import_([json.dumps(CORRECTION)])
        memory.summaries.write(ANNA, "Anna has a dog.")
        memory.observe("user=eve", [{"content": "I am Eve.", "id": "m1", "time": 5}])
