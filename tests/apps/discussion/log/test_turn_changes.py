"""A turn that is handed in alone goes to the end of the chat, or takes the place of the last answer."""

from __future__ import annotations

import pytest

import eunoe
from eunoe.apps.discussion import Discussion


def say(role: str, *texts: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for text in texts]


def turn(question: str, answer: str) -> list[dict[str, str]]:
    return [*say("user", question), *say("assistant", answer)]


@pytest.mark.parametrize(
    ("turns", "chat"),
    [
        ([turn("One.", "ok"), turn("Two.", "ok"), turn("Three.", "ok")], ["One.", "ok", "Two.", "ok", "Three.", "ok"]),
        (
            [turn("ok", "One."), turn("More?", "Two."), turn("ok", "Three.")],
            ["ok", "One.", "More?", "Two.", "ok", "Three."],
        ),
        ([turn("Why?", "So."), turn("Why?", "Because.")], ["Why?", "Because."]),
        ([turn("Why?", "So."), turn("Why?", "So.")], ["Why?", "So."]),
        ([turn("Why?", "So."), turn("Why?", "Because."), turn("Why?", "So.")], ["Why?", "So."]),
        ([say("user", "Why?"), say("assistant", "So.")], ["Why?", "So."]),
        ([say("user", "Why?"), turn("Why?", "So.")], ["Why?", "So."]),
        ([turn("Why?", "So."), say("user", "Why?")], ["Why?", "So."]),
        ([turn("Yes?", "ok"), say("user", "No?"), say("assistant", "ok")], ["Yes?", "ok", "No?", "ok"]),
        ([turn("One.", "ok"), []], ["One.", "ok"]),
    ],
)
def test_turns(turns: list[list[dict[str, str]]], chat: list[str]) -> None:
    with eunoe.open(":memory:", embedder="none", llm="none") as memory:
        log = Discussion(memory, "trip").log
        for each in turns:
            log.take_in_turn(each)
        assert [message.text for message in log.messages()] == chat
