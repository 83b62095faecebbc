"""The sample: two friends, an old dinghy and their assistant, in scopes of their own."""

from __future__ import annotations

import json
from importlib import resources
from itertools import groupby
from typing import Any, Final

from eunoe.memory import Memory
from eunoe.model.atom import source_name
from eunoe.model.result import FormReport
from eunoe.model.scope import Scope

_OLD_PLAN: Final = "launch"
_NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
_CHANGED: Final = "2025-03-08"


def load_sample(memory: Memory, tenant: str = "") -> dict[str, Any]:
    """Put the sample in and form it. Doing so twice changes nothing."""
    owner = Scope(agent="pilot", user="sample").extended({"tenant": tenant} if tenant else {})
    sessions = _observe(memory, owner)
    _remember(memory, owner)
    report = sum((memory.form(session) for session in sessions), FormReport())
    memory.flush(30)
    if not memory.get(owner, _OLD_PLAN).retired:
        memory.update(owner, _OLD_PLAN, _NEW_PLAN, valid_from=_CHANGED, time=_CHANGED)
    return {"scope": owner.text, "sessions": len(sessions), "stored": len(report.stored)}


def _observe(memory: Memory, owner: Scope) -> list[Scope]:
    talks = groupby(_lines("conversation.jsonl"), key=lambda line: str(line["session"]))
    messages = {owner.extended({"session": name}): list(talk) for name, talk in talks}
    messages[owner.extended({"session": "talk"})] = _lines("talk.jsonl")
    for session, talk in messages.items():
        memory.observe(session, talk)
    return list(messages)


def _remember(memory: Memory, owner: Scope) -> None:
    sessions: set[Scope] = set()
    facts = _lines("facts.jsonl")
    for fact in facts:
        places = [(owner.extended({"session": id.partition(".")[0]}), id) for id in fact["source"]]
        sessions |= {session for session, _ in places}
        fact["source"] = [source_name(session, id, owner) for session, id in places]
    memory.remember_many(owner, facts, source_scopes=[*sorted(sessions, key=str)])


def _lines(name: str) -> list[dict[str, Any]]:
    text = (resources.files("eunoe") / "demo" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
