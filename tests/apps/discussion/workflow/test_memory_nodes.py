"""Nodes that read and make memories."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.documents import current_summary, new_since_summary
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.apps.discussion.model import chunk_memories, discussion_scope
from eunoe.apps.discussion.retrievers import NO_ID, NO_MATCH, NO_MEMORIES, NO_SUMMARY
from eunoe.apps.discussion.settings import DiscussionSettings, UserSettings
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, WorkflowResult, run_workflow
from eunoe.apps.discussion.workflow.check import check_workflow
from eunoe.apps.discussion.workflow.node import MODEL_KEYS, NODE_TYPES
from eunoe.apps.discussion.workflow.texts import COUNT_KEYS
from eunoe.errors import WorkflowError
from eunoe.llm.contract import Prompt, ScriptedLlm
from eunoe.text.sentences import token_count

ROOT = Path(__file__).parents[4]


CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "My cat is called Tom."},
    {"role": "assistant", "content": "Hello Tom."},
    {"role": "user", "content": "What is my cat called?"},
]


TURNS = "user: My cat is called Tom.\nassistant: Hello Tom.\nuser: What is my cat called?"


FIRST = "user: My cat is called Tom."


NODES: dict[str, dict[str, Any]] = {
    "QualityMemory": {},
    "RecentMemory": {},
    "RecentMemorySummarizerTool": {"maxTurnsToPull": 1, "maxSummaryChunksFromFile": 3, "lookbackStart": 2},
    "VectorMemorySearch": {"input": "cat; Tom"},
    "FullChatSummary": {},
    "chatSummarySummarizer": {},
    "GetCurrentSummaryFromFile": {},
    "GetCurrentMemoryFromFile": {},
    "GetCurrentStateDocument": {},
    "ChatSummaryMemoryGatheringTool": {"maxTurnsToPull": 2},
    "WriteCurrentSummaryToFileAndReturnIt": {"input": "All of {chat_user_prompt_last_one}"},
}


WITHOUT_ID = {
    "QualityMemory": "",
    "RecentMemory": TURNS,
    "RecentMemorySummarizerTool": FIRST,
    "VectorMemorySearch": "",
    "FullChatSummary": TURNS,
    "chatSummarySummarizer": TURNS,
    "GetCurrentSummaryFromFile": TURNS,
    "GetCurrentMemoryFromFile": TURNS,
    "GetCurrentStateDocument": "",
    "ChatSummaryMemoryGatheringTool": "assistant: Hello Tom.\nuser: What is my cat called?",
    "WriteCurrentSummaryToFileAndReturnIt": "All of What is my cat called?",
}


SENTENCES = {
    "RecentMemory": NO_MEMORIES,
    "RecentMemorySummarizerTool": NO_MEMORIES,
    "VectorMemorySearch": NO_MATCH,
    "FullChatSummary": NO_SUMMARY,
    "GetCurrentSummaryFromFile": NO_SUMMARY,
    "GetCurrentMemoryFromFile": NO_MEMORIES,
    "ChatSummaryMemoryGatheringTool": NO_MEMORIES,
}


WRITERS = {"QualityMemory", "chatSummarySummarizer", "WriteCurrentSummaryToFileAndReturnIt"}


READERS = sorted(NODES.keys() - WRITERS)


def run(name: str, memory: eunoe.Memory | None = None, id: str = "", **extra: Any) -> str:
    workflow = Workflow.of([{"type": name, **NODES[name], **extra}])
    environment = Environment()
    return run_workflow(workflow, memory=memory, messages=CHAT, discussion_id=id, environment=environment).text


def test_the_table_names_every_node_and_key() -> None:
    page = (ROOT / "docs" / "discussions" / "nodes.md").read_text(encoding="utf-8")
    table = page.split("## All of them")[1].split("## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE))
    types = {name: NODE_TYPES[name] for name in NODES}
    assert rows.keys() == types.keys()
    for name, type in types.items():
        own = set(type.keys) - set(COUNT_KEYS)
        if own.issuperset(MODEL_KEYS):
            assert "model keys" in rows[name]
            own -= set(MODEL_KEYS)
        assert set(re.findall(r"`(\w+)`\\\*", rows[name])) == set(type.required)
        assert set(re.findall(r"`(\w+)`", rows[name])) == own | set(type.required)


@pytest.mark.parametrize("name", NODES)
def test_without_an_id_a_node_uses_the_messages_and_writes_nothing(name: str, memory: eunoe.Memory) -> None:
    assert run(name) == WITHOUT_ID[name]
    assert run(name, memory) == WITHOUT_ID[name]
    assert list(memory.scopes()) == []


def test_without_an_id_a_model_may_sum_up_the_messages() -> None:
    model = ScriptedLlm(["Tom is a cat."])
    workflow = Workflow.of([{"type": "chatSummarySummarizer", "prompt": "[CHAT_SUMMARY] and now [LATEST_MEMORIES]"}])
    environment = Environment(models=ModelMap(endpoints={"*": model}))
    assert run_workflow(workflow, messages=CHAT, environment=environment).text == "Tom is a cat."
    assert "My cat is called Tom." in model.prompts[0].text


@pytest.mark.parametrize("name", READERS)
def test_what_reads_neither_writes_nor_makes_a_discussion(name: str, memory: eunoe.Memory, path: Path) -> None:
    run_workflow(
        Workflow.of([{"type": "QualityMemory", "force": True}]), memory=memory, messages=CHAT, discussion_id="a"
    )
    before = digest(path)
    for id in ("a", "unknown"):
        run(name, memory, id)
    assert digest(path) == before
    assert len(memory.scopes()) == 1


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_what_writes_or_asks_a_model_takes_the_messages_in(name: str, memory: eunoe.Memory) -> None:
    run(name, memory, "trip")
    assert Discussion(memory, "trip").status().messages == len(CHAT) - 1


@pytest.mark.parametrize("name", NODES)
def test_null_has_the_default_when_it_is_checked_and_when_it_runs(name: str, memory: eunoe.Memory) -> None:
    nulls = dict.fromkeys(set(NODE_TYPES[name].keys) - NODES[name].keys())
    assert check_workflow(Workflow.of([{"type": name, **NODES[name], **nulls}])).problems == []
    assert run(name, None, "", **nulls) == WITHOUT_ID[name]
    as_variable = Workflow.of({"nodes": [{"type": name, **NODES[name]}], "host_messages": None, "update_first": None})
    environment = Environment()
    result = run_workflow(as_variable, memory=memory, messages=CHAT, discussion_id="trip", environment=environment)
    assert result.text == run(name, memory, "trip", **nulls)


def digest(path: Path) -> list[str]:
    files = sorted(path.parent.glob(f"{path.name}*"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if not file.name.endswith("-shm")]


@pytest.mark.parametrize("name", SENTENCES)
def test_where_there_is_nothing_the_result_is_empty_or_the_sentence_of_the_application(
    name: str, memory: eunoe.Memory
) -> None:
    assert run(name, memory, "trip") == ""
    assert run(name, memory, "trip", host_messages=True) == SENTENCES[name]
    as_variable = Workflow.of({"nodes": [{"type": name, **NODES[name]}], "host_messages": True})
    assert run_workflow(as_variable, memory=memory, messages=CHAT, discussion_id="trip").text == SENTENCES[name]
    for_the_run = run_workflow(
        Workflow.of([{"type": name, **NODES[name]}]),
        memory=memory,
        messages=CHAT,
        discussion_id="trip",
        environment=Environment(host_messages=True),
    )
    assert for_the_run.text == SENTENCES[name]
    assert run(name, memory, "trip", host_messages=False) == ""


def test_a_search_without_an_id_says_so_if_asked() -> None:
    assert run("VectorMemorySearch", host_messages=True) == NO_ID


def test_a_variable_reaches_called_workflows_and_a_node_outdoes_it(memory: eunoe.Memory, tmp_path: Path) -> None:
    (tmp_path / "inner.json").write_text('[{"type": "GetCurrentSummaryFromFile"}]')
    call = {"type": "CustomWorkflow", "workflowName": "inner"}
    workflow = Workflow.of({"nodes": [call], "host_messages": True})
    environment = Environment(workflows=tmp_path)
    arguments: dict[str, Any] = {"memory": memory, "discussion_id": "trip", "environment": environment}
    assert run_workflow(workflow, **arguments).text == NO_SUMMARY
    (tmp_path / "inner.json").write_text('[{"type": "GetCurrentSummaryFromFile", "host_messages": false}]')
    assert run_workflow(workflow, **arguments).text == ""


@pytest.mark.parametrize("name", ["RecentMemory", "FullChatSummary"])
@pytest.mark.parametrize("discussion_id", ["trip", ""])
@pytest.mark.parametrize("most", [10, 40, "{agent1Input}"])
def test_what_a_node_gives_fits_into_its_tokens(
    name: str, discussion_id: str, most: int | str, memory: eunoe.Memory
) -> None:
    chat = [{"role": "user", "content": f"My city number {number} is Rome{number}."} for number in range(30)]
    run_workflow(Workflow.of([{"type": "QualityMemory"}]), memory=memory, messages=chat, discussion_id="trip")
    texts = []
    for node in ({"type": name}, {"type": name, "maxEstimatedTokens": most}):
        result = run_workflow(
            Workflow.of([node]), memory=memory, messages=chat, discussion_id=discussion_id, inputs=["40"]
        )
        texts.append(result.text)
    assert 0 < token_count(texts[1]) <= int(most if isinstance(most, int) else 40) < token_count(texts[0])
    assert "cut to" in "".join(result.trace[0].notes) or not discussion_id


@pytest.mark.parametrize(
    ("name", "key", "value", "error"),
    [
        ("RecentMemorySummarizerTool", "maxTurnsToPull", "many", "maxTurnsToPull must be a whole number"),
        ("RecentMemorySummarizerTool", "customDelimiter", [1], "customDelimiter must be text"),
        ("VectorMemorySearch", "limit", "few", "limit must be a whole number"),
        ("VectorMemorySearch", "limit", 0, ""),
        ("VectorMemorySearch", "limit", -1, "limit must be 0 or more"),
        ("VectorMemorySearch", "bm25Weights", "3,2", "bm25Weights"),
        ("VectorMemorySearch", "bm25Weights", [1, 2], "bm25Weights"),
        ("VectorMemorySearch", "bm25Weights", [1, 2, 3, 4, "x"], "bm25Weights"),
        ("VectorMemorySearch", "useRecencyScoring", "yes", "useRecencyScoring must be true or false"),
        ("VectorMemorySearch", "includeDates", 1, "includeDates must be true or false"),
        ("VectorMemorySearch", "searchMode", "magic", "searchMode"),
        ("VectorMemorySearch", "semanticQuery", {}, "semanticQuery must be text"),
        ("FullChatSummary", "isManualConfig", "no", "isManualConfig must be true or false"),
        ("FullChatSummary", "update_first", 1, "update_first must be true or false"),
        ("GetCurrentSummaryFromFile", "host_messages", "true", "host_messages must be true or false"),
        ("chatSummarySummarizer", "minMemoriesPerSummary", None, ""),
        ("chatSummarySummarizer", "loopIfMemoriesExceed", "x", "loopIfMemoriesExceed must be a whole number"),
        ("chatSummarySummarizer", "loopIfMemoriesExceed", 0, "loopIfMemoriesExceed must be 1 or more"),
        ("GetCurrentStateDocument", "acrossDiscussions", 3, "acrossDiscussions must be true or false"),
        ("QualityMemory", "force", "x", "force must be true or false"),
    ],
)
def test_a_wrong_type_is_refused_with_node_and_file(
    name: str, key: str, value: Any, error: str, memory: eunoe.Memory, tmp_path: Path
) -> None:
    workflow = Workflow.of([{"type": name, **NODES[name], key: value}], tmp_path / "main.json")
    if not error:
        run_workflow(workflow, memory=memory, messages=CHAT, discussion_id="trip")
        return
    [problem] = check_workflow(workflow).problems
    assert error in problem
    with pytest.raises(WorkflowError, match=re.escape(error)) as raised:
        run_workflow(workflow, memory=memory, messages=CHAT, discussion_id="trip")
    assert "main.json" in str(raised.value)
    assert f"node 1 ({name})" in str(raised.value)


@pytest.mark.parametrize("name", NODES)
def test_nodes_as_they_should_be_have_no_problems(name: str) -> None:
    keys = dict.fromkeys(NODE_TYPES[name].keys, None)
    node = {**keys, "type": name, **NODES[name], "title": "x", "returnToUser": True}
    report = check_workflow(Workflow.of([node, {"type": "QualityMemory"}]))
    assert (report.problems, report.notes) == ([], [])


SCOPE = discussion_scope("trip")


CITIES = [{"role": "user", "content": f"My city number {number} is Rome{number}."} for number in range(33)]


SUMMARIZER = {
    "type": "chatSummarySummarizer",
    "systemPrompt": "Keep it short.",
    "prompt": "Old: [CHAT_SUMMARY] New: [LATEST_MEMORIES]",
}


EMPTY = {
    "RecentMemory": "There are no chunk memories yet. A creator makes them: run `eunoe discussion update`.",
    "FullChatSummary": "There is no summary yet. A creator writes it: run `eunoe discussion update`.",
}


def run_nodes(memory: eunoe.Memory, *nodes: dict[str, Any], **environment: Any) -> WorkflowResult:
    return run_workflow(
        Workflow.of(list(nodes)),
        memory=memory,
        messages=CITIES,
        discussion_id="trip",
        environment=Environment(**environment),
    )


def test_memories_are_made_by_a_model_or_out_of_the_chat(memory: eunoe.Memory) -> None:
    assert run_nodes(memory, {"type": "QualityMemory"}).text == ""
    made = chunk_memories(memory, SCOPE)
    assert len(made) == 6
    assert "Rome0" in made[0].text


def test_the_whole_chat_takes_back_what_it_does_not_show(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "QualityMemory"})
    nodes = Workflow.of([{"type": "QualityMemory", "whole": True}])
    run_workflow(nodes, memory=memory, messages=CITIES[:1], discussion_id="trip")
    assert [message.text for message in DiscussionLog(memory, SCOPE).messages()] == [CITIES[0]["content"]]


def test_a_failed_chunk_stands_in_the_trace_and_the_workflow_goes_on(memory: eunoe.Memory) -> None:
    model = ScriptedLlm(lambda prompt: "")
    after = {"type": "StaticResponse", "content": "done"}
    result = run_nodes(memory, {"type": "QualityMemory"}, after, models=ModelMap(default=model))
    assert result.text == "done"
    assert any("empty answer" in note for note in result.trace[0].notes)
    assert chunk_memories(memory, SCOPE) == []


@pytest.mark.parametrize("name", ["RecentMemory", "FullChatSummary"])
def test_a_node_that_reads_asks_no_model_and_makes_nothing(name: str, memory: eunoe.Memory) -> None:
    model = ScriptedLlm([])
    result = run_nodes(memory, {"type": name}, models=ModelMap(default=model))
    assert (result.text, result.trace[0].notes, model.prompts) == ("", [EMPTY[name]], [])
    assert memory.scopes() == []
    run_nodes(memory, {"type": "QualityMemory"})
    assert "Rome29" in run_nodes(memory, {"type": name}, models=ModelMap(default=model)).text


def test_a_reader_tells_of_chunks_that_failed(memory: eunoe.Memory, caplog: pytest.LogCaptureFixture) -> None:
    result = run_nodes(
        memory, {"type": "RecentMemory", "update_first": True}, models=ModelMap(default=ScriptedLlm(lambda prompt: ""))
    )
    told = [note for note in result.trace[0].notes if "stays due" in note]
    assert "the discussion 'trip' of 'default': a chunk failed (attempt 1)" in told[0]
    assert "empty answer" in told[0]
    assert told[0] in caplog.text
    assert "Rome" not in caplog.text


@pytest.mark.parametrize("name", ["RecentMemory", "FullChatSummary"])
def test_update_first_makes_memories_before_it_reads(name: str, memory: eunoe.Memory) -> None:
    assert "Rome29" in run_nodes(memory, {"type": name, "update_first": True}).text


def test_a_manual_summary_node_has_nothing_made(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "FullChatSummary", "isManualConfig": True}, update_first=True)
    assert chunk_memories(memory, SCOPE) == []


def test_the_summary_node_folds_in_what_is_new(memory: eunoe.Memory) -> None:
    settings = Environment().settings
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(settings))
    assert len(new_since_summary(memory, SCOPE)) == 6
    model = ScriptedLlm(["A trip to Rome 0, and so on.", "A trip to many Romes."])
    result = run_nodes(memory, SUMMARIZER, models=ModelMap(default=model))
    assert result.text == current_summary(memory, SCOPE) == "A trip to many Romes."
    assert [prompt.system for prompt in model.prompts] == ["Keep it short."] * 2
    assert "Rome0" in model.prompts[0].text
    assert "A trip to Rome 0, and so on." in model.prompts[1].text
    assert result.trace[0].output_tokens > 0
    assert new_since_summary(memory, SCOPE) == []


def test_the_summary_node_says_why_it_waits(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    first, second = (
        run_nodes(memory, SUMMARIZER, models=ModelMap(default=ScriptedLlm(lambda _: ""))) for _ in range(2)
    )
    assert "the summary stays as it is, and what is new stays due" in first.notes[0]
    assert "the summary stays as it is until it is tried again at" in second.notes[0]
    assert "empty" in second.notes[0]
    assert "There is no summary yet." in second.trace[0].notes[1]


def test_the_summary_node_says_that_somebody_else_is_at_work(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    assert memory.leases.acquire(SCOPE, "summary")
    assert "somebody else writes it just now" in run_nodes(memory, SUMMARIZER).notes[0]


def test_the_summary_node_waits_for_enough_memories(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    model = ScriptedLlm(["never asked"])
    assert run_nodes(memory, {**SUMMARIZER, "minMemoriesPerSummary": "7"}, models=ModelMap(default=model)).text == ""
    assert model.prompts == []


def test_a_summary_is_written_and_a_blank_one_changes_nothing(memory: eunoe.Memory) -> None:
    run_nodes(memory, {"type": "QualityMemory"})
    write = {"type": "WriteCurrentSummaryToFileAndReturnIt", "input": "{agent1Output}"}
    text = {"type": "StaticResponse", "content": "A trip to Rome."}
    assert run_nodes(memory, text, write).text == "A trip to Rome."
    assert current_summary(memory, SCOPE) == "A trip to Rome."
    assert new_since_summary(memory, SCOPE) == []
    blank = run_nodes(memory, {"type": "StaticResponse", "content": " \n"}, write)
    assert blank.text == "A trip to Rome."
    assert "stays as it is" in blank.notes[0]
    revisions = len(memory.summaries.revisions(SCOPE))
    run_nodes(memory, text, write)
    assert len(memory.summaries.revisions(SCOPE)) == revisions


def test_the_summary_is_written_by_the_workflow_that_a_users_settings_name(
    memory: eunoe.Memory, tmp_path: Path
) -> None:
    write = '[{"type": "StaticResponse", "content": "Romes."}, {"type": "WriteCurrentSummaryToFileAndReturnIt", "input": "{agent1Output}"}]'  # noqa: E501
    (tmp_path / "summary.json").write_text(write)
    user = UserSettings(chat_summary_workflow="summary")
    run_nodes(memory, {"type": "QualityMemory"}, user_settings=user, workflows=tmp_path)
    assert current_summary(memory, SCOPE) == "Romes."


def test_a_workflow_for_the_summary_that_fails_takes_no_reply_away(memory: eunoe.Memory, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text('[{"type": "StaticResponse", "content": "{nothing}"}]')
    reply = {"type": "StaticResponse", "content": "Hello.", "returnToUser": True}
    user = UserSettings(chat_summary_workflow="summary")
    result = run_nodes(memory, reply, {"type": "QualityMemory"}, user_settings=user, workflows=tmp_path)
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
    text = run_nodes(memory, {"type": "RecentMemory"}, user_settings=user, workflows=tmp_path).text
    assert text == f"lately: {CITIES[-1]['content']}"


def test_what_a_prompt_says_of_the_chat_is_data(memory: eunoe.Memory) -> None:
    """A name in brackets that a user typed stays what it is."""
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> str:
        seen.append(prompt)
        return "Summary."

    chat = [*CITIES, {"role": "user", "content": "Tell me of [LATEST_MEMORIES] and {agent9Output}"}]
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
    run_nodes(memory, {"type": "QualityMemory"}, settings=without_summary(Environment().settings))
    model = ScriptedLlm(lambda prompt: "Summary.")
    node = {"type": "chatSummarySummarizer", "prompt": prompt, "jinja2": prompt.startswith("{%")}
    run_nodes(memory, node, models=ModelMap(default=model))
    assert model.prompts[0].text.startswith("Write it anew.")
    assert "Rome0" in model.prompts[0].text


def without_summary(settings: DiscussionSettings) -> DiscussionSettings:
    return replace(settings, summary=replace(settings.summary, is_on=False))
