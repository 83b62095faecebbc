"""What all memory nodes have in common: their table, what they give without an id, and that readers write nothing."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.retrievers import NO_ID, NO_MATCH, NO_MEMORIES, NO_SUMMARY
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.apps.discussion.workflow.check import check_workflow
from eunoe.apps.discussion.workflow.node import MODEL_KEYS, NODE_TYPES
from eunoe.apps.discussion.workflow.texts import COUNT_KEYS
from eunoe.errors import WorkflowError
from eunoe.llm.contract import ScriptedLlm
from eunoe.text.sentences import token_count

ROOT = Path(__file__).parents[5]
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
