"""What the tour shows, as data: the files beside this one, and where in them something happens."""

import json
from importlib.resources import files
from typing import Any, Final, NamedTuple

SCOPE: Final = "project=boat"
SECRET: Final = "4.12"
PLAN: Final = "launch"
NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
CHANGED: Final = "2025-03-08"
TALK: Final = "agent=pilot/session=monday/user=mira"
LATER: Final = "agent=pilot/session=tuesday/user=mira"
ASKED: Final = "Who helps me with the mast?"


class Question(NamedTuple):
    """A question, what to look out for in the answer, and the day of asking if it matters."""

    text: str
    note: str
    answer: str
    """Words that the first hit must hold."""
    now: str = ""


def read_lines(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


CONVERSATION: Final = read_lines("conversation.jsonl")
FACTS: Final = read_lines("facts.jsonl")
TALK_MESSAGES: Final = read_lines("talk.jsonl")
QUESTIONS: Final = [Question(**line) for line in read_lines("questions.jsonl")]
