"""The chat door, by OpenAI's own client: a model with memory around it, and workflows."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.llm.model_server import ModelServer, begins, says, serve
from tests.support.live_server import LiveServer, StartServer
from tests.support.waiting import wait_until

from eunoe.errors import StoreError
from eunoe.memory import AsyncMemory


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chunks(*texts: str) -> bytes:
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    parts = [{**frame, "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    return b"".join(b"data: %s\n\n" % each for each in [*(json.dumps(part).encode() for part in parts), b"[DONE]"])


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with serve(says(200, completion("Noted."))) as server:
        yield server


@pytest.fixture
def door(start_server: StartServer, model: ModelServer) -> LiveServer:
    return start_server(llm=f"openai:upstream-model@{model.url}")


def client(door: LiveServer, key: str = "", **headers: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{door.origin}/v1", api_key=key or door.owner, max_retries=0, default_headers=headers
    )


def anna(door: LiveServer) -> openai.OpenAI:
    """A client with a key for Anna."""
    body = {"name": "phone", "scopes": ["user=anna"], "rights": ["read", "write"]}
    return client(door, door.call("POST", "/v1/keys", body, key=door.owner).json["token"])


def keeps(door: LiveServer, *said: str, scope: str = "user=anna") -> None:
    """The log of a scope is this, once the turn is kept: that is behind the reply."""
    wait_until(lambda: log(door, scope) == list(said))


def log(door: LiveServer, scope: str) -> list[str]:
    items = door.services.memory.blocking.list(scope).items
    return [f"{item.role}: {item.text}" for item in items if item.kind == "message"]


def asked_of(model: ModelServer) -> list[dict[str, Any]]:
    """What clients asked; the memory asks for itself with a limit."""
    return [request for request in model.requests if "max_tokens" not in request]


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def assistant(text: str) -> Any:
    return {"role": "assistant", "content": text}


def test_a_chat_is_kept_and_comes_back_in_the_next_one(door: LiveServer, model: ModelServer) -> None:
    chat, asked = anna(door).chat.completions, [user("I am allergic to peanuts.")]
    reply = chat.create(model="eunoe", messages=asked, temperature=0.5)
    assert reply.choices[0].message.content == "Noted."
    keeps(door, "user: I am allergic to peanuts.", "assistant: Noted.")
    chat.create(model="eunoe", messages=[*asked, assistant("Noted."), user("And I live in Turin.")])
    chat.create(model="eunoe", messages=[*asked, assistant("Noted."), user("And I live in Turin.")])  # once more
    keeps(
        door, "user: I am allergic to peanuts.", "assistant: Noted.", "user: And I live in Turin.", "assistant: Noted."
    )
    door.services.memory.blocking.remember("user=anna", "Anna is allergic to peanuts.")
    chat.create(
        model="other-model", messages=[{"role": "system", "content": "Be brief."}, user("What must I not cook with?")]
    )
    first, *_, last = asked_of(model)
    assert (first["model"], last["model"], first["temperature"]) == ("upstream-model", "other-model", 0.5)
    system, question = last["messages"]
    assert system["content"] == "Be brief."
    assert "allergic to peanuts" in question["content"]
    assert question["content"].endswith("What must I not cook with?")
    assert first["messages"] == asked  # a memory that holds nothing adds nothing


def test_a_stream_passes_through_and_is_kept(door: LiveServer, model: ModelServer) -> None:
    model.good = says(200, chunks("Not", "ed."))
    stream = anna(door).chat.completions.create(model="eunoe", messages=[user("I like tea.")], stream=True)
    assert [chunk.choices[0].delta.content for chunk in stream] == ["Not", "ed."]
    keeps(door, "user: I like tea.", "assistant: Noted.")
    assert asked_of(model)[0]["stream"] is True


def test_slow_streams_hold_up_nobody_and_what_is_broken_off_is_kept(door: LiveServer, model: ModelServer) -> None:
    model.good, asked = begins(chunks("Not").partition(b"data: [DONE]")[0]), [user("I like tea.")]
    chat = anna(door).chat.completions
    slow = [chat.create(model="eunoe", messages=asked, stream=True, timeout=15) for _ in range(40)]
    for stream in slow:
        assert next(iter(stream)).choices[0].delta.content == "Not"
    model.good = says(200, completion("Noted."))
    reply = chat.create(model="eunoe", messages=[user("Hi")], timeout=15)
    assert reply.choices[0].message.content == "Noted."
    for stream in slow:
        stream.close()
    assert door.call("GET", "/v1/models", key=door.owner).status == 200
    wait_until(lambda: "assistant: Not" in log(door, "user=anna"))


def test_calls_of_tools_and_pictures_pass_through(door: LiveServer, model: ModelServer) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    model.good = says(200, completion(None, tool_calls=[call]))
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    chat, asked = anna(door).chat.completions, [{"role": "user", "content": parts}]
    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    reply = chat.create(model="eunoe", messages=asked, tools=tools)  # type: ignore[arg-type]
    model.good = says(200, completion("Noted."))
    assert reply.choices[0].message.tool_calls[0].function.name == "look"  # type: ignore[index, union-attr]
    answered = [
        *asked,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "a cat"},
    ]
    chat.create(model="eunoe", messages=answered, tools=tools)  # type: ignore[arg-type]
    assert asked_of(model)[1]["messages"] == answered
    keeps(door, "user: What is this?", "assistant: Noted.")


def test_memory_never_fills_the_window_of_the_model(door: LiveServer, model: ModelServer) -> None:
    memory = door.services.memory.blocking
    memory.remember("user=anna", "Anna is allergic to peanuts.")
    memory.remember("user=anna", "Anna pasted this: " + "word " * 50_000)
    anna(door).chat.completions.create(model="eunoe", messages=[user("What must I not cook with?")])
    (content,) = [each["content"] for each in asked_of(model)[0]["messages"]]
    assert "allergic to peanuts" in content
    assert len(content) < 12_000


def test_a_message_without_content_passes_through(door: LiveServer, model: ModelServer) -> None:
    door.services.memory.blocking.remember("user=anna", "Anna is allergic to peanuts.")
    anna(door).chat.completions.create(model="eunoe", messages=[{"role": "user"}, user("Hi")])  # type: ignore[list-item]
    assert "allergic to peanuts" in asked_of(model)[0]["messages"][0]["content"]


def test_errors_of_the_model_pass_through(door: LiveServer, model: ModelServer) -> None:
    model.good = says(429, {"error": {"message": "slow down", "code": "limit"}}, Retry_After="7")
    with pytest.raises(openai.RateLimitError, match="slow down") as caught:
        anna(door).chat.completions.create(model="eunoe", messages=[user("Hi")])
    assert caught.value.response.headers["retry-after"] == "7"
    keeps(door)


def test_a_memory_that_fails_costs_no_reply(
    door: LiveServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*arguments: Any, **options: Any) -> Any:
        raise StoreError("the disk is gone")

    chat = anna(door).chat.completions
    for verb in ("context", "observe"):
        monkeypatch.setattr(AsyncMemory, verb, fail)
    with caplog.at_level(logging.WARNING, "eunoe.server"):
        assert chat.create(model="eunoe", messages=[user("Hi")]).choices[0].message.content == "Noted."
        wait_until(lambda: caplog.text.count("the disk is gone") == 2)


def test_whose_memory_it_is(door: LiveServer) -> None:
    chat = client(door, **{"Eunoe-Scope": "session=s1/user=ben"}).chat.completions
    chat.create(model="eunoe", messages=[user("I like jam.")])
    keeps(door, "user: I like jam.", "assistant: Noted.", scope="session=s1/user=ben")
    body = {"name": "both", "scopes": ["user=anna", "user=ben"], "rights": ["read", "write"]}
    key = door.call("POST", "/v1/keys", body, key=door.owner).json["token"]
    with pytest.raises(openai.UnprocessableEntityError, match="Eunoe-Scope"):
        client(door, key).chat.completions.create(model="eunoe", messages=[user("Hi")])
    with pytest.raises(openai.PermissionDeniedError):
        client(door, key, **{"Eunoe-Scope": "user=eve"}).chat.completions.create(model="eunoe", messages=[user("Hi")])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_scope_with_an_umlaut_is_read_from_a_header(door: LiveServer, encoding: str) -> None:
    named: Any = {"Eunoe-Scope": "session=s1/user=jürgen".encode(encoding)}
    body = {"model": "eunoe", "messages": [user("I like jam.")]}
    assert door.call("POST", "/v1/chat/completions", body, key=door.owner, headers=named).status == 200
    keeps(door, "user: I like jam.", "assistant: Noted.", scope="session=s1/user=jürgen")


@pytest.mark.parametrize("body", [{}, {"messages": []}, {"messages": "Hi"}, {"messages": [1]}, b"no JSON"])
def test_what_is_no_chat_is_refused(door: LiveServer, body: Any) -> None:
    assert door.call("POST", "/v1/chat/completions", body, key=door.owner).status == 422


def test_without_a_model_it_says_so(server: LiveServer) -> None:
    with pytest.raises(openai.ConflictError, match="OpenAI-compatible"):
        client(server).chat.completions.create(model="eunoe", messages=[user("Hi")])


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_workflow_answers(start_server: StartServer, model: ModelServer, tmp_path: Path, is_stream: bool) -> None:
    folder = tmp_path / "workflows"
    folder.mkdir()
    (folder / "greet.json").write_text(
        json.dumps([{"type": "StaticResponse", "content": "Hello {chat_user_prompt_last_one}"}])
    )
    door = start_server(llm=f"openai:m@{model.url}", workflows=folder)
    chat = anna(door)
    assert [each.id for each in chat.models.list()] == ["eunoe", "workflow:greet"]
    asked: Any = {"model": "workflow:greet", "messages": [user("[DiscussionId]trip[/DiscussionId]Hi")]}
    if is_stream:
        answers = [chunk.choices[0].delta.content for chunk in chat.chat.completions.create(**asked, stream=True)]
    else:
        answers = [chat.chat.completions.create(**asked).choices[0].message.content]
    assert "".join(filter(None, answers)).startswith("Hello")
    for scope in ("agent=cook", "agent=cook/user=anna"):  # a discussion would lie elsewhere than was named
        with pytest.raises(openai.UnprocessableEntityError, match="discussion of one user"):
            client(door, **{"Eunoe-Scope": scope}).chat.completions.create(**{**asked, "stream": False})
    with pytest.raises(openai.NotFoundError, match="there is no workflow"):
        chat.chat.completions.create(**{**asked, "model": "workflow:../greet"})
