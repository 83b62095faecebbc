import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.discussion_files import (
    ROME,
    TEA,
    block,
    message_hash,
    snapshot,
    write_database,
    write_folder,
)

import eunoe
from eunoe.apps.discussion.documents import StateDocument, current_summary, new_since_summary
from eunoe.apps.discussion.files import FileKey, import_discussion, import_folder
from eunoe.apps.discussion.model import (
    Chunk,
    ChunkMemory,
    KeywordMemory,
    chunk_memories,
    discussion_ids,
    discussion_scope,
    keyword_memories,
    memory_item,
)
from eunoe.apps.discussion.settings import StateDocumentSettings
from eunoe.errors import ConflictError, InputError
from eunoe.memory import Memory

SCOPE = discussion_scope("trip")
HASH = "0123456789abcdef"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with eunoe.open(":memory:", llm="none") as memory:
        yield memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A discussion with everything that it can have."""
    folder = write_folder(
        tmp_path / "discussions" / "trip",
        [block("Anna moved.", "m1"), block("Anna met Ben.", "m2"), block("They went to Rome.", "m3")],
        chat_summary=[block("Anna moved and met Ben.", "m2")],
    )
    write_database(folder / "vector_memory.db", "trip", [TEA, ROME], [message_hash("m3")])
    (folder / "state_document.md").write_text("# Now\nAnna lives in Rome.\n")
    return folder


def texts(memory: Memory) -> list[str]:
    return [each.text for each in chunk_memories(memory, SCOPE)]


def held(memory: Memory) -> list[str]:
    """The whole store as its export has it."""
    lines: list[str] = []

    class Target:
        def write(self, text: str) -> None:
            lines.append(text)

    memory.admin.export(memory.scopes(), Target())  # type: ignore[arg-type]
    return [line for line in lines if '"version"' not in line[:40]]


def test_everything_is_taken_in(memory: Memory, folder: Path) -> None:
    report = import_discussion(memory, folder)
    assert (report.id, report.user, report.stored, report.notes) == ("trip", "default", 5, ())
    assert texts(memory) == ["Anna moved.", "Anna met Ben.", "They went to Rome."]
    assert [each.hash for each in chunk_memories(memory, SCOPE)] == [message_hash(f"m{n}") for n in (1, 2, 3)]
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == [TEA["summary"], ROME["summary"]]
    assert current_summary(memory, SCOPE) == "Anna moved and met Ben."
    assert [each.text for each in new_since_summary(memory, SCOPE)] == ["They went to Rome."]
    assert StateDocument(memory, SCOPE).read() == "# Now\nAnna lives in Rome.\n"


def test_twice_changes_nothing(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    before = held(memory)
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, report.unchanged) == (0, 0, 5)
    assert (report.summary, report.state_document) == (False, False)
    assert held(memory) == before


def test_the_files_are_not_touched(memory: Memory, folder: Path) -> None:
    before = snapshot(folder.parent)
    import_discussion(memory, folder)
    import_folder(memory, folder.parent)
    assert snapshot(folder.parent) == before


def test_a_file_that_has_grown_adds_what_is_new(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    blocks = json.loads((folder / "memories.json").read_text())
    write_folder(folder, [*blocks, block("Ben left.", "m4")], chat_summary=[block("All of it.", "m3")])
    write_database(folder / "vector_memory.db", "trip", [{**TEA, "summary": "Ben left."}], [message_hash("m4")])
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, report.summary) == (2, 0, True)
    assert texts(memory)[-1] == "Ben left."
    assert [each.text for each in new_since_summary(memory, SCOPE)] == ["Ben left."]


def test_what_changed_in_a_file_takes_the_place_of_what_it_said(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    write_folder(folder, [block("Anna moved to Rome.", "m1"), block("They went to Rome.", "m3")])
    with closing(sqlite3.connect(folder / "vector_memory.db")) as connection, connection:
        connection.execute("UPDATE memories SET memory_text = 'Anna likes coffee.' WHERE id = 1")
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended) == (2, 3)
    assert texts(memory) == ["Anna moved to Rome.", "They went to Rome."]
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == ["Anna likes coffee.", ROME["summary"]]
    assert current_summary(memory, SCOPE) == "Anna moved and met Ben."


def test_a_change_that_is_taken_back_counts_again(memory: Memory, folder: Path) -> None:
    original = json.loads((folder / "memories.json").read_text())
    for blocks in (original, [block("Other words.", "m1"), original[2]], original):
        write_folder(folder, blocks)
        import_discussion(memory, folder)
        assert texts(memory) == [each["text_block"] for each in blocks]
    for text in ("# Now\nAnna lives in Oslo.\n", "# Now\nAnna lives in Rome.\n"):
        (folder / "state_document.md").write_text(text)
        import_discussion(memory, folder)
        assert StateDocument(memory, SCOPE).read() == text


def test_what_was_made_here_since_stays(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    chunk = Chunk("chunk_memory", 4.0, "m4", "m5", "digest")
    own = ChunkMemory(text="Ben left.", hash=message_hash("m5"), id="chunk_memory:m4", chunk=chunk, place=4.0)
    memory.remember_many(SCOPE, [memory_item(own)])
    memory.summaries.write(SCOPE, "A newer summary.", author="model")
    import_discussion(memory, folder)
    assert texts(memory)[-1] == "Ben left."
    assert current_summary(memory, SCOPE) == "A newer summary."


def test_what_was_forgotten_stays_forgotten_until_asked_for(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    memory.forget(SCOPE, [chunk_memories(memory, SCOPE)[0].id])
    report = import_discussion(memory, folder)
    assert texts(memory) == ["Anna met Ben.", "They went to Rome."]
    assert any("forgotten here before" in note for note in report.notes)
    import_discussion(memory, folder, again=True)
    assert texts(memory) == ["Anna moved.", "Anna met Ben.", "They went to Rome."]


def test_a_forgotten_state_document_does_not_come_back_from_its_file(memory: Memory, folder: Path) -> None:
    path = folder / "state_document.md"
    path.write_text("The secret is 4711.")
    import_discussion(memory, folder)
    memory.forget(SCOPE, everything=True)
    import_discussion(memory, folder)
    assert StateDocument(memory, SCOPE).read() == ""
    path.write_text("Anna lives in Rome.")
    import_discussion(memory, folder)
    assert StateDocument(memory, SCOPE).read() == "Anna lives in Rome."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("memories.json", b'[{"text_block": "Anna mo'),
        ("memories.json", b""),
        ("chat_summary.json", b"{}"),
        ("vector_memory.db", b"SQLite format 3\x00 and nothing else"),
        ("state_document.md", b"\xff\xfe"),
        ("memories.json", b'[{"text_block": "\\ud800", "hash": "aa"}]'),
        pytest.param("chat_summary.json", FileKey.from_api_key("secret", b"salt").encrypt(b"[]"), id="encrypted"),
    ],
)
def test_with_a_damaged_file_nothing_is_taken_in(memory: Memory, folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(InputError, match="trip"):
        import_discussion(memory, folder)
    assert memory.scopes() == []


def test_one_refused_discussion_does_not_hold_up_the_others(memory: Memory, folder: Path) -> None:
    root = folder.parent
    (write_folder(root / "bad", [block("One.")]) / "chat_summary.json").write_bytes(b"[")
    write_folder(root / "my:chat", [block("One.")])
    report = import_folder(memory, root)
    assert [each.id for each in report.discussions] == ["trip"]
    assert [each.name for each in report.refused] == ["bad", "my:chat"]
    assert "chat_summary.json is damaged" in report.refused[0].reason
    assert "no id of a discussion" in report.refused[1].reason
    assert discussion_ids(memory) == ["trip"]
    assert import_discussion(memory, root / "my:chat", id="my-chat").stored == 1


def test_folders_by_hashed_key_are_users(memory: Memory, folder: Path) -> None:
    root = folder.parent
    write_folder(root / HASH / "trip", [block("Of another user.")])
    write_folder(root / ("f" * 16) / "trip", [block("Of a third one.")])
    report = import_folder(memory, root, users={"f" * 16: "carla"})
    assert [(each.user, each.id) for each in report.discussions] == [
        ("default", "trip"),
        (HASH, "trip"),
        ("carla", "trip"),
    ]
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", HASH))] == ["Of another user."]
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", "carla"))] == ["Of a third one."]
    assert len(texts(memory)) == 3


def test_encrypted_discussions_need_their_key_or_are_refused_by_name(memory: Memory, tmp_path: Path) -> None:
    keys = {HASH: FileKey.from_api_key("secret", b"salt"), "f" * 16: FileKey.from_api_key("other", b"pepper")}
    for user, key in keys.items():
        folder = tmp_path / user / "trip"
        folder.mkdir(parents=True)
        (folder / "memories.json").write_bytes(key.encrypt(json.dumps([block(f"Of {user}.")]).encode()))
    refused = import_folder(memory, tmp_path).refused
    assert [each.name for each in refused] == [f"{HASH}/trip", f"{'f' * 16}/trip"]
    assert all("is encrypted: give the API key" in each.reason for each in refused)
    assert memory.scopes() == []
    report = import_folder(memory, tmp_path, keys=keys[HASH])
    assert [each.name for each in report.refused] == [f"{'f' * 16}/trip"]
    assert import_folder(memory, tmp_path, keys=keys).refused == ()
    assert [each.text for each in chunk_memories(memory, discussion_scope("trip", HASH))] == [f"Of {HASH}."]


def test_rows_of_other_discussions_are_not_mixed_in(memory: Memory, tmp_path: Path) -> None:
    path = write_database(tmp_path / "trip_vector_memory.db", "trip", [TEA])
    write_database(path, "secret", [ROME])
    report = import_discussion(memory, path)
    assert [each.summary for each in keyword_memories(memory, SCOPE)] == [TEA["summary"]]
    assert report.notes == (f"{path} holds 1 memories of other discussions: they are left out",)


def test_a_summary_without_its_memory_counts_for_all(memory: Memory, folder: Path) -> None:
    write_folder(folder, chat_summary=[block("So far.", "unknown")])
    report = import_discussion(memory, folder)
    assert any("ends on a memory that is not there" in note for note in report.notes)
    assert new_since_summary(memory, SCOPE) == []


def test_two_imports_at_once_do_not_meet(memory: Memory, folder: Path) -> None:
    lease = memory.leases.acquire(SCOPE, "import")
    assert lease
    with pytest.raises(ConflictError, match="being imported by another process"):
        import_discussion(memory, folder)
    memory.leases.release(SCOPE, lease)
    assert import_discussion(memory, folder).stored == 5


def test_an_imported_document_holds_the_imported_memories(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    document, settings = StateDocument(memory, SCOPE), StateDocumentSettings(is_on=True)
    assert document.update(settings, None) == "unchanged"
    made = KeywordMemory(title="Cup", summary="Anna bought a cup.", id="k1", place=9.0)
    memory.remember_many(SCOPE, [memory_item(made)])
    assert document.update(settings, None) == "written"
    assert document.read() == "# Now\nAnna lives in Rome.\n- Anna bought a cup."


def test_what_was_put_right_here_stays_so(memory: Memory, folder: Path) -> None:
    import_discussion(memory, folder)
    first = chunk_memories(memory, SCOPE)[0]
    memory.update(SCOPE, first.id, "Anna moved to Oslo.")
    report = import_discussion(memory, folder)
    assert (report.stored, report.ended, texts(memory)[0]) == (0, 0, "Anna moved to Oslo.")
