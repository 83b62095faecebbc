"""`eunoe workflow` as people run it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli, LlmServer

from eunoe.apps.discussion.workflow import NodeCall, node
from eunoe.apps.discussion.workflow.node import NODE_TYPES

PLUGIN = """
from eunoe.apps.discussion.workflow import NodeCall, node

@node("Loud", required=["text"])
def loud(call: NodeCall) -> str:
    return call.render("text").upper()
"""

WRITER = """
from eunoe.apps.discussion.workflow import NodeCall, node

@node("Writer")
def writer(call: NodeCall) -> str:
    return call.run.memory.remember(call.run.scope, "Anna likes tea.").id
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workflows"
    folder.mkdir()
    return folder


def write(folder: Path, name: str, document: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def say(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "StaticResponse", "content": text, **fields}


def test_check_lists_all_problems_and_exits_with_1(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("{a}"), {"type": "Telepathy"}, say("x", colour="red")])
    result = cli("workflow", "check", main)
    assert result.code == 1
    assert len(result.out.splitlines()) == 2
    assert "note: " in result.err
    assert "colour" in result.err
    assert len(cli("workflow", "check", main, "--json").json["problems"]) == 2


def test_a_file_that_is_not_there_is_told_so(cli: Cli, folder: Path) -> None:
    for name in (folder / "gone.json", "../gone.json"):
        result = cli("workflow", "check", name)
        assert result.code == 1
        assert f"cannot read the workflow {name}: No such file" in result.err


def test_endpoints_and_presets_are_mapped_by_flags_or_a_file(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [{"type": "Standard", "endpointName": "E", "preset": "P", "prompt": "x"}])
    spec = "openai:x@http://127.0.0.1:1/v1"
    models = write(folder, "models", {"endpoints": {"E": spec}, "presets": {"P": {"temperature": 1}}})
    assert cli("workflow", "check", main).code == 1
    assert cli("workflow", "check", main, "--endpoint", f"E={spec}").code == 1
    assert cli("workflow", "check", main, "--endpoint", f"E={spec}", "--preset", "P={}").code == 0
    assert cli("workflow", "check", main, "--models", models).code == 0
    assert cli("workflow", "check", main, "--model", spec).code == 0


@pytest.mark.parametrize(
    "flags",
    [
        ["--endpoint", "E"],
        ["--preset", "P=hot"],
        ["--preset", "P=[]"],
        ["--models", "gone.json"],
        ["--workflows", "gone"],
    ],
)
def test_wrong_flags_are_one_line(cli: Cli, folder: Path, flags: list[str]) -> None:
    result = cli("workflow", "check", write(folder, "main", [say("x")]), *flags)
    assert result.code in (1, 2)
    assert len(result.err.splitlines()) == 1


def test_a_run_prints_the_result(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("<{chat_user_prompt_last_two}>{agent1Input}", returnToUser=True), say("later")])
    result = cli("workflow", "run", main, "--prompt", "hi {x}", "--input", "in")
    assert (result.code, result.out) == (0, "<hi {x}>in\n")
    assert cli("workflow", "run", main, "--input", "!", stdin="from a pipe").out == "<from a pipe>!\n"


@pytest.mark.parametrize("form", ["array", "lines", "request"])
def test_messages_come_from_a_file(cli: Cli, folder: Path, form: str) -> None:
    chat = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    texts = {
        "array": json.dumps(chat),
        "lines": "\n".join(map(json.dumps, chat)),
        "request": json.dumps({"messages": chat}),
    }
    (folder / "chat.json").write_text(texts[form])
    main = write(folder, "main", [say("{templated_user_prompt_last_ten}")])
    expected = "user: one\nassistant: two"
    assert cli("workflow", "run", main, "--messages", folder / "chat.json").out == f"{expected}\n"
    assert cli("workflow", "run", main, "--messages", "-", stdin=texts[form]).out == f"{expected}\n"
    more = cli("workflow", "run", main, "--messages", folder / "chat.json", "--prompt", "three").out
    assert more == f"{expected}\nuser: three\n"


def test_a_trace_shows_each_node(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("first", title="One"), say("{agent1Output} second")])
    result = cli("workflow", "run", main, "--trace")
    assert result.out.startswith('first second\nmain: node 1 "One" (StaticResponse)\n')
    assert "  content: first\n  output: first\n" in result.out
    document = cli("workflow", "run", main, "--json").json
    assert (document["text"], [each["output"] for each in document["trace"]]) == (
        "first second",
        ["first", "first second"],
    )
    assert document["trace"][1]["inputs"] == {"content": "first second"}
    assert {"seconds", "input_tokens", "output_tokens"} <= document["trace"][0].keys()


def test_a_trace_fits_into_80_columns_and_has_the_notes(cli: Cli, folder: Path) -> None:
    reader = {"type": "RecentMemorySummarizerTool", "maxTurnsToPull": 1, "maxSummaryChunksFromFile": 1}
    main = write(folder, "main", [say("long " * 100, title="t" * 100), reader])
    out = cli("workflow", "run", main, "--trace", "--discussion", "nothere").out
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert "  note: There are no" in out
    assert "  output: long long" in out
    assert "0 tokens in, 0 out" in out


def test_the_result_is_printed_although_a_later_node_fails(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("reply", returnToUser=True), say("{unknown}")])
    for flags in ([], ["--trace"]):
        result = cli("workflow", "run", main, *flags)
        assert (result.code, result.out.splitlines()[0], "is no placeholder" in result.err) == (1, "reply", True)
    document = cli("workflow", "run", main, "--json")
    assert (document.code, document.json["text"], "node 2" in document.json["error"]) == (1, "reply", True)


def test_the_result_is_printed_before_later_nodes_run(
    cli: Cli, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []

    @node("Look")
    def look(call: NodeCall) -> str:
        outputs.append(capsys.readouterr().out)
        return ""

    try:
        cli("workflow", "run", write(folder, "main", [say("reply", returnToUser=True), {"type": "Look"}]))
    finally:
        del NODE_TYPES["Look"]
    assert outputs == ["reply\n"]


def test_a_failure_names_file_and_node_and_keeps_the_trace(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("first"), say("{unknown}", title="Two")])
    result = cli("workflow", "run", main)
    assert (result.code, result.out) == (1, "")
    assert f'{main}: node 2 "Two" (StaticResponse): {{unknown}} is no placeholder' in result.err
    document = cli("workflow", "run", main, "--json")
    assert (document.code, [each["number"] for each in document.json["trace"]]) == (1, [1, 2])
    assert "node 2" in document.json["error"]
    assert document.json["text"] is None


def test_a_plugin_brings_node_types(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [{"type": "Loud", "text": "{agent1Input}"}])
    (folder / "shout.py").write_text(PLUGIN)
    assert "not supported" in cli("workflow", "check", main).out
    try:
        assert cli("workflow", "run", main, "--input", "hi", "--plugin", folder / "shout.py").out == "HI\n"
    finally:
        del NODE_TYPES["Loud"]
    assert "cannot be imported" in cli("workflow", "check", main, "--plugin", "no_such_module_at_all").err


def test_an_invalid_id_warns_and_nothing_is_kept(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("{Discussion_Id}.")])
    result = cli("workflow", "run", main, "--discussion", "../x", "--prompt", "hi")
    assert cli("workflow", "run", main, "--discussion", "../x", "--store", folder / "none.db").out == ".\n"
    assert not (folder / "none.db").exists()
    assert (result.code, result.out) == (0, ".\n")
    assert "without persistence" in result.err
    assert cli("scopes", "--json").json == []


def test_a_discussion_is_kept_and_its_memories_are_made(cli: Cli, folder: Path, llm_server: LlmServer) -> None:
    turns = [{"role": "user" if number % 2 == 0 else "assistant", "content": f"Turn {number}"} for number in range(12)]
    chat = write(folder, "chat", [*turns, {"role": "user", "content": "[DiscussionId]trip[/DiscussionId]What now?"}])
    ask = {"type": "Standard", "endpointName": "Thinker", "prompt": "{chat_user_prompt_last_one}", "returnToUser": True}
    main = write(folder, "main", [ask, {"type": "RecentMemory", "update_first": True}])
    llm_server.answers.append("Now we [bold]go[/bold].")
    options = ["--messages", chat, "--endpoint", f"Thinker={llm_server.address}", "--user", "anna"]
    result = cli("workflow", "run", main, *options)
    assert (result.code, result.out) == (0, "Now we [bold]go[/bold].\n")
    assert llm_server.requests[0]["messages"][-1] == {"role": "user", "content": "What now?"}
    kept = cli("list", "discussion=trip/user=anna", "--kind", "message", "--limit", "100", "--json").items
    assert [item["text"] for item in kept][-2:] == ["Turn 11", "What now?"]
    assert cli("list", "discussion=trip/user=anna", "--label", "chunk_memory", "--json").items


def test_without_an_id_no_store_is_made(cli: Cli, folder: Path) -> None:
    main = write(folder, "main", [say("x")])
    store = folder / "none.db"
    assert cli("workflow", "run", main, "--prompt", "hi", "--store", store).out == "x\n"
    assert not store.exists()


@pytest.mark.parametrize("type", ["QualityMemory", "RecentMemory", "WorkflowLock"])
def test_a_workflow_that_writes_makes_the_store(cli: Cli, folder: Path, type: str) -> None:
    chat = write(folder, "chat", [{"role": "user", "content": f"Turn {number}"} for number in range(12)])
    read = {"type": "GetCurrentMemoryFromFile"}
    main = write(folder, "main", [read, {"type": type, "workflowLockId": "x", "update_first": True}, read])
    store = folder / "none.db"
    result = cli("workflow", "run", main, "--discussion", "trip", "--messages", chat, "--store", store)
    assert (result.code, "Turn 0" in result.out) == (0, type != "WorkflowLock")
    kept = cli("list", "discussion=trip/user=default", "--kind", "message", "--json", "--store", store).items
    assert len(kept) == (0 if type == "WorkflowLock" else 12)
