"""Nodes that search in what was said: one ranking, whether messages are in the log already or not."""

from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion, MemoryService
from eunoe.apps.discussion.workflow import Workflow, run_workflow

TALK = [
    {"role": "user", "content": "We saw a lighthouse."},
    *(
        {"role": "assistant", "content": f"Where did we go then, and what did we do in the end of the day {day}?"}
        for day in range(8)
    ),
]
QUESTION = {"role": "user", "content": "Where did we see the lighthouse?"}
CHAT = [*TALK, QUESTION]
FIRST = "user: We saw a lighthouse."
KEYWORDS = {"type": "ConversationalKeywordSearchPerformerTool", "keywords": "lighthouse; end of the day"}


def search(node: dict[str, Any], messages: list[dict[str, Any]], memory: eunoe.Memory | None = None) -> list[str]:
    id = "trip" if memory else ""
    return run_workflow(Workflow.of([node]), memory=memory, messages=messages, discussion_id=id).text.split(
        "\n\n---\n\n"
    )


@pytest.mark.parametrize("known", [0, 1, 5, len(CHAT)])
def test_the_rare_word_comes_first_wherever_it_stands(known: int, memory: eunoe.Memory) -> None:
    Discussion(memory, "trip").log.take_in(CHAT[:known])
    assert search({"type": "ConversationMemory"}, CHAT, memory) == [FIRST]
    assert search(KEYWORDS, CHAT, memory)[0] == FIRST


def test_without_a_discussion_the_rare_word_comes_first_too() -> None:
    assert search({"type": "ConversationMemory"}, CHAT)[0] == FIRST
    assert search(KEYWORDS, CHAT)[0] == FIRST


def test_the_ranking_is_that_of_the_log(memory: eunoe.Memory) -> None:
    chat = [{"role": "user", "content": " ".join(["cat", *["sleeps"] * length])} for length in range(9)]
    Discussion(memory, "trip").log.take_in(chat)
    node = {"type": "ConversationalKeywordSearchPerformerTool", "keywords": "cat"}
    ranking = MemoryService(memory).reader("trip").search_conversation("cat").texts
    assert ranking[0] == "user: cat"
    assert search(node, chat, memory) == search(node, chat[-1:], memory) == search(node, chat) == list(ranking)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_last_messages_are_left_out_and_prompts_of_the_system_do_not_count(
    is_kept: bool, memory: eunoe.Memory
) -> None:
    chat = [
        {"role": "user", "content": "My cat Tom sleeps."},
        {"role": "assistant", "content": "Nice."},
        {"role": "user", "content": "Where is my cat?"},
        {"role": "system", "content": "Be kind to the cat."},
        {"role": "developer", "content": "Be short."},
    ]
    if is_kept:
        Discussion(memory, "trip").log.take_in(chat)
    expected = ["user: My cat Tom sleeps."]
    assert (
        search({"type": "ConversationMemory"}, chat, memory) == search({"type": "ConversationMemory"}, chat) == expected
    )


def test_what_was_asked_before_is_found_though_it_is_asked_again(memory: eunoe.Memory) -> None:
    chat = [QUESTION, {"role": "assistant", "content": "In Brittany."}, QUESTION]
    Discussion(memory, "trip").log.take_in(chat)
    assert search({"type": "ConversationMemory"}, chat, memory) == ["user: Where did we see the lighthouse?"]


def test_why_nothing_was_found_stands_in_the_trace(memory: eunoe.Memory) -> None:
    workflow = Workflow.of([{**KEYWORDS, "keywords": "volcano"}])
    result = run_workflow(workflow, memory=memory, messages=CHAT, discussion_id="trip")
    assert (result.text, result.trace[0].notes) == ("", ["Nothing has any of these keywords."])
