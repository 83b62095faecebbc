"""Hosts whose contract is one stream: what lies within its scope is neither read nor forgotten with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from llama_index.core.base.llms.types import ChatMessage

import eunoe
from eunoe.apps.discussion import Discussion
from eunoe.apps.discussion.log import DiscussionLog
from eunoe.hosts.agentflow import EunoeStore as AgentflowStore
from eunoe.hosts.anthropic import MemoryFiles
from eunoe.hosts.langgraph import EunoeStore
from eunoe.hosts.llama_index import EunoeMemory
from eunoe.hosts.mem0 import Memory as Mem0
from eunoe.memory import Memory
from eunoe.server.mcp.reference import KnowledgeGraph

OUTER, INNER = "discussion=d/user=anna", "agent=cook/discussion=d/session=s1/user=anna"


class Host(NamedTuple):
    write: Callable[[Memory, str, str], Any]
    read: Callable[[Memory, str], set[str]]
    clear: Callable[[Memory, str], Any]


def log_texts(memory: Memory, scope: str) -> set[str]:
    return {message.text for message in DiscussionLog(memory, scope).messages()}


def graph_names(memory: Memory, scope: str) -> set[str]:
    return {*KnowledgeGraph(memory, eunoe.Scope.parse(scope)).names}


def write_entity(memory: Memory, scope: str, text: str) -> None:
    graph = KnowledgeGraph(memory, eunoe.Scope.parse(scope))
    graph.create_entities([{"name": text, "entityType": "note", "observations": []}])


def clear_graph(memory: Memory, scope: str) -> None:
    graph = KnowledgeGraph(memory, eunoe.Scope.parse(scope))
    graph.delete_entities([*graph.names])


def store(memory: Memory, scope: str) -> EunoeStore:
    return EunoeStore(memory, scope=scope)


HOSTS = {
    "chat": Host(
        lambda memory, scope, text: EunoeMemory.from_defaults(memory, scope).put(ChatMessage(content=text)),
        lambda memory, scope: {message.content or "" for message in EunoeMemory.from_defaults(memory, scope).get_all()},
        lambda memory, scope: EunoeMemory.from_defaults(memory, scope).reset(),
    ),
    "files": Host(
        lambda memory, scope, text: MemoryFiles(memory, scope).create("/memories/a.md", text),
        lambda memory, scope: {file.text for file in MemoryFiles(memory, scope).all().values()},
        lambda memory, scope: MemoryFiles(memory, scope).clear(),
    ),
    "namespaces": Host(
        lambda memory, scope, text: store(memory, scope).put(("n",), "k", {"text": text}),
        lambda memory, scope: {item.value["text"] for item in store(memory, scope).search(("n",), query="note")},
        lambda memory, scope: store(memory, scope).delete(("n",), "k"),
    ),
    "discussion": Host(
        lambda memory, scope, text: DiscussionLog(memory, scope).take_in([{"role": "user", "content": text}]),
        log_texts,
        lambda memory, scope: Discussion(memory, "d", "anna").delete(),
    ),
    "reference graph": Host(write_entity, graph_names, clear_graph),
}


@pytest.mark.parametrize("name", HOSTS)
def test_what_lies_within_is_another_memory(name: str) -> None:
    host = HOSTS[name]
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        host.write(memory, OUTER, "The outer note.")
        host.write(memory, INNER, "The inner note.")
        assert (host.read(memory, OUTER), host.read(memory, INNER)) == ({"The outer note."}, {"The inner note."})
        host.clear(memory, OUTER)
        assert (host.read(memory, OUTER), host.read(memory, INNER)) == (set(), {"The inner note."})


def test_ids_of_a_user_are_those_of_its_own_part() -> None:
    """An app's and a collection's memories are parts of their own; mem0 means a user by a filter, and nobody else."""
    with eunoe.open(":memory:", embedder="none", llm="none", form=False) as memory:
        agentflow, mem0 = AgentflowStore(memory), Mem0(memory=memory)
        agentflow.store({"user_id": "anna"}, "Anna likes tea.")
        agentflow.store({"user_id": "anna", "app_id": "shop"}, "Anna likes shoes.")
        assert [each.content for each in agentflow.get_all({"user_id": "anna"})] == ["Anna likes tea."]
        assert [each.content for each in agentflow.search({"user_id": "anna"}, "likes")] == ["Anna likes tea."]
        memory.remember("session=r1/user=anna", "Anna runs.")
        memory.remember("tenant=t/user=anna", "Another Anna.")
        texts = {each["memory"] for each in mem0.get_all(filters={"user_id": "anna"})["results"]}
        assert texts == {"Anna likes tea.", "Anna likes shoes.", "Anna runs."}
        mem0.delete_all(user_id="anna", run_id="r1")
        assert [item.text for item in memory.list("user=anna").items] == ["Anna likes tea.", "Anna likes shoes."]
