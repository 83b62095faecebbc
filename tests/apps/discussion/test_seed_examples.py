"""Both examples of "How to Add a New Memory Feature": a node type of one's own, and a workflow that makes memories."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.apps.discussion.model import chunk_memories, discussion_scope, keyword_memories
from eunoe.apps.discussion.settings import read_settings
from eunoe.apps.discussion.workflow import Environment, ModelMap, Workflow, run_workflow
from eunoe.apps.discussion.workflow.node import NODE_TYPES
from eunoe.llm.contract import Prompt, ScriptedLlm

FIRST_FIVE = """
from eunoe.apps.discussion.workflow import find_reader, give, node

@node("FirstFiveMemories", keys=["host_messages"])
def first_five_memories(call):
    reader = find_reader(call)
    return give(call, reader.first(5), "No memories have been generated yet") if reader else ""
"""

VECTOR_WORKFLOW = """
[
  {
    "id": "agent1",
    "type": "Standard",
    "prompt": "You are a topic analyzer. Read the following conversation chunk and list the 3 most important topics discussed. Chunk: {agent1Input}",
    "returnToUser": false
  },
  {
    "id": "agent2",
    "type": "Standard",
    "prompt": "You are a summarizer. The original conversation chunk is: {agent1Input}. The topics identified were: {agent1Output}. Generate a JSON array of memory objects, with one object for each topic. Each object must have 'title', 'summary', 'entities', and 'key_phrases' fields.",
    "returnToUser": true
  }
]
"""  # noqa: E501
ANSWER = """
[
  {
    "title": "Topic A Summary",
    "summary": "A detailed summary about the first topic discussed in the chunk.",
    "entities": ["Entity1", "Entity2"],
    "key_phrases": ["key phrase 1", "key phrase 2"]
  },
  {
    "title": "Topic B Summary",
    "summary": "A detailed summary about the second topic discussed in the chunk.",
    "entities": ["Entity3"],
    "key_phrases": ["key phrase 3"]
  }
]
"""
SETTINGS = {
    "useVectorForQualityMemory": True,
    "vectorMemoryWorkflowName": "my-vector-memory-workflow",
    "fileMemoryWorkflowName": "my-file-memory-workflow",
}
CHAT = [
    {"role": ("user", "assistant")[number % 2], "content": f"Word number {number} of the talk"} for number in range(8)
]


def analyzer(prompt: Prompt) -> str:
    return "1. the first topic\n2. the second" if "topic analyzer" in prompt.text else ANSWER


@pytest.fixture
def first_five(tmp_path: Path) -> Iterator[None]:
    """The node type of a file that belongs to no package."""
    path = tmp_path / "my_nodes.py"
    path.write_text(FIRST_FIVE)
    spec = importlib.util.spec_from_file_location("my_nodes", path)
    assert spec
    assert spec.loader
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield
    del NODE_TYPES["FirstFiveMemories"]


def run(memory: eunoe.Memory, nodes: list[dict[str, Any]], environment: Environment, id: str = "trip") -> str:
    return run_workflow(
        Workflow.of(nodes), memory=memory, messages=CHAT, discussion_id=id, environment=environment
    ).text


@pytest.mark.usefixtures("first_five")
def test_a_retriever_of_ones_own(memory: eunoe.Memory) -> None:
    assert len(FIRST_FIVE.strip().splitlines()) < 10
    chat = [{"role": "user", "content": f"My city number {number} is Rome{number}."} for number in range(40)]
    run_workflow(Workflow.of([{"type": "QualityMemory"}]), memory=memory, messages=chat, discussion_id="trip")
    result = run(memory, [{"type": "FirstFiveMemories"}], Environment())
    blocks = result.split("--ChunkBreak--")
    assert len(blocks) == 5
    assert "Rome0" in blocks[0]
    assert "Rome24" in blocks[4]
    assert "Rome25" not in result


@pytest.mark.usefixtures("first_five")
def test_a_retriever_of_ones_own_with_nothing_to_give(memory: eunoe.Memory) -> None:
    node = {"type": "FirstFiveMemories"}
    assert run(memory, [node], Environment()) == ""
    assert run(memory, [node | {"host_messages": True}], Environment()) == "No memories have been generated yet"


def test_a_workflow_makes_keyword_memories(memory: eunoe.Memory, tmp_path: Path) -> None:
    (tmp_path / "my-vector-memory-workflow.json").write_text(VECTOR_WORKFLOW)
    model = ScriptedLlm(analyzer)
    environment = Environment(
        models=ModelMap(endpoints={"*": model}), settings=read_settings(SETTINGS), workflows=tmp_path
    )
    assert run(memory, [{"type": "QualityMemory"}], environment) == ""

    topics, objects = model.prompts
    assert "Chunk: " in topics.text
    assert "Word number 0 of the talk" in topics.text
    assert "The topics identified were: 1. the first topic\n2. the second." in objects.text
    made = keyword_memories(memory, discussion_scope("trip"))
    assert [each.title for each in made] == ["Topic A Summary", "Topic B Summary"]
    assert made[0].entities == ("Entity1", "Entity2")
    assert made[0].author == "workflow:my-vector-memory-workflow"

    search = {"type": "VectorMemorySearch", "input": "Entity3; key phrase 3"}
    assert run(memory, [search], environment).startswith(json.loads(ANSWER)[1]["summary"])
    both = run(memory, [{"type": "VectorMemorySearch", "input": "topic"}], environment)
    assert {each["summary"] for each in json.loads(ANSWER)} == set(both.split("\n\n---\n\n"))


def test_a_workflow_for_text_blocks_gets_the_chunk_the_memories_and_the_summary(
    memory: eunoe.Memory, tmp_path: Path
) -> None:
    prompt = "CHUNK {agent1Input} RECENT {agent2Input} ALL {agent3Input} SUMMARY {agent4Input}"
    (tmp_path / "my-file-memory-workflow.json").write_text(
        json.dumps([{"id": "agent1", "type": "Standard", "prompt": prompt, "returnToUser": True}])
    )
    model = ScriptedLlm(lambda prompt: f"Block {len(model.prompts)}.")
    environment = Environment(
        models=ModelMap(endpoints={"*": model}),
        settings=read_settings({**SETTINGS, "useVectorForQualityMemory": False}),
        workflows=tmp_path,
    )
    chat = [{"role": "user", "content": f"Word number {number}"} for number in range(28)]
    workflow = Workflow.of([{"type": "QualityMemory"}])
    run_workflow(workflow, memory=memory, messages=chat, discussion_id="trip", environment=environment)
    blocks = [each.text for each in chunk_memories(memory, discussion_scope("trip"))]
    assert blocks == [f"Block {number}." for number in range(1, 6)]
    fifth = next(each.text for each in model.prompts if "number 20" in each.text)
    assert "RECENT Block 2.\n--------------\nBlock 3.\n--------------\nBlock 4. ALL Block 1.\n" in fifth


def test_a_memory_workflow_that_is_missing_is_named(memory: eunoe.Memory, tmp_path: Path) -> None:
    environment = Environment(settings=read_settings(SETTINGS), workflows=tmp_path)
    result = run_workflow(
        Workflow.of([{"type": "QualityMemory"}]),
        memory=memory,
        messages=CHAT,
        discussion_id="trip",
        environment=environment,
    )
    assert any("my-vector-memory-workflow" in note for note in result.notes)
    assert keyword_memories(memory, discussion_scope("trip")) == []
