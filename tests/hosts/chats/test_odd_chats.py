"""What is odd in a file of chats: it is named with its place, and the rest comes."""

import json
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import eunoe
from eunoe.errors import InputError
from eunoe.hosts.chats import check_owners, import_chats, open_chats, summarise_chats


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[eunoe.Memory]:
    with eunoe.open(tmp_path / "memory.db", embedder="none", llm="none") as opened:
        yield opened


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


def test_ids_that_are_shortened_stay_apart(memory: eunoe.Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "file.json", [claude("c" * 600 + end, f"I am {end}") for end in "ab"])
    assert import_chats(memory, open_chats(path), "user=anna", form=False).stored == 2
    assert len(memory.scopes()) == 2


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


def test_a_line_that_is_no_json_is_named_and_the_rest_comes(tmp_path: Path) -> None:
    line = '{"role": "user", "content": "Hi"}'
    for odd in ('{"role": "user", "con', '{"role": "user", "content": "Hi", "n": nope}', "[1", '{"a": 1}'):
        summary = summarise_chats(open_chats(write(tmp_path / "chat.jsonl", f"{line}\n{odd}\n{line}\n")))
        assert summary.messages == 2
        (problem,) = summary.problems
        assert "chat.jsonl:2" in problem


def test_numbers_of_any_length_are_read(tmp_path: Path) -> None:
    good, odd = '{"role": "user", "content": "Hi"}', '{"role": "user", "content": "Hi", "time": ' + "9" * 5000 + "}"
    summary = summarise_chats(open_chats(write(tmp_path / "chat.jsonl", f"{good}\n{odd}")))
    assert summary.messages == 1
    assert "time" in summary.problems[0]


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
