"""The memory tool beside the SDK's own tool for files, through the SDK's tool runner, and against its attackers."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eunoe
from eunoe.hosts.anthropic import AsyncEunoeMemoryTool, EunoeMemoryTool

SCOPE = "agent=cook/user=anna"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
def tool(memory: eunoe.Memory) -> EunoeMemoryTool:
    return EunoeMemoryTool(memory, SCOPE)


def call(tool: Any, **command: Any) -> str:
    """The reply, or the error as the model reads it."""
    try:
        return str(tool.call(command))
    except ToolError as error:
        return f"error: {error}"


PATHS = st.sampled_from([f"/memories/{name}" for name in ("a", "a.md", "b/c.md", "b/d", "b/e/f.md", ".hidden", "ü.md")])
FOLDERS = st.sampled_from(["/memories", "/memories/b", "/memories/b/e", "/memories/none"])
TEXTS = st.sampled_from(
    ["", "\n", "one", "one\n", "one\ntwo\n", "one\r\ntwo", "tea tea", " ", "x" * 1500, "{braces} <b>"]
)
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS | FOLDERS}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS, "view_range": st.sampled_from([[1, 1], [2, -1], [0, 9], [3, 2]])}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": PATHS | FOLDERS,
            "old_str": st.sampled_from(["one", "two", "tea", "a\nb"]),
            "new_str": TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS | FOLDERS,
            "insert_line": st.integers(-1, 4),
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS | FOLDERS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS | FOLDERS, "new_path": PATHS | FOLDERS}),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(COMMANDS, min_size=1, max_size=12))
def test_replies_are_those_of_the_sdk(commands: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder, eunoe.open(":memory:", embedder="none", llm="none") as memory:
        theirs, ours = BetaLocalFilesystemMemoryTool(folder), EunoeMemoryTool(memory, SCOPE)
        for command in commands:
            _drop_empty_folders(theirs.memory_root)
            try:
                expected = call(theirs, **command)
            except (
                OSError
            ):  # a folder moved into itself, a file taken for a folder: the SDK's own tool lets that through
                assert call(ours, **command).startswith("error: "), command
                return
            assert call(ours, **command) == expected, command


def _drop_empty_folders(root: Path) -> None:
    """Folders are there as long as something is in them."""
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def test_versions_are_kept_over_edits_and_moves(tool: EunoeMemoryTool) -> None:
    call(tool, command="create", path="/memories/tea.md", file_text="green")
    call(tool, command="str_replace", path="/memories/tea.md", old_str="green", new_str="black")
    call(tool, command="rename", old_path="/memories/tea.md", new_path="/memories/drinks.md")
    assert [(file.path, file.text) for file in tool.files.versions("/memories/drinks.md")] == [
        ("/memories/tea.md", "green"),
        ("/memories/tea.md", "black"),
        ("/memories/drinks.md", "black"),
    ]


def test_a_new_file_where_another_was_moved_away_is_another_file(tool: EunoeMemoryTool) -> None:
    call(tool, command="create", path="/memories/a", file_text="first")
    call(tool, command="rename", old_path="/memories/a", new_path="/memories/b")
    call(tool, command="create", path="/memories/a", file_text="second")
    assert {path: file.text for path, file in tool.files.all().items()} == {
        "/memories/a": "second",
        "/memories/b": "first",
    }
    call(tool, command="delete", path="/memories/b")
    assert list(tool.files.all()) == ["/memories/a"]


def test_what_is_deleted_is_gone_with_all_versions_and_may_come_back(
    memory: eunoe.Memory, tool: EunoeMemoryTool
) -> None:
    call(tool, command="create", path="/memories/a", file_text="the pin is 4711")
    call(tool, command="str_replace", path="/memories/a", old_str="4711", new_str="4712")
    call(tool, command="delete", path="/memories/a")
    assert memory.list(SCOPE, retired=True).items == ()
    assert "successfully" in call(tool, command="create", path="/memories/a", file_text="the pin is 4711")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "memories/a",
        "/memories/../a",
        "/memories/../../etc/passwd",
        "/memories/a/../../b",
        "/memories-old/a",
        "/memoriesx",
        "",
        "/memories/\x00a",
        "/memories/a\nb",
        "/memories/" + "x" * 5000,
    ],
)
def test_no_path_escapes(memory: eunoe.Memory, tool: EunoeMemoryTool, path: str) -> None:
    for command in (
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "view", "path": path},
        {"command": "rename", "old_path": "/memories/a", "new_path": path},
    ):
        assert call(tool, **command).startswith("error: Path")
    assert memory.scopes() == []


def test_scopes_do_not_see_each_other(memory: eunoe.Memory, tool: EunoeMemoryTool) -> None:
    call(tool, command="create", path="/memories/a", file_text="hers")
    other = EunoeMemoryTool(memory, "agent=cook/user=ben")
    assert "does not exist" in call(other, command="view", path="/memories/a")
    other.clear_all_memory()
    assert list(tool.files.all()) == ["/memories/a"]


def test_clearing_takes_the_files_alone(memory: eunoe.Memory, tool: EunoeMemoryTool) -> None:
    memory.remember(SCOPE, "Anna likes tea.")
    call(tool, command="create", path="/memories/a", file_text="x")
    assert tool.clear_all_memory() == "All memory cleared"
    assert [item.text for item in memory.list(SCOPE).items] == ["Anna likes tea."]


def test_files_are_recalled_like_any_memory(memory: eunoe.Memory, tool: EunoeMemoryTool) -> None:
    call(tool, command="create", path="/memories/a", file_text="Anna is allergic to peanuts.")
    assert memory.recall(SCOPE, "peanuts")[0].text == "Anna is allergic to peanuts."


def _at_once(tools: list[EunoeMemoryTool], commands: list[dict[str, Any]]) -> list[str]:
    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(lambda tool, command: call(tool, **command), tools * len(commands), commands))


def test_edits_of_one_file_at_once_are_all_kept(tmp_path: Path) -> None:
    words, path = [f"w{number}x" for number in range(8)], "/memories/a"
    edits = [{"command": "str_replace", "path": path, "old_str": word, "new_str": word.upper()} for word in words]
    edits += [{"command": "insert", "path": path, "insert_line": 0, "insert_text": "same"} for _ in range(4)]
    store = tmp_path / "memory.db"
    with eunoe.open(store, embedder="none", llm="none") as one, eunoe.open(store, embedder="none", llm="none") as two:
        tools = [EunoeMemoryTool(one, SCOPE), EunoeMemoryTool(two, SCOPE)]
        call(tools[0], command="create", path=path, file_text=" ".join(words))
        replies = _at_once(tools, edits)
        assert not [reply for reply in replies if reply.startswith("error")]
        assert tools[1].files.all()[path].text == "same\n" * 4 + " ".join(words).upper() + "\n"


def test_of_several_who_create_one_file_one_does(tool: EunoeMemoryTool) -> None:
    call(tool, command="create", path="/memories/a", file_text="first")
    call(tool, command="str_replace", path="/memories/a", old_str="first", new_str="second")
    call(tool, command="rename", old_path="/memories/a", new_path="/memories/b")
    creates = [{"command": "create", "path": "/memories/a", "file_text": f"{number}"} for number in range(6)]
    replies = _at_once([tool], creates)
    assert len([reply for reply in replies if "successfully" in reply]) == 1
    assert len([reply for reply in replies if "already exists" in reply]) == 5
    assert len(tool.files.versions("/memories/a")) == 1
    call(tool, command="delete", path="/memories/b")
    assert list(tool.files.all()) == ["/memories/a"]


def test_a_text_that_was_forgotten_on_purpose_is_refused(memory: eunoe.Memory, tool: EunoeMemoryTool) -> None:
    memory.forget(SCOPE, memory.remember(SCOPE, "The pin is 4711.").id)
    call(tool, command="create", path="/memories/a", file_text="The pin is secret.")
    reply = call(tool, command="str_replace", path="/memories/a", old_str="secret", new_str="4711")
    assert reply.startswith("error: ")
    assert "forgotten" in reply
    assert tool.files.all()["/memories/a"].text == "The pin is secret."


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "format"},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "create", "path": "/memories/a"},
    ],
)
def test_nonsense_from_a_model_is_an_error_for_the_model(tool: EunoeMemoryTool, command: dict[str, Any]) -> None:
    assert call(tool, **command).startswith("error: ")


def test_a_memory_that_fails_says_so_and_not_why(memory: eunoe.Memory, tool: EunoeMemoryTool) -> None:
    memory.close()
    reply = call(tool, command="create", path="/memories/a", file_text="x")
    assert reply == "error: The memory cannot be used at the moment (ClosedError)."


def _scripted(*inputs: dict[str, Any]) -> Any:
    """A server that has the model call the tool with these inputs, one after the other, and then end."""
    requests: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(json.loads(request.content))
        turn = len(requests) - 1
        if turn < len(inputs):
            content: list[dict[str, Any]] = [
                {"type": "tool_use", "id": f"t{turn}", "name": "memory", "input": inputs[turn]}
            ]
        else:
            content = [{"type": "text", "text": "Done."}]
        body = {
            "id": f"m{turn}",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": content,
            "stop_reason": "tool_use" if turn < len(inputs) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return httpx2.Response(200, json=body)

    return requests, httpx2.MockTransport(answer)


INPUTS = (
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/anna.md", "file_text": "Anna likes tea."},
    {"command": "view", "path": "/memories/none"},
)


@contextmanager
def _client(transport: Any) -> Iterator[Anthropic]:
    with Anthropic(api_key="none", http_client=httpx2.Client(transport=transport)) as client:
        yield client


def _results(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [part for request in requests for message in request["messages"] for part in message["content"]]
    return list({part["tool_use_id"]: part for part in parts if part["type"] == "tool_result"}.values())


def _request() -> dict[str, Any]:
    return {
        "model": "claude",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_the_sdks_tool_runner_drives_it(tool: EunoeMemoryTool) -> None:
    requests, transport = _scripted(*INPUTS)
    with _client(transport) as client:
        message = client.beta.messages.tool_runner(tools=[tool], **_request()).until_done()
    assert message.content[0].text == "Done."
    assert requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    _check_results(_results(requests))
    assert tool.files.all()["/memories/anna.md"].text == "Anna likes tea."


def test_the_async_tool_runner_drives_it(memory: eunoe.Memory) -> None:
    requests, transport = _scripted(*INPUTS)

    async def run() -> None:
        tool = AsyncEunoeMemoryTool(eunoe.AsyncMemory(memory), SCOPE)
        async with AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport)) as client:
            await client.beta.messages.tool_runner(tools=[tool], **_request()).until_done()
        assert await tool.clear_all_memory() == "All memory cleared"

    asyncio.run(run())
    _check_results(_results(requests))


def _check_results(results: list[dict[str, Any]]) -> None:
    texts = [json.dumps(result["content"]) for result in results]
    assert "files and directories" in texts[0]
    assert "created successfully" in texts[1]
    assert "does not exist" in texts[2]
    assert [bool(result.get("is_error")) for result in results] == [False, False, True]
