"""Chats of other programs: read, shown, brought in once; and what is odd in their files."""

import asyncio
import json
import os
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
from eunoe.hosts.chats import ChatFile, check_owners, import_chats, open_chats, summarise_chats

SAMPLES = Path(__file__).parents[1] / "fixtures" / "chats"


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


def claude(id: str, *texts: str, **message: Any) -> dict[str, Any]:
    said = [{"uuid": f"{id}-{n}", "sender": "human", "text": text, **message} for n, text in enumerate(texts)]
    return {"uuid": id, "name": "", "chat_messages": said}


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.mark.parametrize(
    "odd",
    [
        claude("c2", "half an emoji \ud83d"),
        claude("c2\ud83d", "Hello"),
        claude("c" * 600, "Hello"),
        claude("c" * 2000, "Hello"),
        claude("a\nb", "Hello"),
        claude(" c2 ", "Hello"),
    ],
)
def test_odd_names_and_texts_are_brought_in_once(memory: eunoe.Memory, tmp_path: Path, odd: dict[str, Any]) -> None:
    path = write(tmp_path / "file.json", [claude("c1", "First"), odd, claude("c3", "Third")])
    report = import_chats(memory, open_chats(path), "user=anna", form=False)
    assert (report.conversations, report.stored, report.problems) == (3, 3, ())
    assert import_chats(memory, open_chats(path), "user=anna", form=False).known == 3


@pytest.mark.parametrize(
    ("odd", "place", "reason"),
    [
        (claude("c2", "Hello", created_at="2024-13-45"), "c2", "2024-13-45"),
        (claude("c2", "Hello", created_at=10**500), "c2", "time"),
        (claude("c2", "Hello", sender="x" * 2000), "c2", "role is longer"),
        ({"uuid": "c2", "chat_messages": [7]}, "file.json:", "cannot be read"),
        ({"uuid": "", "chat_messages": []}, "file.json:", "no id"),
        ({"a": 1}, "file.json:", "not a conversation"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_comes(
    memory: eunoe.Memory, tmp_path: Path, odd: dict[str, Any], place: str, reason: str
) -> None:
    path = write(tmp_path / "file.json", [claude("c1", "First"), odd, claude("c3", "Third")])
    summary = summarise_chats(open_chats(path))
    report = import_chats(memory, open_chats(path), "user=anna", form=False)
    assert report.stored == summary.messages == 2
    assert report.problems == summary.problems
    (problem,) = report.problems
    assert place in problem
    assert reason in problem
    assert "nothing was stored" not in problem


def test_an_export_that_was_cut_off_says_so(tmp_path: Path) -> None:
    whole = json.dumps([claude("c1", "First"), claude("c2", "Second")])
    for end in (len(whole) - 1, len(whole) - 30, whole.index(', {"uuid": "c2"') + 1):
        summary = summarise_chats(open_chats(write(tmp_path / "file.json", whole[:end])))
        assert summary.conversations in (1, 2)
        assert len(summary.problems) == 1, summary
    assert "cut off" in summary.problems[0]
    assert summarise_chats(open_chats(write(tmp_path / "file.json", whole))).problems == ()


def test_each_array_of_messages_is_a_conversation(tmp_path: Path) -> None:
    talks = [[{"role": "user", "content": f"{number}"}] for number in range(3)]
    for text in ("\n".join(map(json.dumps, talks)), json.dumps(talks)):
        assert summarise_chats(open_chats(write(tmp_path / "chat.jsonl", text))).conversations == 3


def test_rows_that_are_no_messages_are_named_and_the_rest_comes(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    good = json.dumps({"type": "human", "data": {"content": "Hi"}})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)")
        rows = [("s1", good), ("s1", "{"), ("s1", "7"), ("s2", good)]
        connection.executemany("INSERT INTO message_store (session_id, message) VALUES (?, ?)", rows)
    summary = summarise_chats(open_chats(path))
    assert (summary.conversations, summary.messages) == (2, 2)
    assert [problem.split(":")[0] for problem in summary.problems] == ["session s1, row 2", "session s1, row 3"]


def test_a_checkpoint_that_cannot_be_read_is_named_and_the_rest_comes(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB"
        connection.execute(f"CREATE TABLE checkpoints ({columns})")
        connection.execute("INSERT INTO checkpoints VALUES ('t1', '', '1', 'msgpack', x'c1', '{}')")
        connection.execute("INSERT INTO checkpoints VALUES ('t2', '', '1', 'nope', 'x', '{}')")
    summary = summarise_chats(open_chats(path))
    assert [problem.split(":")[0] for problem in summary.problems] == ["thread t1", "thread t2"]


def _archive(path: Path, text: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", text)
    return path


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = _archive(tmp_path / "export.zip", json.dumps([claude(f"c{n}", os.urandom(50).hex()) for n in range(50)]))
    whole = path.read_bytes()
    for data in (whole[:100] + bytes(100) + whole[200:], whole[: len(whole) // 2]):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"export\.zip.* damaged"):
            open_chats(path)


def test_an_archive_that_swells_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unpack it"):
        open_chats(_archive(tmp_path / "bomb.zip", "[" + " " * (80 << 20) + "]"))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        open_chats(tmp_path / "pipe")


def test_a_scope_that_names_a_session_is_refused(memory: eunoe.Memory, tmp_path: Path) -> None:
    chats = open_chats(write(tmp_path / "file.json", [claude("c1", "First")]))
    for arguments in ({"scope": "session=zz/user=anna"}, {"people": {"": "session=zz/user=anna"}}):
        with pytest.raises(InputError, match="session"):
            import_chats(memory, chats, **arguments)
    with pytest.raises(InputError, match="session"):
        check_owners(summarise_chats(chats), {}, "session=zz/user=anna")
    assert memory.scopes() == []


def test_an_id_that_stands_for_other_words_here_is_named(memory: eunoe.Memory, tmp_path: Path) -> None:
    import_chats(memory, open_chats(write(tmp_path / "file.json", [claude("c1", "First")])), "user=anna", form=False)
    changed = open_chats(write(tmp_path / "file.json", [claude("c1", "Other words", "Second")]))
    report = import_chats(memory, changed, "user=anna", form=False)
    assert report.stored == 1
    assert report.problems == ("conversation c1: ids of its messages stand for other words here, which stay",)
