"""Sessions of the OpenAI Agents SDK: its runner with a scripted model, and the SDK's own session beside ours."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import Session, SessionSettings
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.openai_agents import EunoeSession

set_tracing_disabled(True)
SCOPE = {"user": "anna", "agent": "cook"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as opened:
        yield opened


ITEMS = st.sampled_from(
    [
        {"role": "user", "content": "ok"},
        {"role": "user", "content": [{"type": "input_text", "text": "I moved to Rome."}]},
        {"role": "assistant", "content": "ok"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Fine.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "reasoning", "id": "r1", "summary": []},
    ]
)
STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("get"), st.none() | st.integers(1, 5)),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("clear"), st.none()),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_results_are_those_of_the_sdks_session(steps: list[tuple[str, Any]]) -> None:
    async def run() -> None:
        with eunoe.open(":memory:", embedder="none", llm="none") as memory:
            theirs, ours = SQLiteSession("s1"), EunoeSession("s1", memory, SCOPE)
            for name, argument in steps:
                assert await _step(ours, name, argument) == await _step(theirs, name, argument)
            assert await ours.get_items() == await theirs.get_items()
            theirs.close()

    asyncio.run(run())


async def _step(session: Session, name: str, argument: Any) -> Any:
    match name:
        case "add":
            return await session.add_items(list(argument))
        case "get":
            return await session.get_items(argument)
        case "pop":
            return await session.pop_item()
        case _:
            return await session.clear_session()


class ScriptedModel(Model):
    """Says these outputs, one after the other, and keeps what it was given."""

    def __init__(self, *outputs: list[Any]) -> None:
        self.outputs, self.inputs = list(outputs), []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.inputs.append(input)
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def _say(text: str) -> list[Any]:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return [ResponseOutputMessage(id="m", content=[part], role="assistant", status="completed", type="message")]


def test_the_runner_goes_on_where_the_conversation_was(memory: eunoe.Memory) -> None:
    @function_tool
    def weather(city: str) -> str:
        return f"sunny in {city}"

    call = ResponseFunctionToolCall(call_id="c1", name="weather", arguments='{"city": "Rome"}', type="function_call")
    model = ScriptedModel([call], _say("It is sunny."), _say("You live in Rome."))
    agent = Agent(name="cook", model=model, tools=[weather])

    async def run() -> None:
        session = EunoeSession("s1", memory, SCOPE)
        assert isinstance(session, Session)
        quiet = RunConfig(tracing_disabled=True)
        await Runner.run(agent, "I live in Rome. How is the weather?", session=session, run_config=quiet)
        again = EunoeSession("s1", memory, SCOPE)
        result = await Runner.run(agent, "Where do I live?", session=again, run_config=quiet)
        assert result.final_output == "You live in Rome."

    asyncio.run(run())
    assert [item.get("type") or item["role"] for item in model.inputs[-1]] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]
    hits = memory.recall({**SCOPE, "session": "s1"}, "Rome", kinds=["message"])
    assert "I live in Rome. How is the weather?" in [hit.text for hit in hits]


def test_conversations_and_users_stay_apart(memory: eunoe.Memory) -> None:
    async def run() -> None:
        await EunoeSession("s1", memory, SCOPE).add_items([{"role": "user", "content": "hers"}])
        assert await EunoeSession("s1", memory, {"user": "ben"}).get_items() == []
        await EunoeSession("s2", memory, SCOPE).clear_session()
        assert len(await EunoeSession("s1", memory, SCOPE).get_items()) == 1

    asyncio.run(run())


def _words(items: list[Any]) -> list[str]:
    return [item["content"] for item in items if item]


def test_pops_at_once_give_each_item_once(tmp_path: Path) -> None:
    """Also between processes, for which two memories of one store stand."""

    async def run(*memories: eunoe.Memory) -> None:
        sessions = [EunoeSession("s1", memory, SCOPE) for memory in memories]
        await sessions[0].add_items([{"role": "user", "content": str(number)} for number in range(14)])
        popped = await asyncio.gather(*(session.pop_item() for session in sessions * 5))
        assert sorted(map(int, _words(popped))) == list(range(4, 14))
        popped = await asyncio.gather(*(session.pop_item() for session in sessions * 3))
        assert sorted(_words(popped)) == ["0", "1", "2", "3"]
        assert await sessions[1].get_items() == []

    store = tmp_path / "memory.db"
    with eunoe.open(store, embedder="none", llm="none") as one, eunoe.open(store, embedder="none", llm="none") as two:
        asyncio.run(run(one, two))


@pytest.mark.parametrize("item", [5, "text", None, ["role", "user"]])
def test_what_is_no_item_is_refused(memory: eunoe.Memory, item: Any) -> None:
    session = EunoeSession("s1", memory, SCOPE)
    with pytest.raises(InputError, match="an item is a dict"):
        asyncio.run(session.add_items([item]))
    with pytest.raises(InputError, match="JSON"):
        asyncio.run(session.add_items([{"role": "user", "content": object()}]))


def test_a_scope_that_names_a_session_is_refused(memory: eunoe.Memory) -> None:
    with pytest.raises(InputError, match="session"):
        EunoeSession("s1", memory, "session=other/user=anna")


def test_the_limit_of_the_settings_holds(memory: eunoe.Memory) -> None:
    async def run() -> list[Any]:
        session = EunoeSession("s1", memory, SCOPE, session_settings=SessionSettings(limit=2))
        await session.add_items([{"role": "user", "content": str(number)} for number in range(5)])
        return await session.get_items()

    assert [item["content"] for item in asyncio.run(run())] == ["3", "4"]
