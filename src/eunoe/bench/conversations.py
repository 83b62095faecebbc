"""Conversations with questions and the turns that answer them, read from the formats they come in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from eunoe.errors import InputError
from eunoe.model.message import Message
from eunoe.model.time import parse_time

BUILT_IN = Path(__file__).with_name("talk.json")
"""Conversations written for this project, kept out of the encoder's training; `training/talk.py` makes the file."""

_EVIDENCE = re.compile(r"D\d+:\d+")
_EXPECTED = """{"conversations": [{"id", "turns": [...], "questions": [...]}]} or LoCoMo's own file"""
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    gold: tuple[str, ...]
    category: str
    kind: str = ""
    """What sort of conversation it is asked of, where the file says so."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One memory to be filled and asked."""

    id: str
    turns: tuple[Message, ...]
    questions: tuple[Question, ...]


def load(path: str | Path | None = None) -> list[Conversation]:
    """Reads the plain conversation format or LoCoMo's own file; without a path, the conversations in the package."""
    path = path or BUILT_IN
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    try:
        found = _read(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} cannot be asked: {_said(error)} (expected {_EXPECTED})") from error
    asked = [conversation for conversation in found if conversation.questions]
    if not asked:
        raise InputError(f"{path} has no question with a gold turn")
    return asked


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing in it"
    return str(error) if isinstance(error, InputError) else "it has another shape"


def together(conversations: Sequence[Conversation]) -> Conversation:
    """All conversations as one memory: their turns, sessions and questions side by side."""
    turns = [
        replace(turn, id=f"{one.id}/{turn.id}", session=f"{one.id}/{turn.session}")
        for one in conversations
        for turn in one.turns
    ]
    questions = [
        replace(question, gold=tuple(f"{one.id}/{id}" for id in question.gold))
        for one in conversations
        for question in one.questions
    ]
    return Conversation("together", tuple(turns), tuple(questions))


def _read(data: Any) -> list[Conversation]:
    if isinstance(data, Mapping):
        return [_plain(one) for one in data["conversations"]]
    return [_locomo(one) for one in data]


def _plain(data: Mapping[str, Any]) -> Conversation:
    turns = [
        Message(
            id=str(turn["id"]),
            text=turn["text"],
            speaker=turn.get("speaker", ""),
            session=str(turn.get("session", "")),
            time=parse_time(turn["time"]) if turn.get("time") else None,
            caption=turn.get("caption") or "",
        )
        for turn in data["turns"]
    ]
    kind = str(data.get("kind", ""))
    questions = [
        Question(str(one["id"]), one["question"], tuple(one["gold"]), str(one.get("category", "")), kind)
        for one in data["questions"]
    ]
    return _checked(str(data["id"]), turns, questions)


def _locomo(data: Mapping[str, Any]) -> Conversation:
    talk = data["conversation"]
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [
        turn
        for number in numbers
        for turn in _locomo_turns(talk[f"session_{number}"], number, _locomo_time(talk, number))
    ]
    name = str(data.get("sample_id", ""))
    questions = [
        Question(f"{name}-{place}", one["question"], _evidence(one.get("evidence")), str(one.get("category", "")))
        for place, one in enumerate(data["qa"])
    ]
    return _checked(name, turns, questions)


def _locomo_turns(turns: Sequence[Mapping[str, Any]], session: int, time: datetime | None) -> list[Message]:
    return [
        Message(
            id=turn["dia_id"],
            text=turn["text"],
            speaker=turn["speaker"],
            session=str(session),
            time=time,
            caption=turn.get("blip_caption") or "",
        )
        for turn in turns
    ]


def _locomo_time(talk: Mapping[str, Any], session: int) -> datetime | None:
    text = talk.get(f"session_{session}_date_time")
    return parse_time(datetime.strptime(text, _LOCOMO_TIME)) if text else None


def _evidence(evidence: object) -> tuple[str, ...]:
    """LoCoMo sometimes puts two ids into one text."""
    return tuple(dict.fromkeys(_EVIDENCE.findall(" ".join(map(str, evidence)) if isinstance(evidence, list) else "")))


def _checked(name: str, turns: Sequence[Message], questions: Sequence[Question]) -> Conversation:
    """Questions whose gold turns are not in the conversation cannot be judged."""
    known = {turn.id for turn in turns}
    judged = [
        replace(one, gold=gold)
        for one in questions
        if (gold := tuple(id for id in dict.fromkeys(one.gold) if id in known))
    ]
    return Conversation(name, tuple(turns), tuple(judged))
