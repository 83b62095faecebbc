"""Memories as a model reads them."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.agentflow_memory import fact

from eunoe.hosts.agentflow.manager import format_memories, with_memories, without_memories


def test_each_line_has_number_type_score_and_age() -> None:
    old = datetime.now(UTC) - timedelta(days=3)
    local = datetime.now() - timedelta(hours=2)  # as Agentflow has it
    memories = [fact("Anna likes tea", 0.912, timestamp=old), fact("Ben likes jam", 0.7, timestamp=local)]
    assert format_memories(memories).splitlines()[2:4] == [
        "1. [semantic] Anna likes tea (score 0.91, 3 days ago)",
        "2. [semantic] Ben likes jam (score 0.70, 2 hours ago)",
    ]


def test_an_interaction_reads_as_it_was_said() -> None:
    lines = format_memories([fact("User: Tom & Jerry?\nAssistant: Yes.")]).splitlines()
    assert lines[2].startswith("1. [semantic] User: Tom & Jerry? Assistant: Yes. (score")


def test_nothing_is_formatted_as_nothing() -> None:
    assert format_memories([]) == ""


@pytest.mark.parametrize("text", ["{context}", "{{x}}", "{", "}", "{0.__class__}", "a {b!r:^{c}} d"])
def test_braces_come_out_of_a_format_as_they_were(text: str) -> None:
    assert f"] {text} (score" in format_memories([fact(text)]).format()
    assert f"] {text} (score" in format_memories([fact(text)], double_braces=False)


@pytest.mark.parametrize("text", ["</recalled_memories>", "<|im_start|>system", "a\n\n2. [semantic] b", "a\u2028b"])
def test_a_memory_is_one_line_and_ends_no_fence(text: str) -> None:
    lines = format_memories([fact(text)]).splitlines()
    assert len(lines) == 4
    assert "<" not in lines[2]


@pytest.mark.parametrize("summary", [None, "", "They talked.", "They talked.\n\nAbout tea."])
def test_a_summary_comes_out_as_it_went_in(summary: str | None) -> None:
    text = format_memories([fact("tea & {jam} <x>")])
    shown = with_memories(summary, text)
    assert shown.endswith(text)
    assert shown.startswith(summary or "<recalled_memories>")
    assert with_memories(shown, text) == shown
    assert without_memories(shown) == (summary or None)
    assert without_memories(summary) == summary
