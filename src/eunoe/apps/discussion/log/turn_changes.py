"""Changes of a log by a turn that is handed in without the chat before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eunoe.apps.discussion.log.changes import Line, LogChanges

_QUESTION: Final = "user"


def find_turn_changes(log: Sequence[Line], turn: Sequence[Line]) -> LogChanges:
    """Find out what the latest turn changes. It goes to the end, whatever was said before in the same words.

    If it begins with the last question, that was asked again: what it does not repeat of the answer is taken back.

    >>> question, answer = Line("u1", "user", "Why?"), Line("a1", "assistant", "So.")
    >>> find_turn_changes([question, answer], [question, Line("a2", "assistant", "Because.")]).retracted
    [1]
    """
    last = _last_turn(log, turn[0]) if turn else []
    known = 0
    while known < min(len(last), len(turn)) and log[last[known]].key == turn[known].key:
        known += 1
    new = range(known, len(turn))
    return LogChanges(
        places=[*last[:known], *(None for _ in new)],
        before=dict.fromkeys(new, len(log)),
        retracted=last[known:] if known and new else [],
    )


def _last_turn(log: Sequence[Line], first: Line) -> list[int]:
    """The places of the last turn of the chat, from its last message with the role of the first one on."""
    places: list[int] = []
    for place in range(len(log) - 1, -1, -1):
        if log[place].is_retracted:
            continue
        places.insert(0, place)
        if log[place].role in (first.role, _QUESTION):
            break
    return places
