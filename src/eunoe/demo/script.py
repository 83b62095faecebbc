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
TALK: Final = "agent=pilot/session=monday/user=mira"
LATER: Final = "agent=pilot/session=tuesday/user=mira"
ASKED: Final = "Who helps me with the mast?"
TALK_MESSAGES: Final = (
    {"role": "user", "content": "I'm allergic to wasp stings and I live in Lisbon.", "time": "2025-04-28T18:02"},
    {"role": "assistant", "content": "I will keep that in mind.", "time": "2025-04-28T18:02"},
    {"role": "user", "content": "Please always give lengths in millimetres.", "time": "2025-04-28T18:03"},
    {"role": "user", "content": "My brother Tomás helps me on Saturdays.", "time": "2025-04-28T18:04"},
    {"role": "user", "content": "We decided to varnish the mast on 3 May 2025.", "time": "2025-04-28T18:05"},
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what to look out for in the answer, where the answer stands, and the day of asking if it matters."""

    text: str
    note: str
    answer: tuple[str, ...]
    """Texts of which the first hit must hold one."""
    now: str = ""


QUESTIONS: Final = (
    Question(
        "What food is dangerous for Jonas?",
        "Jonas used none of these words but his name; meaning has to help.",
        ("cashews",),
    ),
    Question(
        "What did ERR_BP17 turn out to be?",
        "An identifier is looked up as one thing, and the turns around it count too.",
        ("plug",),
    ),
    Question(
        "On which day will the boat be launched?",
        "The plan changed in March: the log has both dates, the fact still has the old one.",
        ("12 April",),
    ),
    Question(
        "What did Jonas pick up last weekend?",
        "'Last weekend' is worked out from the day of asking.",
        ("picked up the sail",),
        "2025-04-29",
    ),
    Question(
        "Onde podemos guardar o mastro?",
        "Every language is kept, and found, as it was said.",
        ("garagem",),
    ),
    Question(
        "How much did mending the sail cost?",
        "Asked for an amount, turns that tell one come first.",
        ("135",),
    ),
)


def conversation() -> list[dict[str, Any]]:
    return _lines("conversation.jsonl")


def facts() -> list[dict[str, Any]]:
    return _lines("facts.jsonl")


def _lines(name: str) -> list[dict[str, Any]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
