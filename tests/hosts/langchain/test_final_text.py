"""The answer of a run stays its last message when it came together with a write."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel
from tests.support.chat_models import ScriptedModel, tool_call

from eunoe.hosts.langchain.final_text import final_text_update

PAGE = "# Storage\nRows live in one SQLite file."
QUESTION = {"messages": [HumanMessage("Write the page.")]}


class Notebook(AgentMiddleware[Any, Any, Any]):
    """A middleware with a tool that stores."""

    def __init__(self) -> None:
        self.notes: list[str] = []

        @tool
        def store_memory(content: str) -> str:
            """Keep something."""
            self.notes.append(content)
            return "Memory stored successfully (ID: 3f9a)"

        self.tools = [store_memory]

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": final_text_update(state, {"store_memory"})}


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"contents of {path}"


def run(*answers: Any, **options: Any) -> tuple[list[Any], Notebook]:
    notebook = Notebook()
    agent = create_agent(ScriptedModel(*answers), [read_file], middleware=[notebook], **options)
    return agent.invoke(QUESTION)["messages"], notebook


def call_ids(messages: list[Any]) -> list[str]:
    return [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]


def result_ids(messages: list[Any]) -> list[str]:
    return [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]


STORE = tool_call("store_memory", PAGE, content="one file")


@pytest.mark.parametrize(
    "reply",
    [
        "Stored.",
        "",
        "Done.",
        "I've stored the page in memory.",
        "The memory has been saved successfully (ID: 3f9a).",
        "Saved: SQLite, one file.",
    ],
)
def test_the_page_is_the_last_message_and_the_write_has_happened(reply: str) -> None:
    messages, notebook = run(STORE, reply)
    assert messages[-1].content == PAGE
    assert notebook.notes == ["one file"]
    assert call_ids(messages) == result_ids(messages)
    assert [message.text for message in messages].count(PAGE) == 1


@pytest.mark.parametrize(
    "reply",
    ["The capital is Paris.", "Noted. The capital is Paris.", "I could not store it, memory is full.", "41"],
)
def test_a_reply_that_says_something_stays(reply: str) -> None:
    messages, _ = run(tool_call("store_memory", "Let me keep your question first.", content="asks of capitals"), reply)
    assert messages[-1].content == reply
    assert messages[1].text == "Let me keep your question first."


def test_after_a_long_page_a_short_reply_in_any_language_gives_way() -> None:
    page = "Die Seite. " * 200
    messages, _ = run(tool_call("store_memory", page, content="x"), "Ich habe die Seite im Gedächtnis abgelegt.")
    assert messages[-1].content == page


def test_a_later_page_is_the_answer() -> None:
    messages, _ = run(STORE, "# Storage\nTwo files.")
    assert messages[-1].content == "# Storage\nTwo files."


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Let me look.", "Noted: you are allergic to peanuts."),
        ("One moment, please.", "I have stored that you are allergic to peanuts."),
        ("My plan:\nI look.", "There are 42 rows in the table of orders."),
    ],
)
def test_a_preamble_takes_no_answer_away(text: str, reply: str) -> None:
    messages, _ = run(tool_call("store_memory", text, content="The user is allergic to peanuts"), reply)
    assert [messages[1].text, messages[-1].text] == [text, reply]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("The cart adds up prices. " * 20, "It is described now, with 2 memories for later."),
        ("A page without a heading.\nIt has two lines, and more words.", "The page above is wrong."),
    ],
)
def test_of_two_texts_that_could_be_the_answer_the_longer_is_kept_and_the_log_says_so(
    text: str, reply: str, caplog: pytest.LogCaptureFixture
) -> None:
    messages, _ = run(tool_call("store_memory", text, content="cents"), reply)
    assert messages[-1].content == text
    assert "the longer one was kept" in caplog.text


LONG_PLAN = "Here is my plan. First I look at the schema, then I count. " * 20


@pytest.mark.parametrize("text", ["Let me note that and look.", PAGE, LONG_PLAN], ids=["preamble", "page", "plan"])
@pytest.mark.parametrize("reply", ["Stored.", "Done: contents of a.py.", "The page is in a file of its own."])
def test_a_text_before_other_work_is_no_answer(text: str, reply: str) -> None:
    both = AIMessage(text, tool_calls=[*STORE.tool_calls, *tool_call("read_file", path="a.py").tool_calls])
    store = tool_call("store_memory", text, content="one file")
    for script in [(both,), (store, tool_call("read_file", path="a.py"))]:
        messages, notebook = run(*script, reply)
        assert messages[-1].content == reply
        assert messages[1].text == text
        assert notebook.notes == ["one file"]


def test_blocks_of_a_provider_keep_what_is_not_text() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    blocks = STORE.model_copy(update={"content": [thought, {"type": "text", "text": PAGE}]})
    messages, _ = run(blocks, "Stored.")
    assert messages[-1].content == PAGE
    assert messages[1].content == [thought]
    assert messages[1].tool_calls


class Answer(BaseModel):
    title: str


def test_a_structured_answer_is_left_alone() -> None:
    notebook = Notebook()
    model = ScriptedModel(STORE, tool_call("Answer", title="Storage"))
    agent = create_agent(model, [read_file], middleware=[notebook], response_format=Answer)
    state = agent.invoke(QUESTION)
    assert state["structured_response"] == Answer(title="Storage")
    assert state["messages"][1].text == PAGE
