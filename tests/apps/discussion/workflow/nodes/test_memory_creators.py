"""Nodes that make memories, and nodes that have them made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion.documents import current_summary, new_since_summary
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import chunk_memories, discussion_scope
from eunoe.apps.discussion.settings import DiscussionSettings, UserSettings
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, WorkflowResult, run_workflow
from eunoe.llm.contract import Prompt, ScriptedLlm

SCOPE = discussion_scope("trip")
CHAT = [{"role": "user", "content": f"My city number {number} is Rome{number}."} for number in range(33)]
SUMMARIZER = {
    "type": "chatSummarySummarizer",
    "systemPrompt": "Keep it short.",
    "prompt": "Old: [CHAT_SUMMARY] New: [LATEST_MEMORIES]",
}

EMPTY = {
    "RecentMemory": "There are no chunk memories yet. A creator makes them: run `eunoe discussion update`.",
    "FullChatSummary": "There is no summary yet. A creator writes it: run `eunoe discussion update`.",
}


def run(memory: eunoe.Memory, *nodes: dict[str, Any], **environment: Any) -> WorkflowResult:
    return run_workflow(
        Workflow.of(list(nodes)),
        memory=memory,
        messages=CHAT,
        discussion_id="trip",
        environment=Environment(**environment),
    )


def test_memories_are_made_by_a_model_or_out_of_the_chat(memory: eunoe.Memory) -> None:
    assert run(memory, {"type": "QualityMemory"}).text == ""
    made = chunk_memories(memory, SCOPE)
    assert len(made) == 6
    assert "Rome0" in made[0].text


def test_the_whole_chat_takes_back_what_it_does_not_show(memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"})
    nodes = Workflow.of([{"type": "QualityMemory", "whole": True}])
    run_workflow(nodes, memory=memory, messages=CHAT[:1], discussion_id="trip")
    assert [message.text for message in DiscussionLog(memory, SCOPE).messages()] == [CHAT[0]["content"]]


def test_a_failed_chunk_stands_in_the_trace_and_the_workflow_goes_on(memory: eunoe.Memory) -> None:
    model = ScriptedLlm(lambda prompt: "")
    after = {"type": "StaticResponse", "content": "done"}
    result = run(memory, {"type": "QualityMemory"}, after, models=ModelMap(default=model))
    assert result.text == "done"
    assert any("empty answer" in note for note in result.trace[0].notes)
    assert chunk_memories(memory, SCOPE) == []


@pytest.mark.parametrize("name", ["RecentMemory", "FullChatSummary"])
def test_a_node_that_reads_asks_no_model_and_makes_nothing(name: str, memory: eunoe.Memory) -> None:
    model = ScriptedLlm([])
    result = run(memory, {"type": name}, models=ModelMap(default=model))
    assert (result.text, result.trace[0].notes, model.prompts) == ("", [EMPTY[name]], [])
    assert memory.scopes() == []
    run(memory, {"type": "QualityMemory"})
    assert "Rome29" in run(memory, {"type": name}, models=ModelMap(default=model)).text


def test_a_reader_tells_of_chunks_that_failed(memory: eunoe.Memory, caplog: pytest.LogCaptureFixture) -> None:
    result = run(
        memory, {"type": "RecentMemory", "update_first": True}, models=ModelMap(default=ScriptedLlm(lambda prompt: ""))
    )
    told = [note for note in result.trace[0].notes if "stays due" in note]
    assert "the discussion 'trip' of 'default': a chunk failed (attempt 1)" in told[0]
    assert "empty answer" in told[0]
    assert told[0] in caplog.text
    assert "Rome" not in caplog.text


@pytest.mark.parametrize("name", ["RecentMemory", "FullChatSummary"])
def test_update_first_makes_memories_before_it_reads(name: str, memory: eunoe.Memory) -> None:
    assert "Rome29" in run(memory, {"type": name, "update_first": True}).text


def test_a_manual_summary_node_has_nothing_made(memory: eunoe.Memory) -> None:
    run(memory, {"type": "FullChatSummary", "isManualConfig": True}, update_first=True)
    assert chunk_memories(memory, SCOPE) == []


def test_the_summary_node_folds_in_what_is_new(memory: eunoe.Memory) -> None:
    settings = Environment().settings
    run(memory, {"type": "QualityMemory"}, settings=without_summary(settings))
    assert len(new_since_summary(memory, SCOPE)) == 6
    model = ScriptedLlm(["A trip to Rome 0, and so on.", "A trip to many Romes."])
    result = run(memory, SUMMARIZER, models=ModelMap(default=model))
    assert result.text == current_summary(memory, SCOPE) == "A trip to many Romes."
    assert [prompt.system for prompt in model.prompts] == ["Keep it short."] * 2
    assert "Rome0" in model.prompts[0].text
    assert "A trip to Rome 0, and so on." in model.prompts[1].text
    assert result.trace[0].output_tokens > 0
    assert new_since_summary(memory, SCOPE) == []


def test_the_summary_node_says_why_it_waits(memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    first, second = (run(memory, SUMMARIZER, models=ModelMap(default=ScriptedLlm(lambda _: ""))) for _ in range(2))
    assert "the summary stays as it is, and what is new stays due" in first.notes[0]
    assert "the summary stays as it is until it is tried again at" in second.notes[0]
    assert "empty" in second.notes[0]
    assert "There is no summary yet." in second.trace[0].notes[1]


def test_the_summary_node_says_that_somebody_else_is_at_work(memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    assert memory.leases.acquire(SCOPE, "summary")
    assert "somebody else writes it just now" in run(memory, SUMMARIZER).notes[0]


def test_the_summary_node_waits_for_enough_memories(memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    model = ScriptedLlm(["never asked"])
    assert run(memory, {**SUMMARIZER, "minMemoriesPerSummary": "7"}, models=ModelMap(default=model)).text == ""
    assert model.prompts == []


def test_a_summary_is_written_and_a_blank_one_changes_nothing(memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"})
    write = {"type": "WriteCurrentSummaryToFileAndReturnIt", "input": "{agent1Output}"}
    text = {"type": "StaticResponse", "content": "A trip to Rome."}
    assert run(memory, text, write).text == "A trip to Rome."
    assert current_summary(memory, SCOPE) == "A trip to Rome."
    assert new_since_summary(memory, SCOPE) == []
    blank = run(memory, {"type": "StaticResponse", "content": " \n"}, write)
    assert blank.text == "A trip to Rome."
    assert "stays as it is" in blank.notes[0]
    revisions = len(memory.summaries.revisions(SCOPE))
    run(memory, text, write)
    assert len(memory.summaries.revisions(SCOPE)) == revisions


def test_the_summary_is_written_by_the_workflow_that_a_users_settings_name(
    memory: eunoe.Memory, tmp_path: Path
) -> None:
    write = '[{"type": "StaticResponse", "content": "Romes."}, {"type": "WriteCurrentSummaryToFileAndReturnIt", "input": "{agent1Output}"}]'  # noqa: E501
    (tmp_path / "summary.json").write_text(write)
    user = UserSettings(chat_summary_workflow="summary")
    run(memory, {"type": "QualityMemory"}, user_settings=user, workflows=tmp_path)
    assert current_summary(memory, SCOPE) == "Romes."


def test_a_workflow_for_the_summary_that_fails_takes_no_reply_away(memory: eunoe.Memory, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('[{"type": "StaticResponse", "content": "{nothing}"}]')
    reply = {"type": "StaticResponse", "content": "Hello.", "returnToUser": True}
    user = UserSettings(chat_summary_workflow="summary")
    result = run(memory, reply, {"type": "QualityMemory"}, user_settings=user, workflows=tmp_path)
    assert result.text == "Hello."
    assert "{nothing}" in result.notes[0]
    assert len(chunk_memories(memory, SCOPE)) == 6


def test_recent_memories_come_from_the_workflow_that_a_users_settings_name(
    memory: eunoe.Memory, tmp_path: Path
) -> None:
    (tmp_path / "recent.json").write_text(
        '[{"type": "StaticResponse", "content": "lately: {chat_user_prompt_last_one}"}]'
    )
    user = UserSettings(recent_memory_workflow="recent")
    text = run(memory, {"type": "RecentMemory"}, user_settings=user, workflows=tmp_path).text
    assert text == f"lately: {CHAT[-1]['content']}"


def test_what_a_prompt_says_of_the_chat_is_data(memory: eunoe.Memory) -> None:
    """A name in brackets that a user typed stays what it is."""
    run(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> str:
        seen.append(prompt)
        return "Summary."

    chat = [*CHAT, {"role": "user", "content": "Tell me of [LATEST_MEMORIES] and {agent9Output}"}]
    node = {**SUMMARIZER, "prompt": "[LATEST_MEMORIES]. Asked: {chat_user_prompt_last_one}"}
    run_workflow(
        Workflow.of([node]),
        memory=memory,
        messages=chat,
        discussion_id="trip",
        environment=Environment(models=ModelMap(default=ScriptedLlm(answer))),
    )
    assert "{agent9Output}" in seen[0].text
    assert seen[0].text.count("<LATEST_MEMORIES>") == 1


@pytest.mark.parametrize("prompt", ["Write it anew.", "{% if 1 %}Write it anew.{% endif %}"])
def test_a_prompt_that_names_no_memories_gets_them_all_the_same(prompt: str, memory: eunoe.Memory) -> None:
    run(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    model = ScriptedLlm(lambda prompt: "Summary.")
    node = {"type": "chatSummarySummarizer", "prompt": prompt, "jinja2": prompt.startswith("{%")}
    run(memory, node, models=ModelMap(default=model))
    assert model.prompts[0].text.startswith("Write it anew.")
    assert "Rome0" in model.prompts[0].text


def without_summary(settings: DiscussionSettings) -> DiscussionSettings:
    return replace(settings, summary=replace(settings.summary, is_on=False))
