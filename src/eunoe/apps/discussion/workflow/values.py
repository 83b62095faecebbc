"""The values that every prompt can use: of the chat, of the date, and of the discussion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from eunoe.apps.discussion.workflow.chat import (
    ChatMessage,
    conversation,
    last_within,
    plain_text,
    system_text,
    transcript,
)
from eunoe.errors import WorkflowError
from eunoe.model.arguments import show

_COUNTS: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "twenty": 20}
_DEFAULT_MESSAGES: Final = 5
_DEFAULT_TOKENS: Final = 2048
COUNT_KEYS: Final = (
    "nMessagesToIncludeInVariable",
    "estimatedTokensToIncludeInVariable",
    "minMessagesInVariable",
    "maxEstimatedTokensInVariable",
)
"""Keys of a node that say how much of the chat `..._n_messages` and the like hold."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What values are taken from."""

    messages: Sequence[ChatMessage]
    node: Mapping[str, Any]
    now: datetime
    discussion_id: str = ""
    time_context: Callable[[], str] = str
    """Says when the discussion began and when something was last said in it."""

    fill_in: Callable[[str], str] = str
    """Fills in the variables, inputs and outputs that a number is written with."""

    def count(self, key: str, default: int) -> int:
        """A number of the node. Raise WorkflowError if it is none."""
        value = self.node.get(key)
        if isinstance(value, str):
            value = self.fill_in(value)
        if problem := count_problem(key, value):
            raise WorkflowError(problem)
        return default if value is None else int(value)


def count_problem(key: str, value: Any) -> str:
    """What is wrong with a number of messages or tokens; empty if nothing is."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if value is None or is_number or (isinstance(value, str) and value.strip().isdecimal()):
        return ""
    return f"{key} must be a whole number, 0 or more, not {show(value)}"


Value = Callable[[Surroundings], str]
Choice = Callable[[Surroundings], Sequence[ChatMessage]]


def _last(count: int) -> Choice:
    return lambda around: conversation(around.messages)[-count:]


def _n_messages(around: Surroundings) -> Sequence[ChatMessage]:
    messages = conversation(around.messages)
    return messages[max(len(messages) - around.count(COUNT_KEYS[0], _DEFAULT_MESSAGES), 0) :]


def _within_tokens(around: Surroundings) -> Sequence[ChatMessage]:
    return last_within(conversation(around.messages), around.count(COUNT_KEYS[1], _DEFAULT_TOKENS), least=1)


def _least_within_tokens(around: Surroundings) -> Sequence[ChatMessage]:
    least, tokens = around.count(COUNT_KEYS[2], _DEFAULT_MESSAGES), around.count(COUNT_KEYS[3], _DEFAULT_TOKENS)
    return last_within(conversation(around.messages), tokens, least)


_CHOICES: Final[Mapping[str, Choice]] = {
    **{f"last_{word}": _last(count) for word, count in _COUNTS.items()},
    "n_messages": _n_messages,
    "estimated_token_limit": _within_tokens,
    "min_n_max_tokens": _least_within_tokens,
}


def _of_chat(show: Callable[[Sequence[ChatMessage]], str], choose: Choice) -> Value:
    return lambda around: show(choose(around))


def _of_date(format: str) -> Value:
    return lambda around: around.now.strftime(format)


VALUES: Final[Mapping[str, Value]] = {
    **{f"chat_user_prompt_{name}": _of_chat(plain_text, choose) for name, choose in _CHOICES.items()},
    **{f"templated_user_prompt_{name}": _of_chat(transcript, choose) for name, choose in _CHOICES.items()},
    "chat_system_prompt": lambda around: system_text(around.messages),
    "Discussion_Id": lambda around: around.discussion_id,
    "YYYY_MM_DD": _of_date("%Y_%m_%d"),
    "todays_date_pretty": lambda around: f"{around.now:%B} {around.now.day}, {around.now.year}",
    "todays_date_iso": _of_date("%Y-%m-%d"),
    "current_time_12h": _of_date("%I:%M %p"),
    "current_time_24h": _of_date("%H:%M"),
    "current_day_of_week": _of_date("%A"),
    "current_day_of_month": lambda around: str(around.now.day),
    "current_month_full": _of_date("%B"),
    "time_context_summary": lambda around: around.time_context(),
}
"""All of them by name. Besides, there are the variables of the workflow, and what nodes gave and got."""
