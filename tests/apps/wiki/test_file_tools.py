"""The tools by which agents read files, called as an agent calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.apps.wiki.agents import WikiAgentState
from eunoe.apps.wiki.files import MAX_READ_BYTES
from eunoe.apps.wiki.tools import FILE_TOOLS


def call(root: Path, name: str, **arguments: Any) -> ToolMessage:
    """What a tool answers to a model."""
    model = ScriptedModel(tool_call(name, **arguments), "Done.")
    agent = create_agent(model, FILE_TOOLS, state_schema=WikiAgentState)
    result = agent.invoke({"messages": [HumanMessage("Look.")], "repo_dir": str(root)})
    (answer,) = [each for each in result["messages"] if isinstance(each, ToolMessage)]
    return answer


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_text_file", {"path": "\ud800"}, "name a path"),
        ("read_text_file", {"path": "a.txt", "head": 0}, "1 or more"),
        ("read_text_file", {"path": "a.txt", "tail": 0}, "1 or more"),
        ("read_text_file", {"path": "a.txt", "head": 1, "tail": 1}, "not both"),
        ("list_directory_with_sizes", {"path": "\ud83d/x"}, "name a path"),
        ("list_directory_with_sizes", {"path": "a.txt"}, "a.txt is a file"),
        ("read_multiple_files", {"paths": []}, "between 1 and 20"),
    ],
)
def test_what_is_refused_is_an_error_for_the_model(
    tmp_path: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    answer = call(tmp_path, name, **arguments)
    assert answer.status == "error"
    assert words in answer.content


def test_the_first_and_the_last_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert call(tmp_path, "read_text_file", path="a.txt", head=1).content == "one\n"
    assert call(tmp_path, "read_text_file", path="a.txt", tail=1).content == "two\n"


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    answer = call(tmp_path, "read_multiple_files", paths=["a.txt", "./a.txt", "b.txt", "a.txt"])
    assert answer.content == "a.txt:\none\n\n---\nb.txt:\nError: there is no file b.txt in the repository"


def test_many_files_take_no_more_room_than_one(tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(20)]
    for name in names:
        (tmp_path / name).write_text("word " * 10_000)
    answer = call(tmp_path, "read_multiple_files", paths=names)
    assert len(answer.content) < MAX_READ_BYTES + 5000
    assert answer.content.count("word ") == 20_000
    assert "19.txt:\nError: no room is left in this answer: read 19.txt in another call" in answer.content
