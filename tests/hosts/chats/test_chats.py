"""Chats of other programs: recognised by looking, read as their makers write them, brought in once."""

import asyncio
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, messages_to_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.chats import ChatFile, Conversation, check_owners, import_chats, open_chats, summarise_chats

SAMPLES = Path(__file__).parents[2] / "fixtures" / "chats"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as opened:
        yield opened


def words(chats: ChatFile) -> list[list[tuple[str, str]]]:
    return [[(each["role"], each["text"]) for each in talk.messages] for talk in chats.conversations()]


def test_chatgpt_gives_the_branch_that_was_seen_last() -> None:
    chats = open_chats(SAMPLES / "chatgpt.json")
    assert chats.format == "ChatGPT's export"
    assert words(chats)[0] == [
        ("user", "What is on this plate?"),
        ("assistant", "Risotto with peas."),
        ("user", "I am allergic to peanuts. How many grams are 3 cups?"),
        ("assistant", "3 * 240"),
        ("assistant", "720 grams."),
    ]
    first = next(chats.conversations())
    assert (first.id, first.title, first.left_out) == ("6780a1f2-0001", "Dinner for Anna", 1)
    assert first.messages[1]["metadata"] == {"model": "gpt-4o"}


def test_an_export_may_be_an_archive_or_a_folder(tmp_path: Path) -> None:
    text = (SAMPLES / "chatgpt.json").read_text()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "conversations-000.json").write_text(text)
    (tmp_path / "folder" / "user.json").write_text("{}")
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("export/conversations.json", text)
        archive.writestr("export/chat.html", "<html>")
    for name in ("folder", "export.zip"):
        assert words(open_chats(tmp_path / name)) == words(open_chats(SAMPLES / "chatgpt.json"))


def test_claude_gives_text_blocks_and_what_attached_files_said() -> None:
    chats = open_chats(SAMPLES / "claude.json")
    assert chats.format == "Claude's export"
    assert words(chats) == [
        [("user", "I move to Rome in May.\nRent: 900 euros."), ("assistant", "Congratulations!")],
        [("user", "My name is Ben.")],
    ]
    assert summarise_chats(chats).people == {"acc-anna": 1, "acc-ben": 1}


LANGCHAIN = messages_to_dict([HumanMessage("I live in Rome.", id="h1"), AIMessage("Noted.")])


def test_langchains_file_history(tmp_path: Path) -> None:
    path = tmp_path / "anna.json"
    path.write_text(json.dumps(LANGCHAIN))
    chats = open_chats(path)
    assert chats.format == "LangChain's file history"
    assert words(chats) == [[("user", "I live in Rome."), ("assistant", "Noted.")]]


def test_langchains_sql_history(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        rows = [(session, json.dumps(each)) for each in LANGCHAIN for session in ("s1", "s2")]
        connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
    chats = open_chats(path)
    assert chats.format == "LangChain's SQL history"
    assert words(chats) == [[("user", "I live in Rome."), ("assistant", "Noted.")]] * 2


def test_sessions_of_the_openai_agents_sdk(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"

    async def write() -> None:
        session = SQLiteSession("s1", path)
        await session.add_items(
            [
                {"role": "user", "content": "How is the weather?"},
                {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
                {"id": "__fake_id__", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
                {"id": "__fake_id__", "role": "assistant", "content": [{"type": "output_text", "text": "And warm."}]},
            ]
        )
        session.close()

    asyncio.run(write())
    chats = open_chats(path)
    assert chats.format == "OpenAI Agents SDK"
    assert words(chats) == [[("user", "How is the weather?"), ("assistant", "Sunny."), ("assistant", "And warm.")]]
    assert next(chats.conversations()).started is not None


def test_langgraphs_checkpoints_give_what_was_removed_too(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.db"
    script: Iterator[Any] = iter([AIMessage("Noted.", id="a1"), RemoveMessage("h1"), AIMessage("You asked.", id="a2")])
    builder = StateGraph(MessagesState)
    builder.add_node("reply", lambda state: {"messages": [next(script)]})
    builder.add_edge(START, "reply")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t1"}, "metadata": {"user_id": "anna"}}
        for number, text in enumerate(("I live in Rome.", "Forget that.", "What did I say?"), 1):
            graph.invoke({"messages": [HumanMessage(text, id=f"h{number}")]}, config)
    chats = open_chats(path)
    assert chats.format == "LangGraph checkpoints"
    (thread,) = chats.conversations()
    assert [each["text"] for each in thread.messages] == [
        "I live in Rome.",
        "Noted.",
        "Forget that.",
        "What did I say?",
        "You asked.",
    ]
    assert (thread.id, thread.person) == ("t1", "anna")
    assert thread.started is not None


def test_a_checkpoint_makes_no_foreign_object(tmp_path: Path) -> None:
    """Attack: a checkpoint that has the reader call a function."""
    import ormsgpack

    target = tmp_path / "owned"
    call = ormsgpack.packb(("os", "mkdir", str(target)))
    bad = ormsgpack.packb({"channel_values": {"messages": ormsgpack.Ext(0, call)}})
    path = tmp_path / "checkpoints.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB"
        connection.execute(f"CREATE TABLE checkpoints ({columns})")
        connection.execute("INSERT INTO checkpoints VALUES ('t1', '', '1', 'msgpack', ?, '{}')", [bad])
    assert [list(each.messages) for each in open_chats(path).conversations()] == [[]]
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"role": "user", "content": "Hi"}\n{"role": "assistant", "content": "Hello"}\n', 1),
        (
            '{"role": "user", "content": "Hi", "session_id": "a"}\n{"name": "Ben", "text": "Yo", "session_id": "b"}',
            2,
        ),
        ('[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]', 1),
        ('{"messages": [{"role": "user", "content": "Hi"}]}\n{"messages": [{"role": "user", "content": "Ho"}]}\n', 2),
    ],
)
def test_json_lines(tmp_path: Path, text: str, expected: int) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(text)
    chats = open_chats(path)
    assert chats.format == "JSON Lines"
    assert summarise_chats(chats).conversations == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds nothing"),
        (b"[]", "holds nothing"),
        (b"hello", "not JSON"),
        (b'{"a": 1}', "no chat that is known"),
        (b"[1, 2]", "no chat that is known"),
        (b"\xff\xfe", "no text in UTF-8"),
        (b"[" * 100_000, "too deep"),
        (b'{"a":' * 100_000, "too deep"),
        (b"SQLite format 3\x00" + b"x" * 1000, "cannot be read"),
    ],
)
def test_what_is_no_chat_is_refused_by_name(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        summarise_chats(open_chats(path))


def test_a_tree_that_bites_its_tail_ends() -> None:
    from eunoe.hosts.chats.formats import read_chatgpt

    said = {"author": {"role": "user"}, "content": {"parts": ["Hi"]}}
    tree = {name: {"message": {"id": name, **said}, "parent": parent} for name, parent in (("a", "b"), ("b", "a"))}
    assert len(read_chatgpt({"id": "c", "mapping": tree, "current_node": "a"}).messages) == 2


def test_what_is_brought_in_stands_in_the_log_once(memory: eunoe.Memory) -> None:
    chats = open_chats(SAMPLES / "chatgpt.json")
    seen: list[int] = []
    report = import_chats(memory, chats, "user=anna", progress=seen.append)
    assert (report.conversations, report.stored, report.known) == (2, 5, 0)
    assert report.formed > 0
    assert seen == [1, 2]
    again = import_chats(memory, chats, "user=anna")
    assert (again.stored, again.known, again.formed) == (0, 5, 0)
    place = "session=6780a1f2-0001/user=anna"
    first = memory.list(place, kinds=["message"]).items[0]
    assert first.time is not None
    assert first.time.year == 2025
    assert "peanuts" in memory.recall("user=anna", "allergic to peanuts")[0].text


def test_what_was_forgotten_stays_forgotten(memory: eunoe.Memory) -> None:
    chats = open_chats(SAMPLES / "claude.json")
    import_chats(memory, chats, "user=anna", form=False)
    memory.forget("session=c-2/user=anna", everything=True)
    report = import_chats(memory, chats, "user=anna", form=False)
    assert (report.stored, report.known, report.forgotten) == (0, 2, 1)


def test_people_go_to_their_own_scopes(memory: eunoe.Memory) -> None:
    chats = open_chats(SAMPLES / "claude.json")
    import_chats(memory, chats, people={"acc-anna": "user=anna", "acc-ben": "user=ben"}, form=False)
    assert memory.scopes() == [eunoe.Scope(session="c-1", user="anna"), eunoe.Scope(session="c-2", user="ben")]


def test_people_without_a_scope_are_refused_before_anything_is_written() -> None:
    summary = summarise_chats(open_chats(SAMPLES / "claude.json"))
    with pytest.raises(InputError, match="no scope for the conversations of acc-ben"):
        check_owners(summary, {"acc-anna": "user=anna"}, None)
    with pytest.raises(InputError, match="holds nothing of acc-bob"):
        check_owners(summary, {"acc-bob": "user=bob"}, "user=anna")


def test_a_conversation_tells_when_it_began() -> None:
    talk = Conversation("c", [{"id": "1", "text": "Hi"}, {"id": "2", "text": "Ho", "time": "2025-01-01"}])
    assert talk.started is not None
    assert talk.started.year == 2025
    assert Conversation("c", []).started is None
