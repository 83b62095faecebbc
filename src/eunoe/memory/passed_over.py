"""Why nothing was learned from a turn, in words."""

from typing import Final

from eunoe.form.statements import is_secret
from eunoe.form.turn_reading import MIN_WORTH, TurnReading
from eunoe.model.arguments import shorten
from eunoe.model.turn import TOOL_ROLES

_TOOL: Final = "it is what a tool gave back, not what somebody said"
_SECRET: Final = "it speaks of a secret, which stays in the log alone"
_QUESTION: Final = "it only asks"
_SMALL_TALK: Final = "it states nothing: a greeting, a reaction or the like"
_TOO_LITTLE: Final = "what it says is not worth enough"
_NO_ROOM: Final = "other messages were worth more, and a stream takes only so many"
_LEAST: Final = 0.25
"""What is worth less states nothing."""


def explain_passed_over(reading: TurnReading) -> str:
    """The reason why a turn was passed over when it was read without an LLM.

    >>> from eunoe.form.turn_reading import read_by_rules
    >>> from eunoe.model.turn import Turn
    >>> explain_passed_over(read_by_rules(Turn("1", "What time is it?")))
    'it only asks'
    """
    if reading.turn.role.lower() in TOOL_ROLES:
        return _TOOL
    if any(is_secret(sentence.text) for sentence in reading.sentences):
        return _SECRET
    if text := next((sentence.correction for sentence in reading.sentences if sentence.correction), ""):
        return f"by your correction of {shorten(text)!r}"
    worth = max((sentence.worth for sentence in reading.sentences), default=0.0)
    if worth < _LEAST:
        return _QUESTION if any(sentence.kind == "request" for sentence in reading.sentences[-1:]) else _SMALL_TALK
    return _NO_ROOM if worth >= MIN_WORTH else f"{_TOO_LITTLE} ({worth:.0%})"
