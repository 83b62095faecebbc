"""What the tour shows, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

SCOPE: Final = "project=boat"
SECRET: Final = "4.12"
PLAN: Final = "launch"
NEW_PLAN: Final = "The launch is planned for Saturday 10 May 2025, high water 9:25."
CHANGED: Final = "2025-03-08"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what to look out for in the answer, and the moment it is asked."""

    text: str
    note: str
    now: str = "2025-05-12"


QUESTIONS: Final = (
    Question("What food is dangerous for Jonas?", "Other words than Jonas used: meaning has to help."),
    Question("What did ERR_BP17 turn out to be?", "An identifier is looked up as one thing, not as its parts."),
    Question("On which day will the boat be launched?", "The plan changed; both dates are in the log."),
    Question(
        "What did Jonas pick up last weekend?", "'Last weekend' is worked out from the day of asking.", "2025-04-29"
    ),
    Question("Onde podemos guardar o mastro?", "Every language is kept and found as it was said."),
    Question("How much did mending the sail cost?", "Facts and messages are ranked side by side."),
)


def conversation() -> list[dict[str, Any]]:
    return _lines("conversation.jsonl")


def facts() -> list[dict[str, Any]]:
    return _lines("facts.jsonl")


def _lines(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
