"""Real graphs of Agentflow, with a chat model that says what it is told to say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import httpx
import openai
from tenxgraph.storage.store.base_store import BaseStore

graphs = import_module("tenxgraph.core.graph")
states = import_module("tenxgraph.core.state")
stores = import_module("tenxgraph.storage.store")
long_term_memory = import_module("tenxgraph.storage.store.long_term_memory")
authz = import_module("tenxgraph.core.authz")
END = import_module("tenxgraph.utils").END
InjectQ = import_module("injectq").InjectQ

Reply = str | dict[str, Any]


class ScriptedModel:
    """An OpenAI client with no network. A reply is a text, or the arguments of a call of its `tool`."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        transport = httpx.MockTransport(self._answer)
        self.client = openai.AsyncOpenAI(api_key="none", http_client=httpx.AsyncClient(transport=transport))

    @property
    def system_text(self) -> str:
        """What the system messages of the last request said."""
        return "\n".join(each["content"] for each in self.requests[-1]["messages"] if each["role"] == "system")

    @property
    def tool_text(self) -> str:
        """What the last tool told the model."""
        return [each["content"] for each in self.requests[-1]["messages"] if each["role"] == "tool"][-1]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        message = _message(self.replies.pop(0), len(self.requests))
        return _stream(message) if body.get("stream") else httpx.Response(200, json=_completion(message))


def _message(reply: Reply, number: int) -> dict[str, Any]:
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    arguments = {name: value for name, value in reply.items() if name != "tool"}
    function = {"name": reply["tool"], "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call-{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _completion(message: dict[str, Any], kind: str = "chat.completion", part: str = "message") -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, part: message, "finish_reason": reason}
    return {"id": "c", "object": kind, "created": 0, "model": "scripted", "choices": [choice]}


def _stream(message: dict[str, Any]) -> httpx.Response:
    chunk = json.dumps(_completion(message, "chat.completion.chunk", "delta"))
    return httpx.Response(
        200, content=f"data: {chunk}\n\ndata: [DONE]\n\n".encode(), headers={"content-type": "text/event-stream"}
    )


def scripted_agent(model: ScriptedModel, **options: Any) -> Any:
    """The real Agent, which asks the scripted model."""
    agent = graphs.Agent(model="gpt-4o", provider="openai", api_key="none", retry_config=False, **options)
    agent.client = model.client
    return agent


def tool_loop(agent: Any, tools: Any, store: BaseStore | None, entry: Any = None) -> Any:
    """An agent and its tools, compiled, with a container of their own."""
    graph = graphs.StateGraph(container=InjectQ())
    graph.add_node("main", agent)
    graph.add_node("tools", tools)
    graph.add_edge("tools", "main")
    graph.add_conditional_edges("main", _after_main, {"tools": "tools", END: END})
    if entry is None:
        graph.set_entry_point("main")
    else:
        entry.wire(graph, entry_to="main")
    return graph.compile(store=store)


def _after_main(state: Any) -> str:
    return "tools" if state.context[-1].tools_calls else END


def user_message(text: str) -> dict[str, Any]:
    return {"messages": [states.Message.text_message(text, role="user")]}
