"""Conversations with questions and the turns that answer them, read from the formats they come in."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from eunoe.errors import InputError
from eunoe.model.arguments import parse_time
from eunoe.model.message import Message
from eunoe.text.sentences import split_sentences, word_count

BUILT_IN = Path(__file__).with_name("talk.json")
"""Conversations written for this project, kept out of the encoder's training; `training/talk.py` makes the file."""

ODD_DATA = (KeyError, TypeError, ValueError, AttributeError)
"""What data of another shape raises."""
_EVIDENCE = re.compile(r"D\d+:\d+")
_EXPECTED = """{"conversations": [{"id", "turns": [...], "questions": [...]}]} or LoCoMo's own file"""
_INSTRUCTION = "instruction"
"""The category of questions about what somebody wants to be done from now on."""
_GOODBYES = ("Goodbye then.", "See you.", "Take care.", "Bye.")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question and the ids of the turns that answer it."""

    id: str
    text: str
    gold: tuple[str, ...]
    category: str
    kind: str = ""
    """What sort of conversation it is asked of, where the file says so."""
    quotes: tuple[str, ...] = ()
    """The words of the gold turns, where these are only a part of their messages."""


@dataclass(frozen=True, slots=True)
class GoldFact:
    """Something worth keeping, and the ids of the turns that say it."""

    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldInstruction:
    """A standing instruction: its turn, and the words that must reach the agent."""

    turn: str
    quotes: tuple[str, ...]
    """One of them is enough."""


@dataclass(frozen=True, slots=True)
class GoldConversation:
    """One memory to be filled and asked."""

    id: str
    turns: tuple[Message, ...]
    questions: tuple[GoldQuestion, ...]
    kind: str = ""
    """What sort of conversation it is, where the file says so."""
    facts: tuple[GoldFact, ...] = ()
    instructions: tuple[GoldInstruction, ...] = ()

    @property
    def end(self) -> datetime | None:
        """When the last turn was said."""
        return max((turn.time for turn in self.turns if turn.time), default=None)


def load_conversations(path: str | Path | None = None) -> list[GoldConversation]:
    """Read the plain conversation format or LoCoMo's own file; without a path, the conversations in the package.

    Those without a question that one of their turns answers are left out.
    """
    path = path or BUILT_IN
    answerable = [conversation for conversation in read_conversations(path) if conversation.questions]
    if not answerable:
        raise InputError(f"{path} has no question with a gold turn")
    return answerable


def read_conversations(path: str | Path) -> list[GoldConversation]:
    """Read all conversations of a file, asked or not."""
    data = read_json(path)
    try:
        plain = data["conversations"] if isinstance(data, Mapping) else map(_from_locomo, data)
        return [_read_conversation(each) for each in plain]
    except ODD_DATA as error:
        reason = str(error) if isinstance(error, InputError) else "it has another shape"
        if isinstance(error, KeyError):
            reason = f"{error} is missing in it"
        raise InputError(f"{path} cannot be asked: {reason} (expected {_EXPECTED})") from error


def read_json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    except RecursionError:
        raise InputError(f"{path} is not JSON that can be read: it is nested too deeply") from None


def merge_conversations(conversations: Sequence[GoldConversation]) -> GoldConversation:
    """All conversations as one memory: their turns, sessions and questions side by side."""
    turns: list[Message] = []
    questions: list[GoldQuestion] = []
    for each in conversations:
        turns += [replace(turn, id=f"{each.id}/{turn.id}", session=f"{each.id}/{turn.session}") for turn in each.turns]
        questions += [replace(asked, gold=tuple(f"{each.id}/{id}" for id in asked.gold)) for asked in each.questions]
    return GoldConversation("together", tuple(turns), tuple(questions))


def join_turns(conversation: GoldConversation, words: int) -> GoldConversation:
    """The conversation in messages of about so many words: turns of one session joined, each on a line of its own."""
    joined: list[Message] = []
    message_of: dict[str, str] = {}
    size = 0
    for turn in conversation.turns:
        text = f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text
        if joined and joined[-1].session == turn.session and size < words:
            joined[-1] = replace(joined[-1], text=f"{joined[-1].text}\n{text}")
        else:
            joined.append(replace(turn, text=text, speaker="", caption=""))
            size = 0
        size += word_count(text)
        message_of[turn.id] = joined[-1].id
    texts = {turn.id: turn.text for turn in conversation.turns}
    questions = [
        replace(
            asked,
            gold=tuple(dict.fromkeys(message_of[id] for id in asked.gold)),
            quotes=tuple(texts[id] for id in asked.gold),
        )
        for asked in conversation.questions
    ]
    last = joined[-1]
    # The latest messages are not recalled: the host has them before it.
    ends = [replace(last, id=f"{last.id}/{place}", text=text) for place, text in enumerate(_GOODBYES)]
    return replace(conversation, turns=(*joined, *ends), questions=tuple(questions))


def _read_conversation(data: Mapping[str, Any]) -> GoldConversation:
    """Read the plain format. Questions that no turn of the conversation answers are left out."""
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
    ids, kind = {turn.id for turn in turns}, str(data.get("kind", ""))
    questions = [
        GoldQuestion(str(each["id"]), each["question"], gold, str(each.get("category", "")), kind)
        for each in data["questions"]
        if (gold := tuple(id for id in dict.fromkeys(each["gold"]) if id in ids))
    ]
    facts = [
        GoldFact(str(each.get("fact", "")), gold)
        for each in data.get("facts", ())
        if (gold := tuple(id for id in dict.fromkeys(each["gold"]) if id in ids))
    ]
    marked = [
        GoldInstruction(id, (str(each["instruction"]),))
        for each in data.get("instructions", ())
        for id in each["gold"]
        if id in ids
    ]
    instructions = marked or list(_instructions_asked_for(turns, questions))
    return GoldConversation(str(data["id"]), tuple(turns), tuple(questions), kind, tuple(facts), tuple(instructions))


def _instructions_asked_for(turns: Sequence[Message], questions: Sequence[GoldQuestion]) -> Iterator[GoldInstruction]:
    """The gold turns of questions about instructions. Which of their sentences is meant, the file does not say."""
    wanted = {id for question in questions if question.category == _INSTRUCTION for id in question.gold}
    for turn in turns:
        if turn.id in wanted:
            yield GoldInstruction(turn.id, tuple(split_sentences(turn.text)) or (turn.text,))


def _from_locomo(data: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation of LoCoMo in the plain format. Its evidence sometimes has two ids in one text."""
    sessions, name = data["conversation"], str(data.get("sample_id", ""))
    turns: list[dict[str, Any]] = []
    for session in sorted(int(key[8:]) for key in sessions if re.fullmatch(r"session_\d+", key)):
        date = sessions.get(f"session_{session}_date_time")
        time = datetime.strptime(date, _LOCOMO_TIME) if date else None
        turns += [
            {**turn, "id": turn["dia_id"], "session": session, "time": time, "caption": turn.get("blip_caption")}
            for turn in sessions[f"session_{session}"]
        ]
    questions = [
        {**each, "id": f"{name}-{place}", "gold": _EVIDENCE.findall(str(each.get("evidence")))}
        for place, each in enumerate(data["qa"])
    ]
    facts = [
        {"fact": text, "gold": _EVIDENCE.findall(str(evidence))}
        for session in data.get("observation", {}).values()
        for observations in session.values()
        for text, *evidence in observations
    ]
    return {"id": name, "turns": turns, "questions": questions, "facts": facts}
